"""Webhooks in the tasks table: whose they are, how many there may be, and how long."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from typing import Final

import pytest
from msgspec.structs import replace

from a2a_lambda.errors import UnsupportedOperationError
from a2a_lambda.items import HEAD, beside_expiry
from a2a_lambda.model import (
    Artifact,
    AuthenticationInfo,
    Part,
    StreamResponse,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a_lambda.places import UNUSED_MS
from a2a_lambda.push_configs import MAX_CONFIGS, Subscription, TablePushConfigs
from a2a_lambda.pushing import accompanied
from a2a_lambda.tables import Table
from a2a_lambda.task import Head, Outbox
from tests.integration.tables import RETENTION_DAYS, Tasks, new_client
from tests.integration.webhooks import HOOK, WORD, config
from tests.unit.factories import DAY, OWNER, SECOND, Ids, begun, ended

RETENTION: Final = RETENTION_DAYS * DAY // SECOND
FULL: Final = TaskPushNotificationConfig(
    HOOK, id="config-1", token=WORD, authentication=AuthenticationInfo("Bearer", WORD)
)


def configs_of(tasks: Tasks) -> TablePushConfigs:
    return TablePushConfigs(Table(tasks.client, tasks.name), clock=tasks.clock, new_id=Ids())


def kept(tasks: Tasks) -> Head:
    """Return a task that is kept."""
    head = replace(begun(), push=True, retention=RETENTION)
    tasks.store().prepare(None, head)()
    return head


def read(tasks: Tasks, head: Head, config_id: str = "config-1", owner: str = OWNER) -> Subscription | None:
    found = configs_of(tasks).read(owner, head.task_id, config_id)
    return found[0] if found else None


def subscription(tasks: Tasks, head: Head) -> Subscription:
    found = read(tasks, head)
    assert found is not None
    return found


def ids_of(tasks: Tasks, head: Head, *, size: int = 50) -> list[str]:
    """Return the ids of a task's webhooks, walked page by page."""
    configs, cursor = configs_of(tasks).page(OWNER, head.task_id, size, None)
    found = [each.id for each in configs]
    while cursor:
        assert len(configs) == size
        configs, cursor = configs_of(tasks).page(OWNER, head.task_id, size, cursor)
        found += [each.id for each in configs]
    return found


def watching(tasks: Tasks, head: Head, owner: str = OWNER) -> list[str]:
    return sorted(watcher.config_id for watcher in configs_of(tasks).watchers(owner, head.task_id))


def test_a_webhook_is_read_as_it_was_kept(tasks: Tasks) -> None:
    head = kept(tasks)

    put = configs_of(tasks).put(head, FULL)

    assert put == replace(FULL, task_id=head.task_id)
    assert configs_of(tasks).get(OWNER, head.task_id, "config-1") == put
    assert subscription(tasks, head).config == put


def test_a_webhook_without_an_id_has_the_tasks(tasks: Tasks) -> None:
    head = kept(tasks)

    configs_of(tasks).put(head, config())
    configs_of(tasks).put(head, config())

    assert ids_of(tasks, head) == [head.task_id]


def test_ids_may_be_anything(tasks: Tasks) -> None:
    head = kept(tasks)
    odd = ["é" * 512, "#", "config#", " ", "\x00", "a/b?c"]

    for config_id in odd:
        configs_of(tasks).put(head, config(config_id=config_id))

    assert sorted(ids_of(tasks, head)) == sorted(odd)


def test_a_new_webhook_is_told_of_what_comes_after_its_tasks_newest_event(tasks: Tasks) -> None:
    head = replace(kept(tasks), sequence=7)

    configs_of(tasks).put(head, FULL)

    assert subscription(tasks, head).delivered == 7


def test_a_webhook_that_is_replaced_goes_on_where_it_was_and_is_switched_on(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    configs.put(head, FULL)
    first = subscription(tasks, head)
    configs.delivered(first, 5)
    configs.tried(first, 6, 6)
    configs.switch_off(first)

    configs.put(replace(head, sequence=9), config("https://other.example", config_id="config-1"))

    replaced = subscription(tasks, head)
    assert replaced.config == config("https://other.example", config_id="config-1").__class__(
        "https://other.example", id="config-1", task_id=head.task_id
    )
    assert (replaced.delivered, replaced.is_enabled, replaced.tries_of(6)) == (5, True, 0)
    assert replaced.generation != first.generation


def test_a_webhook_that_an_earlier_task_with_the_id_left_keeps_nothing_of_it(tasks: Tasks) -> None:
    earlier, configs = kept(tasks), configs_of(tasks)
    for number in range(MAX_CONFIGS - 1):
        configs.put(earlier, config(config_id=f"{number}"))
    configs.put(earlier, FULL)
    configs.delivered(subscription(tasks, earlier), 5)
    tasks.client.delete_item(TableName=tasks.name, Key={"task_id": {"S": earlier.task_id}, "entry": {"S": HEAD}})
    tasks.clock.advance(31 * DAY)
    head = replace(earlier, created_at=tasks.clock(), status_at=tasks.clock())
    tasks.store().prepare(None, head)()

    assert read(tasks, head) is None
    configs.put(head, FULL)
    configs.put(head, config(config_id="one more"))

    assert subscription(tasks, head).delivered == 0


def test_a_switched_off_webhook_leaves_the_list_but_can_be_read_and_still_has_messages(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    for config_id in ("config-1", "config-2"):
        configs.put(head, replace(FULL, id=config_id))

    assert configs.switch_off(subscription(tasks, head))

    assert ids_of(tasks, head) == ["config-2"]
    assert watching(tasks, head) == ["config-1", "config-2"]
    assert configs.get(OWNER, head.task_id, "config-1") == replace(FULL, task_id=head.task_id)
    assert not subscription(tasks, head).is_enabled


def test_switching_off_twice_is_switching_off(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    configs.put(head, FULL)
    read = subscription(tasks, head)

    assert [configs.switch_off(read) for _ in range(2)] == [True, True]


Change = Callable[[TablePushConfigs, Subscription], bool]
CHANGES: Final[list[Change]] = [
    lambda configs, config: configs.delivered(config, 3),
    lambda configs, config: configs.tried(config, 3, 1),
    lambda configs, config: configs.switch_off(config),
    lambda configs, config: configs.keep_as_long_as_its_task(config),
    lambda configs, config: configs.remove(config),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_webhook_that_was_replaced_or_deleted_is_not_changed(tasks: Tasks, change: Change) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    configs.put(head, FULL)
    first = subscription(tasks, head)
    configs.put(head, FULL)
    replaced = tasks.all_items()

    assert not change(configs, first)
    assert tasks.all_items() == replaced

    second = subscription(tasks, head)
    configs.delete(OWNER, head.task_id, "config-1")
    deleted = tasks.all_items()
    assert not change(configs, second)
    assert tasks.all_items() == deleted


def test_what_was_delivered_never_goes_back(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    configs.put(head, FULL)

    assert [configs.delivered(subscription(tasks, head), sequence) for sequence in (3, 5, 4)] == [True, True, False]

    assert subscription(tasks, head).delivered == 5


def test_the_tries_of_one_event_are_not_anothers(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    configs.put(head, FULL)

    configs.tried(subscription(tasks, head), 3, 2)

    assert [subscription(tasks, head).tries_of(sequence) for sequence in (2, 3, 4)] == [0, 2, 0]


# With a message


def bringing(tasks: Tasks, *, config_id: str = "config-1", previous: Head | None = None) -> Head:
    """Return a task with a webhook that comes with its change, which counts; three events come with it."""
    head = replace(previous, revision=previous.revision + 1) if previous else replace(begun(), push=True)
    events = (given(), given(), status_update())
    following = replace(head, sequence=head.sequence + 3, outbox=Outbox(events=events), write="")
    following = accompanied(following, replace(FULL, id=config_id), Ids()())
    tasks.store().prepare(previous, following)()
    return following


def status_update() -> StreamResponse:
    return StreamResponse(status_update=TaskStatusUpdateEvent("t", "c", TaskStatus(TaskState.WORKING)))


def given() -> StreamResponse:
    return StreamResponse(artifact_update=TaskArtifactUpdateEvent("t", "c", Artifact("a", [Part(text="x")])))


def entries(tasks: Tasks, head: Head) -> set[str]:
    """Return what lies beside a task, in short."""
    return {entry.partition("#")[0] for entry in tasks.items(head.task_id)}


def test_a_webhook_that_comes_with_a_change_is_promoted_and_told_of_it(tasks: Tasks) -> None:
    head = bringing(tasks)
    assert (entries(tasks, head), watching(tasks, head)) == ({HEAD, "event", "webhook"}, [])

    configs_of(tasks).promote(head, told=0)

    assert subscription(tasks, head).config == replace(FULL, task_id=head.task_id)
    assert (subscription(tasks, head).delivered, subscription(tasks, head).generation) == (0, head.write)
    assert entries(tasks, head) == {HEAD, "event", "config", "configs"}


def test_a_writer_promotes_what_came_with_its_own_write(tasks: Tasks) -> None:
    head = bringing(tasks)

    configs_of(tasks).promote_own(head, told=0)

    assert watching(tasks, head) == ["config-1"]


def test_a_writer_whose_write_was_followed_by_another_leaves_it_to_the_relay(tasks: Tasks) -> None:
    head = bringing(tasks)
    tasks.store().cancel(head, tasks.clock())

    configs_of(tasks).promote_own(head, told=0)
    assert watching(tasks, head) == []

    configs_of(tasks).promote(head, told=0)
    assert watching(tasks, head) == ["config-1"]


def test_what_came_with_a_write_that_lost_is_not_promoted_by_its_writer(tasks: Tasks) -> None:
    head = bringing(tasks)
    copy = accompanied(head, FULL, Ids()())
    tasks.store().prepare(None, copy)

    configs_of(tasks).promote_own(copy, told=0)

    assert watching(tasks, head) == []


def test_a_webhook_waits_for_a_day_to_be_promoted(tasks: Tasks) -> None:
    head = bringing(tasks)

    (waiting,) = (item for entry, item in tasks.items(head.task_id).items() if entry.startswith("webhook#"))

    assert int(waiting["expires_at"]["N"]) == (tasks.clock() + DAY) // SECOND


def test_a_webhook_is_promoted_once_and_does_not_come_back(tasks: Tasks) -> None:
    head, configs = bringing(tasks), configs_of(tasks)
    configs.promote(head, told=0)
    configs.delete(OWNER, head.task_id, "config-1")

    configs.promote(head, told=0)

    assert watching(tasks, head) == []


def test_a_webhook_that_is_deleted_before_the_relay_promotes_it_does_not_come_back(tasks: Tasks) -> None:
    head, configs = bringing(tasks), configs_of(tasks)

    def overtake() -> None:
        configs_of(tasks).promote(head, told=0)
        configs_of(tasks).delete(OWNER, head.task_id, "config-1")

    tasks.before("TransactWriteItems", overtake)
    configs.promote(head, told=0)

    assert watching(tasks, head) == []


def test_a_strangers_webhook_is_not_promoted(tasks: Tasks) -> None:
    head = bringing(tasks)

    configs_of(tasks).promote(replace(head, owner="key:mallory"), told=0)

    assert watching(tasks, head) == []


@pytest.mark.parametrize("operation", ["UpdateItem", "TransactWriteItems"])
def test_who_dies_while_promoting_leaves_it_to_another(tasks: Tasks, operation: str) -> None:
    head = bringing(tasks)
    tasks.before(operation, _die)
    with pytest.raises(KeyboardInterrupt):
        configs_of(tasks).promote(head, told=0)

    configs_of(tasks).promote(head, told=0)

    assert watching(tasks, head) == ["config-1"]


def test_a_webhook_that_replaces_another_goes_on_where_that_was(tasks: Tasks) -> None:
    first, configs = bringing(tasks), configs_of(tasks)
    configs.promote(first, told=0)
    configs.delivered(subscription(tasks, first), 2)
    second = bringing(tasks, previous=first)

    configs.promote(second, told=3)

    assert subscription(tasks, second).delivered == 2
    assert subscription(tasks, second).generation == second.write


def test_a_webhook_that_a_copy_has_created_is_told_of_the_change_all_the_same(tasks: Tasks) -> None:
    head, configs = bringing(tasks), configs_of(tasks)
    configs.put(replace(head, retention=RETENTION), FULL)
    assert subscription(tasks, head).delivered == 3

    configs.promote(head, told=0)

    assert subscription(tasks, head).delivered == 0
    assert len(ids_of(tasks, head)) == 1


def test_a_webhook_for_which_there_is_no_room_any_more_is_dropped_and_logged(
    tasks: Tasks, caplog: pytest.LogCaptureFixture
) -> None:
    head, configs = bringing(tasks), configs_of(tasks)
    for number in range(MAX_CONFIGS):
        configs.put(replace(head, retention=RETENTION), config(config_id=f"{number}"))

    configs.promote(head, told=0)

    assert sorted(ids_of(tasks, head)) == [f"{number}" for number in range(MAX_CONFIGS)]
    assert "webhook" not in entries(tasks, head)
    assert "no room" in caplog.text


def test_what_a_lost_write_brought_is_nobodys(tasks: Tasks) -> None:
    head = kept(tasks)
    lost = accompanied(replace(head, revision=2, outbox=None), FULL, Ids()())
    tasks.store().prepare(head, lost)

    assert watching(tasks, head) == []


def test_a_full_task_has_room_for_what_it_has(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    configs.put(head, config())
    for number in range(MAX_CONFIGS - 1):
        configs.check_room(OWNER, head.task_id, "one more")
        configs.put(head, config(config_id=f"{number}"))

    for config_id in ("", head.task_id, "0"):
        configs.check_room(OWNER, head.task_id, config_id)
    with pytest.raises(UnsupportedOperationError):
        configs.check_room(OWNER, head.task_id, "one more")


# Lists


@pytest.mark.parametrize("size", [1, 3, 7, 50])
def test_a_list_is_walked_whole_the_oldest_first(tasks: Tasks, size: int) -> None:
    head = kept(tasks)
    made = [f"config-{9 - n}" for n in range(7)]
    for config_id in made:
        configs_of(tasks).put(head, config(config_id=config_id))
        tasks.clock.advance(1)

    assert ids_of(tasks, head, size=size) == made


def test_a_walk_goes_on_behind_a_webhook_that_was_deleted(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    for number in range(4):
        configs.put(head, config(config_id=f"{number}"))
        tasks.clock.advance(1)
    first, cursor = configs.page(OWNER, head.task_id, 2, None)

    configs.delete(OWNER, head.task_id, first[-1].id)

    rest, end = configs.page(OWNER, head.task_id, 2, cursor)
    assert [[each.id for each in first], [each.id for each in rest], end] == [["0", "1"], ["2", "3"], None]


# How many


def test_a_task_has_ten_webhooks_at_most(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    for number in range(MAX_CONFIGS):
        configs.put(head, config(config_id=f"{number}"))

    with pytest.raises(UnsupportedOperationError, match="10 push notification configs"):
        configs.put(head, config(config_id="one more"))

    assert len(ids_of(tasks, head)) == MAX_CONFIGS
    assert configs.get(OWNER, head.task_id, "one more") is None


def test_the_webhooks_of_a_full_task_can_be_replaced(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    for number in range(MAX_CONFIGS):
        configs.put(head, config(config_id=f"{number}"))

    configs.put(head, config("https://other.example", config_id="3"))

    assert len(ids_of(tasks, head)) == MAX_CONFIGS


def test_one_that_is_switched_off_counts_until_it_is_deleted(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    for number in range(MAX_CONFIGS):
        configs.put(head, config(config_id=f"config-{number}"))
    configs.switch_off(subscription(tasks, head))

    with pytest.raises(UnsupportedOperationError):
        configs.put(head, config(config_id="one more"))
    configs.delete(OWNER, head.task_id, "config-1")
    configs.put(head, config(config_id="one more"))

    assert len(ids_of(tasks, head)) == MAX_CONFIGS


def test_of_many_that_come_at_once_ten_remain(dynamodb: str) -> None:
    tasks = Tasks(new_client(dynamodb), endpoint=dynamodb)
    head = kept(tasks)

    def put(number: int) -> bool:
        configs = TablePushConfigs(Table(new_client(dynamodb), tasks.name), clock=tasks.clock, new_id=Ids())
        try:
            configs.put(head, config(config_id=f"config-{number}"))
        except UnsupportedOperationError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(put, range(16)))

    assert sum(taken) == MAX_CONFIGS
    assert sorted(ids_of(tasks, head)) == sorted(f"config-{number}" for number in range(16) if taken[number])


@pytest.mark.parametrize("waiting", [0, 59 * SECOND, 61 * SECOND])
def test_a_place_that_somebody_died_on_is_cleared_when_it_is_needed(tasks: Tasks, waiting: int) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    for number in range(MAX_CONFIGS - 1):
        configs.put(head, config(config_id=f"{number}"))
    tasks.before("UpdateItem", _die, at=2)
    with pytest.raises(KeyboardInterrupt):
        configs.put(head, config(config_id="died"))
    tasks.clock.advance(waiting)

    with nullcontext() if waiting > UNUSED_MS else pytest.raises(UnsupportedOperationError):
        configs.put(head, config(config_id="one more"))

    assert ("one more" in ids_of(tasks, head)) == (waiting > UNUSED_MS)


def test_who_died_on_a_place_takes_it_when_the_config_is_sent_again(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    for number in range(MAX_CONFIGS - 1):
        configs.put(head, config(config_id=f"{number}"))
    tasks.before("UpdateItem", _die, at=2)
    with pytest.raises(KeyboardInterrupt):
        configs.put(head, config(config_id="died"))

    configs.put(head, config(config_id="died"))

    assert len(ids_of(tasks, head)) == MAX_CONFIGS


def test_a_webhook_that_is_created_and_deleted_over_and_over_uses_up_nothing(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)

    for number in range(3 * MAX_CONFIGS):
        configs.put(head, config(config_id=f"{number}"))
        configs.delete(OWNER, head.task_id, f"{number}")
        configs.delete(OWNER, head.task_id, f"{number}")

    assert ids_of(tasks, head) == []


@pytest.mark.parametrize("at", [1, 2])
def test_a_webhook_that_is_created_while_it_is_deleted_keeps_its_place(tasks: Tasks, at: int) -> None:
    head = kept(tasks)
    for number in range(MAX_CONFIGS):
        configs_of(tasks).put(head, config(config_id=f"{number}"))

        def create(config_id: str = f"{number}") -> None:
            configs_of(tasks).put(head, config(config_id=config_id))

        # Just before the item is deleted, or just before its place is left.
        tasks.before("DeleteItem" if at == 1 else "UpdateItem", create)
        configs_of(tasks).delete(OWNER, head.task_id, f"{number}")

    for number in range(MAX_CONFIGS):
        with suppress(UnsupportedOperationError):
            configs_of(tasks).put(head, config(config_id=f"more-{number}"))
    assert len(ids_of(tasks, head)) == MAX_CONFIGS


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_webhook_that_is_deleted_while_it_is_created_leaves_no_webhook_without_a_place(tasks: Tasks, at: int) -> None:
    head = kept(tasks)
    for number in range(MAX_CONFIGS):
        configs_of(tasks).put(head, config(config_id=f"{number}"))

        def delete(config_id: str = f"{number}") -> None:
            configs_of(tasks).delete(OWNER, head.task_id, config_id)

        # Creating what there is: take a place, renew it, put the item.
        tasks.before("UpdateItem", delete, at=at)
        configs_of(tasks).put(head, config(config_id=f"{number}"))

    for number in range(MAX_CONFIGS):
        with suppress(UnsupportedOperationError):
            configs_of(tasks).put(head, config(config_id=f"more-{number}"))
    assert len(ids_of(tasks, head)) == MAX_CONFIGS


def _die() -> None:
    raise KeyboardInterrupt


# Whose


def test_another_owner_finds_no_webhook_and_changes_none(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    configs.put(head, FULL)
    before, other = tasks.all_items(), "key:mallory"

    assert configs.get(other, head.task_id, "config-1") is None
    assert configs.page(other, head.task_id, 50, None) == ([], None)
    assert watching(tasks, head, owner=other) == []
    assert read(tasks, head, owner=other) is None
    configs.delete(other, head.task_id, "config-1")
    read_by_another = subscription(tasks, head)
    read_by_another = replace(read_by_another, head=replace(head, owner=other))
    assert not any(change(configs, read_by_another) for change in CHANGES)

    assert tasks.all_items() == before


# How long


def expiries(tasks: Tasks, head: Head, prefix: str) -> set[int]:
    return {
        int(item["expires_at"]["N"]) for entry, item in tasks.items(head.task_id).items() if entry.startswith(prefix)
    }


def test_a_webhook_is_kept_as_long_as_what_lies_beside_its_task(tasks: Tasks) -> None:
    head = kept(tasks)

    configs_of(tasks).put(head, FULL)

    assert expiries(tasks, head, "config") == {beside_expiry(head)}


def test_a_webhook_of_a_finished_task_is_kept_as_long_as_the_task(tasks: Tasks) -> None:
    head = replace(ended(begun()), retention=RETENTION)
    tasks.store().prepare(None, head)()

    configs_of(tasks).put(head, FULL)

    assert expiries(tasks, head, "config#") == expiries(tasks, head, HEAD)


def test_a_webhook_that_comes_with_a_new_task_is_kept_as_long_as_any(tasks: Tasks) -> None:
    head = bringing(tasks)

    configs_of(tasks).promote_own(head, told=0)

    assert expiries(tasks, head, "config") == {beside_expiry(replace(head, retention=RETENTION))}


def test_an_expired_webhook_is_gone_before_it_is_deleted(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    configs.put(head, FULL)

    tasks.clock.now = beside_expiry(head) * SECOND

    assert configs.get(OWNER, head.task_id, "config-1") is None
    assert ids_of(tasks, head) == watching(tasks, head) == []


def test_without_its_task_a_webhook_is_told_of_nothing(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    configs.put(head, FULL)

    tasks.clock.advance(RETENTION_DAYS * DAY)

    assert configs.get(OWNER, head.task_id, "config-1") is not None
    assert read(tasks, head) is None
