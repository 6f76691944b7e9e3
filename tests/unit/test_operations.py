"""The operations of A2A over a store in memory: conversations, contexts, history, cancellation."""

from collections.abc import Callable
from typing import Final

import msgspec
import pytest
from msgspec import UNSET

from a2a_lambda import agent as api
from a2a_lambda.agent import Turn, Updates, artifact, completed, input_required, reply
from a2a_lambda.calls import Call
from a2a_lambda.errors import (
    InvalidParamsError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnavailableError,
    UnsupportedOperationError,
)
from a2a_lambda.ledger import TASK_ID
from a2a_lambda.model import Message, Part, SendMessageRequest, Task, TaskState
from a2a_lambda.presentation import MAX_SHOWN_BYTES
from a2a_lambda.store import ConflictError
from a2a_lambda.task import Head
from tests.unit.factories import (
    DAY,
    OWNER,
    Clock,
    Server,
    agent,
    asking,
    call,
    message,
    server,
    texts,
    yielding,
)
from tests.unit.memory_store import InMemoryTaskStore

UNKNOWN: Final = "00000000-0000-4000-8000-ffffffffffff"


def answering(turn: Turn) -> Updates:
    """Ask until the message says "done"; leave an artifact each time."""
    yield artifact(f"about {turn.text}", artifact_id=turn.text)
    if turn.text != "done":
        yield input_required(f"{turn.text}?")


def conversation(*said: str) -> tuple[Server, Task]:
    """Return a server and a task in which all of this was said."""
    served = server(agent(answering))
    task = served.task(said[0])
    for each in said[1:]:
        task = served.task(each, to=task.id)
    return served, task


# Conversations


def test_the_server_makes_the_ids_of_task_and_context() -> None:
    task = server(asking()).task()

    assert TASK_ID.fullmatch(task.id)
    assert TASK_ID.fullmatch(task.context_id)
    assert task.id != task.context_id


def test_each_message_without_a_task_is_a_new_one() -> None:
    served = server(asking())

    assert served.task().id != served.task().id


def test_a_question_is_in_the_status_and_in_the_history_at_once() -> None:
    task = server(asking()).task("Hello")

    assert task.status.state is TaskState.INPUT_REQUIRED
    assert texts([task.status.message] if task.status.message else []) == ["Which one?"]
    assert texts(task.history) == ["Hello", "Which one?"]
    assert task.history is not UNSET
    assert task.history[-1] == task.status.message


def test_a_conversation_is_told_in_order() -> None:
    _, task = conversation("a", "b", "c", "done")

    assert texts(task.history) == ["a", "a?", "b", "b?", "c", "c?", "done"]
    assert task.status.state is TaskState.COMPLETED


def test_all_messages_of_a_task_name_it_and_its_context() -> None:
    _, task = conversation("a", "b", "done")

    assert task.history is not UNSET
    assert {(each.task_id, each.context_id) for each in task.history} == {(task.id, task.context_id)}


def test_artifacts_of_all_turns_are_in_the_answer() -> None:
    _, task = conversation("a", "b", "a", "done")

    assert task.artifacts is not UNSET
    assert [each.artifact_id for each in task.artifacts] == ["a", "b", "done"]


def test_what_is_read_is_what_was_answered() -> None:
    served, task = conversation("a", "b", "done")

    assert served.get(task.id) == task


def test_a_final_message_is_in_the_status_alone() -> None:
    task = server(yielding(completed("Done."))).task("Hello")

    assert texts([task.status.message] if task.status.message else []) == ["Done."]
    assert texts(task.history) == ["Hello"]


def test_a_question_of_the_turn_before_is_not_the_status_of_the_next() -> None:
    _, task = conversation("a", "done")

    assert task.status.message is UNSET


def test_a_task_is_one_write() -> None:
    served = server(asking())
    served.task()

    assert isinstance(served.store, InMemoryTaskStore)
    assert (served.store.reads, served.store.writes) == (0, 1)


# Replies


def test_a_reply_to_a_first_message_leaves_no_task() -> None:
    served = server(yielding(reply("Hi!")))
    response = served.send()

    assert response.task is UNSET
    assert response.message is not UNSET
    assert texts([response.message]) == ["Hi!"]
    assert served.list().total_size == 0


def test_a_reply_to_a_first_message_is_one_write_and_without_a_window_none() -> None:
    for window, writes in ((300, 1), (0, 0)):
        served = server(yielding(reply("Hi!")), window_seconds=window)
        served.send()

        assert isinstance(served.store, InMemoryTaskStore)
        assert (served.store.reads, served.store.writes) == (0, writes)


def test_a_reply_keeps_the_clients_context() -> None:
    response = server(yielding(reply("Hi!"))).send(message(context_id="mine"))

    assert response.message is not UNSET
    assert (response.message.context_id, response.message.task_id) == ("mine", "")


def test_a_reply_to_a_follow_up_completes_the_task() -> None:
    def respond(turn: Turn) -> Updates:
        yield reply("Bye!") if turn.text == "bye" else input_required("And?")

    served = server(agent(respond))
    task = served.task("hello")
    task = served.task("bye", to=task.id)

    assert task.status.state is TaskState.COMPLETED
    assert texts([task.status.message] if task.status.message else []) == ["Bye!"]
    assert texts(task.history) == ["hello", "And?", "bye"]


def test_a_reply_of_an_acting_agent_completes_its_task() -> None:
    task = server(yielding(reply("Hi!"), read_only=False)).task()

    assert task.status.state is TaskState.COMPLETED


# Contexts


def test_a_clients_context_is_kept_on_a_new_task() -> None:
    assert server(asking()).task(message(context_id="mine")).context_id == "mine"


def test_the_context_is_inferred_from_the_task() -> None:
    served = server(asking())
    task = served.task(message(context_id="mine"))

    assert served.task("more", to=task.id).context_id == "mine"


def test_a_context_that_differs_from_the_tasks_is_refused_before_anything_is_written() -> None:
    served = server(asking())
    task = served.task()
    with pytest.raises(InvalidParamsError):
        served.task(message(task_id=task.id, context_id="another"))

    assert served.get(task.id) == task


def test_the_context_of_the_task_may_be_named() -> None:
    served = server(asking())
    task = served.task()

    assert served.task(message(task_id=task.id, context_id=task.context_id)).context_id == task.context_id


# History


@pytest.mark.parametrize("turns", [1, 2, 7])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 5, 13, 14, 15, 1000, 2**31 - 1])
def test_the_newest_messages_are_shown_in_their_order(turns: int, length: int) -> None:
    said = [str(turn) for turn in range(turns)]
    served, task = conversation(*said)
    expected = [each for turn in said for each in (turn, f"{turn}?")][-length:] if length else []

    shown = served.get(task.id, history_length=length)

    assert texts([] if shown.history is UNSET else shown.history) == expected


def test_a_history_of_zero_is_no_history_at_all() -> None:
    served = server(asking())
    task = served.task(history_length=0)

    assert task.history is UNSET
    assert served.get(task.id, history_length=0).history is UNSET
    assert task.status.message is not UNSET


@pytest.mark.parametrize("length", [1, 2, 3])
def test_send_message_shows_as_many_as_it_was_asked_for(length: int) -> None:
    served, task = conversation("a", "b")
    task = served.task("c", to=task.id, history_length=length)

    assert texts(task.history) == ["b?", "c", "c?"][-length:]


def test_a_history_has_a_hundred_messages_by_default() -> None:
    served, task = conversation(*(str(turn) for turn in range(60)))
    canceled = served.cancel(task.id)

    for shown in (task, served.get(task.id), canceled):
        assert len(texts(shown.history)) == 100
        assert texts(shown.history)[-1] == "59?"


def test_more_than_a_hundred_are_shown_to_who_asks_for_them() -> None:
    served, task = conversation(*(str(turn) for turn in range(60)))

    assert len(texts(served.get(task.id, history_length=110).history)) == 110


def test_a_long_conversation_is_answered_in_part() -> None:
    served = server(asking())
    task = served.task("x" * 60_000)
    for _ in range(90):
        task = served.task("x" * 60_000, to=task.id)
    shown = served.get(task.id, history_length=1000)

    assert len(msgspec.json.encode(shown)) <= MAX_SHOWN_BYTES
    assert texts(shown.history)[-1] == "Which one?"


# Finished tasks, cancellation


@pytest.mark.parametrize("update", [completed(), api.failed("No."), api.rejected("No.")])
def test_a_finished_task_takes_no_message_and_stays_as_it_is(update: api.Update) -> None:
    served = server(yielding(update))
    task = served.task()
    with pytest.raises(UnsupportedOperationError):
        served.task("more", to=task.id)

    assert served.get(task.id) == task


@pytest.mark.parametrize("update", [completed(), api.failed("No."), api.rejected("No.")])
def test_a_finished_task_cannot_be_canceled(update: api.Update) -> None:
    served = server(yielding(update))
    task = served.task()
    with pytest.raises(TaskNotCancelableError):
        served.cancel(task.id)

    assert served.get(task.id) == task


@pytest.mark.parametrize("update", [input_required("?"), api.auth_required("?")])
def test_a_task_that_asks_is_canceled(update: api.Update) -> None:
    served = server(yielding(update))
    task = served.task("Hello")
    served.clock.advance(5)
    canceled = served.cancel(task.id)

    assert canceled.status.state is TaskState.CANCELED
    assert canceled.status.message is UNSET
    assert canceled.status.timestamp > task.status.timestamp
    assert texts(canceled.history) == ["Hello", "?"]
    assert served.get(task.id) == canceled


def test_a_canceled_task_is_not_canceled_twice() -> None:
    served = server(asking())
    task = served.task()
    served.cancel(task.id)
    with pytest.raises(TaskNotCancelableError) as refused:
        served.cancel(task.id)

    assert refused.value.metadata == {"state": "TASK_STATE_CANCELED"}


def test_a_canceled_task_takes_no_message() -> None:
    served = server(asking())
    task = served.task()
    served.cancel(task.id)
    with pytest.raises(UnsupportedOperationError):
        served.task("more", to=task.id)


# Owners, unknown and expired tasks


@pytest.mark.parametrize("operation", ["get", "cancel", "send"])
def test_a_foreign_task_is_as_if_it_were_missing(operation: str) -> None:
    served = server(asking())
    task = served.task()
    stranger = call(owner="stranger")
    refusals = []
    for task_id in (task.id, UNKNOWN):
        with pytest.raises(TaskNotFoundError) as refused:
            carry_out(served, operation, task_id, stranger)
        refusals.append((refused.value.message, refused.value.details()))

    assert refusals[0] == refusals[1]
    assert served.get(task.id) == task


@pytest.mark.parametrize("operation", ["get", "cancel", "send"])
def test_a_task_is_gone_thirty_days_after_its_last_change(operation: str) -> None:
    served = server(asking())
    task = served.task()
    served.clock.advance(29 * DAY)
    task = served.task("still there", to=task.id)
    served.clock.advance(30 * DAY)
    with pytest.raises(TaskNotFoundError):
        carry_out(served, operation, task.id, call())


def carry_out(served: Server, operation: str, task_id: str, caller: Call) -> None:
    match operation:
        case "get":
            served.get(task_id, caller=caller)
        case "cancel":
            served.cancel(task_id, caller=caller)
        case _:
            served.send("more", to=task_id, caller=caller)


def test_an_agent_does_not_run_for_a_task_that_is_refused() -> None:
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        yield completed()

    served = server(agent(respond))
    task = served.task("first")
    for attempt in (task.id, UNKNOWN):
        with pytest.raises((UnsupportedOperationError, TaskNotFoundError)):
            served.send("second", to=attempt)

    assert runs == ["first"]


# Races of a read-only agent


class Contested(InMemoryTaskStore):
    """A store in which another writer is always a little faster, as often as it is told."""

    def __init__(self, clock: Clock, times: int) -> None:
        super().__init__(clock)
        self.times = times

    def commit(self, previous: Head | None, following: Head) -> None:
        if previous is not None and self.times:
            self.times -= 1
            rival = server(asking(), store=InMemoryView(self), clock=Clock())
            rival.task(f"rival {self.times}", to=previous.task_id)
        super().commit(previous, following)


class InMemoryView(InMemoryTaskStore):
    """The same tasks, without the competition."""

    def __init__(self, contested: Contested) -> None:
        super().__init__(Clock())
        self._versions = contested._versions  # noqa: SLF001 - the same tasks
        self._write_numbers = contested._write_numbers  # noqa: SLF001 - and writes that differ


@pytest.mark.parametrize("times", [1, 2, 5])
def test_who_loses_a_race_answers_the_newer_question(times: int) -> None:
    served = server(asking(), store=Contested(Clock(), times))
    task = served.task("a")
    task = served.task("b", to=task.id)

    rivals = [each for rival in reversed(range(times)) for each in (f"rival {rival}", "Which one?")]
    assert texts(task.history) == ["a", "Which one?", *rivals, "b", "Which one?"]


def test_who_always_loses_gives_up_while_there_is_time_to_say_so() -> None:
    served = server(asking(), store=Contested(Clock(), 1))
    task = served.task("a")
    with pytest.raises(UnavailableError):
        served.task("b", to=task.id, caller=call(seconds_left=4.9))

    assert "b" not in texts(served.get(task.id).history)


class Finishing(InMemoryTaskStore):
    """A store in which the task is canceled, or gone, just before a turn counts."""

    def __init__(self, clock: Clock, current: Head | None = None) -> None:
        super().__init__(clock)
        self.current = current

    def commit(self, previous: Head | None, following: Head) -> None:
        if previous is not None:
            self.cancel(previous, previous.status_at)
        super().commit(previous, following)


def test_a_follow_up_that_loses_against_a_cancel_is_refused() -> None:
    served = server(asking(), store=Finishing(Clock()))
    task = served.task("a")
    with pytest.raises(UnsupportedOperationError):
        served.task("b", to=task.id)

    assert texts(served.get(task.id).history) == ["a", "Which one?"]


class Vanishing(InMemoryTaskStore):
    """A store in which a task expires just before its next turn counts."""

    gone = False

    def find(self, owner: str, task_id: str, message_key: str) -> tuple[Head | None, bool]:
        return (None, False) if self.gone else super().find(owner, task_id, message_key)

    def commit(self, previous: Head | None, following: Head) -> None:
        if previous is not None:
            self.gone = True
            raise ConflictError(None)
        super().commit(previous, following)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_task_that_is_gone_meanwhile_is_not_found(read_only: bool) -> None:  # noqa: FBT001
    served = server(asking(read_only=True), store=Vanishing(Clock()))
    task = served.task("a")
    follower = server(asking(read_only=read_only), store=served.store)
    with pytest.raises(TaskNotFoundError):
        follower.task("b", to=task.id)


@pytest.mark.parametrize("read_only", [True, False])
def test_what_an_agent_does_to_the_message_is_not_in_the_history(read_only: bool) -> None:  # noqa: FBT001
    def respond(turn: Turn) -> Updates:
        metadata = turn.message.parts[0].metadata
        assert metadata is not UNSET
        metadata.pop("order")
        turn.message.parts.append(Part(text="never said"))
        yield completed()

    task = server(agent(respond, read_only=read_only)).task([Part(text="a", metadata={"order": 1})])

    assert task.history is not UNSET
    assert task.history[0].parts == [Part(text="a", metadata={"order": 1})]


def test_an_agent_that_is_run_again_sees_the_message_as_it_came() -> None:
    seen: list[int] = []

    def respond(turn: Turn) -> Updates:
        seen.append(len(turn.message.parts))
        turn.message.parts.append(Part(text="more"))
        yield input_required("?")

    served = server(agent(respond), store=Contested(Clock(), 1))
    task = served.task("a")
    served.task("b", to=task.id)

    assert seen == [1, 1, 1]


def test_an_agent_that_is_run_again_sees_the_requests_metadata_as_they_came() -> None:
    seen: list[object] = []

    def respond(turn: Turn) -> Updates:
        seen.append(turn.metadata.pop("k", None))
        yield input_required("?")

    served = server(agent(respond), store=Contested(Clock(), 1))
    task = served.task("a")
    served.operations.send_message(SendMessageRequest(message(task_id=task.id), metadata={"k": [1]}), call())

    assert seen == [None, [1], [1]]


# What the agent's values do to the answer


def nested(depth: int, around: Callable[[object], object]) -> object:
    value: object = 0
    for _ in range(depth):
        value = around(value)
    return value


def fate(value: object) -> str:
    """Return what becomes of a task whose agent gives this data; it can be read in any case."""
    served = server(yielding(artifact(Part(data=value))))
    task = served.task()
    assert served.get(task.id) == task
    return task.status.state.name


LAYERS: Final[dict[str, Callable[[object], object]]] = {
    "list": lambda value: [value],
    "tuple": lambda value: (value,),
    "object": lambda value: {"a": value},
    "object in a tuple": lambda value: ({"a": value},),
}


@pytest.mark.parametrize("around", LAYERS.values(), ids=LAYERS)
def test_an_agents_data_can_be_read_or_is_refused_however_deep_it_is(around: Callable[[object], object]) -> None:
    fates = [fate(nested(depth, around)) for depth in (*range(100), 500, 10_000, 50_000)]

    assert set(fates[:20]) == {"COMPLETED"}
    assert set(fates[90:]) == {"FAILED"}
    assert fates == sorted(fates)


def test_a_message_is_stored_as_it_came() -> None:
    parts = [Part(text="é😀\u2028", metadata={"a": [0.1, 10**400, None, {}]}, filename="f", media_type="text/plain")]
    served = server(yielding(completed()))
    task = served.task(message(parts))

    assert task.history == [
        Message("msg-1", message().role, parts, task_id=task.id, context_id=task.context_id),
    ]


def test_a_webhook_that_comes_while_a_read_only_agent_runs_does_not_make_it_run_again() -> None:
    runs: list[str] = []
    served: list[Server] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        head = served[0].store.read(OWNER, turn.task_id)
        if head:
            served[0].store.watch(head)
        yield input_required("And?")

    served.append(server(agent(respond)))
    task = served[0].task("first")
    task = served[0].task("second", to=task.id)

    assert runs == ["first", "second"]
    assert texts(task.history) == ["first", "And?", "second", "And?"]
