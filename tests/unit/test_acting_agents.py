"""Agents that act on the world: claimed before they run, canceled while they run, given up when they die."""

from collections.abc import Callable
from typing import Final

import pytest
from msgspec import UNSET

from a2a_lambda import agent as api
from a2a_lambda.agent import Turn, Updates, artifact, completed, input_required, working
from a2a_lambda.calls import Call
from a2a_lambda.errors import InternalError, TaskNotFoundError, UnavailableError, UnsupportedOperationError
from a2a_lambda.model import Message, Task, TaskState
from a2a_lambda.task import Head
from a2a_lambda.turns import AGENT_FAILED
from tests.unit.factories import SECOND, Clock, Script, Server, agent, asking, call, hurried, server, texts
from tests.unit.memory_store import DyingStore, InMemoryTaskStore

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
    store = DyingStore(clock, at_write=2)
    ids: list[str] = []

    def respond(turn: Turn) -> Updates:
        ids.append(turn.task_id)
        yield completed("Done.")

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
                self.cancel(following, following.status_at)
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
    class Canceling(DyingStore):
        def commit(self, previous: Head | None, following: Head) -> None:
            if following.state is TaskState.FAILED:
                self.cancel(following, following.status_at)
            super().commit(previous, following)

    store = Canceling(Clock(), at_write=2)
    ids: list[str] = []

    def respond(turn: Turn) -> Updates:
        ids.append(turn.task_id)
        yield completed("Done.")

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


class Failing(InMemoryTaskStore):
    """A store that does not answer some of its calls, as often as it is told."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.failures = dict.fromkeys(("read", "history", "commit", "prepare"), 0)

    def fail(self, method: str, times: int = 1) -> None:
        self.failures[method] = times

    def read(self, owner: str, task_id: str) -> Head | None:
        self._answer("read")
        return super().read(owner, task_id)

    def history(self, head: Head, limit: int | None = None) -> list[Message]:
        self._answer("history")
        return super().history(head, limit)

    def prepare(self, previous: Head | None, following: Head) -> Callable[[], None]:
        self._answer("prepare")
        return super().prepare(previous, following)

    def commit(self, previous: Head | None, following: Head) -> None:
        self._answer("commit")
        super().commit(previous, following)

    def _answer(self, method: str) -> None:
        if self.failures[method]:
            self.failures[method] -= 1
            raise UnavailableError


def failing(script: Script, *, read_only: bool) -> tuple[Server, Failing, Call]:
    """Return a server, its store, and a caller whose time runs out."""
    clock = Clock()
    store = Failing(clock)
    return server(agent(script, read_only=read_only), store=store, clock=clock), store, hurried(clock)


class Silent(InMemoryTaskStore):
    """A store that carries out a write and does not say so, the first time."""

    def __init__(self, clock: Clock, *, at_write: int) -> None:
        super().__init__(clock)
        self.left = at_write

    def commit(self, previous: Head | None, following: Head) -> None:
        super().commit(previous, following)
        self.left -= 1
        if self.left == 0:
            raise UnavailableError


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("lost", [1, 2, 3, 4])
def test_a_write_whose_answer_is_lost_has_counted_and_its_agent_runs_once(lost: int, read_only: bool) -> None:  # noqa: FBT001
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        yield input_required("And?")

    clock = Clock()
    served = server(agent(respond, read_only=read_only), store=Silent(clock, at_write=lost), clock=clock)
    task = served.task("first")
    task = served.task("second", to=task.id)

    assert runs == ["first", "second"]
    assert texts(task.history) == ["first", "And?", "second", "And?"]
    assert served.get(task.id) == task
    assert served.pause.taken == []


FOR_EVER: Final = 1000


@pytest.mark.parametrize("method", ["prepare", "commit", "history"])
def test_a_turn_whose_result_is_not_taken_is_offered_again_and_not_run_again(method: str) -> None:
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        store.fail(method, 2)
        yield artifact("done")

    served, store, caller = failing(respond, read_only=False)
    task = served.task("Hello", caller=caller)

    assert task.status.state is TaskState.COMPLETED
    assert task.artifacts is not UNSET
    assert runs == ["Hello"]
    assert served.get(task.id) == task


@pytest.mark.parametrize("method", ["prepare", "commit", "history"])
def test_a_turn_whose_result_is_lost_is_not_said_to_be_safe_to_repeat(method: str) -> None:
    ids: list[str] = []

    def respond(turn: Turn) -> Updates:
        ids.append(turn.task_id)
        store.fail(method, FOR_EVER)
        yield completed()

    served, store, caller = failing(respond, read_only=False)
    with pytest.raises(InternalError) as lost:
        served.task("Hello", caller=caller)
    store.fail(method, 0)

    assert type(lost.value) is InternalError
    assert lost.value.details() == []
    assert 0 < caller.seconds_left() < 3
    assert served.get(ids[0]).status.state is TaskState.WORKING
    served.clock.advance(3 * SECOND)
    assert served.get(ids[0]).status.state is TaskState.FAILED


def test_a_cancel_meanwhile_is_the_result_of_a_turn_that_is_offered_again() -> None:
    def respond(turn: Turn) -> Updates:
        store.fail("commit", 2)
        served.pause.meanwhile = lambda: served.cancel(turn.task_id)
        yield completed()

    served, store, caller = failing(respond, read_only=False)

    assert served.task("Hello", caller=caller).status.state is TaskState.CANCELED


def reading_earlier_messages(turn: Turn) -> Updates:
    yield input_required(f"{len(turn.earlier_messages())} messages?")


def asking_whether_it_was_canceled(turn: Turn) -> Updates:
    yield input_required(f"Canceled: {turn.canceled()}?")


NEEDING_THE_STORE: Final = [(reading_earlier_messages, "history"), (asking_whether_it_was_canceled, "read")]


@pytest.mark.parametrize(("script", "method"), NEEDING_THE_STORE)
def test_a_store_that_does_not_answer_a_read_only_agent_is_not_the_agents_fault(script: Script, method: str) -> None:
    served, store, caller = failing(script, read_only=True)
    task = served.task("Hello", caller=caller)
    store.fail(method)
    with pytest.raises(UnavailableError):
        served.task("more", to=task.id, caller=caller)

    assert served.get(task.id) == task
    assert served.task("more", to=task.id, caller=caller).status.state is TaskState.INPUT_REQUIRED


@pytest.mark.parametrize(("script", "method"), NEEDING_THE_STORE)
def test_a_store_that_does_not_answer_an_acting_agent_fails_its_task_which_is_answered(
    script: Script, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    served, store, caller = failing(script, read_only=False)
    task = served.task("Hello", caller=caller)
    store.fail(method)
    task = served.task("more", to=task.id, caller=caller)

    assert (task.status.state, said_with(task)) == (TaskState.FAILED, [AGENT_FAILED])
    assert served.get(task.id) == task
    assert "the store did not answer the agent" in caplog.text
