"""A task store in memory: the promises of `store.TaskStore`, without I/O."""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from a2a_lambda.errors import TaskNotCancelableError, TaskNotFoundError
from a2a_lambda.model import Artifact, Message, TaskState
from a2a_lambda.store import ConflictError
from a2a_lambda.task import TERMINAL, ArtifactDelta, Content, Head, fold_artifacts, within

DAY_MS: Final = 24 * 3600 * 1000

T = TypeVar("T")


class InMemoryTaskStore:
    """Keeps every head that was ever committed; `reads` and `writes` count the calls."""

    def __init__(self, clock: Callable[[], int], *, retention_days: int = 30) -> None:
        self._clock = clock
        self._retention = retention_days * DAY_MS
        self._versions: dict[str, list[Head]] = {}
        self.reads = 0
        self.writes = 0

    def read(self, owner: str, task_id: str) -> Head | None:
        self.reads += 1
        return self._visible(owner, task_id)

    def commit(self, previous: Head | None, following: Head) -> None:
        versions = self._versions.setdefault(following.task_id, [])
        newest = versions[-1] if versions else None
        if not _stands(newest, previous):
            raise ConflictError(self._visible(following.owner, following.task_id))
        versions.append(following)
        self.writes += 1

    def cancel(self, owner: str, task_id: str, now: int) -> Head:
        head = self._visible(owner, task_id)
        if head is None:
            raise TaskNotFoundError
        if head.state in TERMINAL:
            raise TaskNotCancelableError(f"The task is finished ({head.state.value})", state=head.state.value)
        canceled = replace(
            head,
            state=TaskState.CANCELED,
            status_at=now,
            status_message=None,
            revision=head.revision + 1,
            deadline=None,
        )
        self._versions[task_id].append(canceled)
        self.writes += 1
        return canceled

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

    def _turns(self, head: Head) -> list[Head]:
        """Return the last version of each turn up to the head's, which is the head itself."""
        by_turn = {version.turn: version for version in self._versions.get(head.task_id, [])}
        return [by_turn[turn] for turn in range(1, head.turn)] + [head]

    def _visible(self, owner: str, task_id: str) -> Head | None:
        versions = self._versions.get(task_id)
        if not versions or versions[-1].owner != owner:
            return None
        expires_at = (versions[-1].status_at + self._retention) // 1000
        return None if expires_at <= self._clock() // 1000 else versions[-1]


def _stands(newest: Head | None, previous: Head | None) -> bool:
    if newest is None or previous is None:
        return newest is previous
    same = (newest.owner, newest.revision) == (previous.owner, previous.revision)
    return same and newest.state not in TERMINAL


def _decoded(content: Content, kind: type[T]) -> T:
    assert isinstance(content, bytes)
    return msgspec.json.decode(content, type=kind)
