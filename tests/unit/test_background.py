"""Turns that outlive the request: queued in the task's own write, run by the worker, settled when they die."""

from collections.abc import Callable
from typing import Final

import pytest
from msgspec import UNSET

from a2a_lambda import agent as api
from a2a_lambda.agent import Turn, Updates, artifact, completed, input_required
from a2a_lambda.errors import TaskNotFoundError, UnavailableError, UnsupportedOperationError
from a2a_lambda.model import SendMessageConfiguration, SendMessageRequest, TaskState
from a2a_lambda.task import MAX_RUNS, MAX_WAITS, NEVER_STARTED, OUTCOME_UNKNOWN, QUEUED_MS, RUNS_USED_UP, Head, Request
from a2a_lambda.turns import AGENT_FAILED
from a2a_lambda.working import LEASE_MARGIN_SECONDS
from tests.unit.factories import (
    OWNER,
    SECOND,
    Script,
    Server,
    agent,
    asking,
    call,
    hurried,
    message,
    server,
    texts,
    yielding,
)
from tests.unit.memory_store import InMemoryTaskStore

LEASE: Final = (300 + LEASE_MARGIN_SECONDS) * SECOND
"""What a worker with 300 seconds takes."""

BOTH_KINDS: Final = pytest.mark.parametrize("read_only", [True, False], ids=["read-only", "acting"])


def noting(runs: list[str]) -> Script:
    """Return what an agent does that notes its runs."""

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        yield completed("Done.")

    return respond


def queued(served: Server) -> str:
    """Return a task whose first turn waits for the worker."""
    return served.task(return_immediately=True).id


def posted(served: Server) -> list[Head]:
    """Return what the store's writes left to be passed on."""
    assert isinstance(served.store, InMemoryTaskStore)
    return served.store.outboxes


def to_attend(served: Server) -> list[tuple[int, int]]:
    """Return the turns and runs that the worker is asked to attend to, in order."""
    return [(head.turn, head.run) for head in posted(served) if head.outbox and head.outbox.attend]


def said(served: Server, task_id: str) -> list[str]:
    """Return what was said with a task's state."""
    status = served.get(task_id).status
    return texts([status.message] if status.message else [])


def dies_in_its_turn(served: Server, task_id: str, *, turn: int = 1, run: int = 1) -> None:
    """Have the worker die while it runs a turn."""
    with pytest.raises(KeyboardInterrupt):
        served.work(task_id, turn=turn, run=run)


def fatal(*, read_only: bool, runs: list[str] | None = None, lives: int = 0) -> Server:
    """Return a server whose worker dies at each run but the last ones, which come after so many deaths."""
    noted = [] if runs is None else runs
    served = server(agent(noting(noted), read_only=read_only))
    run = served.worker._runner.run  # noqa: SLF001 - the worker's process is what dies

    def die(*arguments: object) -> Head:
        if len(noted) < lives:
            noted.append("died")
            raise KeyboardInterrupt
        return run(*arguments)  # type: ignore[arg-type]

    served.worker._runner.run = die  # type: ignore[method-assign,assignment] # noqa: SLF001
    return served


# Queued


@BOTH_KINDS
def test_a_client_that_does_not_wait_is_answered_before_the_agent_runs(read_only: bool) -> None:  # noqa: FBT001
    runs: list[str] = []
    served = server(agent(noting(runs), read_only=read_only))
    task = served.task("Hello", return_immediately=True)

    assert task.status.state is TaskState.SUBMITTED
    assert texts(task.history) == ["Hello"]
    assert runs == []
    assert to_attend(served) == [(1, 1)]


def test_a_queued_turn_is_one_write() -> None:
    served = server(asking())
    queued(served)
    assert isinstance(served.store, InMemoryTaskStore)

    assert (served.store.reads, served.store.writes) == (0, 1)


def test_a_queued_follow_up_is_working_at_once() -> None:
    served = server(asking())
    task = served.task()
    later = served.task("more", to=task.id, return_immediately=True)

    assert later.status.state is TaskState.WORKING
    assert later.status.message is UNSET
    assert to_attend(served) == [(2, 1)]


def test_a_task_that_waits_for_the_worker_takes_no_message() -> None:
    served = server(asking())
    task_id = queued(served)

    with pytest.raises(UnsupportedOperationError, match="busy") as refused:
        served.task("more", to=task_id)

    assert refused.value.metadata == {"state": "TASK_STATE_SUBMITTED"}


def test_a_copy_of_a_queued_message_is_answered_from_its_task() -> None:
    served = server(asking())
    first = served.task(message(message_id="m"), return_immediately=True)

    assert served.task(message(message_id="m"), return_immediately=True).id == first.id
    assert to_attend(served) == [(1, 1)]


def test_an_agent_in_the_background_is_waited_for() -> None:
    served = server(yielding(artifact("report"), background=True))
    asked: list[str] = []

    def meanwhile() -> None:
        if len(served.pause.taken) == 3:
            asked.extend(head.task_id for head in posted(served))
            served.work(asked[0])

    served.pause.meanwhile = meanwhile
    task = served.task()

    assert task.status.state is TaskState.COMPLETED
    assert len(served.pause.taken) == 3


def test_waiting_ends_three_seconds_before_the_function_does() -> None:
    served = server(yielding(background=True))
    task = served.task(caller=hurried(served.clock, seconds_left=29))

    assert task.status.state is TaskState.SUBMITTED
    assert 25 < sum(served.pause.taken) <= 27


def test_waiting_reads_at_most_once_a_second_in_the_long_run() -> None:
    served = server(yielding(background=True))
    served.task(caller=hurried(served.clock, seconds_left=29))
    assert isinstance(served.store, InMemoryTaskStore)

    assert served.store.reads < 30


# The worker


@BOTH_KINDS
def test_the_worker_runs_a_queued_turn(read_only: bool) -> None:  # noqa: FBT001
    served = server(yielding(artifact("report"), completed("Done."), read_only=read_only))
    task_id = queued(served)
    done = served.work(task_id)
    task = served.get(task_id)

    assert (done.outcome, done.state) == ("ran", "TASK_STATE_COMPLETED")
    assert task.status.state is TaskState.COMPLETED
    assert said(served, task_id) == ["Done."]
    assert task.artifacts is not UNSET
    assert [each.parts[0].text for each in task.artifacts] == ["report"]


def test_the_worker_asks_and_goes_on() -> None:
    def respond(turn: Turn) -> Updates:
        heard = texts([each for each in turn.earlier_messages() if each.role.value == "ROLE_USER"])
        if not heard:
            yield input_required("Which one?")
            return
        yield completed(f"{heard[0]}, then {turn.text}")

    served = server(agent(respond))
    task_id = queued(served)
    served.work(task_id)
    served.task("the blue one", to=task_id, return_immediately=True)
    served.work(task_id, turn=2)

    assert said(served, task_id) == ["Hello, then the blue one"]
    assert texts(served.get(task_id).history) == ["Hello", "Which one?", "the blue one"]


def test_an_agent_in_the_worker_knows_what_came_beside_the_message() -> None:
    seen: list[Turn] = []

    def respond(turn: Turn) -> Updates:
        seen.append(turn)
        yield completed()

    served = server(agent(respond))
    wishes = SendMessageConfiguration(accepted_output_modes=["text/plain"], return_immediately=True)
    request = SendMessageRequest(message("Hi"), configuration=wishes, metadata={"trace": 1.5})
    response = served.operations.send_message(request, call())
    assert response.task is not UNSET
    served.work(response.task.id)
    (turn,) = seen

    assert (turn.metadata, turn.accepted_output_modes) == ({"trace": 1.5}, ["text/plain"])
    assert (turn.text, turn.task_id, turn.context_id) == ("Hi", response.task.id, response.task.context_id)
    assert turn.message.task_id == turn.task_id
    assert (turn.caller, turn.seconds_left()) == (OWNER, 300.0)


def test_what_came_beside_the_message_is_forgotten_with_the_turn() -> None:
    served = server(asking())
    request = SendMessageRequest(
        message("Hi"), configuration=SendMessageConfiguration(return_immediately=True), metadata={"trace": 1}
    )
    response = served.operations.send_message(request, call())
    assert response.task is not UNSET
    served.work(response.task.id)
    head = served.store.read(OWNER, response.task.id)
    assert head

    assert served.store.request(head) == Request()


def test_a_message_that_comes_twice_runs_its_turn_once() -> None:
    runs: list[str] = []
    served = server(agent(noting(runs)))
    task_id = queued(served)

    assert [served.work(task_id).outcome for _ in range(3)] == ["ran", "dropped", "dropped"]
    assert runs == ["Hello"]


def test_a_message_that_meets_a_live_lease_is_hidden_until_it_ends() -> None:
    met: list[tuple[str, int]] = []
    served: list[Server] = []

    def respond(turn: Turn) -> Updates:
        served[0].clock.advance(100 * SECOND)
        again = served[0].work(turn.task_id)
        met.append((again.outcome, again.hidden_seconds))
        yield completed()

    served.append(server(agent(respond)))
    served[0].work(queued(served[0]))

    assert met == [("hidden", (LEASE - 100 * SECOND) // SECOND + 1)]


@pytest.mark.parametrize(("turn", "run"), [(2, 1), (1, 2)], ids=["another turn", "another run"])
def test_a_message_for_another_turn_or_run_is_dropped(turn: int, run: int) -> None:
    served = server(asking())
    task_id = queued(served)

    assert served.work(task_id, turn=turn, run=run).outcome == "dropped"
    assert served.get(task_id).status.state is TaskState.SUBMITTED


def test_a_message_for_a_task_that_is_gone_is_dropped() -> None:
    assert server(asking()).work("00000000-0000-4000-8000-000000000000").outcome == "dropped"


def test_the_check_of_a_turn_in_a_request_finds_it_done() -> None:
    served = server(asking(read_only=False))
    task = served.task()

    assert to_attend(served) == [(1, 1)]
    assert served.work(task.id).outcome == "dropped"


def test_a_turn_that_waited_longer_than_its_deadline_is_run_when_its_message_comes() -> None:
    served = server(yielding(read_only=False))
    task_id = queued(served)
    served.clock.advance(QUEUED_MS + SECOND)

    assert served.work(task_id).state == "TASK_STATE_COMPLETED"


def test_an_agent_that_raises_in_the_worker_fails_its_task_at_once() -> None:
    def respond(_turn: Turn) -> Updates:
        yield artifact("half")
        raise OSError

    served = server(agent(respond))
    task_id = queued(served)

    assert served.work(task_id).state == "TASK_STATE_FAILED"
    assert said(served, task_id) == [AGENT_FAILED]


def test_a_reply_completes_the_task_that_was_answered() -> None:
    served = server(yielding(api.reply("Hi!")))
    task_id = queued(served)

    assert served.work(task_id).state == "TASK_STATE_COMPLETED"
    assert said(served, task_id) == ["Hi!"]


def test_an_agent_that_yields_nothing_completes_its_task() -> None:
    served = server(yielding())
    task_id = queued(served)

    assert served.work(task_id).state == "TASK_STATE_COMPLETED"


# Death


@BOTH_KINDS
def test_a_message_is_hidden_while_the_lease_of_a_dead_worker_lasts(read_only: bool) -> None:  # noqa: FBT001
    served = fatal(read_only=read_only, lives=1)
    task_id = queued(served)
    dies_in_its_turn(served, task_id)
    served.clock.advance(LEASE - SECOND)

    assert served.work(task_id).outcome == "hidden"
    assert served.get(task_id).status.state is TaskState.WORKING


def test_a_read_only_turn_that_died_is_queued_again_and_run_again() -> None:
    served = fatal(read_only=True, lives=1)
    task_id = queued(served)
    dies_in_its_turn(served, task_id)
    served.clock.advance(LEASE)

    assert served.work(task_id).outcome == "settled"
    assert to_attend(served) == [(1, 1), (1, 2)]
    assert served.work(task_id, run=1).outcome == "dropped"
    assert served.work(task_id, run=2).state == "TASK_STATE_COMPLETED"


def test_an_acting_turn_that_died_is_not_run_again() -> None:
    runs: list[str] = []
    served = fatal(read_only=False, runs=runs, lives=1)
    task_id = queued(served)
    dies_in_its_turn(served, task_id)
    served.clock.advance(LEASE)

    assert served.work(task_id).state == "TASK_STATE_FAILED"
    assert said(served, task_id) == [OUTCOME_UNKNOWN]
    assert served.work(task_id).outcome == "dropped"
    assert runs == ["died"]


def test_a_turn_whose_runs_died_three_times_fails() -> None:
    served = fatal(read_only=True, lives=9)
    task_id = queued(served)
    for run in range(1, MAX_RUNS + 1):
        dies_in_its_turn(served, task_id, run=run)
        served.clock.advance(LEASE)
        last = served.work(task_id, run=run)

    assert last.state == "TASK_STATE_FAILED"
    assert said(served, task_id) == [RUNS_USED_UP]
    assert to_attend(served) == [(1, 1), (1, 2), (1, 3)]


@pytest.mark.parametrize("find", [lambda served, _: served.list(), lambda served, task_id: served.get(task_id)])
@BOTH_KINDS
def test_a_turn_that_never_started_is_queued_again_by_the_next_reader(
    find: Callable[[Server, str], object],
    read_only: bool,  # noqa: FBT001
) -> None:
    served = server(asking(read_only=read_only))
    task_id = queued(served)
    served.clock.advance(QUEUED_MS)
    find(served, task_id)

    assert to_attend(served) == [(1, 1), (1, 1)]
    assert served.get(task_id).status.state is TaskState.SUBMITTED
    assert served.work(task_id).state == "TASK_STATE_INPUT_REQUIRED"
    assert served.work(task_id).outcome == "dropped"


def test_a_turn_that_waits_for_a_day_fails_and_says_that_it_never_started() -> None:
    served = server(asking())
    task_id = queued(served)
    for _ in range(MAX_WAITS - 1):
        served.clock.advance(QUEUED_MS)
        assert served.get(task_id).status.state is TaskState.SUBMITTED
    served.clock.advance(QUEUED_MS)

    assert served.get(task_id).status.state is TaskState.FAILED
    assert said(served, task_id) == [NEVER_STARTED]


def test_a_run_that_died_has_waits_of_its_own() -> None:
    served = fatal(read_only=True, lives=1)
    task_id = queued(served)
    for _ in range(MAX_WAITS - 1):
        served.clock.advance(QUEUED_MS)
        served.get(task_id)
    dies_in_its_turn(served, task_id)
    served.clock.advance(LEASE)
    served.get(task_id)
    served.clock.advance(QUEUED_MS)
    served.get(task_id)

    assert served.work(task_id, run=2).state == "TASK_STATE_COMPLETED"


def test_a_copy_of_a_message_whose_turn_has_died_is_told_so() -> None:
    served = fatal(read_only=False, lives=1)
    sent = message(message_id="m")
    task_id = served.task(sent, return_immediately=True).id
    dies_in_its_turn(served, task_id)
    served.clock.advance(LEASE)

    assert served.task(sent, return_immediately=True).status.state is TaskState.FAILED


def test_a_copy_of_a_message_whose_turn_is_open_is_no_new_message_however_late() -> None:
    served = server(yielding(read_only=False))
    sent = message(message_id="m")
    first = served.task(sent, return_immediately=True)
    served.clock.advance(QUEUED_MS - SECOND)

    assert served.task(sent, return_immediately=True).id == first.id
    served.work(first.id)
    served.clock.advance(QUEUED_MS)
    assert served.task(sent, return_immediately=True).id != first.id


def test_a_first_message_that_comes_again_while_a_later_turn_is_open_is_a_new_one() -> None:
    served = server(asking(read_only=False))
    first = served.task(message(message_id="m"))
    served.clock.advance(QUEUED_MS)
    served.task("more", to=first.id, return_immediately=True)

    assert served.task(message(message_id="m")).id != first.id


def test_a_copy_of_a_follow_up_whose_turn_is_open_is_no_new_message_however_late() -> None:
    served = server(asking(read_only=False))
    task_id = served.task().id
    sent = message("more", message_id="n", task_id=task_id)
    served.task(sent, return_immediately=True)
    served.clock.advance(QUEUED_MS - SECOND)

    assert served.task(sent, return_immediately=True).status.state is TaskState.WORKING
    assert to_attend(served) == [(1, 1), (2, 1)]


def test_artifacts_of_a_run_that_died_are_not_the_tasks() -> None:
    deaths = [True]
    served: list[Server] = []

    def respond(_turn: Turn) -> Updates:
        yield artifact("half" if deaths else "whole")
        served[0].timers.fire()
        if deaths:
            deaths.pop()
            raise UnavailableError  # Of a read-only agent's store: the run ends here, and its lease later.
        yield artifact("the rest")

    served.append(server(agent(respond)))
    task_id = queued(served[0])
    with pytest.raises(UnavailableError):
        served[0].work(task_id)
    assert [each.parts[0].text for each in served[0].get(task_id).artifacts or ()] == ["half"]
    served[0].clock.advance(LEASE)
    served[0].work(task_id)
    assert not served[0].get(task_id).artifacts
    served[0].work(task_id, run=2)

    assert [each.parts[0].text for each in served[0].get(task_id).artifacts or ()] == ["whole", "the rest"]


def test_a_store_that_does_not_answer_before_the_claim_leaves_an_acting_turn_queued() -> None:
    class Silent(InMemoryTaskStore):
        def request(self, head: Head) -> Request:  # noqa: ARG002
            raise UnavailableError

    served = server(yielding(read_only=False))
    task_id = queued(served)
    silent = Silent(served.clock)
    silent._versions = served.store._versions  # type: ignore[attr-defined] # noqa: SLF001
    worker = server(yielding(read_only=False), store=silent, clock=served.clock)
    with pytest.raises(UnavailableError):
        worker.work(task_id)

    assert served.work(task_id).state == "TASK_STATE_COMPLETED"


def test_a_task_that_goes_while_its_turn_runs_is_dropped() -> None:
    served: list[Server] = []

    def respond(turn: Turn) -> Updates:
        del served[0].store._versions[turn.task_id]  # type: ignore[attr-defined] # noqa: SLF001
        yield completed()

    served.append(server(agent(respond)))
    task_id = queued(served[0])

    assert served[0].work(task_id).outcome == "dropped"
    with pytest.raises(TaskNotFoundError):
        served[0].get(task_id)


# Cancel


def test_a_queued_task_is_canceled_and_never_runs() -> None:
    runs: list[str] = []
    served = server(agent(noting(runs)))
    task_id = queued(served)

    assert served.cancel(task_id).status.state is TaskState.CANCELED
    assert served.work(task_id).outcome == "dropped"
    assert runs == []


def test_an_agent_in_the_worker_sees_that_it_was_canceled_and_its_later_updates_are_dropped() -> None:
    seen: list[bool] = []
    served: list[Server] = []

    def respond(turn: Turn) -> Updates:
        yield artifact("early")
        served[0].timers.fire()
        seen.append(turn.canceled())
        served[0].cancel(turn.task_id)
        served[0].clock.advance(SECOND)
        yield artifact("late")
        seen.append(turn.canceled())
        yield completed("Done.")

    served.append(server(agent(respond)))
    task_id = queued(served[0])
    done = served[0].work(task_id)
    task = served[0].get(task_id)

    assert seen == [False, True]
    assert done.state == "TASK_STATE_CANCELED"
    assert task.status.state is TaskState.CANCELED
    assert [each.parts[0].text for each in task.artifacts or ()] == ["early"]
