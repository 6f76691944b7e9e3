"""The port through which tasks are kept. `dynamodb` is the store that is deployed.

Whatever the store: each call names the owner, a write counts wholly or not at all, and a task that is another
owner's, missing or expired does not exist.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from a2a_lambda.errors import TaskNotFoundError
from a2a_lambda.model import Artifact, Message, TaskState
from a2a_lambda.task import DirectReply, Head, Request


class ConflictError(Exception):
    """A write lost a race and changed nothing. `current` is what stands in its way, None if that is gone."""

    def __init__(self, current: Head | DirectReply | None) -> None:
        self.current = current
        super().__init__("the task was changed by another writer")

    def current_or_gone(self) -> Head:
        """Return the task as it stands.

        Raises:
            TaskNotFoundError: it is gone.
        """
        if isinstance(self.current, Head):
            return self.current
        raise TaskNotFoundError from self


class TaskFilter(Struct, frozen=True):
    """Which of an owner's tasks a list has (§3.1.4). Every field that is set must match."""

    context_id: str = ""
    state: TaskState | None = None
    since: int | None = None
    """The earliest time of the last change of state, in milliseconds since the epoch."""


class Page(Struct, frozen=True):
    """A piece of a list: tasks with the cursor behind each, and whether there may be more behind the last.

    A page may be short, or empty, and not be the last.
    """

    entries: Sequence[tuple[Head, str]]
    cursor: str | None
    """Where the list goes on; None at its end."""


class TaskStore(Protocol):
    """Keeps tasks. Every call may raise `UnavailableError`; whether a write counted is then known by reading."""

    def read(self, owner: str, task_id: str) -> Head | None:
        """Return the task as last written (never an older state), or None where it does not exist."""

    def begin_again(self, owner: str, first_id: str, candidate_id: str) -> str:
        """Return the id under which a message begins a task again, whose first id is taken since before the window.

        All copies of the message get the same id within the window: that of the first.
        """

    def keep_reply(self, reply: DirectReply) -> None:
        """Keep a direct reply, for as long as a copy of its message may come.

        Raises:
            ConflictError: the message has come to something already.
        """

    def find(self, owner: str, task_id: str, message_key: str) -> tuple[Head | None, bool]:
        """Return the task as `read` does, and whether it has this message already, sent a short while ago."""

    def prepare(self, previous: Head | None, following: Head) -> Callable[[], None]:
        """Make ready to put `following` in the place of `previous`, and return the call that makes it count.

        Before that call nothing has changed, but the history and the artifacts of `following` can be read. None for
        `previous` says that the task is new. The call raises ConflictError where the task is no longer there.
        """

    def cancel(self, head: Head, now: int) -> Head:
        """Cancel the task whatever it is doing, and return it.

        Raises:
            TaskNotFoundError: it is gone.
            TaskNotCancelableError: it is finished.
        """

    def watch(self, head: Head) -> None:
        """Have webhooks told of the task's changes from now on (`Head.push`). Nothing happens to a finished task."""

    def page(self, owner: str, wanted: TaskFilter, cursor: str | None, size: int) -> Page:
        """Return the next tasks of a list, `size` at most, the newest change of state first.

        A task that does not change while the list is walked is met exactly once; one that changes may be missed,
        and is never met twice.

        Raises:
            InvalidParamsError: the cursor is not one of a list.
        """

    def place(self, head: Head) -> str:
        """Return the cursor behind a task, where lists have it."""

    def count(self, owner: str, wanted: TaskFilter) -> int:
        """Return how many tasks a list has. A store may stop counting at 10,000 tasks."""

    def histories(self, heads: Sequence[Head], limit: int) -> Iterator[list[Message]]:
        """Yield the newest messages of each task, as `history` does, with fewer calls."""

    def history(self, head: Head, limit: int | None = None) -> list[Message]:
        """Return the task's newest messages, `limit` (at least 1) at most, in chronological order."""

    def artifacts(self, head: Head) -> list[Artifact]:
        """Return all artifacts of the task."""

    def status_message(self, head: Head) -> Message | None:
        """Return what was said with the task's state, if anything was (§4.1.2)."""

    def request(self, head: Head) -> Request:
        """Return what the client sent beside the message of the task's newest turn, while that is under way."""
