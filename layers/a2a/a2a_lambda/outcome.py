"""What a turn comes to: an agent's updates, folded in order into a state, messages and artifacts. Pure."""

from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from a2a_lambda.agent import ArtifactUpdate, Reply, StatusUpdate
from a2a_lambda.errors import InvalidAgentResponseError
from a2a_lambda.model import Artifact, Message, Part, Role, TaskState
from a2a_lambda.portable import is_portable

TERMINAL: Final = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
INTERRUPTED: Final = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
CLOSING: Final = TERMINAL | INTERRUPTED
"""The states that end a turn."""

REPORTABLE: Final = frozenset(TaskState) - {TaskState.SUBMITTED, TaskState.CANCELED}
"""The states that an agent may report: what is left belongs to the server and to the caller."""

T = TypeVar("T")


class OutputTooLargeError(Exception):
    """An agent gave more than a task may hold. The message says which limit, to the caller."""


class ArtifactDelta(Struct, frozen=True, omit_defaults=True):
    """What one turn did to one artifact: it gave it, or added parts to what earlier turns gave."""

    artifact: Artifact
    append: bool = False


class ArtifactNews(Struct, frozen=True):
    """What is new of one artifact: all of it, or with `append` the parts that came behind others."""

    artifact: Artifact
    append: bool
    last_chunk: bool


class Outcome:
    """A turn while its agent runs.

    An agent's values are copied as they come: what it does to them afterwards changes nothing here.
    """

    def __init__(self, message: Message, *, max_artifact_bytes: int, max_bytes: int, new_id: Callable[[], str]) -> None:
        """Begin a turn.

        Args:
            message: the client's, with the ids of its task and context.
            max_artifact_bytes: the most JSON that one artifact may have.
            max_bytes: the most JSON that all artifacts and the status message may have together.
            new_id: gives ids, none twice.
        """
        self._message = message
        self._max_artifact_bytes = max_artifact_bytes
        self._max_bytes = max_bytes
        self._new_id = new_id
        self._deltas: dict[str, ArtifactDelta] = {}
        self._sizes: dict[str, int] = {}
        self._news: dict[str, ArtifactNews] = {}
        self._telling: dict[str, ArtifactNews] = {}
        self._is_said, self._saying = False, False
        self._updates = 0
        self.artifact_bytes = 0
        """The size of what the turn did to the task's artifacts, as JSON."""
        self.state = TaskState.WORKING
        self.status_message: Message | None = None
        self.is_reply = False
        """Whether the turn was nothing but a reply, which needs no task."""

    def apply(self, update: object) -> None:
        """Fold one more update in.

        Raises:
            InvalidAgentResponseError: it is not an update, comes after the one that closed the turn, lacks parts
                that it needs, or holds what JSON cannot.
            OutputTooLargeError: it is more than the task may hold.
        """
        if self.is_closed:
            raise InvalidAgentResponseError(f"an update after {self.state.value}")
        match update:
            case ArtifactUpdate():
                self._give(update)
            case StatusUpdate(state, parts) if state in REPORTABLE:
                if state in INTERRUPTED and not parts:
                    raise InvalidAgentResponseError(f"{state.value} without a message")
                self.status_message = self._say(parts) if parts else None
                self.state, self._is_said = state, True
            case Reply(parts):
                self.status_message = self._say(parts)
                self.state, self.is_reply = TaskState.COMPLETED, self._updates == 0
            case _:
                raise InvalidAgentResponseError(f"{type(update).__name__} is not an update that an agent may give")
        self._updates += 1

    def close(self) -> None:
        """Complete the task if the agent ended without a final update."""
        if not self.is_closed:
            self.state, self.status_message = TaskState.COMPLETED, None

    def fail(self, reason: str) -> None:
        """Fail the task for a reason that is the server's to give; artifacts given so far stay."""
        self.state, self.is_reply = TaskState.FAILED, False
        self.status_message = self._message_of([Part(text=reason)])

    @property
    def is_closed(self) -> bool:
        """Whether an update has closed the turn."""
        return self.state in CLOSING

    @property
    def messages(self) -> list[Message]:
        """The turn's part of the history: the client's message, and the question that ended the turn."""
        if self.state in INTERRUPTED and self.status_message is not None:
            return [self._message, self.status_message]
        return [self._message]

    @property
    def deltas(self) -> list[ArtifactDelta]:
        """What the turn did to the task's artifacts, in the order in which it first touched them."""
        return list(self._deltas.values())

    @property
    def given(self) -> list[ArtifactNews]:
        """What is to be told of the artifacts, in the order in which the news began."""
        return list(_merged(self._telling, self._news).values())

    @property
    def has_said(self) -> bool:
        """Whether it is to be told what the state is, or what was said with it."""
        return self._saying or self._is_said

    @property
    def has_news(self) -> bool:
        """Whether anything is still to be told."""
        return self.has_said or bool(self._news) or bool(self._telling)

    def tell(self) -> None:
        """Begin to tell all news: what is new from now on is told the next time."""
        self._telling, self._news = _merged(self._telling, self._news), {}
        self._saying, self._is_said = self.has_said, False

    def told(self) -> None:
        """Forget what was being told. What is kept of the turn stays."""
        self._telling, self._saying = {}, False

    def _give(self, update: ArtifactUpdate) -> None:
        given, size = _copied(
            Artifact(
                artifact_id=update.artifact_id or self._new_id(),
                parts=list(update.parts),
                name=update.name,
                description=update.description,
                metadata=update.metadata,
            ),
            update.parts,
        )
        key, append = given.artifact_id, update.append
        earlier = self._deltas.get(key) if append else None
        if earlier:
            size, append = size + self._sizes[key], earlier.append
        if size > self._max_artifact_bytes:
            raise OutputTooLargeError(f"The agent gave an artifact of more than {self._max_artifact_bytes} bytes.")
        whole_size = self.artifact_bytes - self._sizes.get(key, 0) + size
        self._check_room(whole_size)
        _add(self._news, ArtifactNews(given, append=update.append, last_chunk=update.last_chunk))
        whole = extended(earlier.artifact, given) if earlier else given
        self._deltas[key], self._sizes[key] = ArtifactDelta(whole, append), size
        self.artifact_bytes = whole_size

    def _say(self, parts: Iterable[Part]) -> Message:
        message = self._message_of(parts)
        copy, size = _copied(message, message.parts)
        self._check_room(self.artifact_bytes + size)
        return copy

    def _check_room(self, size: int) -> None:
        if size > self._max_bytes:
            raise OutputTooLargeError("The agent gave more than a task of this server may hold.")

    def _message_of(self, parts: Iterable[Part]) -> Message:
        return Message(
            message_id=self._new_id(),
            role=Role.AGENT,
            parts=list(parts),
            task_id=self._message.task_id,
            context_id=self._message.context_id,
        )


def _merged(earlier: Mapping[str, ArtifactNews], later: Mapping[str, ArtifactNews]) -> dict[str, ArtifactNews]:
    """Return news with what came later. Neither is changed, now or by what is added."""
    merged: dict[str, ArtifactNews] = {}
    for news in (*earlier.values(), *later.values()):
        _add(merged, news)
    return merged


def _add(told: dict[str, ArtifactNews], news: ArtifactNews) -> None:
    """Add to what is told of an artifact: behind what is there, or in its place."""
    fresh = replace(news.artifact, parts=list(news.artifact.parts))
    known = told.get(fresh.artifact_id) if news.append else None
    whole = extended(known.artifact, fresh) if known else fresh
    told[fresh.artifact_id] = ArtifactNews(whole, known.append if known else news.append, news.last_chunk)


def extended(artifact: Artifact, more: Artifact) -> Artifact:
    """Return an artifact with more of it: more parts behind its own, and what else it says instead."""
    artifact.parts.extend(more.parts)
    return replace(
        artifact,
        name=more.name or artifact.name,
        description=more.description or artifact.description,
        metadata=artifact.metadata if more.metadata is UNSET else more.metadata,
    )


def _copied(value: T, parts: Iterable[Part]) -> tuple[T, int]:
    """Return a copy of what an agent made and its size: it has gone through JSON once, and so will again.

    Raises:
        InvalidAgentResponseError: there are no parts, or one is not exactly one thing, or JSON cannot hold it.
    """
    if not parts:
        raise InvalidAgentResponseError("a message or an artifact without parts")
    try:
        content = msgspec.json.encode(value)
        plain = msgspec.to_builtins(value, builtin_types=(bytes,))
        copy = msgspec.json.decode(content, type=type(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidAgentResponseError(f"a value that JSON cannot hold: {type(error).__name__}") from error
    if not is_portable(content, plain):
        raise InvalidAgentResponseError("JSON that nests too deeply, or a number too large, for others to read")
    if _has_no_number(plain):
        raise InvalidAgentResponseError("a number that JSON cannot hold")
    if any(sum(getattr(part, name) is not UNSET for name in Part.ONEOF) != 1 for part in parts):
        raise InvalidAgentResponseError("a part that is not exactly one of text, raw, url and data")
    return copy, len(content)


def _has_no_number(plain: Any) -> bool:
    """Tell whether a value holds a float that is not a number, or infinite: msgspec would write null."""
    waiting = [plain]
    while waiting:
        each = waiting.pop()
        if isinstance(each, float) and not isfinite(each):
            return True
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each
    return False
