"""Agents that act on the world: claimed before they run, canceled while they run, given up when they die."""

from collections.abc import Callable
from typing import Final

import pytest
from msgspec import UNSET

from a2a_lambda import agent as api
from a2a_lambda.agent import Turn, Updates, artifact, completed, input_required, working
from a2a_lambda.errors import TaskNotFoundError, UnavailableError, UnsupportedOperationError
from a2a_lambda.model import Task, TaskState
from a2a_lambda.task import Head
from a2a_lambda.turns import AGENT_FAILED
from tests.unit.factories import SECOND, Clock, Rpc, Server, agent, asking, call, rpc, send_params, server, texts
from tests.unit.memory_store import InMemoryTaskStore

Act = Callable[[Server, str], None]


def interrupted_by(act: Act, *, after: api.Update | None = None) -> Server:
    """Return a server whose acting agent is disturbed while it answers anything but "first"."""
    served: list[Server] = []

    def respond(turn: Turn) -> Updates:
        if turn.text == "first":
            yield input_required("And?")
            return
        if after:
            yield after
        act(served[0], turn.task_id)
        yield artifact("too late?")
        yield completed("Done.")

    served.append(server(agent(respond, read_only=False)))
    return served[0]


def said_with(task: Task) -> list[str]:
    return texts([task.status.message] if task.status.message else [])


def dying(clock: Clock) -> tuple[Server, str]:
    """Return a server and a task whose function was stopped in the middle of an agent's turn."""
    store = InMemoryTaskStore(clock)
    ids: list[str] = []

    def respond(turn: Turn) -> Updates:
        ids.append(turn.task_id)
        yield working("Looking …")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        server(agent(respond, read_only=False), store=store, clock=clock).send("Hello")
    return server(asking(read_only=False), store=store, clock=clock), ids[0]


# Claiming


def test_an_acting_agents_task_is_stored_before_it_runs() -> None:
    seen: list[Task] = []
    served = interrupted_by(lambda running, task_id: seen.append(running.get(task_id)))
    served.task("Hello")

    assert [each.status.state for each in seen] == [TaskState.WORKING]
    assert texts(seen[0].history) == ["Hello"]


def test_a_read_only_agents_task_is_not_stored_before_it_has_ended() -> None:
    served: list[Server] = []

    def respond(turn: Turn) -> Updates:
        with pytest.raises(TaskNotFoundError):
            served[0].get(turn.task_id)
        yield completed()

    served.append(server(agent(respond)))

    assert served[0].task().status.state is TaskState.COMPLETED


def test_an_acting_agent_is_two_writes_a_turn() -> None:
    served = server(asking(read_only=False))
    task = served.task()
    assert isinstance(served.store, InMemoryTaskStore)
    assert (served.store.reads, served.store.writes) == (0, 2)

    served.task("more", to=task.id)
    assert (served.store.reads, served.store.writes) == (1, 4)


def test_a_message_to_a_running_task_is_refused_as_busy() -> None:
    refusals: list[UnsupportedOperationError] = []

    def send(running: Server, task_id: str) -> None:
        with pytest.raises(UnsupportedOperationError, match="busy") as refused:
            running.task("me too", to=task_id)
        refusals.append(refused.value)

    task = interrupted_by(send).task("Hello")

    assert [each.metadata for each in refusals] == [{"state": "TASK_STATE_WORKING"}]
    assert task.status.state is TaskState.COMPLETED
    assert texts(task.history) == ["Hello"]


def test_a_follow_up_is_claimed_too() -> None:
    seen: list[Task] = []
    served = interrupted_by(lambda running, task_id: seen.append(running.get(task_id)))
    task = served.task("first")
    served.task("second", to=task.id)

    assert [each.status.state for each in seen] == [TaskState.WORKING]
    assert texts(seen[0].history) == ["first", "And?", "second"]
    assert seen[0].status.message is UNSET


def test_an_acting_agent_that_loses_the_claim_does_not_run() -> None:
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        yield input_required("And?")

    class Canceling(InMemoryTaskStore):
        def commit(self, previous: Head | None, following: Head) -> None:
            if following.turn == 2:
                self.cancel(following.owner, following.task_id, following.status_at)
            super().commit(previous, following)

    served = server(agent(respond, read_only=False), store=Canceling(Clock()))
    task = served.task("first")
    with pytest.raises(UnsupportedOperationError, match="finished"):
        served.task("second", to=task.id)

    assert runs == ["first"]


def test_an_acting_agent_that_raises_fails_its_task() -> None:
    def respond(_turn: Turn) -> Updates:
        yield artifact("half")
        raise RuntimeError("secret")

    task = server(agent(respond, read_only=False)).task()

    assert (task.status.state, said_with(task)) == (TaskState.FAILED, [AGENT_FAILED])
    assert task.artifacts is not UNSET


# Canceling


@pytest.mark.parametrize("after", [None, working("Looking …"), artifact("early")])
@pytest.mark.parametrize("turn", [1, 2])
def test_a_cancel_wins_against_a_running_turn_and_the_answer_says_so(after: api.Update | None, turn: int) -> None:
    served = interrupted_by(lambda running, task_id: void(running.cancel(task_id)), after=after)
    task = served.task("first") if turn == 2 else None
    answered = served.task("second", to=task.id) if task else served.task("second")

    assert answered.status.state is TaskState.CANCELED
    assert answered.artifacts is UNSET
    assert said_with(answered) == []
    assert texts(answered.history)[-1] == "second"
    assert served.get(answered.id) == answered


def void(_value: object) -> None:
    """Forget a value."""


def test_an_agent_is_told_that_its_task_was_canceled() -> None:
    told: list[bool] = []
    served: list[Server] = []

    def respond(turn: Turn) -> Updates:
        told.append(turn.canceled())
        served[0].cancel(turn.task_id)
        served[0].clock.advance(1000)
        told.append(turn.canceled())
        yield completed()

    served.append(server(agent(respond, read_only=False)))
    served[0].task()

    assert told == [False, True]


def test_a_read_only_agent_is_told_that_its_task_was_canceled() -> None:
    told: list[bool] = []
    served: list[Server] = []

    def respond(turn: Turn) -> Updates:
        if turn.text == "second":
            served[0].cancel(turn.task_id)
            told.append(turn.canceled())
        yield input_required("And?")

    served.append(server(agent(respond)))
    task = served[0].task("first")
    with pytest.raises(UnsupportedOperationError):
        served[0].task("second", to=task.id)

    assert told == [True]


def test_asking_whether_the_task_was_canceled_reads_once_in_a_second() -> None:
    served: list[Server] = []

    def respond(turn: Turn) -> Updates:
        for _ in range(40):
            turn.canceled()
            served[0].clock.advance(100)
        yield completed()

    served.append(server(agent(respond, read_only=False)))
    served[0].task(caller=call(seconds_left=60))

    assert isinstance(served[0].store, InMemoryTaskStore)
    assert served[0].store.reads == 4


# Deadlines


def test_a_turn_whose_function_died_is_working_until_its_deadline() -> None:
    served, task_id = dying(Clock())
    served.clock.advance(25 * SECOND - 1)

    assert served.get(task_id).status.state is TaskState.WORKING


def test_a_turn_whose_function_died_is_given_up_by_the_next_reader() -> None:
    served, task_id = dying(Clock())
    served.clock.advance(25 * SECOND)
    task = served.get(task_id)

    assert task.status.state is TaskState.FAILED
    assert "unknown" in said_with(task)[0]
    assert texts(task.history) == ["Hello"]
    assert served.get(task_id) == task


def test_a_turn_whose_function_died_is_given_up_by_the_next_message() -> None:
    served, task_id = dying(Clock())
    served.clock.advance(25 * SECOND)
    with pytest.raises(UnsupportedOperationError, match="finished") as refused:
        served.task("Are you there?", to=task_id)

    assert refused.value.metadata == {"state": "TASK_STATE_FAILED"}


def test_a_task_is_given_up_once() -> None:
    served, task_id = dying(Clock())
    served.clock.advance(25 * SECOND)
    first = served.get(task_id)
    served.clock.advance(25 * SECOND)

    assert served.get(task_id) == first


def test_a_stranger_gives_up_nothing() -> None:
    served, task_id = dying(Clock())
    served.clock.advance(25 * SECOND)
    with pytest.raises(TaskNotFoundError):
        served.get(task_id, caller=call(owner="stranger"))

    assert isinstance(served.store, InMemoryTaskStore)
    assert served.store.writes == 1


def test_who_finds_a_turn_overdue_and_loses_the_race_takes_the_task_as_it_stands() -> None:
    class Canceling(InMemoryTaskStore):
        def commit(self, previous: Head | None, following: Head) -> None:
            if following.state is TaskState.FAILED:
                self.cancel(following.owner, following.task_id, following.status_at)
            super().commit(previous, following)

    store = Canceling(Clock())
    ids: list[str] = []

    def respond(turn: Turn) -> Updates:
        ids.append(turn.task_id)
        raise KeyboardInterrupt

    served = server(agent(respond, read_only=False), store=store, clock=Clock())
    with pytest.raises(KeyboardInterrupt):
        served.send()
    served.clock.advance(60 * SECOND)

    assert served.get(ids[0]).status.state is TaskState.CANCELED


def test_a_turn_that_ends_after_it_was_given_up_changes_nothing() -> None:
    def give_up(running: Server, task_id: str) -> None:
        running.clock.advance(60 * SECOND)
        running.get(task_id)

    task = interrupted_by(give_up).task("Hello")

    assert task.status.state is TaskState.FAILED
    assert "unknown" in said_with(task)[0]
    assert task.artifacts is UNSET


# A store that fails in the middle

UNKNOWN_OUTCOME: Final = "a turn that ran although its result could not be stored must not be called untouched"


class FailingStore(InMemoryTaskStore):
    """A store that is unavailable for the given call, once the first write was made."""

    def __init__(self, clock: Clock, call_: str) -> None:
        super().__init__(clock)
        self._call = call_

    def read(self, owner: str, task_id: str) -> Head | None:
        if self._call == "read" and self.writes:
            raise UnavailableError
        return super().read(owner, task_id)

    def commit(self, previous: Head | None, following: Head) -> None:
        if self._call == "commit" and self.writes:
            raise UnavailableError
        super().commit(previous, following)


def failing(call_: str, *, read_only: bool, script: Callable[[Turn], Updates]) -> Rpc:
    clock = Clock()
    return rpc(agent(script, read_only=read_only), store=FailingStore(clock, call_), clock=clock)


@pytest.mark.xfail(reason=UNKNOWN_OUTCOME, strict=True)
def test_a_turn_whose_result_is_lost_is_not_said_to_be_safe_to_repeat() -> None:
    def respond(_turn: Turn) -> Updates:
        yield completed()

    error = failing("commit", read_only=False, script=respond).refusal("SendMessage", send_params())

    assert error["code"] == -32603
    assert "RetryInfo" not in str(error)


@pytest.mark.xfail(reason="what the store raises inside of an agent's turn is taken for the agent's fault", strict=True)
def test_a_store_that_fails_while_an_agent_reads_earlier_messages_is_not_the_agents_fault() -> None:
    def respond(turn: Turn) -> Updates:
        list(turn.earlier_messages())
        yield input_required("And?")

    endpoint = rpc(agent(respond))
    task = endpoint.ask("SendMessage", send_params())["result"]["task"]

    def fail(*_arguments: object) -> object:
        raise UnavailableError

    working_history, endpoint.store.history = endpoint.store.history, fail  # type: ignore[method-assign,assignment]
    error = endpoint.ask("SendMessage", send_params(taskId=task["id"]))
    endpoint.store.history = working_history  # type: ignore[method-assign]

    assert error["error"]["code"] == -32603
    assert endpoint.ask("GetTask", {"id": task["id"]})["result"] == task


@pytest.mark.xfail(reason="what the store raises inside of an agent's turn is taken for the agent's fault", strict=True)
def test_a_store_that_fails_while_an_agent_asks_whether_it_was_canceled_fails_no_task() -> None:
    def respond(turn: Turn) -> Updates:
        turn.canceled()
        yield completed()

    response = failing("read", read_only=False, script=respond).ask("SendMessage", send_params())

    assert "error" in response or response["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
