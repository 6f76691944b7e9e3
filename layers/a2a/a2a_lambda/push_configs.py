"""The webhooks of a task (§4.3.1), one item each beside its head: `config#<hash of the config's id>`.

    content      the config as JSON, with its secrets
    config_id    its id
    generation   the write that put this content
    created_at   when it was first created, in milliseconds
    delivered    the number of the newest event that it was told of, or that there was when it was created
    disabled     there, when its deliveries have used up their tries

How many there may be is `places`' business: a config takes a place before it is put, and leaves it when it is deleted.
A config belongs to one owner, which every call names. It is gone when what lies beside its task expires.
"""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from a2a_lambda import items
from a2a_lambda.errors import UnsupportedOperationError
from a2a_lambda.model import TaskPushNotificationConfig
from a2a_lambda.places import Places
from a2a_lambda.tables import Item, RefusedError, Table, number
from a2a_lambda.task import Beside, Content, Head

PREFIX: Final = "config#"
REGISTER: Final = "configs"

MAX_CONFIGS: Final = 10
"""Webhooks of a task, those too that are switched off."""

HASH_CHARACTERS: Final = 22
"""Of SHA-256 in base64, which is 132 bits."""

DAY_SECONDS: Final = 24 * 3600

_configs: Final = msgspec.json.Decoder(TaskPushNotificationConfig)


class Watcher(Struct, frozen=True):
    """A webhook that is to be told of an update."""

    config_id: str
    entry: str
    """Its item's."""
    generation: str
    """Another one each time that the config is replaced."""


class Subscription(Struct, frozen=True, kw_only=True):
    """A webhook, its task, and what it is to be told of."""

    config: TaskPushNotificationConfig
    generation: str
    delivered: int
    """The number of the newest event that it was told of."""
    is_enabled: bool
    context_id: str
    update: Content | None
    """The StreamResponse as JSON, where the event has one kept."""


class TablePushConfigs:
    """The webhooks in the tasks table. Every call may raise UnavailableError."""

    def __init__(
        self, table: Table, *, clock: Callable[[], int], new_id: Callable[[], str], retention_days: int = 0
    ) -> None:
        """Args: the retention is that of tasks which are not written yet: who puts none need not give it."""
        self._table = table
        self._clock = clock
        self._new_id = new_id
        self._retention = retention_days * DAY_SECONDS
        self._places = Places(table, REGISTER, most=MAX_CONFIGS, clock=clock)

    # For the operations

    def put(self, head: Head, config: TaskPushNotificationConfig) -> TaskPushNotificationConfig:
        """Keep a webhook of a task, in the place of the one with its id, and return it. Its default id is the task's.

        It is told of what comes after the head's newest event; or, also if that was switched off, after what the
        replaced one was told of.

        Raises:
            UnsupportedOperationError: the task has as many webhooks as it may have.
        """
        kept = replace(config, id=config.id or head.task_id, task_id=head.task_id)
        lasting = replace(head, retention=head.retention or self._retention)
        key = config_key(head.task_id, kept.id)
        is_placed = self._places.take(
            head.owner, head.task_id, key["entry"]["S"], expires_at=items.beside_expiry(lasting), used=self._entries
        )
        if not is_placed:
            raise UnsupportedOperationError(f"A task may have {MAX_CONFIGS} push notification configs")
        self._keep(lasting, key, kept)
        return kept

    def get(self, owner: str, task_id: str, config_id: str) -> TaskPushNotificationConfig | None:
        """Return a webhook, also one that is switched off; None where there is none with this id."""
        item = self._visible(self._table.get(config_key(task_id, config_id)), owner)
        return _configs.decode(item["content"]["B"]) if item else None

    def page(
        self, owner: str, task_id: str, size: int, cursor: str | None
    ) -> tuple[list[TaskPushNotificationConfig], str | None]:
        """Return the next webhooks that are not switched off, the oldest first, and the cursor behind them.

        No webhook is met twice, and one that stays is not missed.
        """
        enabled = [item for item in self._all(owner, task_id) if "disabled" not in item]
        left = sorted((_place(item), item["content"]["B"]) for item in enabled if _place(item) > (cursor or ""))
        configs = [_configs.decode(content) for _, content in left[:size]]
        return configs, left[size - 1][0] if len(left) > size else None

    def delete(self, owner: str, task_id: str, config_id: str) -> None:
        """Delete a webhook, if it is there."""
        key = config_key(task_id, config_id)
        with suppress(RefusedError):
            self._table.delete(
                key,
                ConditionExpression="#owner = :owner",
                ExpressionAttributeNames={"#owner": "owner"},
                ExpressionAttributeValues={":owner": {"S": owner}},
            )
        self._places.leave(owner, task_id, key["entry"]["S"])

    # For the deliveries

    def watchers(self, owner: str, task_id: str) -> list[Watcher]:
        """Return who is to be told of a task's updates: the webhooks that are not switched off."""
        found = self._all(owner, task_id, "entry, config_id, generation, disabled")
        return [
            Watcher(item["config_id"]["S"], item["entry"]["S"], item["generation"]["S"])
            for item in found
            if "disabled" not in item
        ]

    def read(self, owner: str, task_id: str, config_id: str, update_entry: str) -> Subscription | None:
        """Return a webhook with what it is to be told of, all from one call.

        None where the webhook is gone, or its task, or what lies in that entry ("" for no entry), and where an
        earlier task with this id has left the webhook.
        """
        keys = [items.key(task_id, items.HEAD), config_key(task_id, config_id)]
        if update_entry:
            keys.append(items.key(task_id, update_entry))
        together = self._table.get_together(keys)
        found = {item["entry"]["S"]: item for item in together if self._visible(item, owner)}
        if len(found) < len(keys):
            return None
        item, head = found[keys[1]["entry"]["S"]], items.read_head(found[items.HEAD])
        if int(item["expires_at"]["N"]) != items.beside_expiry(head):
            return None
        return Subscription(
            config=_configs.decode(item["content"]["B"]),
            generation=item["generation"]["S"],
            delivered=int(item["delivered"]["N"]),
            is_enabled="disabled" not in item,
            context_id=head.context_id,
            update=items.read_content(found[update_entry]["content"]) if update_entry else None,
        )

    def whole(self, owner: str, task_id: str, content: Content) -> bytes | None:
        """Return content as bytes, put together from its pieces; None where they are gone."""
        if not isinstance(content, Beside):
            return content
        entries = items.piece_entries(content)
        together = self._table.get_all([items.key(task_id, entry) for entry in entries])
        pieces: dict[str, bytes] = {
            item["entry"]["S"]: item["content"]["B"] for item in together if self._visible(item, owner)
        }
        return b"".join(pieces[entry] for entry in entries) if len(pieces) == len(entries) else None

    def delivered(self, owner: str, task_id: str, config_id: str, sequence: int) -> None:
        """Remember that a webhook was told of an event, unless it was told of a later one, or is gone."""
        same_owner, is_newer = "#owner = :owner", "delivered < :sequence"
        self._change(
            config_key(task_id, config_id),
            UpdateExpression="SET delivered = :sequence",
            ConditionExpression=f"{same_owner} AND {is_newer}",
            ExpressionAttributeNames={"#owner": "owner"},
            ExpressionAttributeValues={":owner": {"S": owner}, ":sequence": number(sequence)},
        )

    def switch_off(self, owner: str, task_id: str, config_id: str, generation: str) -> bool:
        """Tell a webhook of nothing more, and return True; False where it was deleted or replaced meanwhile."""
        same_owner, same_generation = "#owner = :owner", "generation = :generation"
        return self._change(
            config_key(task_id, config_id),
            UpdateExpression="SET disabled = :yes",
            ConditionExpression=f"{same_owner} AND {same_generation}",
            ExpressionAttributeNames={"#owner": "owner"},
            ExpressionAttributeValues={
                ":owner": {"S": owner},
                ":generation": {"S": generation},
                ":yes": {"BOOL": True},
            },
        )

    # Items

    def _keep(self, head: Head, key: Item, config: TaskPushNotificationConfig) -> None:
        """Put an item, or change it where it is already this task's.

        Where an earlier task with this id has left it, which is gone, nothing of it is kept.
        """
        missing, same_owner, same_task = "attribute_not_exists(task_id)", "#owner = :owner", "expires_at = :expires_at"
        kept: dict[str, Item] = {
            "owner": {"S": head.owner},
            "expires_at": number(items.beside_expiry(head)),
            "content": {"B": msgspec.json.encode(config)},
            "config_id": {"S": config.id},
            "generation": {"S": self._new_id()},
        }
        new: dict[str, Item] = {"created_at": number(self._clock()), "delivered": number(head.sequence)}
        is_kept = self._change(
            key,
            UpdateExpression=(
                f"SET {', '.join(f'#{name} = :{name}' for name in kept)}, "
                f"{', '.join(f'{name} = if_not_exists({name}, :{name})' for name in new)} REMOVE disabled"
            ),
            ConditionExpression=f"{missing} OR ({same_owner} AND {same_task})",
            ExpressionAttributeNames={f"#{name}": name for name in kept},
            ExpressionAttributeValues={f":{name}": value for name, value in {**kept, **new}.items()},
        )
        if not is_kept:
            self._table.put(
                {**key, **kept, **new},
                ConditionExpression=f"{missing} OR {same_owner}",
                ExpressionAttributeNames={"#owner": "owner"},
                ExpressionAttributeValues={":owner": kept["owner"]},
            )

    def _entries(self, owner: str, task_id: str) -> set[str]:
        return {item["entry"]["S"] for item in self._all(owner, task_id, "entry")}

    def _all(self, owner: str, task_id: str, attributes: str = "") -> Iterator[Item]:
        """Yield the items of a task's webhooks, with these attributes or all."""
        return self._table.query(
            ConsistentRead=True,
            KeyConditionExpression="task_id = :task_id AND begins_with(entry, :prefix)",
            FilterExpression="#owner = :owner AND expires_at > :now",
            ExpressionAttributeNames={"#owner": "owner"},
            ExpressionAttributeValues={
                ":task_id": {"S": task_id},
                ":prefix": {"S": PREFIX},
                ":owner": {"S": owner},
                ":now": number(self._clock() // 1000),
            },
            **({"ProjectionExpression": attributes} if attributes else {}),
        )

    def _visible(self, item: Item | None, owner: str) -> Item | None:
        """Return an item, unless it is missing, another owner's or expired."""
        if not item or item["owner"]["S"] != owner or int(item["expires_at"]["N"]) <= self._clock() // 1000:
            return None
        return item

    def _change(self, key: Item, **update: Any) -> bool:
        """Change an item, and tell whether its condition held."""
        try:
            self._table.update(key, **update)
        except RefusedError:
            return False
        return True


def config_key(task_id: str, config_id: str) -> Item:
    """Return the key of a webhook's item."""
    digest = hashlib.sha256(config_id.encode()).digest()
    return items.key(task_id, PREFIX + urlsafe_b64encode(digest)[:HASH_CHARACTERS].decode())


def _place(item: Item) -> str:
    """Return a webhook's place among those of its task: by age."""
    return f"{int(item['created_at']['N']):015}#{item['entry']['S']}"
