"""A task store in memory: the promises of `store.TaskStore`, without I/O."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from a2a_lambda.errors import TaskNotCancelableError, TaskNotFoundError
from a2a_lambda.model import Artifact, Message, StreamResponse, TaskState, TaskStatus, TaskStatusUpdateEvent
from a2a_lambda.outcome import TERMINAL, ArtifactDelta
from a2a_lambda.store import ConflictError, Page, TaskFilter
from a2a_lambda.task import MESSAGE_WINDOW, Content, DirectReply, Head, Outbox, Request, fold_artifacts, within
from a2a_lambda.timestamps import format_timestamp

DAY_SECONDS: Final = 24 * 3600

T = TypeVar("T")


class InMemoryTaskStore:
    """Keeps every head that was ever committed; `reads` and `writes` count the calls."""

    def __init__(self, clock: Callable[[], int], *, retention_days: int = 30, window_seconds: int = 300) -> None:
        self._clock = clock
        self._retention = retention_days * DAY_SECONDS
        self._window = window_seconds * 1000
        self._versions: dict[str, list[Head]] = {}
        self._replies: dict[str, tuple[DirectReply, int]] = {}
        self._again: dict[tuple[str, str], tuple[str, int]] = {}
        self._write_numbers = itertools.count(1)
        self.outboxes: list[Head] = []
        """What writes left to be passed on: the heads with their outboxes, in order."""
        self.reads = 0
        self.writes = 0

    def read(self, owner: str, task_id: str) -> Head | None:
        self.reads += 1
        return self._visible(owner, task_id)

    def begin_again(self, owner: str, first_id: str, candidate_id: str) -> str:
        self.writes += 1
        now = self._clock()
        again_id, begun_at = self._again.get((owner, first_id), ("", now - self._window))
        if begun_at <= now - self._window:
            again_id, begun_at = candidate_id, now
        self._again[owner, first_id] = again_id, begun_at
        return again_id

    def keep_reply(self, reply: DirectReply) -> None:
        if reply.task_id in self._versions or reply.task_id in self._replies:
            raise ConflictError(self._standing(reply.owner, reply.task_id))
        self._replies[reply.task_id] = reply, self._clock() // 1000 + self._window // 1000
        self.writes += 1

    def find(self, owner: str, task_id: str, message_key: str) -> tuple[Head | None, bool]:
        self.reads += 1
        head = self._visible(owner, task_id)
        taken = [each for each in self._versions.get(task_id, []) if each.message_key == message_key]
        if head is None or not self._window:
            return head, False
        is_open = head.message_key == message_key and head.deadline is not None
        return head, is_open or any(self._clock() < each.status_at + self._window for each in taken)

    def prepare(self, previous: Head | None, following: Head) -> Callable[[], None]:
        return partial(
            self.commit, previous, replace(following, write=following.write or f"write-{next(self._write_numbers)}")
        )

    def commit(self, previous: Head | None, following: Head) -> None:
        versions = self._versions.get(following.task_id, [])
        newest = versions[-1] if versions else None
        if following.write and following.write in [version.write for version in versions]:
            return
        if not _stands(newest, previous) or following.task_id in self._replies:
            raise ConflictError(self._standing(following.owner, following.task_id))
        kept = self._posted(replace(following, retention=following.retention or self._retention))
        self._versions[following.task_id] = [*versions, kept]
        self.writes += 1

    def cancel(self, head: Head, now: int) -> Head:
        current = self._visible(head.owner, head.task_id)
        if current is None:
            raise TaskNotFoundError
        if current.state in TERMINAL:
            raise TaskNotCancelableError(f"The task is finished ({current.state.value})", state=current.state.value)
        canceled = replace(
            current,
            state=TaskState.CANCELED,
            status_at=max(now, current.status_at),
            status_message=None,
            revision=current.revision + 1,
            deadline=None,
            queued=False,
            request=None,
        )
        event = TaskStatusUpdateEvent(
            current.task_id,
            current.context_id,
            TaskStatus(canceled.state, timestamp=format_timestamp(canceled.status_at)),
        )
        outbox = Outbox(events=(StreamResponse(status_update=event),))
        canceled = self._posted(replace(canceled, sequence=current.sequence + 1, outbox=outbox))
        self._versions[head.task_id].append(canceled)
        self.writes += 1
        return canceled

    def watch(self, head: Head) -> None:
        current = self._visible(head.owner, head.task_id)
        if current is None or current.push or current.state in TERMINAL:
            return
        watched = replace(current, push=True, sequence=0, revision=current.revision + 1, outbox=None)
        self._versions[head.task_id].append(watched)
        self.writes += 1

    def page(self, owner: str, wanted: TaskFilter, cursor: str | None, size: int) -> Page:
        self.reads += 1
        places = [(_place(head), head) for head in self._matching(owner, wanted)]
        left = sorted((each for each in places if cursor is None or each[0] < cursor), reverse=True)
        entries = [(head, place) for place, head in left[:size]]
        return Page(entries, entries[-1][1] if len(left) > size else None)

    def place(self, head: Head) -> str:
        return _place(head)

    def count(self, owner: str, wanted: TaskFilter) -> int:
        self.reads += 1
        return len(self._matching(owner, wanted))

    def histories(self, heads: Sequence[Head], limit: int) -> Iterator[list[Message]]:
        return (self.history(head, limit) for head in heads)

    def history(self, head: Head, limit: int | None = None) -> list[Message]:
        stored = [_decoded(turn.messages, list[Message]) for turn in self._turns(head)]
        messages = [within(head, message) for turn in stored for message in turn]
        return messages if limit is None else messages[-limit:]

    def artifacts(self, head: Head) -> list[Artifact]:
        given = [turn.artifacts for turn in self._turns(head) if turn.artifacts is not None]
        return fold_artifacts(_decoded(content, list[ArtifactDelta]) for content in given)

    def status_message(self, head: Head) -> Message | None:
        if head.status_message is None:
            return None
        return within(head, _decoded(head.status_message, Message))

    def request(self, head: Head) -> Request:
        return Request() if head.request is None else _decoded(head.request, Request)

    def _turns(self, head: Head) -> list[Head]:
        """Return the last version of each turn up to the head's, which is the head itself."""
        by_turn = {version.turn: version for version in self._versions.get(head.task_id, [])}
        return [by_turn[turn] for turn in range(1, head.turn)] + [head]

    def _posted(self, head: Head) -> Head:
        """Return a head as it is read, without its outbox."""
        if head.outbox:
            self.outboxes.append(head)
        return replace(head, outbox=None)

    def _matching(self, owner: str, wanted: TaskFilter) -> list[Head]:
        heads = [head for task_id in self._versions if (head := self._visible(owner, task_id))]
        return [head for head in heads if _matches(head, wanted)]

    def _standing(self, owner: str, task_id: str) -> Head | DirectReply | None:
        reply, until = self._replies.get(task_id, (None, 0))
        if reply is None:
            return self._visible(owner, task_id)
        return reply if reply.owner == owner and self._clock() // 1000 < until else None

    def _visible(self, owner: str, task_id: str) -> Head | None:
        versions = self._versions.get(task_id)
        if not versions or versions[-1].owner != owner:
            return None
        head = versions[-1]
        expires_at = min(head.status_at, head.created_at + MESSAGE_WINDOW) // 1000 + head.retention
        return None if expires_at <= self._clock() // 1000 else head


class DyingStore(InMemoryTaskStore):
    """A store whose process is killed at one of its writes, which does not count."""

    def __init__(self, clock: Callable[[], int], *, at_write: int) -> None:
        super().__init__(clock)
        self._left = at_write

    def commit(self, previous: Head | None, following: Head) -> None:
        self._left -= 1
        if self._left == 0:
            raise KeyboardInterrupt
        super().commit(previous, following)


def _place(head: Head) -> str:
    return f"{head.status_at:020}#{head.task_id}"


def _matches(head: Head, wanted: TaskFilter) -> bool:
    same_context = wanted.context_id in ("", head.context_id)
    same_state = wanted.state in (None, head.state)
    return same_context and same_state and (wanted.since is None or head.status_at >= wanted.since)


def _stands(newest: Head | None, previous: Head | None) -> bool:
    if newest is None or previous is None:
        return newest is previous
    same = (newest.owner, newest.revision) == (previous.owner, previous.revision)
    return same and newest.state not in TERMINAL


def _decoded(content: Content, kind: type[T]) -> T:
    assert isinstance(content, bytes)
    return msgspec.json.decode(content, type=kind)
