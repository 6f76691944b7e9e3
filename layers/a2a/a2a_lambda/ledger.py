"""The tasks of a store under the rules that hold whoever reads or writes them.

A task that is read has been settled: a turn that has outlived its deadline is acted on by whoever finds it. A write
is prepared, read for the answer, and then made to count, so that no error is answered after a change counted.
"""

import re
from collections.abc import Callable
from typing import Final

from msgspec import UnsetType

from a2a_lambda import tally, task
from a2a_lambda.calls import World
from a2a_lambda.errors import TaskNotFoundError, UnavailableError
from a2a_lambda.model import Task
from a2a_lambda.outcome import TERMINAL
from a2a_lambda.presentation import present
from a2a_lambda.store import ConflictError, TaskStore
from a2a_lambda.task import Head

TASK_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The ids that this server makes. Any other is unknown without a read."""


class Ledger:
    """Reads and writes tasks by the rules."""

    def __init__(self, store: TaskStore, world: World, *, read_only: bool) -> None:
        """Args: whether the agent's turns are read-only, and so may be run again."""
        self._store = store
        self._world = world
        self._read_only = read_only

    def existing(self, owner: str, task_id: str) -> Head:
        """Return an owner's task, settled.

        Raises:
            TaskNotFoundError: there is none with this id, or it is another owner's.
        """
        head = self._store.read(owner, task_id) if TASK_ID.fullmatch(task_id) else None
        if head is None:
            raise TaskNotFoundError
        return self.settled(head)

    def settled(self, head: Head) -> Head:
        """Return a task as it stands once a turn that has outlived its deadline is queued again or given up.

        Raises:
            TaskNotFoundError: it is gone.
        """
        while task.is_overdue(head, now := self._world.clock()):
            settled = task.settle(head, read_only=self._read_only, message_id=self._world.new_id(), now=now)
            try:
                self.commit(head, settled)
            except ConflictError as conflict:
                head = conflict.current_or_gone()
            else:
                return settled
        return head

    def commit(self, previous: Head | None, following: Head) -> None:
        """Put `following` in the place of `previous`; None says that the task is new.

        Raises:
            ConflictError: the task is no longer at `previous`.
        """
        self._count(self._store.prepare(previous, following), following)

    def commit_shown(self, previous: Head | None, following: Head, history_length: int | UnsetType) -> Task:
        """Commit, and return the task as answers carry it: read before it counts, so that no error follows."""
        commit = self._store.prepare(previous, following)
        shown = self.present(following, history_length)
        self._count(commit, following)
        return shown

    def present(self, head: Head, history_length: int | UnsetType) -> Task:
        """Return a task as answers carry it."""
        tally.current().task_id = head.task_id
        return present(self._store, head, history_length)

    def _count(self, commit: Callable[[], None], following: Head) -> None:
        """Make a write count. It is tried once more where the store does not answer: its own call knows its write."""
        try:
            try:
                commit()
            except UnavailableError:
                commit()
        except ConflictError:
            tally.current().conflicts += 1
            raise
        if following.state in TERMINAL:
            tally.current().finished.append(following.state.value)
