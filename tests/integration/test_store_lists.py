"""What every task store promises of lists, histories and copies: in memory and in DynamoDB alike."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest
from moto import mock_aws
from msgspec.structs import replace

from a2a_lambda import task
from a2a_lambda.agent import completed, input_required
from a2a_lambda.model import TaskState
from a2a_lambda.store import ConflictError, TaskFilter, TaskStore
from a2a_lambda.task import DirectReply, Head
from tests.integration.callers_fixtures import new_task
from tests.integration.tables import WINDOW_SECONDS, Tasks, new_client
from tests.unit.factories import DAY, NOON, OWNER, SECOND, Clock, Ids, ended, message, texts
from tests.unit.memory_store import InMemoryTaskStore

ALL: Final = TaskFilter()


@dataclass(frozen=True)
class Kept:
    """A store and its clock."""

    store: TaskStore
    clock: Clock

    def add(self, head: Head) -> Head:
        self.store.prepare(None, head)()
        return self.read(head)

    def read(self, head: Head) -> Head:
        current = self.store.read(head.owner, head.task_id)
        assert current is not None
        return current

    def turn(self, head: Head, said: str) -> Head:
        """Take a turn, and return the task after it."""
        sent = message(said, message_id=said, task_id=head.task_id, context_id=head.context_id)
        running = task.follow(head, sent, key=said, now=self.clock.now, deadline=self.clock.now + SECOND)
        self.store.prepare(head, ended(running, input_required(f"{said}?"), message_=sent))()
        return self.read(head)

    def walk(self, wanted: TaskFilter, size: int, owner: str = OWNER) -> list[str]:
        """Return the ids of all tasks of a list."""
        found, cursor = [], None
        while True:
            page = self.store.page(owner, wanted, cursor, size)
            assert len(page.entries) <= size
            found += [head.task_id for head, _ in page.entries]
            cursor = page.cursor
            if cursor is None:
                return found


@pytest.fixture(params=["memory", "dynamodb"])
def kept(request: pytest.FixtureRequest) -> Iterator[Kept]:
    if request.param == "memory":
        clock = Clock()
        yield Kept(InMemoryTaskStore(clock, window_seconds=WINDOW_SECONDS), clock)
        return
    with mock_aws():
        tasks = Tasks(new_client())
        yield Kept(tasks.store(), tasks.clock)


def various(kept: Kept) -> list[Head]:
    """Return stored tasks, newest first, two at each time."""
    heads = [
        kept.add(
            new_task(
                completed() if number % 3 else input_required("?"), at=NOON + number // 2, context_id=f"c{number % 2}"
            )
        )
        for number in range(9)
    ]
    kept.add(new_task(owner="stranger"))
    return sorted(heads, key=lambda head: (head.status_at, head.task_id), reverse=True)


FILTERS: Final = [
    ALL,
    TaskFilter(context_id="c1"),
    TaskFilter(state=TaskState.COMPLETED),
    TaskFilter(since=NOON + 2),
    TaskFilter(context_id="c0", state=TaskState.INPUT_REQUIRED),
    TaskFilter(context_id="c0", state=TaskState.COMPLETED, since=NOON + 1),
    TaskFilter(context_id="none"),
    TaskFilter(since=NOON + DAY),
    TaskFilter(since=-(10**13)),
]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("wanted", FILTERS, ids=range(len(FILTERS)))
def test_a_walk_is_what_matches_newest_first_and_the_count_its_length(
    kept: Kept, wanted: TaskFilter, size: int
) -> None:
    expected = [
        head.task_id
        for head in various(kept)
        if wanted.context_id in ("", head.context_id)
        and wanted.state in (None, head.state)
        and (wanted.since is None or head.status_at >= wanted.since)
    ]
    assert kept.walk(wanted, size) == expected
    assert kept.store.count(OWNER, wanted) == len(expected)


def test_a_list_is_its_owners(kept: Kept) -> None:
    various(kept)

    assert len(kept.walk(ALL, 2, "stranger")) == kept.store.count("stranger", ALL) == 1
    assert kept.walk(ALL, 2, "nobody") == []


def test_a_page_leads_on_from_any_of_its_tasks(kept: Kept) -> None:
    expected = [head.task_id for head in various(kept)]
    page = kept.store.page(OWNER, ALL, None, 9)

    for number, (_, cursor) in enumerate(page.entries):
        rest = kept.store.page(OWNER, ALL, cursor, 100)
        assert [head.task_id for head, _ in rest.entries] == expected[number + 1 :]


def test_an_expired_task_is_in_no_list(kept: Kept) -> None:
    old, young = kept.add(new_task()), kept.add(new_task(at=NOON + DAY))
    kept.clock.now = NOON + 30 * DAY

    assert kept.walk(ALL, 1) == [young.task_id]
    assert kept.store.count(OWNER, ALL) == 1
    assert kept.store.read(OWNER, old.task_id) is None


def test_a_task_that_a_cancel_keeps_for_longer_lives_no_longer_than_its_turns(kept: Kept) -> None:
    head = kept.turn(kept.add(new_task(input_required("?"))), "m")
    for _ in range(2):
        kept.clock.advance(25 * DAY)
        head = kept.read(head) if kept.clock.now > NOON + 30 * DAY else kept.turn(head, f"{kept.clock.now}")
    canceled = kept.store.cancel(head, kept.clock.now)
    kept.clock.now = NOON + 60 * DAY - SECOND
    assert kept.store.read(OWNER, canceled.task_id) == canceled
    kept.clock.now = NOON + 60 * DAY

    assert kept.store.read(OWNER, canceled.task_id) is None


def test_a_direct_reply_is_in_no_list(kept: Kept) -> None:
    kept.store.keep_reply(DirectReply(task_id=Ids()(), owner=OWNER, created_at=NOON, content=b"{}"))

    assert (kept.walk(ALL, 5), kept.store.count(OWNER, ALL)) == ([], 0)


# Histories


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_histories_are_what_is_read_task_by_task(kept: Kept, limit: int) -> None:
    heads = []
    for turns in range(13):
        head = kept.add(new_task(input_required("0?"), said=f"{turns}"))
        for turn in range(turns % 5):
            head = kept.turn(head, f"{turns}.{turn}")
        heads.append(head)

    assert list(kept.store.histories(heads, limit)) == [kept.store.history(head, limit) for head in heads]
    assert list(kept.store.histories([], limit)) == []


# Copies


def test_a_message_is_found_while_it_is_remembered(kept: Kept) -> None:
    head = kept.turn(kept.add(new_task(input_required("?"))), "m")
    later = kept.turn(head, "later")

    assert kept.store.find(OWNER, head.task_id, "m") == (later, True)
    assert kept.store.find(OWNER, head.task_id, "other") == (later, False)
    assert kept.store.find("stranger", head.task_id, "m") == (None, False)
    assert kept.store.find(OWNER, Ids()(), "m") == (None, False)
    kept.clock.advance(WINDOW_SECONDS * SECOND)
    assert kept.store.find(OWNER, head.task_id, "m") == (later, False)


def test_a_direct_reply_stands_in_the_way_of_a_task_and_of_another_reply(kept: Kept) -> None:
    head = new_task()
    first = DirectReply(task_id=head.task_id, owner=OWNER, created_at=NOON, content=b'{"a":1}')
    kept.store.keep_reply(first)

    for write in (kept.store.prepare(None, head), lambda: kept.store.keep_reply(replace(first, content=b"{}"))):
        with pytest.raises(ConflictError) as conflict:
            write()
        assert conflict.value.current == first
    with pytest.raises(ConflictError) as conflict:
        kept.store.prepare(None, replace(head, owner="stranger"))()
    assert conflict.value.current is None
    assert kept.store.read(OWNER, head.task_id) is None


def test_a_task_stands_in_the_way_of_a_direct_reply(kept: Kept) -> None:
    head = kept.add(new_task())
    with pytest.raises(ConflictError) as conflict:
        kept.store.keep_reply(DirectReply(task_id=head.task_id, owner=OWNER, created_at=NOON, content=b"{}"))

    assert conflict.value.current == head
    assert kept.read(head) == head


def test_a_direct_reply_is_kept_for_the_window(kept: Kept) -> None:
    reply = DirectReply(task_id=Ids()(), owner=OWNER, created_at=NOON, content=b"{}")
    kept.store.keep_reply(reply)
    kept.clock.advance(WINDOW_SECONDS * SECOND)

    with pytest.raises(ConflictError) as conflict:
        kept.store.keep_reply(reply)
    assert conflict.value.current is None


def test_all_copies_of_a_message_begin_again_under_the_id_of_the_first(kept: Kept) -> None:
    first_id, made = Ids()(), Ids()
    taken = [made() for _ in range(6)]
    window = WINDOW_SECONDS * SECOND

    def begin_again(number: int, owner: str = OWNER) -> str:
        return kept.store.begin_again(owner, first_id, taken[number])

    assert [begin_again(0), begin_again(1)] == [taken[0]] * 2
    kept.clock.advance(window - 1)
    assert [begin_again(2), kept.store.begin_again(OWNER, Ids()(), taken[3])] == [taken[0], taken[3]]
    kept.clock.advance(1)
    assert [begin_again(4), begin_again(5)] == [taken[4]] * 2


def test_what_says_under_which_id_a_message_began_again_is_no_task(kept: Kept) -> None:
    head = kept.add(new_task(input_required("?")))
    again_id = kept.store.begin_again(OWNER, head.task_id, Ids()())

    assert kept.store.read(OWNER, again_id) is None
    assert kept.store.find(OWNER, head.task_id, "m") == (head, False)
    assert (kept.walk(ALL, 5), kept.store.count(OWNER, ALL)) == ([head.task_id], 1)
    assert texts(kept.store.history(head)) == ["Hello", "?"]


@pytest.mark.parametrize("behind", [1, 3_600_000])
def test_a_cancel_by_a_clock_behind_does_not_turn_the_time_of_the_state_back(kept: Kept, behind: int) -> None:
    head = kept.add(new_task(input_required("?")))
    canceled = kept.store.cancel(head, head.status_at - behind)

    assert (canceled.status_at, canceled.state) == (head.status_at, TaskState.CANCELED)
    assert kept.walk(ALL, 1) == [head.task_id]
    assert kept.read(head) == canceled


def test_a_cancel_of_what_was_read_before_another_turn_cancels_that_turn(kept: Kept) -> None:
    head = kept.add(new_task(input_required("?")))
    kept.clock.advance(5 * SECOND)
    later = kept.turn(head, "m")
    canceled = kept.store.cancel(head, NOON)

    assert (canceled.status_at, canceled.revision, canceled.turn) == (later.status_at, later.revision + 1, later.turn)
    assert texts(kept.store.history(canceled)) == ["Hello", "?", "m", "m?"]


def test_what_is_prepared_can_be_read_and_has_changed_nothing(kept: Kept) -> None:
    head = kept.add(new_task(input_required("?")))
    sent = message("m", task_id=head.task_id, context_id=head.context_id)
    running = task.follow(head, sent, key="m", now=NOON, deadline=NOON + SECOND)
    following = ended(running, input_required("m?"), message_=sent)
    commit = kept.store.prepare(head, following)

    assert texts(kept.store.history(following)) == ["Hello", "?", "m", "m?"]
    assert kept.read(head) == head
    assert texts(kept.store.history(head)) == ["Hello", "?"]
    assert kept.store.find(OWNER, head.task_id, "m") == (head, False)
    commit()
    assert texts(kept.store.history(kept.read(head))) == ["Hello", "?", "m", "m?"]
