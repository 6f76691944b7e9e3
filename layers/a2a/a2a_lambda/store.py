"""The port through which tasks are kept. `dynamodb` is the store that is deployed.

Whatever the store: each call names the owner, a write counts wholly or not at all, and a task that is another
owner's, missing or expired does not exist.
"""

from typing import Protocol

from a2a_lambda.model import Artifact, Message
from a2a_lambda.task import Head


class ConflictError(Exception):
    """A write lost a race and changed nothing. `current` is the task as it stands, None if it is gone."""

    def __init__(self, current: Head | None) -> None:
        self.current = current
        super().__init__("the task was changed by another writer")


class TaskStore(Protocol):
    """Keeps tasks. Every call may raise `UnavailableError`, having changed nothing that counts."""

    def read(self, owner: str, task_id: str) -> Head | None:
        """Return the task as last written (never an older state), or None where it does not exist."""

    def commit(self, previous: Head | None, following: Head) -> None:
        """Put `following` in the place of `previous`; None says that the task is new.

        Raises:
            ConflictError: the task is no longer at `previous`.
        """

    def cancel(self, owner: str, task_id: str, now: int) -> Head:
        """Cancel the task whatever it is doing, and return it.

        Raises:
            TaskNotFoundError: it does not exist.
            TaskNotCancelableError: it is finished.
        """

    def history(self, head: Head, limit: int | None = None) -> list[Message]:
        """Return the task's newest messages, `limit` (at least 1) at most, in chronological order."""

    def artifacts(self, head: Head) -> list[Artifact]:
        """Return all artifacts of the task."""

    def status_message(self, head: Head) -> Message | None:
        """Return what was said with the task's state, if anything was (§4.1.2)."""
