"""What the words of `scripted` should come to: the reference's half."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.fuzz.matching import Containing, Json, Made
from tests.fuzz.scripted import BIG

TERMINAL: Final = frozenset({"COMPLETED", "FAILED", "CANCELED", "REJECTED"})
INTERRUPTED: Final = frozenset({"INPUT_REQUIRED", "AUTH_REQUIRED"})

CLOSINGS: Final[Mapping[str, tuple[str, bool]]] = {
    "say": ("WORKING", True),
    "hush": ("WORKING", False),
    "ask": ("INPUT_REQUIRED", True),
    "login": ("AUTH_REQUIRED", True),
    "done": ("COMPLETED", False),
    "thanks": ("COMPLETED", True),
    "fail": ("FAILED", True),
    "refuse": ("REJECTED", True),
    "reply": ("COMPLETED", True),
}
"""The state that a word reports, and whether it says something with it."""

COULD_NOT: Final = "could not finish"


@dataclass(frozen=True)
class Word:
    """One word of a message: what it asks for, and at which place it stands."""

    number: int
    kind: str
    name: str

    @property
    def said(self) -> str:
        return f"{self.kind} {self.number}"


def words_of(message: Json) -> list[Word]:
    texts = "\n".join(part["text"] for part in message["parts"])
    parted = (word.partition(":") for word in texts.split())
    return [Word(number, kind, name) for number, (kind, _, name) in enumerate(parted)]


@dataclass
class Work:
    """What an agent has come to in a turn."""

    artifacts: dict[Any, Json]
    task_id: Json
    context: Json
    state: str = "WORKING"
    said: Json = None
    updates: int = 0
    is_reply: bool = False
    has_news: bool = False
    has_said: bool = False
    dies: bool = False
    vanishes: bool = False
    lost_to: str = ""
    """The state in which the run was found ended by another."""

    @property
    def is_closed(self) -> bool:
        return self.state in TERMINAL | INTERRUPTED

    def close(self, state: str, said: Json) -> None:
        self.state, self.said, self.has_news, self.has_said = state, said, True, True

    def fail(self, word: str) -> None:
        self.is_reply = False
        self.close("FAILED", agent_says(Containing(word)))

    def apply(self, word: Word, told: str, known: Json) -> bool:
        """Take one update, and tell whether it was a valid one."""
        if self.lost_to:
            return True
        if self.is_closed or word.kind in ("odd", "cancel"):
            self.fail(COULD_NOT)
            return False
        if word.kind in CLOSINGS:
            state, says = CLOSINGS[word.kind]
            self.close(state, agent_says(word.said) if says else None)
            self.is_reply = word.kind == "reply" and self.updates == 0
        else:
            self._give(ARTIFACTS[word.kind](word, told, known), append=word.kind == "more")
        self.updates += 1
        return True

    def _give(self, artifact: Json, *, append: bool) -> None:
        key = artifact["artifactId"]
        known = self.artifacts.get(key)
        if append and known:
            artifact = {**known, **artifact, "parts": known["parts"] + artifact["parts"]}
        self.artifacts = {**self.artifacts, key: artifact}
        self.has_news = True


def agent_says(said: Json) -> Json:
    return {"messageId": Made(), "role": "ROLE_AGENT", "parts": [{"text": said}]}


def _text(said: str) -> Json:
    return {"text": said}


def _data(value: Json) -> Json:
    return {"data": value, "mediaType": "application/json"}


def _made(parts: list[Json], name: str = "") -> Json:
    return {"artifactId": Made(), "parts": parts} | ({"name": name} if name else {})


ARTIFACTS: Final[Mapping[str, Callable[[Word, str, Json], Json]]] = {
    "give": lambda word, _told, _known: {
        "artifactId": word.name,
        "name": word.said,
        "parts": [_text(word.said)],
        "metadata": {"number": word.number},
    },
    "more": lambda word, _told, _known: {
        "artifactId": word.name,
        "description": word.said,
        "parts": [_text(word.said)],
    },
    "new": lambda word, _told, _known: _made([_text(word.said), _data({"number": word.number})]),
    "big": lambda word, _told, _known: _made([_text(BIG)], word.said),
    "recall": lambda word, told, _known: _made([_text(told)], word.said),
    "echo": lambda word, _told, known: _made([_data(known)], word.said),
}
"""What a word gives: also what the agent was told of earlier messages, and what it knows of its turn."""
