"""Running an agent for one turn, whatever the agent does."""

import asyncio
import itertools
import logging
import sys
from collections.abc import Iterator
from typing import Any, cast

import pytest

from a2a_lambda import turns
from a2a_lambda.agent import Agent, Turn, Update, Updates, artifact, completed, input_required, working
from a2a_lambda.model import Part, TaskState
from a2a_lambda.outcome import Outcome
from a2a_lambda.turns import AGENT_FAILED, LAST_SECONDS, OUT_OF_TIME
from tests.unit.factories import SECOND, Clock, agent, message, new_outcome, texts, yielding


def run(served: Agent) -> Outcome:
    sent = message(task_id="task-1", context_id="context-1")
    outcome = new_outcome(sent)
    turns.run(served, Turn(message=sent, task_id="task-1"), outcome, outcome.apply)
    return outcome


def assert_failed_neutrally(outcome: Outcome) -> None:
    assert outcome.state is TaskState.FAILED
    assert outcome.status_message is not None
    assert texts([outcome.status_message]) == [AGENT_FAILED]


def raising_after(*updates: Update) -> Agent:
    def respond(_turn: Turn) -> Updates:
        yield from updates
        raise RuntimeError("secret")

    return agent(respond)


def test_an_agents_updates_are_folded_to_the_end() -> None:
    outcome = run(yielding(working("Looking …"), artifact("x"), completed("Done.")))

    assert outcome.state is TaskState.COMPLETED
    assert len(outcome.deltas) == 1


@pytest.mark.parametrize(
    "updates",
    [[], [working("x")], [artifact("x")], [input_required("?")], [completed("Done.")]],
    ids=["at once", "after progress", "after an artifact", "after a question", "after the end"],
)
def test_an_agent_that_raises_fails_the_turn_with_a_neutral_message(updates: list[Update]) -> None:
    outcome = run(raising_after(*updates))

    assert_failed_neutrally(outcome)
    assert len(outcome.messages) == 1


def test_an_agent_that_raises_before_its_first_update_fails_the_turn() -> None:
    def respond(_turn: Turn) -> Updates:
        raise RuntimeError("secret")

    assert_failed_neutrally(run(agent(respond)))


def test_the_traceback_of_an_agent_goes_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    run(raising_after())

    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "RuntimeError: secret" in caplog.text


@pytest.mark.parametrize("answer", [None, 5, object()])
def test_an_agent_that_returns_no_generator_fails_the_turn(answer: object) -> None:
    assert_failed_neutrally(run(agent(lambda _turn: cast("Updates", answer))))


def test_an_agent_may_return_a_list() -> None:
    assert run(agent(lambda _turn: iter([completed("Done.")]))).state is TaskState.COMPLETED


def test_an_invalid_response_fails_the_turn_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    outcome = run(yielding(artifact("x"), cast("Any", "not an update")))

    assert_failed_neutrally(outcome)
    assert len(outcome.deltas) == 1
    assert "invalid agent response: str is not an update" in caplog.text


def test_what_an_agent_said_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    run(yielding(artifact(Part(text="secret", url="secret:"))))

    assert "secret" not in caplog.text


def test_an_agent_is_not_run_on_after_an_invalid_response() -> None:
    reached: list[str] = []

    def respond(_turn: Turn) -> Updates:
        yield completed()
        yield completed()
        reached.append("the end")

    run(agent(respond))

    assert reached == []


def test_an_agent_that_exits_fails_the_turn() -> None:
    def respond(_turn: Turn) -> Updates:
        yield working()
        sys.exit("secret")

    assert_failed_neutrally(run(agent(respond)))


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    "raised",
    [
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError(),
        BaseExceptionGroup("several", [KeyboardInterrupt(), ValueError()]),
        StopIteration(),
        MemoryError(),
        RecursionError(),
    ],
    ids=lambda raised: type(raised).__name__,
)
def test_whatever_an_agent_raises_fails_the_turn(
    raised: BaseException,
    read_only: bool,  # noqa: FBT001
    caplog: pytest.LogCaptureFixture,
) -> None:
    def respond(_turn: Turn) -> Updates:
        yield artifact("x")
        raise raised

    outcome = run(agent(respond, read_only=read_only))

    assert_failed_neutrally(outcome)
    assert len(outcome.deltas) == 1
    assert [record.message for record in caplog.records] == ["the agent raised"]


# Time


def hurrying(served: Agent, clock: Clock, seconds: float = 10.0) -> Outcome:
    """Run an agent that has so much time by the clock."""
    end = clock.now + seconds * SECOND
    sent = message(task_id="task-1", context_id="context-1")
    outcome = new_outcome(sent)
    turns.run(
        served,
        Turn(message=sent, task_id="task-1", seconds_left=lambda: (end - clock.now) / SECOND),
        outcome,
        outcome.apply,
    )
    return outcome


def slowly(clock: Clock, *updates: Update, pause: float = SECOND) -> Agent:
    """Return an agent that takes a while for each update."""

    def respond(_turn: Turn) -> Updates:
        for update in updates:
            clock.advance(round(pause))
            yield update

    return agent(respond)


def test_an_agent_without_end_is_given_up_in_time_to_write_that_down(caplog: pytest.LogCaptureFixture) -> None:
    clock, given = Clock(), itertools.count()

    def endless(_turn: Turn) -> Updates:
        while True:
            clock.advance(10)
            yield working(f"still {next(given)}")

    outcome = hurrying(agent(endless), clock)

    assert outcome.state is TaskState.FAILED
    assert outcome.status_message is not None
    assert texts([outcome.status_message]) == [OUT_OF_TIME]
    assert next(given) == (10 - LAST_SECONDS) * 100 + 1
    assert [record.message for record in caplog.records] == ["the agent ran out of time"]


def test_what_an_agent_out_of_time_has_given_stays() -> None:
    clock = Clock()
    outcome = hurrying(slowly(clock, *[artifact("x", artifact_id=str(number)) for number in range(20)]), clock)

    assert outcome.state is TaskState.FAILED
    assert [delta.artifact.artifact_id for delta in outcome.deltas] == [str(number) for number in range(9)]


@pytest.mark.parametrize("last", [completed("Done."), input_required("?")])
def test_an_agent_that_ends_at_the_last_moment_has_ended(last: Update) -> None:
    clock = Clock()
    outcome = hurrying(slowly(clock, last, pause=9.9 * SECOND), clock)

    assert outcome.state in (TaskState.COMPLETED, TaskState.INPUT_REQUIRED)
    assert outcome.status_message is not None


def test_an_agent_with_time_left_is_left_alone() -> None:
    clock = Clock()

    assert hurrying(slowly(clock, *[working("…")] * 8), clock).state is TaskState.COMPLETED


# At most once a second


def checked(answers: Iterator[bool], clock: Clock) -> Any:
    return turns.at_most_once_a_second(lambda: next(answers), clock)


def test_a_check_is_made_when_it_is_first_asked_for() -> None:
    assert checked(iter([True]), Clock())() is True


def test_a_check_is_made_once_in_a_second() -> None:
    clock = Clock()
    check = checked(iter([False, True]), clock)

    assert [check(), check()] == [False, False]
    clock.advance(999)
    assert check() is False
    clock.advance(1)
    assert check() is True


def test_a_check_that_was_true_is_never_made_again() -> None:
    clock = Clock()
    check = checked(iter([True]), clock)

    assert check()
    clock.advance(5000)
    assert check()
