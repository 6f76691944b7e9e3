"""An agent that does what its message says, word by word. What that should come to is told in `reference`."""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from a2a_lambda import agent as api
from a2a_lambda.agent import Agent, Turn, Update, Updates
from a2a_lambda.model import TaskState
from tests.unit.factories import PROFILE, texts

STEPS: Final = (
    *("say", "hush", "give:a", "give:b", "more:a", "more:c", "new", "big", "recall", "echo"),
    *("wait", "wait", "meanwhile", "meanwhile", "linger"),
)
"""Words after which a turn goes on."""

ENDS: Final = (
    *("ask", "login", "done", "thanks", "fail", "refuse", "reply", "stop"),
    *("raise", "odd", "cancel", "die", "vanish"),
)
"""Words that end a turn, or should."""

SCENES: Final = (
    *("ask", "reply", "wait meanwhile reply", "die", "vanish", "meanwhile vanish", "recall echo ask", "linger ask"),
    *("say give:a wait die", "give:b wait meanwhile say wait ask", "new wait more:a meanwhile more:a login"),
)
"""What is worth saying more often."""

LINGER_SECONDS: Final = 9
BIG: Final = "x" * 9000
"""More than rides in an item of its task."""


class Stage(Protocol):
    """Where the agent acts."""

    def wait(self, seconds: int) -> None:
        """Let time pass."""

    def meanwhile(self) -> None:
        """Let something else happen."""

    def die(self) -> None:
        """Have the function stopped before it writes anything more."""

    def vanish(self) -> None:
        """Have the function stopped after its next write that counts."""


class WordsError(Exception):
    """What the agent raises when it is told to."""


class ScriptedAgent(Agent):
    """One that takes the words of its message for what it is to do."""

    card = PROFILE

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def respond(self, turn: Turn) -> Updates:
        for number, word in enumerate(turn.text.split()):
            kind, _, name = word.partition(":")
            if kind == "stop":
                return
            if kind in UPDATES:
                yield UPDATES[kind](turn, number, f"{kind} {number}", name)
            else:
                self._act(kind)

    def _act(self, kind: str) -> None:
        match kind:
            case "wait":
                self._stage.wait(1)
            case "linger":
                self._stage.wait(LINGER_SECONDS)
            case "meanwhile":
                self._stage.meanwhile()
            case "die":
                self._stage.die()
            case "vanish":
                self._stage.vanish()
            case _:
                raise WordsError


def _known(turn: Turn) -> dict[str, object]:
    return {
        "task": turn.task_id,
        "context": turn.context_id,
        "caller": turn.caller,
        "message": turn.message.message_id,
        "metadata": turn.metadata,
        "modes": turn.accepted_output_modes,
    }


UPDATES: Final[Mapping[str, Callable[[Turn, int, str, str], Update]]] = {
    "say": lambda _turn, _number, said, _name: api.working(said),
    "hush": lambda _turn, _number, _said, _name: api.working(),
    "give": lambda _turn, number, said, name: api.artifact(
        said, artifact_id=name, name=said, metadata={"number": number}
    ),
    "more": lambda _turn, _number, said, name: api.artifact(said, artifact_id=name, append=True, description=said),
    "new": lambda _turn, number, said, _name: api.artifact([api.text(said), api.data({"number": number})]),
    "big": lambda _turn, _number, said, _name: api.artifact(BIG, name=said),
    "recall": lambda turn, _number, said, _name: api.artifact(" | ".join(texts(turn.earlier_messages())), name=said),
    "echo": lambda turn, _number, said, _name: api.artifact(api.data(_known(turn)), name=said),
    "ask": lambda _turn, _number, said, _name: api.input_required(said),
    "login": lambda _turn, _number, said, _name: api.auth_required(said),
    "done": lambda _turn, _number, _said, _name: api.completed(),
    "thanks": lambda _turn, _number, said, _name: api.completed(said),
    "fail": lambda _turn, _number, said, _name: api.failed(said),
    "refuse": lambda _turn, _number, said, _name: api.rejected(said),
    "reply": lambda _turn, _number, said, _name: api.reply(said),
    "cancel": lambda _turn, _number, _said, _name: api.StatusUpdate(TaskState.CANCELED),
    "odd": lambda _turn, _number, _said, _name: api.artifact([]),
}
"""The update for a word: of which turn, at which place, what is said, which artifact. The last two are not valid."""
