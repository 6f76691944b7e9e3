"""Running an agent on a turn that has begun: what it is given, and what is kept of it.

A read-only agent's turn in a request is folded into an outcome and written once. Any other turn is claimed first,
and its updates are kept as they come (`progress`).
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from a2a_lambda import turns
from a2a_lambda.agent import Agent, Turn
from a2a_lambda.calls import World
from a2a_lambda.errors import InternalError, UnavailableError
from a2a_lambda.ledger import Ledger
from a2a_lambda.model import Message
from a2a_lambda.outcome import TERMINAL, Outcome
from a2a_lambda.progress import Commit, Progress
from a2a_lambda.store import TaskStore
from a2a_lambda.task import Head, Limits, Request

LAST_SECONDS: Final = 3.0
"""What a turn has come to is tried to keep until this is left of the function's time."""

RETRY_SECONDS: Final = 1.0
"""The pause between two tries."""


T = TypeVar("T")


class Question(Struct, frozen=True):
    """What a turn answers: the client's message, with the ids of its task and context, and what came beside it."""

    message: Message
    request: Request


class Runner:
    """Runs one agent's turns."""

    def __init__(self, agent: Agent, store: TaskStore, ledger: Ledger, limits: Limits, world: World) -> None:
        """Args: the agent; where its tasks are; how much they may hold."""
        self._agent = agent
        self._store = store
        self._ledger = ledger
        self._limits = limits
        self._world = world

    def fold(
        self, previous: Head | None, begun: Head, question: Question, seconds_left: Callable[[], float]
    ) -> Outcome:
        """Return what a turn that is not written yet comes to.

        Raises:
            UnavailableError: the agent asked for what the store could not give now. It may be run again.
        """
        outcome = self._outcome(begun, question)
        turn = self._turn(
            begun,
            question,
            seconds_left,
            # A first turn is nothing yet that could be canceled.
            canceled=self._canceled(begun) if previous else lambda: False,
            earlier_messages=lambda: self._store.history(previous) if previous else [],
        )
        turns.run(self._agent, turn, outcome, outcome.apply)
        return outcome

    def run(self, claimed: Head, question: Question, seconds_left: Callable[[], float], commit: Commit) -> Head:
        """Run a claimed turn, and return the task after it: as finished, or as whoever ended it left it.

        Args:
            claimed: the task, WORKING on the turn until its deadline.
            question: what it answers.
            seconds_left: the time until the function is stopped.
            commit: makes the turn's end count.

        Raises:
            TaskNotFoundError: the task is gone.
            UnavailableError: a read-only agent asked for what the store could not give now. It may be run again.
            InternalError: the store did not answer until the time was up. The deadline will end the turn.
        """
        outcome = self._outcome(claimed, question)
        progress = Progress(claimed, outcome, self._ledger.commit, self._store.read, self._world)
        read = self._canceled(claimed)
        turn = self._turn(
            claimed,
            question,
            seconds_left,
            canceled=lambda: progress.is_lost or read(),
            earlier_messages=lambda: self._store.history(claimed)[:-1],
        )
        try:
            turns.run(self._agent, turn, outcome, progress.take)
        except UnavailableError:
            progress.stop()
            raise
        while True:
            try:
                return progress.finish(commit)
            except UnavailableError as error:
                if seconds_left() < LAST_SECONDS:
                    raise InternalError from error
                self._world.pause(RETRY_SECONDS)

    def _outcome(self, begun: Head, question: Question) -> Outcome:
        return Outcome(
            question.message,
            max_artifact_bytes=self._limits.max_artifact_bytes,
            max_bytes=self._limits.max_task_bytes - begun.artifact_bytes,
            new_id=self._world.new_id,
        )

    def _turn(
        self,
        begun: Head,
        question: Question,
        seconds_left: Callable[[], float],
        *,
        canceled: Callable[[], bool],
        earlier_messages: Callable[[], Sequence[Message]],
    ) -> Turn:
        # Copies: what an agent does to what it is given changes nothing here.
        message, request = _copy(question.message), _copy(question.request)
        return Turn(
            message=message,
            task_id=begun.task_id,
            context_id=begun.context_id,
            caller=begun.owner,
            metadata=request.metadata,
            accepted_output_modes=request.accepted_output_modes,
            seconds_left=seconds_left,
            canceled=canceled,
            earlier_messages=earlier_messages,
        )

    def _canceled(self, begun: Head) -> Callable[[], bool]:
        def canceled() -> bool:
            current = self._store.read(begun.owner, begun.task_id)
            return current is not None and current.state in TERMINAL

        return turns.at_most_once_a_second(canceled, self._world.clock)


def _copy(value: T) -> T:
    return msgspec.json.decode(msgspec.json.encode(value), type=type(value))
