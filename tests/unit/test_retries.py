"""Safe retries over a store in memory: one message is one task, however often and whenever it is sent."""

import itertools
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from a2a_lambda import agent as api
from a2a_lambda.agent import Turn, Updates, artifact, completed, input_required, reply, working
from a2a_lambda.errors import TaskNotFoundError, UnavailableError, UnsupportedOperationError
from a2a_lambda.ledger import TASK_ID
from a2a_lambda.model import (
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SendMessageResponse,
    TaskState,
)
from a2a_lambda.retries import first_id, message_key
from a2a_lambda.sending import MAX_KEPT_REPLY
from a2a_lambda.task import DirectReply, Head
from tests.unit.factories import (
    SECOND,
    VALIDATOR,
    Clock,
    Json,
    Server,
    agent,
    asking,
    begun,
    call,
    hurried,
    message,
    send_params,
    server,
    texts,
)
from tests.unit.memory_store import DyingStore, InMemoryTaskStore

WINDOW: Final = 300 * SECOND


def counting(*, read_only: bool = False, final: api.Update | None = None) -> tuple[Server, list[str]]:
    """Return a server, and the list of what its agent was run for."""
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        yield artifact(f"run {len(runs)}")
        yield final or input_required(f"{len(runs)}?")

    return server(agent(respond, read_only=read_only)), runs


# What stands for a message


def received(**fields: Json) -> Message:
    return VALIDATOR.read(SendMessageRequest, send_params(**fields)).message


def key_of_json(text: str) -> str:
    return message_key(VALIDATOR.read(SendMessageRequest, {"message": msgspec.json.decode(text)}).message)


@pytest.mark.parametrize(
    "other",
    [
        {"messageId": "msg-2"},
        {"parts": [{"text": "hello"}]},
        {"parts": [{"text": "Hello"}, {"text": ""}]},
        {"parts": [{"text": "Hello", "metadata": {}}]},
        {"parts": [{"text": "Hello", "filename": "x"}]},
        {"contextId": "c"},
        {"taskId": "t"},
        {"metadata": {}},
        {"metadata": {"a": 1}},
        {"extensions": ["urn:x"]},
        {"referenceTaskIds": ["t"]},
    ],
)
def test_other_content_is_another_message(other: Json) -> None:
    assert message_key(received(**other)) != message_key(received())


@pytest.mark.parametrize(
    "same",
    [
        {"contextId": ""},
        {"metadata": None},
        {"extensions": []},
        {"role": 1},
        {"unknown": 5},
        {"message_id": "msg-1", "messageId": None},
    ],
)
def test_the_same_content_is_the_same_message_however_it_is_written(same: Json) -> None:
    assert message_key(received(**same)) == message_key(received())


def test_the_order_of_a_messages_fields_does_not_matter() -> None:
    one = '{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x","mediaType":"text/plain"}]}'
    other = '{"parts":[{"mediaType":"text/plain","text":"x"}],"role":"ROLE_USER","messageId":"m"}'

    assert key_of_json(one) == key_of_json(other)


@given(st.permutations(range(4)))
def test_a_key_is_short_and_fit_for_a_tables_key(order: list[int]) -> None:
    key = message_key(received(metadata={str(number): number for number in order}))

    assert len(key) == 22
    assert set(key) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_a_first_id_is_a_uuid_of_owner_and_message() -> None:
    made = [first_id(owner, key) for owner, key in itertools.product("ab", ["k1", "k2"])]

    assert all(TASK_ID.fullmatch(each) and each[14] == "8" and each[19] == "8" for each in made)
    assert len(set(made)) == len(made)
    assert first_id("a", "k1") == made[0]


# New tasks


@pytest.mark.parametrize("read_only", [True, False])
def test_the_same_message_is_the_same_task(read_only: bool) -> None:  # noqa: FBT001
    served, _ = counting(read_only=read_only)
    first = served.task(message())

    assert served.task(message()) == first
    assert served.list().total_size == 1


def test_an_acting_agent_runs_once_for_all_copies() -> None:
    served, runs = counting()
    for _ in range(5):
        served.task(message())

    assert runs == ["Hello"]


@pytest.mark.parametrize("content", ["hello", "Hello ", [Part(text="Hello", metadata={})]])
def test_other_content_under_the_same_id_is_another_task(content: Any) -> None:
    served, runs = counting()

    assert served.task(message("Hello")).id != served.task(message(content)).id
    assert len(runs) == 2


def test_another_message_id_is_another_task() -> None:
    served, _ = counting()

    assert served.task(message(message_id="1")).id != served.task(message(message_id="2")).id


def test_another_owners_message_is_another_task() -> None:
    served, runs = counting()
    ours, theirs = (served.task(message(), caller=call(owner=owner)) for owner in ("alice", "bob"))

    assert ours.id != theirs.id
    assert len(runs) == 2


def test_configuration_and_the_requests_metadata_are_not_the_message() -> None:
    served, runs = counting()
    first = served.task(message())
    configured = SendMessageConfiguration(history_length=1, accepted_output_modes=["text/plain"])
    again = served.operations.send_message(
        SendMessageRequest(message(), configuration=configured, metadata={"attempt": 2}), call()
    )

    assert again.task is not UNSET
    assert (again.task.id, len(runs)) == (first.id, 1)
    assert texts(again.task.history) == ["1?"]


@pytest.mark.parametrize("final", [completed("Done."), api.failed("No."), api.rejected("No.")])
def test_a_copy_is_answered_though_the_task_is_finished(final: api.Update) -> None:
    served, runs = counting(final=final)
    first = served.task(message())

    assert served.task(message()) == first
    assert len(runs) == 1


def test_a_copy_is_answered_with_the_task_as_it_stands() -> None:
    served, _ = counting()
    first = served.task(message())
    served.task("more", to=first.id)
    canceled = served.cancel(first.id)

    assert served.task(message()) == canceled


def test_a_copy_with_a_context_is_the_same_task() -> None:
    served, _ = counting()
    sent = message(context_id="mine")

    assert served.task(sent).id == served.task(sent).id


def test_a_message_is_new_again_after_the_window() -> None:
    served, runs = counting()
    ids = []
    for _ in range(4):
        ids.append(served.task(message()).id)
        served.clock.advance(WINDOW - 1)
        assert served.task(message()).id == ids[-1]
        served.clock.advance(1)

    assert len(set(ids)) == 4
    assert len(runs) == 4


@given(st.lists(st.integers(0, 2 * WINDOW), min_size=1, max_size=12))
def test_whenever_copies_come_each_is_the_task_of_the_window_or_a_new_one(gaps: list[int]) -> None:
    served, runs = counting()
    begun_at: dict[str, int] = {}
    for gap in gaps:
        served.clock.advance(gap)
        task_id = served.task(message()).id
        begun_at.setdefault(task_id, served.clock.now)
        assert served.clock.now - begun_at[task_id] < WINDOW
        recent = [each for each, at in begun_at.items() if served.clock.now - at < WINDOW]
        assert recent == [task_id]

    assert len(runs) == len(begun_at)


BEGUN_AGAIN: Final = [0, 1, SECOND, WINDOW // 2, WINDOW - 2, WINDOW - 1, WINDOW, 2 * WINDOW - 1, 3 * WINDOW + 17]


@pytest.mark.parametrize("later", BEGUN_AGAIN)
@pytest.mark.parametrize("read_only", [True, False])
def test_a_copy_while_another_is_begun_again_is_the_same_task(read_only: bool, later: int) -> None:  # noqa: FBT001
    served, runs = counting(read_only=read_only)
    first = served.task(message()).id
    served.clock.advance(WINDOW + later)
    begin_again, copies = served.store.begin_again, []

    def meanwhile(owner: str, first_id: str, candidate_id: str) -> str:
        served.store.begin_again = begin_again  # type: ignore[method-assign]
        served.clock.advance(2)
        copies.append(served.task(message()).id)
        return begin_again(owner, first_id, candidate_id)

    served.store.begin_again = meanwhile  # type: ignore[method-assign]
    copies += [served.task(message()).id, served.task(message()).id]

    assert len(set(copies)) == 1
    assert first not in copies
    assert read_only or len(runs) == 2


@pytest.mark.parametrize("later", BEGUN_AGAIN)
def test_a_copy_while_an_acting_agent_runs_again_waits_for_its_task(later: int) -> None:
    served: list[Server] = []
    copies: list[str] = []
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.task_id)
        if len(runs) == 2:
            served[0].clock.advance(10)
            copies.append(served[0].task(message(), return_immediately=True).id)
        yield completed()

    served.append(server(agent(respond, read_only=False)))
    first = served[0].task(message()).id
    served[0].clock.advance(WINDOW + later)
    copies.append(served[0].task(message()).id)

    assert (set(copies), runs) == ({runs[1]}, [first, runs[1]])


@pytest.mark.parametrize("final", [input_required("?"), reply("Hi!")])
def test_a_read_only_agent_is_run_once_for_a_message_that_begins_again(final: api.Update) -> None:
    left: list[float] = []
    served: list[Server] = []

    def respond(turn: Turn) -> Updates:
        left.append(turn.seconds_left())
        served[0].clock.advance(16 * SECOND)
        yield final

    served.append(server(agent(respond)))
    served[0].send(message())
    served[0].clock.advance(WINDOW + SECOND)
    served[0].send(message())

    assert left == [25.0, 25.0]


def test_what_a_read_only_agent_made_under_a_taken_id_is_shown_under_the_new_one() -> None:
    served, _ = counting(read_only=True)
    first = served.task(message())
    served.clock.advance(WINDOW)
    again = served.task(message())

    assert again.history is not UNSET
    assert {each.task_id for each in again.history} == {again.id} != {first.id}
    assert {each.context_id for each in again.history} == {again.context_id}
    assert served.get(again.id) == again
    assert served.get(first.id) == first


def test_a_retry_after_a_crash_before_a_message_is_begun_again_makes_the_one_task() -> None:
    clock, runs = Clock(), []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.task_id)
        yield completed()

    served = server(agent(respond, read_only=False), store=DyingStore(clock, at_write=4), clock=clock)
    served.task(message())
    clock.advance(WINDOW)
    with pytest.raises(KeyboardInterrupt):
        served.task(message())
    again = served.task(message())

    assert len(runs) == 2
    assert served.task(message()) == again
    assert served.list().total_size == 2


def test_without_a_window_each_copy_is_a_task() -> None:
    served = server(asking(), window_seconds=0)

    assert served.task(message()).id != served.task(message()).id


# A crash between two writes


def killed_at(write: int, *, read_only: bool) -> tuple[Server, list[str]]:
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        yield input_required("?")

    clock = Clock()
    served = server(agent(respond, read_only=read_only), store=DyingStore(clock, at_write=write), clock=clock)
    with pytest.raises(KeyboardInterrupt):
        served.task(message())
    return served, runs


@pytest.mark.parametrize("read_only", [True, False])
def test_a_retry_after_a_crash_before_the_first_write_makes_the_one_task(read_only: bool) -> None:  # noqa: FBT001
    served, _ = killed_at(1, read_only=read_only)
    task = served.task(message())

    assert task.status.state is TaskState.INPUT_REQUIRED
    assert served.list().total_size == 1
    assert served.task(message()) == task


def test_a_retry_after_an_acting_agent_ran_and_died_finds_its_task_and_runs_nothing() -> None:
    served, runs = killed_at(2, read_only=False)
    assert served.task(message()).status.state is TaskState.WORKING
    served.clock.advance(25 * SECOND)
    task = served.task(message())

    assert task.status.state is TaskState.FAILED
    assert "unknown" in texts([task.status.message] if task.status.message else [])[0]
    assert runs == ["Hello"]
    assert served.list().total_size == 1


# Follow-ups


@pytest.mark.parametrize("read_only", [True, False])
def test_a_copy_of_a_follow_up_is_taken_once(read_only: bool) -> None:  # noqa: FBT001
    served, runs = counting(read_only=read_only)
    task = served.task("a")
    sent = message("b", task_id=task.id)
    first = served.task(sent)

    assert served.task(sent) == first
    assert texts(first.history) == ["a", "1?", "b", "2?"]
    assert runs == ["a", "b"]


@pytest.mark.parametrize("turns", [1, 2, 5])
def test_a_copy_of_an_earlier_follow_up_is_answered_with_the_task_as_it_stands(turns: int) -> None:
    served, _ = counting()
    task = served.task("a")
    sent = message("b", task_id=task.id)
    served.task(sent)
    for number in range(turns):
        task = served.task(f"{number}", to=task.id)

    assert served.task(sent) == task


def test_a_copy_that_ended_the_task_is_not_refused() -> None:
    def respond(turn: Turn) -> Updates:
        yield completed("Bye.") if turn.text == "bye" else input_required("?")

    served = server(agent(respond, read_only=False))
    task = served.task("a")
    sent = message("bye", task_id=task.id)
    done = served.task(sent)

    assert served.task(sent) == done
    with pytest.raises(UnsupportedOperationError):
        served.task(message("bye", message_id="another", task_id=task.id))


def test_a_copy_of_a_follow_up_is_another_message_after_the_window() -> None:
    served, _ = counting()
    task = served.task("a")
    sent = message("b", task_id=task.id)
    served.task(sent)
    served.clock.advance(WINDOW)

    assert texts(served.task(sent).history) == ["a", "1?", "b", "2?", "b", "3?"]


def test_other_content_under_the_same_id_is_another_follow_up() -> None:
    served, _ = counting()
    task = served.task("a")
    served.task(message("b", task_id=task.id))

    assert texts(served.task(message("c", task_id=task.id)).history)[-2:] == ["c", "3?"]


def test_a_strangers_copy_of_a_follow_up_is_not_found() -> None:
    served, _ = counting()
    task = served.task("a")
    sent = message("b", task_id=task.id)
    served.task(sent)
    with pytest.raises(TaskNotFoundError):
        served.task(sent, caller=call(owner="stranger"))


def test_without_a_window_a_copy_of_a_follow_up_is_a_turn() -> None:
    served = server(asking(), window_seconds=0)
    task = served.task("a")
    sent = message("b", task_id=task.id)
    served.task(sent)

    assert texts(served.task(sent).history)[-4:] == ["b", "Which one?", "b", "Which one?"]


# Direct replies


def replying(**more: Any) -> tuple[Server, list[str]]:
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        yield reply(f"Hi {len(runs)}!")

    return server(agent(respond), **more), runs


def said(response: SendMessageResponse) -> list[str]:
    assert response.message is not UNSET
    return texts([response.message])


def test_a_direct_reply_is_repeated_word_for_word() -> None:
    served, _ = replying()
    first = served.send(message())

    assert served.send(message()) == first
    assert said(first) == ["Hi 1!"]


def test_a_direct_reply_is_no_task() -> None:
    served, _ = replying()
    served.send(message())
    task_id = first_id("anonymous", message_key(message()))

    assert served.list().total_size == 0
    for refused in (served.get, served.cancel, lambda found: served.send("x", to=found)):
        with pytest.raises(TaskNotFoundError):
            refused(task_id)


def test_a_direct_reply_is_its_owners() -> None:
    served, _ = replying()
    served.send(message())

    assert said(served.send(message(), caller=call(owner="bob"))) == ["Hi 2!"]


def test_after_the_window_there_is_another_reply() -> None:
    served, runs = replying()
    answers = []
    for _ in range(3):
        answers.append(said(served.send(message())))
        served.clock.advance(WINDOW - 1)
        assert said(served.send(message())) == answers[-1]
        served.clock.advance(1)

    assert len({str(each) for each in answers}) == 3
    assert len(runs) >= 3


def test_a_reply_that_is_too_long_is_given_and_not_kept() -> None:
    long = "x" * MAX_KEPT_REPLY
    served = server(agent(lambda _turn: iter([reply(long)])))

    assert said(served.send(message())) == [long]
    assert isinstance(served.store, InMemoryTaskStore)
    assert served.store.writes == 0


def test_of_two_replies_at_the_same_moment_the_first_that_is_kept_is_everybodys() -> None:
    class Faster(InMemoryTaskStore):
        def keep_reply(self, reply: DirectReply) -> None:
            rival = Message("rival", Role.AGENT, [Part(text="First!")], context_id="c")
            super().keep_reply(msgspec.structs.replace(reply, content=msgspec.json.encode(rival)))
            super().keep_reply(reply)

    served = server(agent(lambda _turn: iter([reply("Second!")])), store=Faster(clock := Clock()), clock=clock)

    assert said(served.send(message())) == ["First!"]
    assert said(served.send(message())) == ["First!"]


# Waiting for another's turn


class Claimed(InMemoryTaskStore):
    """A store in which another request holds the task of a message, and ends its turn after so long."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.clock = clock

    def claim(self, sent: Message, *, deadline: int = 25 * SECOND) -> Head:
        head = begun(message_=msgspec.structs.replace(sent, context_id="c"), now=self.clock.now)
        head = msgspec.structs.replace(
            head,
            task_id=first_id("anonymous", message_key(sent)),
            message_key=message_key(sent),
            deadline=self.clock.now + deadline,
        )
        self.commit(None, head)
        return head

    def finish(self, head: Head) -> None:
        self.commit(
            head,
            msgspec.structs.replace(head, state=TaskState.COMPLETED, deadline=None, revision=head.revision + 1),
        )


def waiting(
    *, seconds_left: float = 25.0, deadline: int = 25 * SECOND
) -> tuple[Server, Claimed, Head, Callable[..., Any]]:
    """Return a server, its store, the task that another request works on, and how to send the copy."""
    clock = Clock()
    store = Claimed(clock)
    head = store.claim(message(), deadline=deadline)
    served = server(asking(read_only=False), store=store, clock=clock)

    def send(**more: Any) -> Any:
        return served.task(message(), caller=hurried(clock, seconds_left=seconds_left), **more)

    return served, store, head, send


def test_a_copy_waits_for_the_first_to_end() -> None:
    served, store, head, send = waiting()
    looks = iter(range(10))
    served.pause.meanwhile = lambda: store.finish(head) if next(looks) == 4 else None
    task = send()

    assert (task.id, task.status.state) == (head.task_id, TaskState.COMPLETED)
    assert served.pause.taken == [0.1, 0.2, 0.4, 1.0, 1.0]


def test_a_copy_that_need_not_wait_does_not() -> None:
    served, _, head, send = waiting()
    task = send(return_immediately=True)

    assert (task.id, task.status.state, served.pause.taken) == (head.task_id, TaskState.WORKING, [])


def test_a_copy_answers_with_the_task_as_it_stands_while_there_is_time_to() -> None:
    served, _, head, send = waiting(seconds_left=10, deadline=60 * SECOND)
    task = send()

    assert (task.id, task.status.state) == (head.task_id, TaskState.WORKING)
    assert 6 <= sum(served.pause.taken) <= 8


def test_a_copy_without_time_to_wait_answers_at_once() -> None:
    served, _, _, send = waiting(seconds_left=3)

    assert send().status.state is TaskState.WORKING
    assert served.pause.taken == []


def test_a_copy_that_waits_for_a_turn_that_died_gives_it_up() -> None:
    _, _, head, send = waiting(deadline=5 * SECOND)
    task = send()

    assert (task.id, task.status.state) == (head.task_id, TaskState.FAILED)


def test_a_copy_that_waits_sees_a_cancel() -> None:
    served, store, head, send = waiting()
    served.pause.meanwhile = lambda: store.cancel(head, served.clock.now)

    assert send().status.state is TaskState.CANCELED


def test_a_copy_of_a_follow_up_waits_too() -> None:
    states: list[TaskState] = []
    served: list[Server] = []

    def respond(turn: Turn) -> Updates:
        if turn.text == "b":
            copy = served[0].task(turn.message, return_immediately=True)
            states.append(copy.status.state)
            yield working("…")
        yield input_required("?")

    served.append(server(agent(respond, read_only=False)))
    task = served[0].task("a")
    sent = message("b", task_id=task.id, context_id=task.context_id)
    served[0].task(sent)

    assert states == [TaskState.WORKING]


def test_who_waits_runs_no_agent() -> None:
    served, store, head, send = waiting()
    served.pause.meanwhile = lambda: store.finish(head)
    send()

    assert store.writes == 2


# A store that fails


@pytest.mark.parametrize("method", ["find", "commit"])
def test_a_store_that_does_not_answer_is_not_taken_for_an_answer(method: str) -> None:
    served, runs = counting()
    task = served.task("a")

    def fail(*_arguments: object) -> object:
        raise UnavailableError

    setattr(served.store, method, fail)
    with pytest.raises(UnavailableError):
        served.task(message("b", task_id=task.id))

    assert runs == ["a"]
