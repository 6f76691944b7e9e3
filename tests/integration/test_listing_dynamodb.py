"""ListTasks over DynamoDB: walks while tasks change, an index that lags behind, and what a page costs."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest
from _pytest.mark import ParameterSet
from msgspec import UNSET
from msgspec.structs import replace

from a2a_lambda import dynamodb, items
from a2a_lambda.agent import Turn, Updates, artifact, completed, input_required
from a2a_lambda.errors import InvalidParamsError
from a2a_lambda.model import ListTasksRequest, ListTasksResponse, TaskState
from a2a_lambda.pages import Place, make_token
from a2a_lambda.store import TaskFilter
from a2a_lambda.task import Head
from tests.integration.callers_fixtures import LaggingIndex, counted, fill, moved, new_task
from tests.integration.tables import RETENTION_DAYS, Tasks
from tests.unit.factories import DAY, NOON, OWNER, SECOND, Server, agent, asking, texts

ASKED: Final = (input_required("?"),)
DONE: Final = (completed(),)


def thorough(value: int) -> ParameterSet:
    """Return a parameter that make test takes with THOROUGH=1 only."""
    return pytest.param(value, marks=pytest.mark.thorough)


def ids(page: ListTasksResponse) -> list[str]:
    return [task.id for task in page.tasks]


def some_tasks(count: int, *, at_once: int = 1, owner: str = OWNER, updates: Any = ASKED) -> list[Head]:
    """Return tasks in the order of their times, so many at each moment."""
    return [new_task(*updates, owner=owner, at=NOON + number // at_once * 10) for number in range(count)]


def newest_first(heads: Sequence[Head]) -> list[str]:
    ordered = sorted(heads, key=lambda head: items.status_order(head.task_id, head.status_at), reverse=True)
    return [head.task_id for head in ordered]


def listing(tasks: Tasks, client: Any = None) -> Server:
    """Return a server over tasks that end before it lists them."""
    tasks.clock.now = max(tasks.clock.now, NOON + 3600 * SECOND)
    return tasks.serve(asking(), client)


def walk(served: Server, request: ListTasksRequest, between: Any = None) -> list[ListTasksResponse]:
    """Return all pages of a list; between two pages something may happen."""
    pages = [served.list(request)]
    while pages[-1].next_page_token:
        assert len(pages) < 1000
        if between:
            between(pages)
        request = replace(request, page_token=pages[-1].next_page_token)
        pages.append(served.list(request))
    return pages


def met(pages: Sequence[ListTasksResponse]) -> list[str]:
    return [task_id for page in pages for task_id in ids(page)]


# Walks


@pytest.mark.parametrize("at_once", [7, thorough(1), thorough(300)])
@pytest.mark.parametrize("size", [7, 100, thorough(50)])
def test_a_walk_meets_each_task_once_in_order(tasks: Tasks, size: int, at_once: int) -> None:
    heads = some_tasks(300, at_once=at_once)
    fill(tasks, heads)
    pages = walk(listing(tasks), ListTasksRequest(page_size=size))

    assert met(pages) == newest_first(heads)
    assert {page.total_size for page in pages} == {300}


@pytest.mark.parametrize("count", [50, 51, thorough(1), thorough(49), thorough(100)])
def test_the_last_page_leads_nowhere(tasks: Tasks, count: int) -> None:
    fill(tasks, some_tasks(count))
    pages = walk(listing(tasks), ListTasksRequest())

    assert [len(page.tasks) for page in pages] == [50] * (count // 50) + ([count % 50] if count % 50 else [])


def test_tasks_that_do_not_change_are_met_once_while_others_come_and_change(tasks: Tasks) -> None:
    heads = some_tasks(300, at_once=5)
    fill(tasks, heads)
    served = listing(tasks)
    changing = heads[3::10]
    added: list[str] = []

    def change(_pages: object) -> None:
        tasks.clock.advance(5)
        for head in changing[:2]:
            served.cancel(head.task_id)
        del changing[:2]
        added.append(served.task("new").id)

    pages = walk(served, ListTasksRequest(page_size=17), change)

    found = met(pages)
    assert len(found) == len(set(found))
    unchanged = {head.task_id for head in heads} - {head.task_id for head in heads[3::10]}
    assert unchanged <= set(found)
    assert [each for each in found if each in unchanged] == [each for each in newest_first(heads) if each in unchanged]
    assert not set(found) & set(added)


def test_a_task_that_changes_in_the_same_moment_again_and_again_is_met_once(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    task_ids = [served.task(f"{number}").id for number in range(6)]

    def follow(pages: list[ListTasksResponse]) -> None:
        served.task(f"more {len(pages)}", to=task_ids[len(pages) % 6])

    found = met(walk(served, ListTasksRequest(page_size=2), follow))

    assert sorted(found) == sorted(task_ids)


def test_a_clock_behind_makes_no_task_appear_twice(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    for number in range(10):
        served.task(f"{number}")
        tasks.clock.advance(1000)
    page = served.list(ListTasksRequest(page_size=5))
    tasks.clock.now = NOON
    for task_id in ids(page):
        served.task("late", to=task_id)
        served.cancel(task_id)
    tasks.clock.now = NOON + 20_000
    rest = served.list(ListTasksRequest(page_size=100, page_token=page.next_page_token))

    assert not set(ids(page)) & set(ids(rest))
    assert len(ids(rest)) == 5


# Filters


def various(tasks: Tasks) -> list[Head]:
    """Put 120 tasks of three contexts and two states into the table."""
    heads = [
        new_task(*(DONE if number % 2 else ASKED), at=NOON + number // 4 * 10, context_id=f"c{number % 3}")
        for number in range(120)
    ]
    fill(tasks, heads)
    fill(tasks, some_tasks(20, owner="stranger"))
    return heads


@pytest.mark.parametrize("size", [7, 100])
@pytest.mark.parametrize(
    "request_",
    [
        ListTasksRequest(context_id="c1"),
        ListTasksRequest(status=TaskState.COMPLETED),
        ListTasksRequest(context_id="c2", status=TaskState.INPUT_REQUIRED),
        ListTasksRequest(status_timestamp_after=datetime.fromtimestamp((NOON + 150) / 1000, UTC)),
        ListTasksRequest(context_id="none"),
        ListTasksRequest(status=TaskState.REJECTED),
        ListTasksRequest(status_timestamp_after=datetime(1, 1, 1, tzinfo=UTC)),
        ListTasksRequest(context_id="c1", status_timestamp_after=datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_filtered_walk_is_all_that_matches(tasks: Tasks, request_: ListTasksRequest, size: int) -> None:
    heads = various(tasks)
    since = request_.status_timestamp_after
    expected = [
        head
        for head in heads
        if request_.context_id in ("", head.context_id)
        and request_.status in (UNSET, head.state)
        and (since is UNSET or head.status_at >= since.timestamp() * 1000)
    ]
    pages = walk(listing(tasks), replace(request_, page_size=size))

    assert met(pages) == newest_first(expected)
    assert {page.total_size for page in pages} == {len(expected)}


def test_the_end_of_time_is_after_every_task(tasks: Tasks) -> None:
    fill(tasks, some_tasks(3))
    page = listing(tasks).list(ListTasksRequest(status_timestamp_after=datetime.max.replace(tzinfo=UTC)))

    assert (ids(page), page.total_size) == ([], 0)


def test_a_filtered_page_reads_a_few_index_pages_and_leads_on(tasks: Tasks) -> None:
    rare = new_task(*DONE, at=NOON)
    fill(tasks, [rare, *some_tasks(2300)])
    served = listing(tasks)
    request = ListTasksRequest(status=TaskState.COMPLETED, page_size=10)
    page = served.list(request)
    assert (ids(page), page.total_size) == ([], 1)
    assert page.next_page_token

    request = replace(request, page_token=page.next_page_token)
    calls = counted(lambda: served.list(request), tasks)
    assert calls["Query"] <= dynamodb.FILTERED_PAGES
    assert met(walk(served, request)) == [rare.task_id]


# Expiry


def test_tasks_expire_in_the_middle_of_a_walk(tasks: Tasks) -> None:
    fill(tasks, some_tasks(10, at_once=1))
    served = tasks.serve(asking())
    tasks.clock.now = NOON + RETENTION_DAYS * DAY - 60_000
    page = served.list(ListTasksRequest(page_size=5))
    assert (len(page.tasks), page.total_size) == (5, 10)

    tasks.clock.advance(3600 * SECOND)
    rest = served.list(ListTasksRequest(page_size=5, page_token=page.next_page_token))
    assert (ids(rest), rest.next_page_token) == ([], "")


def test_expired_tasks_are_neither_listed_nor_counted(tasks: Tasks) -> None:
    heads = [new_task(*ASKED, at=NOON + number * DAY) for number in range(4)]
    fill(tasks, heads)
    served = tasks.serve(asking())
    tasks.clock.now = NOON + (RETENTION_DAYS + 2) * DAY
    page = served.list()

    assert (ids(page), page.total_size) == ([heads[3].task_id], 1)


# An index that lags behind


def test_a_task_that_the_index_has_at_its_old_place_is_not_shown_there(tasks: Tasks) -> None:
    heads = some_tasks(6)
    fill(tasks, heads)
    index = LaggingIndex(tasks)
    served = listing(tasks, index)
    moved(tasks, heads[2], at=NOON + 500)

    assert ids(served.list()) == [each for each in newest_first(heads) if each != heads[2].task_id]
    index.catch_up()
    assert ids(served.list())[0] == heads[2].task_id


def test_a_task_is_shown_as_it_stands_and_not_as_the_index_has_it(tasks: Tasks) -> None:
    head = new_task(*ASKED)
    fill(tasks, [head])
    served = listing(tasks, LaggingIndex(tasks))
    moved(tasks, head, at=head.status_at, state=TaskState.COMPLETED)

    (shown,) = served.list().tasks
    assert shown.status.state is TaskState.COMPLETED
    assert ids(served.list(ListTasksRequest(status=TaskState.INPUT_REQUIRED))) == []


def test_a_task_that_the_index_does_not_have_yet_comes_later(tasks: Tasks) -> None:
    fill(tasks, some_tasks(2))
    index = LaggingIndex(tasks)
    served = listing(tasks, index)
    new = served.task("new").id

    assert new not in ids(served.list())
    index.catch_up()
    assert ids(served.list())[0] == new


def test_a_task_that_is_gone_is_not_shown_though_the_index_has_it(tasks: Tasks) -> None:
    heads = some_tasks(3)
    fill(tasks, heads)
    served = listing(tasks, LaggingIndex(tasks))
    tasks.client.delete_item(TableName=tasks.name, Key=items.key(heads[1].task_id, items.HEAD))

    assert ids(served.list()) == [heads[2].task_id, heads[0].task_id]


@pytest.mark.parametrize("newer_first", [True, False])
@pytest.mark.parametrize("size", [1, 3, 10])
@pytest.mark.parametrize("filters", [{}, {"context_id": "context-1"}])
def test_whichever_replica_of_the_index_answers_no_task_is_met_twice(
    tasks: Tasks,
    size: int,
    filters: Any,
    newer_first: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dynamodb, "FILTERED_LIMIT", 3)
    heads = some_tasks(12)
    fill(tasks, heads)
    index = LaggingIndex(tasks)
    served = listing(tasks, index)
    for number in (2, 4, 6):
        moved(tasks, heads[number], at=NOON + 500 + number)
    index.replicas.insert(0 if newer_first else 1, index.snapshot())
    pages = walk(served, ListTasksRequest(page_size=size, **filters))

    found = met(pages)
    assert len(found) == len(set(found))
    assert {head.task_id for number, head in enumerate(heads) if number not in {2, 4, 6}} <= set(found)


# What a page carries


def conversation(tasks: Tasks, turns: int) -> Server:
    def respond(turn: Turn) -> Updates:
        yield artifact(f"about {turn.text}", artifact_id=turn.text)
        yield input_required(f"{turn.text}?")

    served = tasks.serve(agent(respond))
    for number in range(3):
        task = served.task(f"{number}.0")
        for turn in range(1, turns):
            served.task(f"{number}.{turn}", to=task.id)
        tasks.clock.advance(1)
    return served


@pytest.mark.parametrize("turns", [1, 2, 5])
@pytest.mark.parametrize("length", [1, 2, 4, 10, 2**31 - 1, thorough(3), thorough(9), thorough(11)])
def test_listed_histories_are_those_that_are_read_one_by_one(tasks: Tasks, turns: int, length: int) -> None:
    served = conversation(tasks, turns)

    for task in served.list(ListTasksRequest(history_length=length, include_artifacts=True)).tasks:
        alone = served.get(task.id, history_length=length)
        assert (task.history, task.artifacts, task.status) == (alone.history, alone.artifacts, alone.status)


def test_large_messages_and_artifacts_are_listed_whole(tasks: Tasks) -> None:
    large = "é" * 200_000

    def respond(_turn: Turn) -> Updates:
        yield artifact(large, artifact_id="a")
        yield input_required(large)

    served = tasks.serve(agent(respond))
    task = served.task(large)
    task = served.task("more", to=task.id)
    (listed,) = served.list(ListTasksRequest(history_length=10, include_artifacts=True)).tasks

    assert texts(listed.history) == [large, large, "more", large]
    assert listed == task


# What a page costs


@pytest.mark.parametrize("count", [10, 500])
def test_the_first_page_of_a_list_costs_the_same_whatever_its_length(tasks: Tasks, count: int) -> None:
    fill(tasks, some_tasks(count))
    served = listing(tasks)

    assert counted(lambda: served.list(ListTasksRequest(page_size=10)), tasks) == {"BatchGetItem": 1, "Query": 2}


def test_a_later_page_does_not_count(tasks: Tasks) -> None:
    fill(tasks, some_tasks(30))
    served = listing(tasks)
    token = served.list(ListTasksRequest(page_size=10)).next_page_token

    calls = counted(lambda: served.list(ListTasksRequest(page_size=10, page_token=token)), tasks)
    assert calls == {"BatchGetItem": 1, "Query": 1}


def test_histories_cost_no_query_a_task(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    for number in range(30):
        task = served.task(f"{number}")
        served.task("more", to=task.id)
    calls = counted(lambda: served.list(ListTasksRequest(history_length=4)), tasks)

    assert calls["Query"] == 2
    assert calls["BatchGetItem"] <= 1 + 3


def test_a_refused_token_costs_nothing(tasks: Tasks) -> None:
    served = listing(tasks)

    def forge() -> None:
        with pytest.raises(InvalidParamsError):
            served.list(ListTasksRequest(page_token="forged"))  # noqa: S106

    assert counted(forge, tasks) == {}


def test_counting_stops_at_its_limit(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamodb, "MAX_COUNT", 50)
    fill(tasks, some_tasks(120))
    store = tasks.store()
    tasks.clock.now = NOON + 3600 * SECOND

    assert store.count(OWNER, TaskFilter()) == 50
    assert counted(lambda: store.count(OWNER, TaskFilter(context_id="none")), tasks) == {"Query": 1}


def test_a_cursor_of_the_callers_own_making_is_refused(tasks: Tasks) -> None:
    fill(tasks, some_tasks(3))
    served = listing(tasks)
    for cursor in ("", "x", "#", "~", "2026-09-21T14:13:20.000Z#", "x" * 2000):
        token = make_token(Place(cursor, 3, tasks.clock.now), msgspec.json.encode([OWNER, TaskFilter()]).decode())
        with pytest.raises(InvalidParamsError):
            served.list(ListTasksRequest(page_token=token))
