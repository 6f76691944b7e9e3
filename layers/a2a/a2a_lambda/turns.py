"""Running an agent for one turn: its generator in, an `Outcome` out, whatever the agent does."""

import logging
from collections.abc import Callable
from typing import Final

from a2a_lambda.agent import Agent, Turn
from a2a_lambda.errors import InvalidAgentResponseError, UnavailableError
from a2a_lambda.outcome import Outcome, OutputTooLargeError

AGENT_FAILED: Final = "The agent could not finish this task."
OUT_OF_TIME: Final = "The agent did not finish this task in the time that it has."

LAST_SECONDS: Final = 2.0
"""What is kept of a function's time to write down how a turn ended."""

log: Final = logging.getLogger("a2a.turns")

CANCEL_CHECK_MS: Final = 1000
"""The least time between two reads of the store for `turn.canceled()`."""


def run(agent: Agent, turn: Turn, outcome: Outcome, take: Callable[[object], None]) -> None:
    """Run the agent's turn to its end. Its updates go to `take`, which folds them into the outcome.

    Nothing of the agent's is raised: an exception and an invalid response fail the task with a neutral message
    and are logged.

    Raises:
        UnavailableError: a read-only agent asked for what the store could not give now. It may be run again.
    """
    task = {"task_id": turn.task_id}
    try:
        for update in agent.respond(turn):
            take(update)
            if not outcome.is_closed and turn.seconds_left() < LAST_SECONDS:
                log.error("the agent ran out of time", extra=task)
                outcome.fail(OUT_OF_TIME)
                return
    except InvalidAgentResponseError as error:
        log.error("invalid agent response: %s", error.message, extra=task)  # noqa: TRY400 - not a fault of ours
        outcome.fail(AGENT_FAILED)
    except OutputTooLargeError as error:
        log.error("agent output too large: %s", error, extra=task)  # noqa: TRY400
        outcome.fail(str(error))
    except UnavailableError:
        if agent.read_only:
            raise
        log.exception("the store did not answer the agent", extra=task)
        outcome.fail(AGENT_FAILED)
    except BaseException:
        # Also what is no Exception: sys.exit() in an agent, a canceled asyncio task. It ends the turn, not the server.
        log.exception("the agent raised", extra=task)
        outcome.fail(AGENT_FAILED)
    else:
        outcome.close()


def at_most_once_a_second(check: Callable[[], bool], clock: Callable[[], int]) -> Callable[[], bool]:
    """Return a check that remembers its answer for a second, and for ever once it is true."""
    answer, next_at = False, 0

    def remembered() -> bool:
        nonlocal answer, next_at
        if not answer and clock() >= next_at:
            answer, next_at = check(), clock() + CANCEL_CHECK_MS
        return answer

    return remembered
