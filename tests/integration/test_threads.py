"""Many callers at once, each with a client of its own, at a DynamoDB in a process of its own."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import pytest

from a2a_lambda.agent import Turn, Updates, artifact, input_required
from a2a_lambda.errors import ProtocolError, TaskNotCancelableError, UnavailableError, UnsupportedOperationError
from a2a_lambda.model import Task, TaskState
from tests.integration.tables import Tasks, new_client
from tests.unit.factories import Server, agent, asking, texts

T = TypeVar("T")

CALLERS: Final = 20


@pytest.fixture
def shared(dynamodb: str) -> Iterator[Tasks]:
    """Return a table of its own in the shared DynamoDB."""
    tasks = Tasks(new_client(dynamodb), endpoint=dynamodb)
    yield tasks
    tasks.client.delete_table(TableName=tasks.name)


def at_once(action: Callable[[int], T], callers: int = CALLERS) -> list[T | ProtocolError]:
    """Carry an action out for many callers at the same time; what each was answered."""
    together = threading.Barrier(callers)

    def caller(number: int) -> T | ProtocolError:
        together.wait()
        try:
            return action(number)
        except ProtocolError as error:
            return error

    with ThreadPoolExecutor(callers) as pool:
        return list(pool.map(caller, range(callers)))


def successes(answers: list[Task | ProtocolError]) -> list[Task]:
    return [answer for answer in answers if isinstance(answer, Task)]


def test_every_message_that_was_answered_is_in_the_history_once(shared: Tasks) -> None:
    def respond(turn: Turn) -> Updates:
        yield artifact(turn.text, artifact_id=turn.text)
        yield input_required(f"{turn.text}?")

    served = shared.serve(agent(respond))
    task = served.task("first")
    answers = at_once(lambda number: served.task(f"caller {number}", to=task.id, history_length=1000), 12)
    shown = served.get(task.id, history_length=1000)

    answered = {f"caller {number}" for number, answer in enumerate(answers) if isinstance(answer, Task)}
    history = texts(shown.history)
    assert all(isinstance(answer, Task | UnavailableError) for answer in answers)
    assert Counter(history) == Counter(["first", "first?", *answered, *(f"{said}?" for said in answered)])
    assert history[1::2] == [f"{said}?" for said in history[::2]]
    assert [each.artifact_id for each in shown.artifacts or []] == history[::2]
    assert len(answered) > 0
    assert_each_is_the_history_up_to_its_own_message(successes(answers), history)


def assert_each_is_the_history_up_to_its_own_message(answers: list[Task], history: list[str]) -> None:
    for answer in answers:
        said = texts(answer.history)
        assert said == history[: len(said)]


def test_an_acting_agent_runs_once_for_each_message_that_was_answered(shared: Tasks) -> None:
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        yield input_required("?")

    served = shared.serve(agent(respond, read_only=False))
    task = served.task("first")
    answers = at_once(lambda number: served.task(f"caller {number}", to=task.id))
    answered = [f"caller {number}" for number, answer in enumerate(answers) if isinstance(answer, Task)]

    assert sorted(runs) == sorted(["first", *answered])
    assert sorted(texts(served.get(task.id).history)[::2]) == sorted(runs)
    assert all(isinstance(each, Task | UnsupportedOperationError | UnavailableError) for each in answers)


def test_one_of_many_cancels_counts(shared: Tasks) -> None:
    served = shared.serve(asking())
    task = served.task("first")
    answers = at_once(lambda _number: served.cancel(task.id))

    assert len(successes(answers)) == 1
    assert sum(isinstance(answer, TaskNotCancelableError) for answer in answers) == CALLERS - 1


@pytest.mark.parametrize("read_only", [True, False])
def test_a_cancel_among_many_messages_is_the_last_word(shared: Tasks, read_only: bool) -> None:  # noqa: FBT001
    served = shared.serve(asking(read_only=read_only))
    task = served.task("first")

    def act(number: int) -> Task:
        return served.cancel(task.id) if number == 10 else served.task(f"caller {number}", to=task.id)

    answers = at_once(act)
    shown = served.get(task.id)

    assert isinstance(answers[10], Task)
    assert shown.status.state is TaskState.CANCELED
    said = texts(shown.history)
    assert all(
        said.count(f"caller {n}") == 1 for n, answer in enumerate(answers) if n != 10 and isinstance(answer, Task)
    )


def test_many_new_tasks_at_once_are_all_kept(shared: Tasks) -> None:
    served = shared.serve(asking())
    answers = at_once(lambda number: served.task(f"caller {number}"))

    assert [texts(served.get(each.id).history)[0] for each in successes(answers)] == [f"caller {n}" for n in range(20)]


def instances(tasks: Tasks, count: int) -> list[Server]:
    return [tasks.serve(asking(), new_client(tasks.endpoint)) for _ in range(count)]


def test_instances_with_clients_of_their_own_lose_nothing_of_each_other(shared: Tasks) -> None:
    served = instances(shared, 5)
    task = served[0].task("first")
    answers = at_once(lambda number: served[number % 5].task("x" * 9000 + str(number), to=task.id), 10)
    shown = served[0].get(task.id)

    answered = {"x" * 9000 + str(number) for number, answer in enumerate(answers) if isinstance(answer, Task)}
    assert set(texts(shown.history)[::2]) == {"first", *answered}
    assert len(texts(shown.history)) == 2 * (len(answered) + 1)
