"""A message that comes again after the window, over DynamoDB: all its copies are one new task, whenever they come."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import sleep
from typing import Any, Final

import pytest

from a2a_lambda import items
from a2a_lambda.agent import Turn, Updates, completed, input_required, reply
from a2a_lambda.bootstrap import later
from a2a_lambda.calls import World
from a2a_lambda.model import SendMessageRequest
from a2a_lambda.operations import Operations
from a2a_lambda.timestamps import now
from tests.integration.tables import WINDOW_SECONDS, Tasks, new_client, patient_client
from tests.unit.factories import DAY, GENEROUS, SECOND, Clock, Ids, agent, call, message, texts

WINDOW: Final = WINDOW_SECONDS * SECOND
MOMENTS: Final = [0, 1, SECOND, WINDOW // 2, WINDOW - 10, WINDOW - 1, WINDOW, 2 * WINDOW - 5, 3 * WINDOW + 17, 7 * DAY]
"""How long after the window the copies come."""


class Counted:
    """An agent's runs, and the agent."""

    def __init__(self, *, read_only: bool = False) -> None:
        self.runs: list[str] = []
        self.agent = agent(self._respond, read_only=read_only)

    def _respond(self, turn: Turn) -> Updates:
        self.runs.append(turn.task_id)
        yield input_required(f"{len(self.runs)}?")


@pytest.mark.parametrize("later", MOMENTS)
@pytest.mark.parametrize("step", ["PutItem", "PutItem of the id", "PutItem of the task"])
@pytest.mark.parametrize("read_only", [True, False])
def test_a_copy_between_any_two_writes_of_another_is_the_same_task(
    tasks: Tasks,
    read_only: bool,  # noqa: FBT001
    step: str,
    later: int,
) -> None:
    counted = Counted(read_only=read_only)
    served, rival = tasks.serve(counted.agent), tasks.serve(counted.agent, new_client())
    first = served.task(message()).id
    tasks.clock.advance(WINDOW + later)
    copies: list[str] = []

    def copy() -> None:
        tasks.clock.advance(10)
        copies.append(rival.task(message()).id)

    tasks.before("PutItem", copy, at=["PutItem", "PutItem of the id", "PutItem of the task"].index(step) + 1)
    copies += [served.task(message()).id, served.task(message()).id]

    assert len(copies) == 3
    assert len(set(copies)) == 1
    assert first not in copies
    assert read_only or len(counted.runs) == 2


def test_a_message_may_begin_again_many_times_and_each_is_one_task(tasks: Tasks) -> None:
    counted = Counted()
    served = tasks.serve(counted.agent)
    for _ in range(5):
        begun = served.task(message())
        tasks.clock.advance(WINDOW - 1)
        assert served.task(message()) == begun
        tasks.clock.advance(1)

    assert len(set(counted.runs)) == len(counted.runs) == 5
    assert served.list().total_size == 5


def test_beginning_again_costs_two_writes_more(tasks: Tasks) -> None:
    served = tasks.serve(Counted(read_only=True).agent)
    served.task(message())
    tasks.clock.advance(WINDOW)

    assert tasks.calls_of(lambda: served.task(message())) == ["PutItem"] * 3


def test_a_retry_after_a_crash_before_the_new_task_is_written_makes_it_under_the_same_id(tasks: Tasks) -> None:
    counted = Counted()
    served = tasks.serve(counted.agent)
    first = served.task(message()).id
    tasks.clock.advance(WINDOW)
    tasks.before("PutItem", lambda: tasks.answer("PutItem", KeyboardInterrupt()), at=2)
    with pytest.raises(KeyboardInterrupt):
        served.task(message())
    (chosen,) = [item["again_id"]["S"] for item in tasks.all_items() if item["entry"]["S"] == items.AGAIN]

    assert served.task(message()).id == chosen
    assert counted.runs == [first, chosen]


def test_what_says_the_new_id_is_its_owners_and_goes_with_the_window(tasks: Tasks) -> None:
    served = tasks.serve(Counted().agent)
    first = served.task(message()).id
    tasks.clock.advance(WINDOW)
    begun = served.task(message())
    item = tasks.items(first)[items.AGAIN]

    assert item == {
        "task_id": {"S": first},
        "entry": {"S": "again"},
        "owner": {"S": "anonymous"},
        "again_id": {"S": begun.id},
        "begun_at": {"N": str(tasks.clock.now)},
        "expires_at": {"N": str((tasks.clock.now + WINDOW) // 1000)},
    }
    tasks.clock.advance(WINDOW + SECOND)
    tasks.sweep()
    assert items.AGAIN not in tasks.items(first)
    assert served.get(first).id == first
    assert served.task(message()).id not in (first, begun.id)


def test_a_task_that_has_expired_and_still_lies_there_is_begun_again_once(tasks: Tasks) -> None:
    counted = Counted()
    served = tasks.serve(counted.agent)
    first = served.task(message()).id
    tasks.clock.advance(31 * DAY)
    begun = served.task(message())

    assert served.task(message()) == begun
    assert counted.runs == [first, begun.id]


def test_a_direct_reply_after_the_window_is_repeated_too(tasks: Tasks) -> None:
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        yield reply(f"Hi {len(runs)}!")

    served = tasks.serve(agent(respond))
    first = served.send(message())
    tasks.clock.advance(WINDOW)
    second = served.send(message())
    tasks.clock.advance(WINDOW - 1)

    assert served.send(message()) == second != first


# At the same moment


@pytest.fixture
def shared(dynamodb: str) -> Iterator[Tasks]:
    """Return a table of its own in the shared DynamoDB, and a clock that runs."""
    tasks = Tasks(patient_client(dynamodb), endpoint=dynamodb, clock=Running())
    yield tasks
    tasks.client.delete_table(TableName=tasks.name)


class Running(Clock):
    """A clock that runs, from where it has been moved to."""

    def __init__(self) -> None:
        super().__init__(0)

    def __call__(self) -> int:
        return now() + self.now


def sending(tasks: Tasks, respond: Callable[[Turn], Updates], *, read_only: bool) -> Callable[[float], Any]:
    """Return what sends the message after so many seconds, and returns its task."""
    world = World(clock=tasks.clock, new_id=Ids(), pause=sleep, later=later)
    operations = Operations(
        agent(respond, read_only=read_only), tasks.store(), GENEROUS, world, window_seconds=WINDOW_SECONDS
    )

    def send(delay: float = 0) -> Any:
        sleep(delay)
        return operations.send_message(SendMessageRequest(message()), call(seconds_left=25)).task

    return send


@pytest.mark.parametrize("spread", [0.0, 0.01], ids=["at once", "one after the other"])
@pytest.mark.parametrize("read_only", [True, False])
def test_copies_by_many_callers_after_the_window_are_one_task_and_an_acting_agent_runs_once(
    shared: Tasks,
    read_only: bool,  # noqa: FBT001
    spread: float,
) -> None:
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.task_id)
        yield completed("paid")

    send = sending(shared, respond, read_only=read_only)
    first = send(0).id
    for _ in range(2):
        shared.clock.advance(WINDOW)
        runs.clear()
        together = threading.Barrier(24)

        def copy(number: int, together: threading.Barrier = together) -> Any:
            together.wait()
            return send(number * spread)

        with ThreadPoolExecutor(24) as pool:
            answers = list(pool.map(copy, range(24)))
        assert len({answer.id for answer in answers}) == 1
        assert answers[0].id != first
        assert len({str(texts([answer.status.message])) for answer in answers}) == 1
        assert read_only or runs == [answers[0].id]
        first = answers[0].id
