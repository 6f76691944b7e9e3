"""The webhooks of a task (§4.3.1), one item each beside its head: `config#<hash of the config's id>`.

    content      the config as JSON, with its secrets
    config_id    its id
    begun_at     when its task was created: an earlier task with the same id, which is gone, may have left a webhook
    generation   another one each time that the config is put
    created_at   when it was first created, in milliseconds
    delivered    the number of the newest event that it was told of, or that there was when it was created
    tried, tries how often this generation was asked to take the event of this number, and did not
    disabled     there, when its deliveries have used up their tries

How many there may be is `places`' business: a config takes a place before it is put, and leaves it when it is deleted.
A config belongs to one owner, which every call names. It is gone when what lies beside its task expires, or with the
task where that is finished.

A webhook that comes with a message is kept with the write that makes the message count, at `webhook#<write>`, and is
promoted to a config after it: by the writer, or by the relay where the writer has died. Whoever deletes the one item
puts the other in the same transaction, so that it is done once, and a config that was deleted does not come back.
"""

import hashlib
import logging
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from a2a_lambda import items
from a2a_lambda.errors import UnsupportedOperationError
from a2a_lambda.model import TaskPushNotificationConfig
from a2a_lambda.outcome import TERMINAL
from a2a_lambda.places import Places
from a2a_lambda.tables import CanceledError, Item, RefusedError, Table, number
from a2a_lambda.task import Beside, Content, Head

PREFIX: Final = "config#"
REGISTER: Final = "configs"

MAX_CONFIGS: Final = 10
"""Webhooks of a task, those too that are switched off."""
NO_ROOM: Final = f"A task may have {MAX_CONFIGS} push notification configs"

HASH_CHARACTERS: Final = 22
"""Of SHA-256 in base64, which is 132 bits."""

MISSING: Final = "attribute_not_exists(task_id)"
SAME_OWNER: Final = "#owner = :owner"

log: Final = logging.getLogger("a2a.push")
_configs: Final = msgspec.json.Decoder(TaskPushNotificationConfig)


class Watcher(Struct, frozen=True):
    """A webhook that is to be told of an update."""

    config_id: str
    entry: str
    """Its item's."""
    generation: str
    """Another one each time that the config is replaced."""


class Subscription(Struct, frozen=True, kw_only=True):
    """A webhook and its task."""

    config: TaskPushNotificationConfig
    generation: str
    delivered: int
    """The number of the newest event that it was told of."""
    tried: int
    tries: int
    """How often it was asked to take the event of a number, and did not."""
    is_enabled: bool
    head: Head

    def tries_of(self, number_of_event: int) -> int:
        """Return how often it was asked to take an event, and did not."""
        return self.tries if self.tried == number_of_event else 0


class _Put:
    """A config that is put, as one write of its item or as another."""

    def __init__(self, head: Head, config: TaskPushNotificationConfig, *, generation: str, told: int, now: int) -> None:
        """Args: its task; the number of the newest event that it is not told of; the time in milliseconds."""
        self.config = replace(config, id=config.id or head.task_id, task_id=head.task_id)
        self.generation = generation
        self.key = config_key(head.task_id, self.config.id)
        self.entry: str = self.key["entry"]["S"]
        expires_at = items.head_expiry(head, head.status_at) if head.state in TERMINAL else items.beside_expiry(head)
        self._kept: dict[str, Item] = {
            "owner": {"S": head.owner},
            "expires_at": number(expires_at),
            "begun_at": number(head.created_at),
            "content": {"B": msgspec.json.encode(self.config)},
            "config_id": {"S": self.config.id},
            "generation": {"S": generation},
        }
        self._first: dict[str, Item] = {"created_at": number(now), "delivered": number(told)}

    def update(self, *conditions: str) -> dict[str, Any]:
        """Return the change that puts it, in the place of this task's, which goes on where it was.

        It is refused where an earlier task with this id has left one, which is gone, or a condition does not hold.
        """
        standing = " AND ".join([SAME_OWNER, "begun_at = :begun_at", *conditions])
        assignments = [f"#{name} = :{name}" for name in self._kept]
        assignments += [f"{name} = if_not_exists({name}, :{name})" for name in self._first]
        return {
            "UpdateExpression": f"SET {', '.join(assignments)} REMOVE disabled, tried, tries",
            "ConditionExpression": f"{MISSING} OR ({standing})",
            "ExpressionAttributeNames": {f"#{name}": name for name in self._kept},
            "ExpressionAttributeValues": {f":{name}": value for name, value in {**self._kept, **self._first}.items()},
        }

    def instead(self) -> dict[str, Any]:
        """Return the write that puts it, in the place of one of which nothing is kept."""
        return {
            "Item": {**self.key, **self._kept, **self._first},
            "ConditionExpression": f"{MISSING} OR {SAME_OWNER}",
            "ExpressionAttributeNames": {"#owner": "owner"},
            "ExpressionAttributeValues": {":owner": self._kept["owner"]},
        }


class TablePushConfigs:
    """The webhooks in the tasks table. Every call may raise UnavailableError."""

    def __init__(self, table: Table, *, clock: Callable[[], int], new_id: Callable[[], str]) -> None:
        """Args: the tasks table; the time in milliseconds since the epoch; ids never given before."""
        self._table = table
        self._clock = clock
        self._new_id = new_id
        self._places = Places(table, REGISTER, most=MAX_CONFIGS, clock=clock)

    # For the operations

    def put(self, head: Head, config: TaskPushNotificationConfig) -> TaskPushNotificationConfig:
        """Keep a webhook of a task, in the place of the one with its id, and return it. Its default id is the task's.

        It is told of what comes after the head's newest event; or, also if that was switched off, after what the
        replaced one was told of.

        Raises:
            UnsupportedOperationError: the task has as many webhooks as it may have.
        """
        put = _Put(head, config, generation=self._new_id(), told=head.sequence, now=self._clock())
        if not self._places.take(head, put.entry, put.generation, used=self._entries):
            raise UnsupportedOperationError(NO_ROOM)
        if not self._change(put.key, **put.update()):
            write = put.instead()
            self._table.put(write.pop("Item"), **write)
        return put.config

    def check_room(self, owner: str, task_id: str, config_id: str) -> None:
        """Check that a task has room for a webhook with this id.

        Raises:
            UnsupportedOperationError: it has as many as it may have.
        """
        entries = self._entries(owner, task_id)
        if len(entries) >= MAX_CONFIGS and config_key(task_id, config_id or task_id)["entry"]["S"] not in entries:
            raise UnsupportedOperationError(NO_ROOM)

    def promote_own(self, head: Head, *, told: int) -> None:
        """Promote the webhook that came with a head, where that still is as it was written.

        Where it has been changed since, whether this very write or a copy's has counted is for the relay to know.
        """
        keys = [items.key(head.task_id, entry) for entry in (items.HEAD, items.webhook_entry(head.write))]
        found = {item["entry"]["S"]: item for item in self._table.get_together(keys)}
        if items.HEAD in found and found[items.HEAD]["write"] == {"S": head.write}:
            self._promote(items.read_head(found[items.HEAD]), found.get(keys[1]["entry"]["S"]), told)

    def promote(self, head: Head, *, told: int) -> None:
        """Keep the webhook that came with a head, which counts, as `put` does, unless that was done.

        It is told of what comes after the event of the number that is given. Where others have taken the last place
        meanwhile, it is dropped.
        """
        self._promote(head, self._table.get(items.key(head.task_id, items.webhook_entry(head.write))), told)

    def _promote(self, head: Head, left: Item | None, told: int) -> None:
        if left is None or left["owner"] != {"S": head.owner}:
            return
        key = items.key(head.task_id, items.webhook_entry(head.write))
        config = _configs.decode(left["content"]["B"])
        put = _Put(head, config, generation=head.write, told=told, now=self._clock())
        if not self._places.take(head, put.entry, put.generation, used=self._entries):
            log.warning("no room for the webhook of a message", extra={"caller": head.owner, "task_id": head.task_id})
            self._table.delete(key)
            return
        delete = {"Delete": {"Key": key, "ConditionExpression": "attribute_exists(task_id)"}}
        # Where a copy of the message has created the webhook meanwhile, what it was told of is not what it is to be.
        update = put.update("delivered <= :delivered")
        for write in ({"Update": {"Key": put.key, **update}}, {"Put": put.instead()}):
            try:
                self._table.write_together(delete, write)
            except CanceledError as canceled:
                if 0 in canceled.refused:
                    return
            else:
                return

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
            deleted = self._table.delete(
                key,
                ConditionExpression=SAME_OWNER,
                ExpressionAttributeNames={"#owner": "owner"},
                ExpressionAttributeValues={":owner": {"S": owner}},
                ReturnValues="ALL_OLD",
            )
            self._places.leave(owner, task_id, key["entry"]["S"], deleted["generation"]["S"])

    # For the deliveries

    def watchers(self, owner: str, task_id: str) -> list[Watcher]:
        """Return who is to be told of a task's updates: its webhooks, those too that are switched off.

        What these are not told of is put aside, and can be told when they are created again.
        """
        found = self._all(owner, task_id, "entry, config_id, generation")
        return [Watcher(item["config_id"]["S"], item["entry"]["S"], item["generation"]["S"]) for item in found]

    def read(
        self, owner: str, task_id: str, config_id: str, entries: Sequence[str] = ()
    ) -> tuple[Subscription, Mapping[str, Content]] | None:
        """Return a webhook with what it is to be told of, all from one call: what there is of that, by its entry.

        None where the webhook is gone, or its task, and where an earlier task with this id has left the webhook.
        """
        keys = [items.key(task_id, items.HEAD), config_key(task_id, config_id)]
        found = self._found(owner, self._table.get_together(keys + [items.key(task_id, entry) for entry in entries]))
        if not all(key["entry"]["S"] in found for key in keys):
            return None
        item, head = found[keys[1]["entry"]["S"]], items.read_head(found[items.HEAD])
        if item["begun_at"] != number(head.created_at):
            return None
        subscription = Subscription(
            config=_configs.decode(item["content"]["B"]),
            generation=item["generation"]["S"],
            delivered=int(item["delivered"]["N"]),
            tried=int(item["tried"]["N"]) if "tried" in item else 0,
            tries=int(item["tries"]["N"]) if "tries" in item else 0,
            is_enabled="disabled" not in item,
            head=head,
        )
        return subscription, _contents(found, entries)

    def contents(self, owner: str, task_id: str, entries: Sequence[str]) -> Mapping[str, Content]:
        """Return what a webhook is to be told of, by its entry: what there is of it."""
        together = self._table.get_all([items.key(task_id, entry) for entry in entries])
        return _contents(self._found(owner, together), entries)

    def whole(self, owner: str, task_id: str, content: Content) -> bytes | None:
        """Return content as bytes, put together from its pieces; None where they are gone."""
        if not isinstance(content, Beside):
            return content
        entries = items.piece_entries(content)
        together = self._table.get_all([items.key(task_id, entry) for entry in entries])
        pieces: dict[str, bytes] = {entry: item["content"]["B"] for entry, item in self._found(owner, together).items()}
        return b"".join(pieces[entry] for entry in entries) if len(pieces) == len(entries) else None

    # Each of these changes a generation of a webhook, and tells whether there still is that one.

    def delivered(self, config: Subscription, sequence: int) -> bool:
        """Remember that a webhook was told of an event, unless it was told of a later one."""
        return self._change_generation(
            config, "SET delivered = :sequence", "delivered < :sequence", {":sequence": number(sequence)}
        )

    def tried(self, config: Subscription, sequence: int, tries: int) -> bool:
        """Remember how often a webhook was asked to take an event, and did not."""
        return self._change_generation(
            config,
            "SET tried = :sequence, tries = :tries",
            "",
            {":sequence": number(sequence), ":tries": number(tries)},
        )

    def switch_off(self, config: Subscription) -> bool:
        """Tell a webhook of nothing more."""
        return self._change_generation(config, "SET disabled = :yes", "", {":yes": {"BOOL": True}})

    def keep_as_long_as_its_task(self, config: Subscription) -> bool:
        """Have a webhook of a finished task expire with it."""
        expires_at = number(items.head_expiry(config.head, config.head.status_at))
        return self._change_generation(config, "SET expires_at = :expires_at", "", {":expires_at": expires_at})

    def remove(self, config: Subscription) -> bool:
        """Delete a webhook."""
        owner, key = config.head.owner, _key_of(config)
        try:
            self._table.delete(key, **_if_generation(config))
        except RefusedError:
            return False
        self._places.leave(owner, config.head.task_id, key["entry"]["S"], config.generation)
        return True

    # Items

    def _change_generation(self, config: Subscription, update: str, condition: str, values: dict[str, Item]) -> bool:
        arguments = _if_generation(config)
        if condition:
            arguments["ConditionExpression"] += f" AND {condition}"
        arguments["ExpressionAttributeValues"] |= values
        return self._change(_key_of(config), UpdateExpression=update, **arguments)

    def _found(self, owner: str, together: Sequence[Item]) -> dict[str, Item]:
        """Return an owner's items by their entries, without those that have expired."""
        return {item["entry"]["S"]: item for item in together if self._visible(item, owner)}

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


def _key_of(config: Subscription) -> Item:
    return config_key(config.head.task_id, config.config.id)


def _if_generation(config: Subscription) -> dict[str, Any]:
    """Return the condition that a webhook is still the one that was read."""
    return {
        "ConditionExpression": f"{SAME_OWNER} AND generation = :generation",
        "ExpressionAttributeNames": {"#owner": "owner"},
        "ExpressionAttributeValues": {":owner": {"S": config.head.owner}, ":generation": {"S": config.generation}},
    }


def _contents(found: Mapping[str, Item], entries: Sequence[str]) -> dict[str, Content]:
    return {entry: items.read_content(found[entry]["content"]) for entry in entries if entry in found}
