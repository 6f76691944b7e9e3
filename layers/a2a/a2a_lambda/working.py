"""Turns in the background: what becomes of a message of the work queue.

A message names a turn and a run of it, and asks that somebody attend to it. It is also the check on the run that it
starts: when a worker dies, its message is received again once the run's lease has ended, and the turn is settled.

    the run is …        then the message
    gone, or another    is dropped
    queued              claims it, and runs it to its end
    running             is hidden until the run's lease ends
    overdue             settles it, and is dropped: a turn that may run again has a message of its own
"""

from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

from a2a_lambda import task
from a2a_lambda.calls import World
from a2a_lambda.errors import TaskNotFoundError
from a2a_lambda.ledger import Ledger
from a2a_lambda.running import Question, Runner
from a2a_lambda.store import ConflictError, TaskStore
from a2a_lambda.task import Head

LEASE_MARGIN_SECONDS: Final = 10
"""A lease outlives its function by this, and a message's visibility outlives the lease."""


class Work(Struct, frozen=True, forbid_unknown_fields=True):
    """A message of the work queue: attend to this run of a task's turn."""

    owner: str
    task_id: str
    turn: int
    run: int


class Attended(Struct, frozen=True):
    """What came of a message."""

    outcome: Literal["dropped", "hidden", "settled", "ran"]
    state: str = ""
    """The state in which the task is left by a turn that ran or was settled."""
    hidden_seconds: int = 0
    """How long the message must stay hidden, and be received again."""


class Worker:
    """Attends to turns."""

    def __init__(self, store: TaskStore, ledger: Ledger, runner: Runner, world: World) -> None:
        """Args: where tasks are; what writes them by the rules; what runs their turns."""
        self._store = store
        self._ledger = ledger
        self._runner = runner
        self._world = world

    def attend(self, work: Work, seconds_left: Callable[[], float]) -> Attended:
        """Attend to a run of a turn.

        Args:
            work: names the run.
            seconds_left: the time until the function is stopped.

        Raises:
            UnavailableError: the store did not answer; the message must be received again.
        """
        while True:
            head = self._store.read(work.owner, work.task_id)
            if head is None or head.deadline is None or (head.turn, head.run) != (work.turn, work.run):
                return Attended("dropped")
            try:
                return self._take(head, seconds_left)
            except ConflictError:
                continue
            except TaskNotFoundError:
                return Attended("dropped")

    def _take(self, head: Head, seconds_left: Callable[[], float]) -> Attended:
        now = self._world.clock()
        if head.queued:
            # Read before the claim: an acting agent's turn that was claimed is not run again.
            question = Question(self._store.history(head, 1)[-1], self._store.request(head))
            deadline = now + int((seconds_left() + LEASE_MARGIN_SECONDS) * 1000)
            claimed = task.claim(head, now=now, deadline=deadline)
            self._ledger.commit(head, claimed)
            finished = self._runner.run(claimed, question, seconds_left, self._ledger.commit)
            return Attended("ran", finished.state.value)
        if head.deadline and head.deadline > now:
            return Attended("hidden", hidden_seconds=(head.deadline - now) // 1000 + 1)
        return Attended("settled", self._ledger.settled(head).state.value)
