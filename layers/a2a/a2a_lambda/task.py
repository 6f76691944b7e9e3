"""The life of a task: which states follow which, and what a turn adds. Pure: no clock, no ids, no I/O.

A task is a row of turns. A turn is a client's message and what the agent made of it: its question, its
artifacts, the state that it left the task in. `Head` is what is known of a task at one moment, and the functions
lead from one `Head` to the next. What an agent makes of a turn is `outcome`'s business, keeping a `Head` is
`store`'s.

    begin, follow ── finish                             a read-only agent, in the request
    begin, follow ─ (progress)* ─ finish                an acting one, claimed before it starts
    begin, follow ─ enqueue ─ claim ─ (progress)* ─ finish      either, in the background
                       └──── settle ────┘               whoever finds the deadline passed

Times are milliseconds since the epoch.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from a2a_lambda.errors import InvalidParamsError, UnsupportedOperationError
from a2a_lambda.model import (
    Artifact,
    Message,
    Part,
    Role,
    StreamResponse,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a_lambda.outcome import INTERRUPTED, TERMINAL, ArtifactDelta, Outcome, extended
from a2a_lambda.timestamps import format_timestamp

MESSAGE_WINDOW: Final = 30 * 24 * 3600 * 1000
"""How long after its creation a task takes messages. Items beside the head are kept by this bound."""

MAX_RUNS: Final = 3
"""How often a turn may be started."""

QUEUED_MS: Final = 3600 * 1000
"""How long a turn may wait for the worker before the worker is asked again."""

MAX_WAITS: Final = 24
"""How often it may wait for so long: a day, after which nobody believes that it will be started."""

OUTCOME_UNKNOWN: Final = (
    "The agent stopped before it reported a result. What it did until then is unknown, so it was not run again."
)
RUNS_USED_UP: Final = f"The agent was started {MAX_RUNS} times and never came to a result."
NEVER_STARTED: Final = "The agent was not started within a day."


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
    size: int
    """In bytes."""


Content = bytes | Beside
"""A piece of a task as JSON: here, or beside the head."""


class Outbox(Struct, frozen=True):
    """What must be told of a change of a task: written with the change itself, passed on by the relay."""

    attend: bool = False
    """The worker must see to the turn: at once if it is queued, otherwise once its deadline has passed."""
    events: tuple[StreamResponse, ...] = ()
    """What webhooks are told of, in order: artifacts, and a state after them."""
    config: TaskPushNotificationConfig | None = None
    """The webhook that a message brings, which counts when the change does."""


class Request(Struct, frozen=True, omit_defaults=True):
    """What the client sent beside the message of a queued turn: the agent may ask for it."""

    metadata: dict[str, Any] = {}
    accepted_output_modes: list[str] = []


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
    """The size of what the earlier turns left as artifacts."""
    message_count: int = 1
    deadline: int | None = None
    """When a turn is given up for dead. Set exactly while a turn is queued or running."""
    queued: bool = False
    """Whether the turn waits for the worker."""
    run: int = 1
    """Which run of the turn is queued or running, or was the last."""
    waits: int = 1
    """How often the turn has been given time to wait for this run."""
    request: Content | None = None
    """The queued or running turn's `Request`, a JSON object, unless there is nothing in it."""
    push: bool = False
    """Whether webhooks may want to be told of the task's updates."""
    sequence: int = 0
    """The number of the newest event. Numbers grow, and may leave gaps."""
    outbox: Outbox | None = None
    """What must be told of this change. Written with the head, and not read with it."""
    retention: int = 0
    """How long the task is kept after its last change of state, in seconds: the store's setting when it was created."""
    write: str = ""
    """The id of the write that kept it, or is to keep it; "" leaves that to the store."""


class DirectReply(Struct, frozen=True, kw_only=True):
    """The answer to a message that needed no task, kept where the task would be, for copies of the message."""

    task_id: str
    owner: str
    created_at: int
    content: bytes
    """The message, as JSON."""


def begin(*, owner: str, message: Message, key: str, now: int, deadline: int, push: bool = False) -> Head:
    """Return a new task with its first message, which has the task's and the context's id, WORKING."""
    return _claimed(
        Head(
            task_id=message.task_id,
            owner=owner,
            context_id=message.context_id,
            state=TaskState.WORKING,
            status_at=now,
            created_at=now,
            message_key=key,
            messages=encode_messages([message]),
            deadline=deadline,
            push=push,
        )
    )


def admit(head: Head, message: Message, now: int, limits: Limits) -> None:
    """Check that the task takes this message now (§3.4.2).

    Raises:
        InvalidParamsError: the message names another context than the task's.
        UnsupportedOperationError: the task is finished, a turn is queued or running, or it is too old or too long.
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
    return _claimed(
        replace(
            head,
            state=TaskState.WORKING,
            status_at=max(now, head.status_at),
            status_message=None,
            revision=head.revision + 1,
            turn=head.turn + 1,
            run=1,
            waits=1,
            message_key=key,
            messages=encode_messages([message]),
            artifacts=None,
            artifact_turns=head.artifact_turns + (head.artifacts is not None),
            artifact_bytes=head.artifact_bytes + _size(head.artifacts),
            message_count=head.message_count + 1,
            deadline=deadline,
        )
    )


def enqueue(begun: Head, request: Request, *, now: int) -> Head:
    """Return a task whose turn has begun as one whose turn waits for the worker: SUBMITTED while it is the first.

    A later one is WORKING, so that nobody believes that the task still waits for input.
    """
    content = msgspec.json.encode(request)
    waiting = replace(
        begun,
        state=TaskState.SUBMITTED if begun.turn == 1 else TaskState.WORKING,
        deadline=now + QUEUED_MS,
        queued=True,
        request=None if content == b"{}" else content,
    )
    return _told(waiting, attend=True, events=[_status_event(waiting)])


def claim(head: Head, *, now: int, deadline: int) -> Head:
    """Return a task whose turn was queued, WORKING until the deadline. What an earlier run left of it is dropped."""
    claimed = replace(
        head,
        state=TaskState.WORKING,
        status_at=head.status_at if head.state is TaskState.WORKING else max(now, head.status_at),
        revision=head.revision + 1,
        artifacts=None,
        deadline=deadline,
        queued=False,
    )
    return _told(claimed, events=[] if head.state is TaskState.WORKING else [_status_event(claimed)])


def is_overdue(head: Head, now: int) -> bool:
    """Tell whether a turn has outlived its deadline: its function has died, or its place in the queue was lost."""
    return head.deadline is not None and now >= head.deadline


def settle(head: Head, *, read_only: bool, message_id: str, now: int) -> Head:
    """Return an overdue task as it goes on.

    A turn that was not started waits again, for the same run: the message that names it may still be in the queue. A
    read-only agent's turn that died is queued for another run. One that acted on the world, or that has had its runs
    or its waits, ends FAILED, with a message of this id that says so.
    """
    if head.queued and head.waits < MAX_WAITS:
        return _waiting(replace(head, waits=head.waits + 1), now)
    if not head.queued and read_only and head.run < MAX_RUNS:
        return _waiting(replace(head, run=head.run + 1, waits=1, artifacts=None), now)
    reason = NEVER_STARTED if head.queued else RUNS_USED_UP if read_only else OUTCOME_UNKNOWN
    said = Message(message_id, Role.AGENT, [Part(text=reason)])
    failed = replace(
        head,
        state=TaskState.FAILED,
        status_at=max(now, head.status_at),
        status_message=msgspec.json.encode(said),
        revision=head.revision + 1,
        deadline=None,
        queued=False,
        request=None,
    )
    return _told(failed, events=[_status_event(failed, said)])


def _waiting(head: Head, now: int) -> Head:
    """Return a task whose turn waits for the worker, in the state that it has."""
    return _told(replace(head, revision=head.revision + 1, queued=True, deadline=now + QUEUED_MS), attend=True)


def is_same_run(head: Head, current: Head) -> bool:
    """Tell whether a task is still in the run that `head` is in."""
    same_run = (current.turn, current.run, current.queued) == (head.turn, head.run, head.queued)
    return same_run and current.deadline is not None


def progress(head: Head, outcome: Outcome, *, now: int) -> Head:
    """Return the task after what a running turn has come to since `head`, still WORKING."""
    said = outcome.status_message
    following = replace(
        head,
        revision=head.revision + 1,
        artifacts=msgspec.json.encode(outcome.deltas) if outcome.deltas else None,
    )
    events = _artifact_events(following, outcome)
    if not outcome.has_said:
        return _told(following, events=events)
    following = replace(
        following,
        status_at=max(now, head.status_at),
        status_message=msgspec.json.encode(_bare(said)) if said else None,
    )
    return _told(following, events=[*events, _status_event(following, said)])


def finish(head: Head, outcome: Outcome, *, now: int) -> Head:
    """Return the task after the turn that `head` has begun: in the outcome's state, with the turn's content."""
    said = None if outcome.state in INTERRUPTED else outcome.status_message
    finished = replace(
        head,
        state=outcome.state,
        status_at=max(now, head.status_at),
        status_message=msgspec.json.encode(_bare(said)) if said else None,
        revision=head.revision + 1,
        messages=encode_messages(outcome.messages),
        artifacts=msgspec.json.encode(outcome.deltas) if outcome.deltas else None,
        message_count=head.message_count + len(outcome.messages) - 1,
        deadline=None,
        request=None,
    )
    events = [*_artifact_events(finished, outcome), _status_event(finished, outcome.status_message)]
    return _told(finished, events=events)


def _claimed(begun: Head) -> Head:
    """Return a turn that has begun with what must be told of it: also that somebody looks at it after its deadline."""
    return _told(begun, attend=True, events=[_status_event(begun)])


def _told(head: Head, *, attend: bool = False, events: Iterable[StreamResponse] = ()) -> Head:
    """Return a task with what must be told of its change, and to whom: events to webhooks, if there may be any."""
    told = tuple(events) if head.push else ()
    outbox = Outbox(attend, told) if attend or told else None
    return replace(head, outbox=outbox, sequence=head.sequence + len(told), write="")


def _status_event(head: Head, said: Message | None = None) -> StreamResponse:
    status = TaskStatus(head.state, within(head, said) if said else UNSET, format_timestamp(head.status_at))
    return StreamResponse(status_update=TaskStatusUpdateEvent(head.task_id, head.context_id, status))


def _artifact_events(head: Head, outcome: Outcome) -> list[StreamResponse]:
    return [
        StreamResponse(
            artifact_update=TaskArtifactUpdateEvent(
                head.task_id, head.context_id, news.artifact, append=news.append, last_chunk=news.last_chunk
            )
        )
        for news in outcome.given
    ]


def _size(content: Content | None) -> int:
    if content is None:
        return 0
    return content.size if isinstance(content, Beside) else len(content)


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
