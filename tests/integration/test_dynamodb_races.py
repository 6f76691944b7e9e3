"""Two writers of one task, one between any two steps of the other: no update is lost, and none counts twice."""

from typing import Final

import pytest

from a2a_lambda import agent as api
from a2a_lambda.agent import Agent, Turn, Updates, artifact, input_required
from a2a_lambda.errors import TaskNotCancelableError, UnsupportedOperationError
from a2a_lambda.model import Task, TaskState
from tests.integration.tables import Tasks, new_client
from tests.unit.factories import Server, agent, asking, texts, yielding

QUESTION: Final = "Which one?"


def rival_of(tasks: Tasks, served: Agent) -> Server:
    """Return another function's server over the same table."""
    return tasks.serve(served, new_client())


def answering(turn: Turn) -> Updates:
    yield artifact(turn.text, artifact_id=turn.text)
    yield input_required(f"{turn.text}?")


STEPS: Final = ["BatchGetItem", "BatchWriteItem", "PutItem"]
"""The calls of a follow-up, before each of which a rival may come in."""


@pytest.mark.parametrize("step", STEPS)
def test_two_follow_ups_at_once_are_both_in_the_history(tasks: Tasks, step: str) -> None:
    served, rival = tasks.serve(agent(answering)), rival_of(tasks, agent(answering))
    task = served.task("first")
    theirs: list[Task] = []
    tasks.before(step, lambda: theirs.append(rival.task("rival", to=task.id)))
    mine = served.task("mine", to=task.id)

    assert texts(mine.history) == ["first", "first?", "rival", "rival?", "mine", "mine?"]
    assert texts(theirs[0].history) == ["first", "first?", "rival", "rival?"]
    assert [each.artifact_id for each in mine.artifacts or []] == ["first", "rival", "mine"]
    assert served.get(task.id) == mine


@pytest.mark.parametrize("step", STEPS)
def test_two_follow_ups_of_large_messages_are_both_in_the_history(tasks: Tasks, step: str) -> None:
    served, rival = tasks.serve(asking()), rival_of(tasks, asking())
    first, mine, theirs = ("a" * 9000, "b" * 350_000, "c" * 9000)
    task = served.task(first)
    tasks.before(step, lambda: rival.task(theirs, to=task.id))
    served.task(mine, to=task.id)

    assert texts(served.get(task.id).history) == [first, QUESTION, theirs, QUESTION, mine, QUESTION]


@pytest.mark.parametrize("rivals", [2, 5])
def test_several_rivals_are_all_in_the_history(tasks: Tasks, rivals: int) -> None:
    served, rival = tasks.serve(asking()), rival_of(tasks, asking())
    task = served.task("first")
    said = [f"rival {number}" for number in range(rivals)]
    waiting = iter(said)
    for attempt in range(rivals):
        tasks.before("PutItem", lambda: rival.task(next(waiting), to=task.id), at=attempt + 1)
    served.task("mine", to=task.id)

    assert texts(served.get(task.id).history)[::2] == ["first", *said, "mine"]


@pytest.mark.parametrize("step", STEPS)
def test_a_cancel_wins_against_a_follow_up_that_has_not_ended(tasks: Tasks, step: str) -> None:
    served, rival = tasks.serve(asking()), rival_of(tasks, asking())
    task = served.task("first")
    tasks.before(step, lambda: rival.cancel(task.id))
    with pytest.raises(UnsupportedOperationError, match="finished"):
        served.task("mine", to=task.id)
    shown = served.get(task.id)

    assert shown.status.state is TaskState.CANCELED
    assert texts(shown.history) == ["first", QUESTION]


@pytest.mark.parametrize("update", [api.completed(), api.failed("No."), api.input_required("?")])
def test_a_cancel_wins_against_an_acting_agents_result(tasks: Tasks, update: api.Update) -> None:
    served = tasks.serve(yielding(artifact("late"), update, read_only=False))
    rival = rival_of(tasks, asking())
    tasks.before("PutItem", lambda: rival.cancel(only_task(tasks)), at=2)
    task = served.task("first")

    assert task.status.state is TaskState.CANCELED
    assert served.get(task.id) == task


def only_task(tasks: Tasks) -> str:
    (item,) = tasks.all_items()
    task_id: str = item["task_id"]["S"]
    return task_id


def test_a_cancel_that_comes_after_the_end_is_refused(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    rival = rival_of(tasks, yielding(api.completed()))
    task = served.task("first")
    tasks.before("UpdateItem", lambda: rival.task("rival", to=task.id))
    with pytest.raises(TaskNotCancelableError) as refused:
        served.cancel(task.id)

    assert refused.value.metadata == {"state": "TASK_STATE_COMPLETED"}
    assert served.get(task.id).status.state is TaskState.COMPLETED


def test_a_cancel_wins_against_a_task_that_goes_on_asking(tasks: Tasks) -> None:
    served, rival = tasks.serve(asking()), rival_of(tasks, asking())
    task = served.task("first")
    tasks.before("UpdateItem", lambda: rival.task("rival", to=task.id))

    assert served.cancel(task.id).status.state is TaskState.CANCELED
    assert texts(served.get(task.id).history) == ["first", QUESTION, "rival", QUESTION]


def test_two_cancels_at_once_are_one(tasks: Tasks) -> None:
    served, rival = tasks.serve(asking()), rival_of(tasks, asking())
    task = served.task("first")
    tasks.before("UpdateItem", lambda: rival.cancel(task.id))
    with pytest.raises(TaskNotCancelableError):
        served.cancel(task.id)


@pytest.mark.parametrize("step", STEPS)
def test_an_acting_agent_that_loses_the_claim_to_another_turn_runs_after_it(tasks: Tasks, step: str) -> None:
    runs: list[str] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        yield input_required(QUESTION)

    served = tasks.serve(agent(respond, read_only=False))
    rival = rival_of(tasks, agent(respond, read_only=False))
    task = served.task("first")
    tasks.before(step, lambda: rival.task("rival", to=task.id))
    served.task("mine", to=task.id)

    assert runs == ["first", "rival", "mine"]
    assert texts(served.get(task.id).history) == ["first", QUESTION, "rival", QUESTION, "mine", QUESTION]


def test_an_acting_agent_that_finds_the_task_claimed_does_not_run(tasks: Tasks) -> None:
    runs: list[str] = []
    refusals: list[UnsupportedOperationError] = []

    def respond(turn: Turn) -> Updates:
        runs.append(turn.text)
        if turn.text == "rival":
            tasks.before("PutItem", lambda: None)
            with pytest.raises(UnsupportedOperationError, match="busy") as refused:
                served.task("mine", to=turn.task_id)
            refusals.append(refused.value)
        yield input_required(QUESTION)

    served = tasks.serve(agent(respond, read_only=False))
    task = served.task("first")
    rival_of(tasks, agent(respond, read_only=False)).task("rival", to=task.id)

    assert runs == ["first", "rival"]
    assert [each.metadata for each in refusals] == [{"state": "TASK_STATE_WORKING"}]


def test_two_readers_that_give_a_turn_up_at_once_tell_the_same(tasks: Tasks) -> None:
    served, rival = tasks.serve(asking(read_only=False)), rival_of(tasks, asking(read_only=False))
    tasks.before("PutItem", lambda: tasks.answer("PutItem", KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        served.send("first")
    task_id = only_task(tasks)
    tasks.clock.advance(60_000)
    theirs: list[Task] = []
    tasks.before("PutItem", lambda: theirs.append(rival.get(task_id)))

    assert served.get(task_id) == theirs[0]
    assert theirs[0].status.state is TaskState.FAILED
