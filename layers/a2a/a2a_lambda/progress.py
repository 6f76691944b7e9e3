"""Keeping what a running turn comes to while its agent goes on.

Updates are committed together, at most once a second, and more seldom the more there is to write: an agent may
yield as fast as it likes. What came first is committed after half a second at the latest, also while the agent is
silent; what is still open when the turn ends goes with its last write.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Final

from msgspec.structs import replace

from a2a_lambda import task
from a2a_lambda.calls import World
from a2a_lambda.errors import TaskNotFoundError, UnavailableError
from a2a_lambda.outcome import Outcome
from a2a_lambda.store import ConflictError
from a2a_lambda.task import Head

FIRST_MS: Final = 500
"""How long the first news waits for more."""

SPACE_MS: Final = 1000
"""The least time between two commits of a turn."""

BYTES_PER_SPACE: Final = 25_000
MAX_SPACES: Final = 30
"""A commit of more than so much waits as much longer, up to so many times: artifacts are written whole each time."""

Commit = Callable[[Head, Head], object]
"""Puts a head in another's place, or raises ConflictError."""


class Progress:
    """A claimed turn while it runs. The agent's thread and the timer's meet here."""

    def __init__(
        self,
        claimed: Head,
        outcome: Outcome,
        commit: Commit,
        read: Callable[[str, str], Head | None],
        world: World,
    ) -> None:
        """Begin with nothing kept.

        Args:
            claimed: the turn as claimed.
            outcome: what it comes to.
            commit: makes a change of it count.
            read: returns an owner's task as last written.
            world: the clock, the ids, the timer.
        """
        self._head = claimed
        self._outcome = outcome
        self._commit = commit
        self._read = read
        self._world = world
        self._lock = threading.Lock()
        self._call_off: Callable[[], None] | None = None
        self._next_at = 0
        self._is_open = True
        self._ended: Head | None = None
        self._unsure: Head | None = None
        """What was to be written when the store did not answer. It may have counted."""
        self.is_lost = False
        """Whether another has ended the turn: canceled it, or settled it for dead."""

    def take(self, update: object) -> None:
        """Take an agent's update. One that comes after the turn was lost is dropped.

        Raises:
            InvalidAgentResponseError, OutputTooLargeError: as `Outcome.apply`.
        """
        with self._lock:
            if self.is_lost:
                return
            self._outcome.apply(update)
            if self._call_off is None and not self._outcome.is_closed:
                self._wait()

    def finish(self, commit: Commit) -> Head:
        """Return the task after the turn: as finished, or as whoever ended it left it (`is_lost`).

        Raises:
            TaskNotFoundError: it is gone.
            UnavailableError: the store did not answer; to be tried again.
        """
        self.stop()
        with self._lock:
            self._write(partial(task.finish, outcome=self._outcome, now=self._world.clock()), commit)
        if not self.is_lost:
            return self._head
        if self._ended is None:
            raise TaskNotFoundError
        return self._ended

    def stop(self) -> None:
        """Keep nothing more of the turn while it runs."""
        with self._lock:
            self._is_open = False
            if self._call_off:
                self._call_off()

    def _keep(self) -> None:
        with self._lock:
            self._call_off = None
            if not self._is_open or self._outcome.is_closed or not self._outcome.has_news:
                return
            now = self._world.clock()
            spaces = min(max(1, self._outcome.artifact_bytes // BYTES_PER_SPACE), MAX_SPACES)
            self._next_at = now + SPACE_MS * spaces
            try:
                self._write(partial(task.progress, outcome=self._outcome, now=now), self._commit)
            except UnavailableError:
                self._wait()  # The news stays.

    def _wait(self) -> None:
        wait = max(FIRST_MS, self._next_at - self._world.clock())
        self._call_off = self._world.later(wait / 1000, self._keep)

    def _write(self, change: Callable[[Head], Head], commit: Commit) -> None:
        """Commit a change of the turn, on top of what others changed of its task without ending it.

        Raises:
            UnavailableError: the store did not answer. Before the next try it is asked whether the change counted.
        """
        self._make_sure()
        while not self.is_lost and self._head.deadline is not None:
            self._outcome.tell()
            following = replace(change(self._head), write=self._world.new_id())
            try:
                commit(self._head, following)
            except ConflictError as conflict:
                self._go_on_from(conflict.current if isinstance(conflict.current, Head) else None)
            except UnavailableError:
                self._unsure = following
                raise
            else:
                self._head = following
                self._outcome.told()
                return

    def _make_sure(self) -> None:
        """Find out whether the last change counted, where that is not known."""
        if self._unsure is None:
            return
        current = self._read(self._unsure.owner, self._unsure.task_id)
        if current and current.write == self._unsure.write:
            self._head = _on_top(self._unsure, current)
            self._outcome.told()
        self._unsure = None

    def _go_on_from(self, current: Head | None) -> None:
        if current and task.is_same_run(self._head, current):
            self._head = _on_top(self._head, current)
        else:
            self.is_lost, self._ended = True, current


def _on_top(head: Head, current: Head) -> Head:
    """Return a turn's task with what others have changed of it since: whether webhooks are told."""
    return replace(head, revision=current.revision, push=current.push, sequence=current.sequence)
