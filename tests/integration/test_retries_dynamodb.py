"""Safe retries over DynamoDB: copies one after the other, at once, between the writes, and by slow writers."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import sleep
from typing import Any, Final, TypeVar

import pytest
from botocore.exceptions import ReadTimeoutError
from msgspec import UNSET
from msgspec.structs import replace

from a2a_lambda import items, task
from a2a_lambda.agent import Turn, Updates, artifact, completed, input_required, reply
from a2a_lambda.bootstrap import later
from a2a_lambda.calls import World
from a2a_lambda.errors import UnsupportedOperationError
from a2a_lambda.model import Message, SendMessageRequest, TaskState
from a2a_lambda.operations import Operations
from a2a_lambda.retries import first_id, message_key
from a2a_lambda.store import ConflictError
from a2a_lambda.task import Head
from a2a_lambda.timestamps import now
from tests.integration.tables import WINDOW_SECONDS, Tasks, patient_client
from tests.unit.factories import (
    GENEROUS,
    OWNER,
    SECOND,
    Ids,
    Server,
    agent,
    asking,
    begun,
    call,
    ended,
    hurried,
    message,
    texts,
)

T = TypeVar("T")

WINDOW: Final = WINDOW_SECONDS * SECOND
COPIES: Final = 200


class Counted:
    """An agent's runs, and the agent."""

    def __init__(self, *, read_only: bool = False) -> None:
        self.runs: list[str] = []
        self.agent = agent(self._respond, read_only=read_only)

    def _respond(self, turn: Turn) -> Updates:
        self.runs.append(turn.text)
        yield artifact(f"about {turn.text}")
        yield input_required(f"{len(self.runs)}?")


def asked(tasks: Tasks) -> Head:
    """Return a stored task that asks."""
    head = ended(begun(), input_required("?"))
    tasks.store().prepare(None, head)()
    return read(tasks, head)


def read(tasks: Tasks, head: Head) -> Head:
    current = tasks.store().read(head.owner, head.task_id)
    assert current is not None
    return current


def turn_of(tasks: Tasks, head: Head, said: str, *, key: str = "") -> Callable[[], None]:
    """Return the call that makes a turn with a message count; what lies beside the head is written."""
    sent = message(said, message_id=said, task_id=head.task_id, context_id=head.context_id)
    running = task.follow(head, sent, key=key or said, now=tasks.clock.now, deadline=tasks.clock.now + SECOND)
    return tasks.store().prepare(head, ended(running, input_required(f"{said}?"), message_=sent))


def take_turn(tasks: Tasks, head: Head, said: str) -> Head:
    turn_of(tasks, head, said)()
    return read(tasks, head)


def has(tasks: Tasks, head: Head, key: str) -> bool:
    found, is_repeated = tasks.store().find(head.owner, head.task_id, key)
    assert found is not None
    return is_repeated


# What a task remembers


@pytest.mark.parametrize("later", [0, 1, 2, 10])
def test_a_message_is_found_whatever_came_after_it(tasks: Tasks, later: int) -> None:
    head = take_turn(tasks, asked(tasks), "m")
    for number in range(later):
        head = take_turn(tasks, head, f"later {number}")

    assert has(tasks, head, "m")
    assert not has(tasks, head, "another")


def test_a_message_is_remembered_for_the_window(tasks: Tasks) -> None:
    head = take_turn(tasks, take_turn(tasks, asked(tasks), "m"), "later")
    tasks.clock.advance(WINDOW - SECOND)
    assert has(tasks, head, "m")
    tasks.clock.advance(SECOND)

    assert not has(tasks, head, "m")


def test_a_message_that_ended_the_task_is_remembered(tasks: Tasks) -> None:
    head = take_turn(tasks, asked(tasks), "m")
    tasks.store().cancel(head, tasks.clock.now)

    assert has(tasks, head, "m")


def test_a_strangers_look_finds_nothing(tasks: Tasks) -> None:
    head = take_turn(tasks, asked(tasks), "m")

    assert tasks.store().find("stranger", head.task_id, "m") == (None, False)


def test_a_message_that_lost_its_race_is_not_found(tasks: Tasks) -> None:
    head = asked(tasks)
    late = turn_of(tasks, head, "late")
    take_turn(tasks, head, "m")
    with pytest.raises(ConflictError):
        late()

    assert not has(tasks, head, "late")


def test_a_writer_that_died_before_its_write_counted_leaves_no_message(tasks: Tasks) -> None:
    head = asked(tasks)
    turn_of(tasks, head, "dead")
    assert not has(tasks, head, "dead")
    take_turn(tasks, head, "m")

    assert not has(tasks, head, "dead")


@pytest.mark.parametrize("later", [0, 1, 3])
@pytest.mark.parametrize("overwritten_at", range(4))
def test_a_slow_writers_note_hides_no_message(tasks: Tasks, later: int, overwritten_at: int) -> None:
    head = asked(tasks)
    for number in range(overwritten_at):
        head = take_turn(tasks, head, f"before {number}")
    stale = head
    for number in range(3 - overwritten_at):
        head = take_turn(tasks, head, f"between {number}")
    head = take_turn(tasks, head, "m")
    for number in range(later):
        head = take_turn(tasks, head, f"later {number}")
    slow = turn_of(tasks, stale, "m")
    note = tasks.items(head.task_id)[items.note_entry("m")]
    assert int(note["turn"]["N"]) == stale.turn + 1

    assert has(tasks, head, "m")
    with pytest.raises(ConflictError):
        slow()
    assert has(tasks, head, "m")


@pytest.mark.parametrize("at", ["before the note", "before the head", "after the head"])
def test_a_copy_at_any_point_of_the_others_writes_is_one_turn(tasks: Tasks, at: str) -> None:
    counted = Counted(read_only=True)
    served = tasks.serve(counted.agent)
    task_ = served.task("a")
    copy = message("m", message_id="m", task_id=task_.id)
    operation = {"before the note": "BatchWriteItem", "before the head": "PutItem", "after the head": "nothing"}[at]
    if operation != "nothing":
        tasks.before(operation, lambda: served.task(copy))
    served.task(copy)
    served.task(copy)

    assert texts(served.get(task_.id).history).count("m") == 1


TWO_TURNS: Final = "two turns between the reads of the note and of the head hide the first one's message"


@pytest.mark.parametrize("between", [1, 2])
def test_a_look_is_not_fooled_by_turns_that_end_while_it_is_made(tasks: Tasks, between: int) -> None:
    """BatchGetItem reads each item when it likes: here the note before these turns, and the head after them."""
    head = asked(tasks)
    store = tasks.store(
        _NoteFirst(tasks, lambda: [take_turn(tasks, read(tasks, head), f"m{n}") for n in range(between)])
    )
    _, is_repeated = store.find(head.owner, head.task_id, "m0")

    assert is_repeated


class _NoteFirst:
    """A client that reads notes before, and heads after something happens."""

    def __init__(self, tasks: Tasks, meanwhile: Callable[[], object]) -> None:
        self._client = tasks.client
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def batch_get_item(self, **request: Any) -> Any:
        ((table, wanted),) = request["RequestItems"].items()
        keys = sorted(wanted["Keys"], key=lambda key: str(key["entry"]["S"]), reverse=True)
        answers: list[Any] = []
        for key in keys:
            if answers:
                self._meanwhile()
            one: Any = {table: {**wanted, "Keys": [key]}}
            answers.append(self._client.batch_get_item(RequestItems=one, ReturnConsumedCapacity="TOTAL"))
        found = [item for answer in answers for item in answer["Responses"].get(table, [])]
        return {**answers[0], "Responses": {table: found}}


# New tasks


@pytest.mark.parametrize("read_only", [True, False])
def test_copies_one_after_the_other_are_one_task(tasks: Tasks, read_only: bool) -> None:  # noqa: FBT001
    counted = Counted(read_only=read_only)
    served = tasks.serve(counted.agent)
    answers = [served.task(message()) for _ in range(5)]

    assert all(answer == answers[0] for answer in answers)
    assert served.list().total_size == 1
    assert read_only or counted.runs == ["Hello"]


def test_a_new_task_needs_no_call_more_for_being_safe(tasks: Tasks) -> None:
    served = tasks.serve(asking())

    assert tasks.calls_of(served.task) == ["PutItem"]


def test_a_message_is_a_new_task_after_the_window(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    found = []
    for _ in range(4):
        found.append(served.task(message()).id)
        tasks.clock.advance(WINDOW - 1)
        assert served.task(message()).id == found[-1]
        tasks.clock.advance(1)

    assert len(set(found)) == 4


def test_without_a_window_nothing_is_remembered(tasks: Tasks) -> None:
    world = World(clock=tasks.clock, new_id=Ids(), pause=lambda _seconds: None, later=later)
    operations = Operations(asking(), tasks.store(window_seconds=0), GENEROUS, world, window_seconds=0)
    found = []
    for _ in range(2):
        answer = operations.send_message(SendMessageRequest(message()), call()).task
        assert answer is not UNSET
        found.append(answer.id)
        for _ in range(2):
            operations.send_message(SendMessageRequest(message("m", task_id=answer.id)), call())
        assert not any(entry.startswith("message#") for entry in tasks.items(answer.id))
        history = tasks.store().history(read(tasks, replace(begun(), task_id=answer.id)))
        assert texts(history).count("m") == 2

    assert len(set(found)) == 2


@pytest.mark.parametrize("window_seconds", [0, 300])
def test_a_queued_message_whose_answer_was_lost_until_the_worker_had_it_is_taken_once(
    tasks: Tasks, window_seconds: int
) -> None:
    counted = Counted(read_only=False)
    served = tasks.serve(counted.agent, window_seconds=window_seconds)
    put = tasks.client.put_item
    sent: list[str] = []

    def lose(**call: Any) -> Any:
        answer = put(**call)
        task_id = call["Item"]["task_id"]["S"]
        if task_id not in sent and "queued" in call["Item"]:
            sent.append(task_id)
            served.work(task_id)
            raise ReadTimeoutError(endpoint_url="http://dynamodb")
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks.client, "put_item", lose)
        task_id = served.task(return_immediately=True).id

    assert sent == [task_id]
    assert len(counted.runs) == 1
    assert served.list().total_size == 1


@pytest.mark.parametrize("read_only", [True, False])
def test_a_retry_after_a_crash_before_the_write_makes_the_task_under_the_same_id(
    tasks: Tasks,
    read_only: bool,  # noqa: FBT001
) -> None:
    served = tasks.serve(asking(read_only=read_only))
    tasks.answer("PutItem", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        served.task(message())
    made = served.task(message())

    assert made.id == first_id(OWNER, message_key(message()))
    assert served.list().total_size == 1


def test_a_retry_after_an_acting_agent_died_runs_nothing(tasks: Tasks) -> None:
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        tasks.answer("PutItem", KeyboardInterrupt())
        yield completed()

    served = tasks.serve(agent(respond, read_only=False))
    with pytest.raises(KeyboardInterrupt):
        served.task(message())
    assert served.task(message(), return_immediately=True).status.state is TaskState.WORKING
    tasks.clock.advance(25 * SECOND)

    assert served.task(message()).status.state is TaskState.FAILED
    assert runs == ["Hello"]


def test_a_copy_of_a_task_that_has_expired_and_still_lies_there_is_a_new_task(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    old = served.task(message()).id
    tasks.clock.advance(31 * 24 * 3600 * SECOND)
    new = served.task(message())

    assert new.id != old
    assert served.task(message()) == new


# Direct replies


def test_a_direct_reply_is_repeated(tasks: Tasks) -> None:
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        yield reply(f"Hi {len(runs)}!")

    served = tasks.serve(agent(respond))
    first = served.send(message())
    assert served.send(message()) == first
    tasks.clock.advance(WINDOW)
    second = served.send(message())

    assert second != first
    assert served.send(message()) == second
    assert served.list().total_size == 0


@pytest.mark.parametrize("operation", ["get", "cancel", "send"])
def test_a_direct_reply_is_no_task(tasks: Tasks, operation: str) -> None:
    served = tasks.serve(agent(lambda _turn: iter([reply("Hi!")])))
    served.send(message())
    kept, missing = first_id(OWNER, message_key(message())), Ids()()
    carry_out: dict[str, Callable[[str], object]] = {
        "get": served.get,
        "cancel": served.cancel,
        "send": lambda task_id: served.send("x", to=task_id),
    }

    assert refusal(lambda: carry_out[operation](kept)) == refusal(lambda: carry_out[operation](missing))


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(Exception) as error:  # noqa: PT011 - whatever it is, it is the same
        action()
    return repr(error.value)


# At the same moment


@pytest.fixture
def shared(dynamodb: str) -> Iterator[Tasks]:
    """Return a table of its own in the shared DynamoDB."""
    tasks = Tasks(patient_client(dynamodb), endpoint=dynamodb)
    tasks.clock.now = now()
    yield tasks
    tasks.client.delete_table(TableName=tasks.name)


def at_once(action: Callable[[int], T], copies: int) -> list[T]:
    together = threading.Barrier(copies)

    def run(number: int) -> T:
        together.wait()
        return action(number)

    with ThreadPoolExecutor(copies) as pool:
        return list(pool.map(run, range(copies)))


def slow(counted: Counted, started: threading.Event) -> Any:
    """Return an agent that acts for as long as it takes another copy to arrive."""

    def respond(turn: Turn) -> Updates:
        started.wait(0.5)
        yield from counted.agent.respond(turn)

    return agent(respond, read_only=False)


def real(tasks: Tasks, served: Any) -> Operations:
    """Return operations that wait as the function does."""
    world = World(clock=now, new_id=Ids(), pause=sleep, later=later)
    store = tasks.store()
    store._clock = now  # noqa: SLF001 - the clock on the wall, since callers wait for each other
    return Operations(served, store, GENEROUS, world, window_seconds=WINDOW_SECONDS)


def send(operations: Operations, sent: Message) -> Any:
    answer = operations.send_message(SendMessageRequest(sent), call(seconds_left=25))
    assert answer.task is not UNSET
    return answer.task


@pytest.mark.parametrize("read_only", [True, False])
def test_two_hundred_copies_at_once_are_one_task(shared: Tasks, read_only: bool) -> None:  # noqa: FBT001
    counted = Counted(read_only=read_only)
    served = counted.agent if read_only else slow(counted, threading.Event())
    operations = real(shared, served)
    answers = at_once(lambda _number: send(operations, message()), COPIES)

    assert {answer.id for answer in answers} == {first_id(OWNER, message_key(message()))}
    assert {answer.status.state for answer in answers} == {TaskState.INPUT_REQUIRED}
    assert len({answer.context_id for answer in answers}) == 1
    assert len([item for item in shared.all_items() if item["entry"]["S"] == items.HEAD]) == 1
    assert read_only or counted.runs == ["Hello"]


@pytest.mark.parametrize("read_only", [True, False])
def test_copies_of_a_follow_up_at_once_are_one_turn(shared: Tasks, read_only: bool) -> None:  # noqa: FBT001
    counted = Counted(read_only=read_only)
    operations = real(shared, counted.agent if read_only else slow(counted, threading.Event()))
    first = send(operations, message("a"))
    copy = message("m", task_id=first.id)
    answers = at_once(lambda _number: send(operations, copy), 60)

    assert {answer.id for answer in answers} == {first.id}
    assert {tuple(texts(answer.history)[2:3]) for answer in answers} == {("m",)}
    assert {len(texts(answer.history)) for answer in answers} == {4}
    assert read_only or Counter(counted.runs) == {"a": 1, "m": 1}


def test_different_messages_at_once_are_each_taken_once_or_refused(shared: Tasks) -> None:
    counted = Counted(read_only=True)
    operations = real(shared, counted.agent)
    first = send(operations, message("a"))
    sent = [message(f"m{number}", message_id=f"m{number}", task_id=first.id) for number in range(8)]
    at_once(lambda number: send(operations, sent[number % 8]), 24)
    head = shared.store().read(OWNER, first.id)
    assert head is not None

    said = [text for text in texts(shared.store().history(head)) if text.startswith("m")]
    assert sorted(said) == sorted(f"m{number}" for number in range(8))


def test_direct_replies_at_once_are_the_same(shared: Tasks) -> None:
    runs: list[int] = []

    def respond(_turn: Turn) -> Updates:
        runs.append(1)
        yield reply(f"Hi {len(runs)}!")

    operations = real(shared, agent(respond))
    answers = at_once(lambda _number: operations.send_message(SendMessageRequest(message()), call(seconds_left=25)), 40)

    assert len({str(answer.message) for answer in answers}) == 1


# Cancel, and clocks that disagree


def test_a_cancel_by_a_clock_behind_does_not_turn_the_time_of_the_state_back(tasks: Tasks) -> None:
    head = asked(tasks)
    canceled = tasks.store().cancel(head, head.status_at - 3600 * SECOND)

    assert canceled.status_at == head.status_at
    assert read(tasks, head) == canceled
    item = tasks.items(head.task_id)[items.HEAD]
    assert item["status_order"]["S"] == items.status_order(head.task_id, head.status_at)


def test_a_cancel_against_turns_that_come_in_between_is_at_the_newest_time(tasks: Tasks) -> None:
    head = asked(tasks)

    def turn() -> None:
        tasks.clock.advance(5000)
        take_turn(tasks, head, "m")

    tasks.before("UpdateItem", turn)
    canceled = tasks.store().cancel(head, tasks.clock.now)

    assert canceled.status_at == tasks.clock.now
    assert canceled.state is TaskState.CANCELED


def test_a_copy_that_meets_a_cancel_is_answered_with_it_and_another_message_is_refused(tasks: Tasks) -> None:
    served: Server = tasks.serve(asking(read_only=False))
    made = served.task("a")
    copy = message("m", task_id=made.id)
    served.task(copy)
    canceled = served.cancel(made.id)

    assert served.task(copy, caller=hurried(tasks.clock)) == canceled
    with pytest.raises(UnsupportedOperationError):
        served.task("x", to=made.id)


def test_a_copy_of_a_queued_message_is_answered_with_the_task_as_it_is(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    sent = message()
    first = served.task(sent, return_immediately=True)
    served.work(first.id)

    assert served.task(sent, return_immediately=True).status.state is TaskState.INPUT_REQUIRED
    more = message("more", message_id="n", task_id=first.id)
    served.task(more, return_immediately=True)
    served.work(first.id, turn=2)
    assert served.task(more, return_immediately=True).status.state is TaskState.INPUT_REQUIRED
