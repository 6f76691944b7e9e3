"""The life of a task: which states follow which, and what a turn adds. Pure: no clock, no ids, no I/O.

A task is a row of turns. A turn is a client's message and what the agent made of it: its question, its
artifacts, the state that it left the task in. `Head` is what is known of a task at one moment, and the functions
lead from one `Head` to the next. What an agent makes of a turn is `outcome`'s business, keeping a `Head` is
`store`'s.

Times are milliseconds since the epoch.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from a2a_lambda.errors import InvalidParamsError, UnsupportedOperationError
from a2a_lambda.model import Artifact, Message, Part, Role, TaskState
from a2a_lambda.outcome import INTERRUPTED, TERMINAL, ArtifactDelta, Outcome, extended

MESSAGE_WINDOW: Final = 30 * 24 * 3600 * 1000
"""How long after its creation a task takes messages. Items beside the head are kept by this bound."""

OUTCOME_UNKNOWN: Final = (
    "The agent stopped before it reported a result. What it did until then is unknown, so it was not run again."
)


class Limits(Struct, frozen=True, kw_only=True):
    """How much a task may hold."""

    max_messages: int
    """Messages of the client and questions of the agent."""
    max_artifact_bytes: int
    """JSON of one artifact, as one turn gives it."""
    max_task_bytes: int
    """JSON of all artifacts, replaced ones included, and of the status message: what an answer must carry."""


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
    message_key: str = ""
    """What stands for the client's message that began the newest turn (`retries.message_key`)."""
    messages: Content
    """The newest turn's messages, a JSON array, without the ids that all messages of a task share."""
    artifacts: Content | None = None
    """The newest turn's artifacts, a JSON array of `ArtifactDelta`."""
    artifact_turns: int = 0
    """How many earlier turns left artifacts."""
    artifact_bytes: int = 0
    """The size of what all turns left as artifacts."""
    message_count: int = 1
    deadline: int | None = None
    """When a running turn is given up for dead. Set exactly while a turn runs."""
    retention: int = 0
    """How long the task is kept after its last change of state, in seconds: the store's setting when it was created."""
    write: str = ""
    """The id of the write that kept it, for the store."""


class DirectReply(Struct, frozen=True, kw_only=True):
    """The answer to a message that needed no task, kept where the task would be, for copies of the message."""

    task_id: str
    owner: str
    created_at: int
    content: bytes
    """The message, as JSON."""


def begin(*, owner: str, message: Message, key: str, now: int, deadline: int) -> Head:
    """Return a new task with its first message, which has the task's and the context's id, WORKING."""
    return Head(
        task_id=message.task_id,
        owner=owner,
        context_id=message.context_id,
        state=TaskState.WORKING,
        status_at=now,
        created_at=now,
        message_key=key,
        messages=encode_messages([message]),
        deadline=deadline,
    )


def admit(head: Head, message: Message, now: int, limits: Limits) -> None:
    """Check that the task takes this message now (§3.4.2).

    Raises:
        InvalidParamsError: the message names another context than the task's.
        UnsupportedOperationError: the task is finished, a turn is running, or it is too old or too long.
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
    if head.message_count + 2 > limits.max_messages:
        raise UnsupportedOperationError(
            f"The task may have {limits.max_messages} messages, and has no room for one and its answer", state=state
        )


def follow(head: Head, message: Message, *, key: str, now: int, deadline: int) -> Head:
    """Return the task with the next turn begun: WORKING on this message until the deadline."""
    return replace(
        head,
        state=TaskState.WORKING,
        status_at=max(now, head.status_at),
        status_message=None,
        revision=head.revision + 1,
        turn=head.turn + 1,
        message_key=key,
        messages=encode_messages([message]),
        artifacts=None,
        artifact_turns=head.artifact_turns + (head.artifacts is not None),
        message_count=head.message_count + 1,
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


def finish(head: Head, outcome: Outcome, *, now: int) -> Head:
    """Return the task after the turn that `head` has begun: in the outcome's state, with the turn's content."""
    said = None if outcome.state in INTERRUPTED else outcome.status_message
    return replace(
        head,
        state=outcome.state,
        status_at=max(now, head.status_at),
        status_message=msgspec.json.encode(_bare(said)) if said else None,
        revision=head.revision + 1,
        messages=encode_messages(outcome.messages),
        artifacts=msgspec.json.encode(outcome.deltas) if outcome.deltas else None,
        artifact_bytes=head.artifact_bytes + outcome.artifact_bytes,
        message_count=head.message_count + len(outcome.messages) - 1,
        deadline=None,
    )


def fold_artifacts(turns: Iterable[Iterable[ArtifactDelta]]) -> list[Artifact]:
    """Return a task's artifacts, each as its last turn left it, in the order in which they were first given."""
    artifacts: dict[str, Artifact] = {}
    for deltas in turns:
        for delta in deltas:
            key = delta.artifact.artifact_id
            known = artifacts.get(key) if delta.append else None
            artifacts[key] = extended(known, delta.artifact) if known else delta.artifact
    return list(artifacts.values())


def encode_messages(messages: Iterable[Message]) -> bytes:
    """Return messages as they are stored: JSON without the task's and context's ids, which the head has."""
    return msgspec.json.encode([_bare(message) for message in messages])


def within(head: Head, message: Message) -> Message:
    """Return a stored message as it is shown: with the ids of its task and context."""
    return replace(message, task_id=head.task_id, context_id=head.context_id)


def _bare(message: Message) -> Message:
    return replace(message, task_id="", context_id="")
