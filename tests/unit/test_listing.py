"""ListTasks over a store in memory: filters, page sizes, tokens, and what a page carries."""

from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
import pytest
from msgspec import UNSET

from a2a_lambda import agent as api
from a2a_lambda.agent import Turn, Updates, artifact, completed, input_required
from a2a_lambda.errors import InvalidParamsError
from a2a_lambda.listing import MAX_PAGE_BYTES
from a2a_lambda.model import ListTasksRequest, ListTasksResponse, Task, TaskState
from tests.unit.factories import (
    DAY,
    NOON,
    SECOND,
    Clock,
    Server,
    agent,
    asking,
    begun,
    call,
    message,
    new_message_id,
    server,
    texts,
    yielding,
)
from tests.unit.memory_store import InMemoryTaskStore

DONE: Final = TaskState.COMPLETED
ASKED: Final = TaskState.INPUT_REQUIRED


def answering(turn: Turn) -> Updates:
    """Ask, or be done with what ends in "done"."""
    yield artifact(f"about {turn.text}", name="about")
    yield completed() if turn.text.endswith("done") else input_required(f"{turn.text}?")


def filled(count: int, *, apart: int = 1000) -> tuple[Server, list[str]]:
    """Return a server with so many tasks, and their ids, newest first."""
    served = server(agent(answering))
    ids: list[str] = []
    for number in range(count):
        ids.insert(0, served.task(f"{number}").id)
        served.clock.advance(apart)
    return served, ids


def ids(page: ListTasksResponse) -> list[str]:
    return [task.id for task in page.tasks]


def walk(served: Server, request: ListTasksRequest, caller: str = "anonymous") -> list[ListTasksResponse]:
    """Return all pages of a list."""
    pages = [served.list(request, caller=call(owner=caller))]
    while pages[-1].next_page_token:
        request = msgspec.structs.replace(request, page_token=pages[-1].next_page_token)
        pages.append(served.list(request, caller=call(owner=caller)))
    return pages


def moment(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


# Order and pages


def test_a_list_without_tasks_has_all_four_fields() -> None:
    page = server(asking()).list()

    assert msgspec.to_builtins(page) == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}


def test_tasks_are_listed_newest_first() -> None:
    served, expected = filled(5)

    assert ids(served.list()) == expected


def test_a_task_that_changed_comes_first() -> None:
    served, expected = filled(3)
    served.cancel(expected[2])

    assert ids(served.list()) == [expected[2], expected[0], expected[1]]


@pytest.mark.parametrize("apart", [0, 1])
@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 8, 100])
def test_a_walk_meets_each_task_once_equal_times_included(size: int, apart: int) -> None:
    served, expected = filled(7, apart=apart)
    pages = walk(served, ListTasksRequest(page_size=size))

    met = [task_id for page in pages for task_id in ids(page)]
    assert sorted(met) == sorted(expected)
    assert [len(page.tasks) for page in pages[:-1]] == [size] * (len(pages) - 1)
    assert {page.total_size for page in pages} == {7}
    assert {page.page_size for page in pages} == {size}


def test_a_page_has_fifty_tasks_by_default() -> None:
    served, _ = filled(51)
    page = served.list()

    assert (len(page.tasks), page.page_size, page.total_size) == (50, 50, 51)
    assert page.next_page_token


def test_the_total_is_counted_for_the_first_page_and_carried_on() -> None:
    served, _ = filled(4)
    page = served.list(ListTasksRequest(page_size=2))
    served.task("one more")
    page = served.list(ListTasksRequest(page_size=2, page_token=page.next_page_token))

    assert page.total_size == 4


def test_only_the_first_page_counts() -> None:
    served, _ = filled(4)
    page = served.list(ListTasksRequest(page_size=2))
    store = served.store
    assert isinstance(store, InMemoryTaskStore)
    store.count = None  # type: ignore[method-assign,assignment]

    assert len(served.list(ListTasksRequest(page_size=2, page_token=page.next_page_token)).tasks) == 2


def test_a_task_that_changes_during_a_walk_is_not_met_twice() -> None:
    served, expected = filled(6)
    page = served.list(ListTasksRequest(page_size=3))
    served.cancel(expected[1])
    rest = served.list(ListTasksRequest(page_size=100, page_token=page.next_page_token))

    assert ids(page) + ids(rest) == expected


def test_size_history_and_artifacts_may_change_from_page_to_page() -> None:
    served, expected = filled(4)
    token = served.list(ListTasksRequest(page_size=1)).next_page_token
    page = served.list(ListTasksRequest(page_size=2, page_token=token, history_length=1, include_artifacts=True))

    assert ids(page) == expected[1:3]
    assert all(task.history is not UNSET and task.artifacts is not UNSET for task in page.tasks)


# Tokens


@pytest.mark.parametrize(
    "other",
    [
        ListTasksRequest(context_id="c"),
        ListTasksRequest(status=ASKED),
        ListTasksRequest(status_timestamp_after=moment(NOON)),
    ],
)
def test_a_token_of_another_filter_is_refused(other: ListTasksRequest) -> None:
    served, _ = filled(3)
    token = served.list(ListTasksRequest(page_size=1)).next_page_token
    with pytest.raises(InvalidParamsError):
        served.list(msgspec.structs.replace(other, page_token=token))


def test_a_token_of_another_owner_is_refused() -> None:
    served, _ = filled(3)
    token = served.list(ListTasksRequest(page_size=1)).next_page_token
    with pytest.raises(InvalidParamsError) as refused:
        served.list(ListTasksRequest(page_token=token), caller=call(owner="stranger"))

    assert [each.field for each in refused.value.violations] == ["pageToken"]


def test_a_token_is_refused_after_a_day() -> None:
    served, _ = filled(3)
    token = served.list(ListTasksRequest(page_size=1)).next_page_token
    served.clock.advance(DAY)
    with pytest.raises(InvalidParamsError):
        served.list(ListTasksRequest(page_token=token))


def test_a_token_that_is_refused_costs_no_call() -> None:
    served, _ = filled(3)
    assert isinstance(served.store, InMemoryTaskStore)
    reads = served.store.reads
    with pytest.raises(InvalidParamsError):
        served.list(ListTasksRequest(page_token="forged"))  # noqa: S106

    assert served.store.reads == reads


def test_a_time_in_another_zone_is_the_same_filter() -> None:
    served, _ = filled(3)
    token = served.list(ListTasksRequest(page_size=1, status_timestamp_after=moment(NOON))).next_page_token
    same = moment(NOON) - timedelta(microseconds=1)

    assert served.list(ListTasksRequest(page_size=1, status_timestamp_after=same, page_token=token)).tasks


# Filters


def various() -> tuple[Server, dict[str, str]]:
    """Return a server with tasks in two contexts and two states, a second apart, and their ids."""
    served = server(agent(answering))
    tasks = {}
    for said, context in [("a", "x"), ("b done", "x"), ("c", "y"), ("d done", "y")]:
        sent = message(said, message_id=new_message_id(), context_id=context)
        tasks[said[0]] = served.task(sent).id
        served.clock.advance(1000)
    return served, tasks


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (ListTasksRequest(), "dcba"),
        (ListTasksRequest(context_id="x"), "ba"),
        (ListTasksRequest(context_id="none"), ""),
        (ListTasksRequest(status=DONE), "db"),
        (ListTasksRequest(status=TaskState.SUBMITTED), ""),
        (ListTasksRequest(context_id="y", status=ASKED), "c"),
        (ListTasksRequest(status_timestamp_after=moment(NOON + 2000)), "dc"),
        (ListTasksRequest(status_timestamp_after=moment(NOON + 2000) + timedelta(microseconds=1)), "d"),
        (ListTasksRequest(status_timestamp_after=moment(NOON + 2000) - timedelta(microseconds=999)), "dc"),
        (ListTasksRequest(status_timestamp_after=moment(NOON + 9000)), ""),
        (ListTasksRequest(status_timestamp_after=datetime(1, 1, 1, tzinfo=UTC)), "dcba"),
        (ListTasksRequest(status_timestamp_after=datetime.max.replace(tzinfo=UTC)), ""),
        (ListTasksRequest(status=DONE, context_id="x", status_timestamp_after=moment(NOON)), "b"),
    ],
)
def test_every_filter_that_is_set_must_match(request_: ListTasksRequest, expected: str) -> None:
    served, tasks = various()
    page = served.list(request_)

    assert ids(page) == [tasks[each] for each in expected]
    assert page.total_size == len(expected)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_filtered_walk_meets_each_task_once(size: int) -> None:
    served, tasks = various()
    pages = walk(served, ListTasksRequest(page_size=size, status=DONE))

    assert [task_id for page in pages for task_id in ids(page)] == [tasks["d"], tasks["b"]]


def test_a_list_has_the_callers_tasks_alone() -> None:
    served, _ = filled(3)
    own = served.task("mine", caller=call(owner="alice"))
    page = served.list(caller=call(owner="alice"))

    assert (ids(page), page.total_size) == ([own.id], 1)
    assert served.list(caller=call(owner="bob")).total_size == 0


def test_a_task_that_has_expired_is_not_listed() -> None:
    served, expected = filled(2)
    served.clock.now = NOON + 30 * DAY + 500

    assert ids(served.list()) == expected[:1]


# What a page carries


def listed(served: Server, request: ListTasksRequest) -> Task:
    (task,) = served.list(request).tasks
    return task


def conversation() -> Server:
    served = server(agent(answering))
    task = served.task("a")
    for said in ("b", "c"):
        task = served.task(said, to=task.id)
    return served


def test_a_listed_task_has_neither_history_nor_artifacts_unless_asked_for() -> None:
    task = listed(conversation(), ListTasksRequest())

    assert (task.history, task.artifacts) == (UNSET, UNSET)
    assert "artifacts" not in msgspec.to_builtins(task)
    assert texts([task.status.message] if task.status.message else []) == ["c?"]


@pytest.mark.parametrize("length", [1, 2, 3, 5, 6, 7, 2**31 - 1])
def test_a_listed_task_has_as_many_messages_as_asked_for(length: int) -> None:
    task = listed(conversation(), ListTasksRequest(history_length=length))

    assert texts(task.history) == ["a", "a?", "b", "b?", "c", "c?"][-length:]


def test_a_history_of_zero_is_no_history_at_all() -> None:
    assert listed(conversation(), ListTasksRequest(history_length=0)).history is UNSET


def test_artifacts_are_listed_when_they_are_asked_for() -> None:
    task = listed(conversation(), ListTasksRequest(include_artifacts=True))

    assert task.artifacts is not UNSET
    assert [texts_of.text for each in task.artifacts for texts_of in each.parts] == ["about a", "about b", "about c"]


def test_a_task_without_artifacts_has_an_empty_list_of_them_when_they_are_asked_for() -> None:
    served = server(asking())
    served.task()

    assert msgspec.to_builtins(listed(served, ListTasksRequest(include_artifacts=True)))["artifacts"] == []


@pytest.mark.parametrize("asked", [UNSET, False])
def test_artifacts_that_are_not_asked_for_have_no_key(asked: bool) -> None:  # noqa: FBT001
    served = server(yielding(artifact("x"), completed("Done.")))
    served.task()
    task = listed(served, ListTasksRequest(include_artifacts=asked))

    assert "artifacts" not in msgspec.to_builtins(task)
    assert texts([task.status.message] if task.status.message else []) == ["Done."]


# Four megabytes


def heavy(count: int, size: int) -> Server:
    """Return a server with tasks whose artifacts have this size."""
    served = server(yielding(artifact("x" * size)), store=InMemoryTaskStore(clock := Clock()), clock=clock)
    for _ in range(count):
        served.task()
        served.clock.advance(1)
    return served


def test_a_page_ends_early_at_four_megabytes_and_leads_on() -> None:
    served = heavy(10, 1_000_000)
    pages = walk(served, ListTasksRequest(page_size=10, include_artifacts=True))

    assert [len(page.tasks) for page in pages] == [4, 4, 2]
    assert all(len(msgspec.json.encode(page)) <= MAX_PAGE_BYTES + 1000 for page in pages)
    assert len({task_id for page in pages for task_id in ids(page)}) == 10
    assert {(page.page_size, page.total_size) for page in pages} == {(10, 10)}


def test_a_task_that_is_longer_than_a_page_is_a_page() -> None:
    def respond(_turn: Turn) -> Updates:
        for number in range(4):
            yield artifact("é" * 500_000, artifact_id=str(number))
        yield api.input_required("x" * 100_000)

    served = server(agent(respond))
    for _ in range(3):
        served.task("y" * 200_000)
    pages = walk(served, ListTasksRequest(include_artifacts=True, history_length=10))

    assert [len(page.tasks) for page in pages] == [1, 1, 1]


def test_without_artifacts_the_same_tasks_are_one_page() -> None:
    assert len(walk(heavy(10, 1_000_000), ListTasksRequest(page_size=10))) == 1


# Turns that have outlived their deadline


def overdue(store: InMemoryTaskStore, clock: Clock) -> str:
    """Return a task whose acting turn's function has died, and whose deadline passes in 25 seconds."""
    head = begun(now=clock.now)
    store.commit(None, head)
    return head.task_id


def test_the_first_page_shows_a_task_that_it_gave_up_where_it_now_stands() -> None:
    clock = Clock()
    store = InMemoryTaskStore(clock)
    served = server(asking(read_only=False), store=store, clock=clock)
    dead = overdue(store, clock)
    others = [served.task().id for _ in range(3)]
    clock.advance(60 * SECOND)
    page = served.list()

    assert page.tasks[0].id == dead
    assert {each.id for each in page.tasks} == {dead, *others}
    assert page.tasks[0].status.state is TaskState.FAILED
    assert [each.id for each in served.list().tasks] == [each.id for each in page.tasks]


def test_a_later_page_shows_a_task_that_it_gave_up_as_it_was_and_where_it_was() -> None:
    clock = Clock()
    store = InMemoryTaskStore(clock)
    served = server(asking(read_only=False), store=store, clock=clock)
    dead = overdue(store, clock)
    clock.advance(SECOND)
    served.task()
    clock.advance(60 * SECOND)
    first = served.list(ListTasksRequest(page_size=1))
    second = served.list(ListTasksRequest(page_size=1, page_token=first.next_page_token))

    assert [(each.id, each.status.state) for each in second.tasks] == [(dead, TaskState.WORKING)]
    assert served.get(dead).status.state is TaskState.FAILED


def test_a_task_that_the_list_gave_up_is_left_out_where_it_no_longer_matches() -> None:
    clock = Clock()
    store = InMemoryTaskStore(clock)
    served = server(asking(read_only=False), store=store, clock=clock)
    overdue(store, clock)
    clock.advance(60 * SECOND)

    assert served.list(ListTasksRequest(status=TaskState.WORKING)).tasks == []
