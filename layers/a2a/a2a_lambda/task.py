"""The life of a task: which states follow which, and what a turn adds. Pure: no clock, no ids, no I/O.

A task is a row of turns. A turn is a client's message and what the agent made of it: its question, its
artifacts, the state that it left the task in. `Head` is what is known of a task at one moment, `Outcome`
collects a turn while the agent runs, and the functions lead from one `Head` to the next. Keeping a `Head` is
`store`'s business.

Times are milliseconds since the epoch.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from a2a_lambda.agent import ArtifactUpdate, Reply, StatusUpdate
from a2a_lambda.errors import InvalidAgentResponseError, InvalidParamsError, UnsupportedOperationError
from a2a_lambda.model import Artifact, Message, Part, Role, TaskState, WireType

TERMINAL: Final = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
INTERRUPTED: Final = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
CLOSING: Final = TERMINAL | INTERRUPTED
"""The states that end a turn."""

MESSAGE_WINDOW: Final = 30 * 24 * 3600 * 1000
"""How long after its creation a task takes messages. Items beside the head are kept by this bound."""

AGENT_FAILED: Final = "The agent could not finish this task."
OUTCOME_UNKNOWN: Final = (
    "The agent stopped before it reported a result. What it did until then is unknown, so it was not run again."
)

T = TypeVar("T")


class Beside(Struct, frozen=True):
    """Where content lies that is too large for the head: in items of its own, under this key."""

    key: str
    items: int


Content = bytes | Beside
"""A piece of a task as JSON: here, or beside the head."""


class Head(Struct, frozen=True, kw_only=True):
    """A task at one moment: its state, and its newest turn. Earlier turns are found by their numbers."""

    task_id: str
    owner: str
    context_id: str
    state: TaskState
    status_at: int
    status_message: Content | None = None
    """What was said with the state. None in an interrupted state, whose question ends the newest turn."""
    created_at: int
    revision: int = 1
    turn: int = 1
    """The newest turn's number."""
    messages: Content
    """The newest turn's messages, a JSON array, without the ids that all messages of a task share."""
    artifacts: Content | None = None
    """The newest turn's artifacts, a JSON array of `ArtifactDelta`."""
    artifact_turns: int = 0
    """How many earlier turns left artifacts."""
    deadline: int | None = None
    """When a running turn is given up for dead. Set exactly while a turn runs."""


class ArtifactDelta(WireType, frozen=True):
    """What one turn did to one artifact: it gave it, or added parts to what earlier turns gave."""

    artifact: Artifact
    append: bool = False


def begin(*, owner: str, message: Message, now: int, deadline: int) -> Head:
    """Return a new task with its first message, which has the task's and the context's id, WORKING."""
    return Head(
        task_id=message.task_id,
        owner=owner,
        context_id=message.context_id,
        state=TaskState.WORKING,
        status_at=now,
        created_at=now,
        messages=encode_messages([message]),
        deadline=deadline,
    )


def admit(head: Head, message: Message, now: int) -> None:
    """Check that the task takes this message now (§3.4.2).

    Raises:
        InvalidParamsError: the message names another context than the task's.
        UnsupportedOperationError: the task is finished, a turn is running, or the task is too old.
    """
    if message.context_id and message.context_id != head.context_id:
        raise InvalidParamsError.at("message.contextId", "must be the context of the task, or be left out")
    state = head.state.value
    if head.state in TERMINAL:
        raise UnsupportedOperationError(f"The task is finished ({state}) and takes no more messages", state=state)
    if head.state not in INTERRUPTED:
        raise UnsupportedOperationError(f"The task is busy ({state}); send the message when it is done", state=state)
    if now >= head.created_at + MESSAGE_WINDOW:
        raise UnsupportedOperationError("The task is older than 30 days and takes no more messages", state=state)


def follow(head: Head, message: Message, *, now: int, deadline: int) -> Head:
    """Return the task with the next turn begun: WORKING on this message until the deadline."""
    return replace(
        head,
        state=TaskState.WORKING,
        status_at=max(now, head.status_at),
        status_message=None,
        revision=head.revision + 1,
        turn=head.turn + 1,
        messages=encode_messages([message]),
        artifacts=None,
        artifact_turns=head.artifact_turns + (head.artifacts is not None),
        deadline=deadline,
    )


def is_overdue(head: Head, now: int) -> bool:
    """Tell whether a turn should be running but has outlived its deadline: its function has died."""
    return head.deadline is not None and now >= head.deadline


def give_up(head: Head, *, message_id: str, now: int) -> Head:
    """Return an overdue task as FAILED, with a message saying that its outcome is unknown."""
    message = Message(message_id, Role.AGENT, [Part(text=OUTCOME_UNKNOWN)])
    return replace(
        head,
        state=TaskState.FAILED,
        status_at=max(now, head.status_at),
        status_message=msgspec.json.encode(message),
        revision=head.revision + 1,
        deadline=None,
    )


class Outcome:
    """What a turn has come to so far: the agent's updates, folded in order.

    An agent's values are copied as they come: what it does to them afterwards changes nothing here.
    """

    def __init__(self, message: Message, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._message = message
        self._deltas: dict[str, ArtifactDelta] = {}
        self._updates = 0
        self.state = TaskState.WORKING
        self.status_message: Message | None = None
        self.direct_reply: Message | None = None
        """The answer, where the turn was nothing but a reply: with no task's id, as no task is needed."""

    def apply(self, update: object) -> None:
        """Fold one more update in.

        Raises:
            InvalidAgentResponseError: it is not an update, comes after the one that closed the turn, lacks parts that
                it needs, or holds what JSON cannot.
        """
        if self.state in CLOSING:
            raise InvalidAgentResponseError(f"an update after {self.state.value}")
        if isinstance(update, ArtifactUpdate):
            self._give(update)
        elif isinstance(update, StatusUpdate):
            self._change_state(update)
        elif isinstance(update, Reply):
            self._reply(update)
        else:
            raise InvalidAgentResponseError(f"{type(update).__name__} is not an update")
        self._updates += 1

    def close(self) -> None:
        """Complete the task if the agent ended without a final update."""
        if self.state not in CLOSING:
            self.state, self.status_message = TaskState.COMPLETED, None

    def fail(self, reason: str) -> None:
        """Fail the task for a reason that is the server's to give; artifacts given so far stay."""
        self.state, self.direct_reply = TaskState.FAILED, None
        self.status_message = self._say((Part(text=reason),))

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

    def _say(self, parts: Iterable[Part]) -> Message:
        message = Message(
            message_id=self._new_id(),
            role=Role.AGENT,
            parts=list(parts),
            task_id=self._message.task_id,
            context_id=self._message.context_id,
        )
        return _checked(message, message.parts)

    def _change_state(self, update: StatusUpdate) -> None:
        if update.state in INTERRUPTED and not update.parts:
            raise InvalidAgentResponseError(f"{update.state.value} without a message")
        message = self._say(update.parts) if update.parts else None
        self.state, self.status_message = update.state, message

    def _reply(self, update: Reply) -> None:
        self.state, self.status_message = TaskState.COMPLETED, self._say(update.parts)
        if self._updates == 0:
            self.direct_reply = replace(self.status_message, task_id="")

    def _give(self, update: ArtifactUpdate) -> None:
        given = Artifact(
            artifact_id=update.artifact_id or self._new_id(),
            name=update.name,
            description=update.description,
            parts=list(update.parts),
            metadata=update.metadata,
        )
        given = _checked(given, given.parts)
        earlier = self._deltas.get(given.artifact_id)
        if update.append and earlier:
            given = _extended(earlier.artifact, given)
        self._deltas[given.artifact_id] = ArtifactDelta(
            artifact=given, append=update.append and (earlier is None or earlier.append)
        )


def finish(head: Head, outcome: Outcome, *, now: int) -> Head:
    """Return the task after its running turn: in the outcome's state, with the turn's content.

    `head` is the turn as begun, claimed in the store or not: the same turn's number, one revision on.
    """
    said = None if outcome.state in INTERRUPTED else outcome.status_message
    return replace(
        head,
        state=outcome.state,
        status_at=max(now, head.status_at),
        status_message=msgspec.json.encode(_bare(said)) if said else None,
        revision=head.revision + 1,
        messages=encode_messages(outcome.messages),
        artifacts=msgspec.json.encode(outcome.deltas) if outcome.deltas else None,
        deadline=None,
    )


def fold_artifacts(turns: Iterable[Iterable[ArtifactDelta]]) -> list[Artifact]:
    """Return a task's artifacts, each as its last turn left it, in the order in which they were first given."""
    artifacts: dict[str, Artifact] = {}
    for deltas in turns:
        for delta in deltas:
            key = delta.artifact.artifact_id
            known = artifacts.get(key) if delta.append else None
            artifacts[key] = _extended(known, delta.artifact) if known else delta.artifact
    return list(artifacts.values())


def encode_messages(messages: Iterable[Message]) -> bytes:
    """Return messages as they are stored: JSON without the task's and context's ids, which the head has."""
    return msgspec.json.encode([_bare(message) for message in messages])


def within(head: Head, message: Message) -> Message:
    """Return a stored message as it is shown: with the ids of its task and context."""
    return replace(message, task_id=head.task_id, context_id=head.context_id)


def _bare(message: Message) -> Message:
    return replace(message, task_id="", context_id="")


def _extended(artifact: Artifact, more: Artifact) -> Artifact:
    artifact.parts.extend(more.parts)
    return replace(
        artifact,
        name=more.name or artifact.name,
        description=more.description or artifact.description,
        metadata=artifact.metadata if more.metadata is UNSET else more.metadata,
    )


def _checked(value: T, parts: list[Part]) -> T:
    """Return a copy of what an agent made, which has gone through JSON once and so will again."""
    if not parts:
        raise InvalidAgentResponseError("a message or an artifact without parts")
    try:
        copy = msgspec.json.decode(msgspec.json.encode(value), type=type(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidAgentResponseError(f"a value that JSON cannot hold: {type(error).__name__}") from error
    if any(sum(getattr(part, name) is not UNSET for name in Part.ONEOF) != 1 for part in parts):
        raise InvalidAgentResponseError("a part that is not exactly one of text, raw, url and data")
    return copy
