"""However long a task is, an answer takes no more of the table than fits into it, and has the newest of it."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from a2a_lambda import dynamodb
from a2a_lambda.dynamodb import CONTENT_GROUP
from a2a_lambda.model import ListTasksRequest
from tests.integration.tables import Tasks
from tests.unit.factories import Server, asking, texts

FULL: Final = 200_000
LENGTH: Final = 20_000
TURNS: Final = 60


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an answer be full early."""
    monkeypatch.setattr(dynamodb, "FULL_BYTES", FULL)


def conversation(tasks: Tasks) -> tuple[Server, str, list[str]]:
    """Return a server, a task that is far longer than an answer, and what its history is."""
    served = tasks.serve(asking())
    said = [f"{turn}".ljust(LENGTH, ".") for turn in range(TURNS)]
    task_id = ""
    for each in said:
        task_id = served.task(each, to=task_id, history_length=0).id
    return served, task_id, [text for each in said for text in (each, "Which one?")]


def read(tasks: Tasks, action: Callable[[], object]) -> int:
    """Return how many bytes of content an action reads from the table."""
    total = 0

    def add(parsed: Any, **_rest: Any) -> None:
        nonlocal total
        found = [*parsed.get("Items", []), *(item for each in parsed.get("Responses", {}).values() for item in each)]
        total += sum(len(value["B"]) for item in found for value in item.values() if "B" in value)

    events = [f"after-call.dynamodb.{operation}" for operation in ("GetItem", "BatchGetItem", "Query")]
    for event in events:
        tasks.client.meta.events.register(event, add)
    action()
    for event in events:
        tasks.client.meta.events.unregister(event, add)
    return total


def test_a_history_is_read_until_an_answer_is_full(tasks: Tasks) -> None:
    served, task_id, history = conversation(tasks)
    shown: list[str] = []
    taken = read(tasks, lambda: shown.extend(texts(served.get(task_id, history_length=1000).history)))

    assert FULL <= taken <= FULL + (CONTENT_GROUP + 2) * LENGTH < TURNS * LENGTH
    assert shown == history[-len(shown) :]
    assert FULL <= sum(map(len, shown)) <= taken


def test_a_lists_histories_are_read_until_an_answer_is_full(tasks: Tasks) -> None:
    served, _, history = conversation(tasks)
    shown: list[str] = []

    def fetch() -> None:
        (listed,) = served.list(ListTasksRequest(history_length=1000, page_size=10)).tasks
        shown.extend(texts(listed.history))

    taken = read(tasks, fetch)

    assert FULL <= taken <= FULL + 3 * LENGTH < TURNS * LENGTH
    assert shown == history[-len(shown) :]


def test_an_agent_is_given_the_whole_history(tasks: Tasks) -> None:
    served, task_id, history = conversation(tasks)
    head = served.store.read("anonymous", task_id)
    assert head is not None

    assert texts(served.store.history(head)) == history


def test_a_history_that_fits_is_whole(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    task_id = ""
    for turn in range(TURNS):
        task_id = served.task(f"{turn}", to=task_id, history_length=0).id

    assert len(texts(served.get(task_id, history_length=1000).history)) == 2 * TURNS
    (listed,) = served.list(ListTasksRequest(history_length=1000)).tasks
    assert len(texts(listed.history)) == 2 * TURNS
