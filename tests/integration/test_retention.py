"""How long a task is kept: fixed when it is created, and then the whole of it, whatever the setting becomes."""

from typing import Final

import pytest

from a2a_lambda.agent import artifact, input_required
from a2a_lambda.errors import TaskNotFoundError
from a2a_lambda.model import ListTasksRequest
from tests.integration.tables import Tasks
from tests.unit.factories import DAY, NOON, SECOND, Server, texts, yielding

EVERYTHING: Final = ListTasksRequest(history_length=100, include_artifacts=True)


def serve(tasks: Tasks, retention_days: int) -> Server:
    return tasks.serve(yielding(artifact("x" * 9000), input_required("?")), retention_days=retention_days)


def conversation(tasks: Tasks, *retentions: int, length: int = 10) -> tuple[str, list[str]]:
    """Return a task with a turn a day, each under another setting, and what its history is."""
    said = [f"{turn}" * length for turn in range(len(retentions))]
    task_id = ""
    for turn, days in enumerate(retentions):
        task_id = serve(tasks, days).task(said[turn], to=task_id).id
        tasks.clock.advance(DAY)
    return task_id, [text for each in said for text in (each, "?")]


SETTINGS: Final = [(30, 30, 365), (30, 365, 1), (365, 30, 30), (2, 2, 365), (30, 1, 1), (2, 3650)]


@pytest.mark.parametrize("length", [10, 20_000])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_task_is_there_as_a_whole_until_it_is_gone(tasks: Tasks, settings: tuple[int, ...], length: int) -> None:
    task_id, history = conversation(tasks, *settings, length=length)
    last = NOON + (len(settings) - 1) * DAY
    served = serve(tasks, settings[-1])
    end = last + settings[0] * DAY
    for moment in (last + SECOND, end - 5 * SECOND, end - SECOND):
        tasks.clock.now = moment
        tasks.sweep()
        shown = served.get(task_id)
        assert texts(shown.history) == history
        assert len(shown.artifacts or []) == len(settings)
    tasks.clock.now = end
    tasks.sweep()

    with pytest.raises(TaskNotFoundError):
        served.get(task_id)
    assert served.list(EVERYTHING).tasks == []


@pytest.mark.parametrize("settings", [(30, 30, 365), (2, 2, 365), (30, 30, 30)], ids=str)
def test_a_list_shows_each_task_as_a_whole_when_the_setting_was_raised(tasks: Tasks, settings: tuple[int, ...]) -> None:
    task_id, history = conversation(tasks, *settings)
    served = serve(tasks, settings[-1])
    for days in range(70):
        tasks.clock.now = NOON + 2 * DAY + days * DAY
        tasks.sweep()
        for shown in served.list(EVERYTHING).tasks:
            assert (shown.id, texts(shown.history)) == (task_id, history)


@pytest.mark.parametrize("other", [1, 7, 365])
def test_a_cancel_keeps_a_task_for_as_long_as_was_set_when_it_was_created(tasks: Tasks, other: int) -> None:
    task_id, history = conversation(tasks, 30)
    serve(tasks, other).cancel(task_id)
    tasks.clock.now = NOON + 31 * DAY - SECOND
    tasks.sweep()

    assert texts(serve(tasks, other).get(task_id).history) == history
    tasks.clock.advance(SECOND)
    with pytest.raises(TaskNotFoundError):
        serve(tasks, other).get(task_id)
