"""Webhooks in the tasks table: whose they are, how many there may be, and how long."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Final

import pytest
from msgspec.structs import replace

from a2a_lambda.errors import UnsupportedOperationError
from a2a_lambda.items import HEAD, beside_expiry
from a2a_lambda.model import AuthenticationInfo, TaskPushNotificationConfig
from a2a_lambda.places import UNUSED_MS
from a2a_lambda.push_configs import MAX_CONFIGS, Subscription, TablePushConfigs
from a2a_lambda.tables import Table
from a2a_lambda.task import Head
from tests.integration.tables import RETENTION_DAYS, Tasks, new_client
from tests.integration.webhooks import HOOK, WORD, config
from tests.unit.factories import DAY, OWNER, SECOND, Ids, begun

RETENTION: Final = RETENTION_DAYS * DAY // SECOND
FULL: Final = TaskPushNotificationConfig(
    HOOK, id="config-1", token=WORD, authentication=AuthenticationInfo("Bearer", WORD)
)


def configs_of(tasks: Tasks) -> TablePushConfigs:
    return TablePushConfigs(
        Table(tasks.client, tasks.name), clock=tasks.clock, new_id=Ids(), retention_days=RETENTION_DAYS
    )


def kept(tasks: Tasks) -> Head:
    """Return a task that is kept."""
    head = replace(begun(), push=True, retention=RETENTION)
    tasks.store().prepare(None, head)()
    return head


def read(tasks: Tasks, head: Head, config_id: str = "config-1", owner: str = OWNER) -> Subscription | None:
    return configs_of(tasks).read(owner, head.task_id, config_id, "")


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
    configs.delivered(OWNER, head.task_id, "config-1", 5)
    configs.switch_off(OWNER, head.task_id, "config-1", first.generation)

    configs.put(replace(head, sequence=9), config("https://other.example", config_id="config-1"))

    replaced = subscription(tasks, head)
    assert replaced.config == config("https://other.example", config_id="config-1").__class__(
        "https://other.example", id="config-1", task_id=head.task_id
    )
    assert (replaced.delivered, replaced.is_enabled) == (5, True)
    assert replaced.generation != first.generation


def test_a_webhook_that_an_earlier_task_with_the_id_left_keeps_nothing_of_it(tasks: Tasks) -> None:
    earlier, configs = kept(tasks), configs_of(tasks)
    for number in range(MAX_CONFIGS - 1):
        configs.put(earlier, config(config_id=f"{number}"))
    configs.put(earlier, FULL)
    configs.delivered(OWNER, earlier.task_id, "config-1", 5)
    tasks.client.delete_item(TableName=tasks.name, Key={"task_id": {"S": earlier.task_id}, "entry": {"S": HEAD}})
    tasks.clock.advance(31 * DAY)
    head = replace(earlier, created_at=tasks.clock(), status_at=tasks.clock())
    tasks.store().prepare(None, head)()

    assert read(tasks, head) is None
    configs.put(head, FULL)
    configs.put(head, config(config_id="one more"))

    assert subscription(tasks, head).delivered == 0


def test_a_switched_off_webhook_leaves_the_list_and_is_told_of_nothing_but_can_be_read(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    for config_id in ("config-1", "config-2"):
        configs.put(head, replace(FULL, id=config_id))

    assert configs.switch_off(OWNER, head.task_id, "config-1", subscription(tasks, head).generation)

    assert ids_of(tasks, head) == watching(tasks, head) == ["config-2"]
    assert configs.get(OWNER, head.task_id, "config-1") == replace(FULL, task_id=head.task_id)
    assert not subscription(tasks, head).is_enabled


def test_switching_off_twice_is_switching_off(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    configs.put(head, FULL)
    generation = subscription(tasks, head).generation

    assert [configs.switch_off(OWNER, head.task_id, "config-1", generation) for _ in range(2)] == [True, True]


def test_a_webhook_that_was_replaced_or_deleted_is_not_switched_off(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    configs.put(head, FULL)
    generation = subscription(tasks, head).generation
    configs.put(head, FULL)

    assert not configs.switch_off(OWNER, head.task_id, "config-1", generation)
    assert subscription(tasks, head).is_enabled

    configs.delete(OWNER, head.task_id, "config-1")
    assert not configs.switch_off(OWNER, head.task_id, "config-1", generation)
    assert read(tasks, head) is None


def test_what_was_delivered_never_goes_back(tasks: Tasks) -> None:
    head, configs = kept(tasks), configs_of(tasks)
    configs.put(head, FULL)

    for sequence in (3, 5, 4):
        configs.delivered(OWNER, head.task_id, "config-1", sequence)

    assert subscription(tasks, head).delivered == 5


def test_what_is_delivered_to_a_deleted_webhook_does_not_bring_it_back(tasks: Tasks) -> None:
    head = kept(tasks)

    configs_of(tasks).delivered(OWNER, head.task_id, "config-1", 3)

    assert list(tasks.items(head.task_id)) == [HEAD]


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
    configs.switch_off(OWNER, head.task_id, "config-1", subscription(tasks, head).generation)

    with pytest.raises(UnsupportedOperationError):
        configs.put(head, config(config_id="one more"))
    configs.delete(OWNER, head.task_id, "config-1")
    configs.put(head, config(config_id="one more"))

    assert len(ids_of(tasks, head)) == MAX_CONFIGS


def test_of_many_that_come_at_once_ten_remain(dynamodb: str) -> None:
    tasks = Tasks(new_client(dynamodb), endpoint=dynamodb)
    head = kept(tasks)

    def put(number: int) -> bool:
        configs = TablePushConfigs(
            Table(new_client(dynamodb), tasks.name), clock=tasks.clock, new_id=Ids(), retention_days=RETENTION_DAYS
        )
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
    configs.delivered(other, head.task_id, "config-1", 9)
    assert not configs.switch_off(other, head.task_id, "config-1", subscription(tasks, head).generation)

    assert tasks.all_items() == before


# How long


def test_a_webhook_is_kept_as_long_as_what_lies_beside_its_task(tasks: Tasks) -> None:
    head = kept(tasks)

    configs_of(tasks).put(head, FULL)
    configs_of(tasks).put(replace(head, retention=0), replace(FULL, id="config-2"))

    expiries = {item["expires_at"]["N"] for entry, item in tasks.items(head.task_id).items() if entry != HEAD}
    assert expiries == {str(beside_expiry(head))}


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
