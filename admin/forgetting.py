"""Deleting all that a caller has: API keys, tasks, what is remembered of its messages, its rate bucket.

The index of an owner's tasks leads to the tasks, and shows what was written or deleted a moment
ago a moment later: it is asked until it shows nothing. What no index has (direct replies, and
what a request that died left beside a head that never came) is found by reading the whole table,
once. Of each task the head goes last, so that what is left when this is interrupted is found by
the next run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from a2a_lambda import items
from a2a_lambda.callers import owner_of_caller
from a2a_lambda.dynamodb import INDEX
from a2a_lambda.rates import ENTRY as RATE
from admin.errors import AdminError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from a2a_lambda.keys import TableKeys
    from a2a_lambda.tables import Item, Table

PAGE = 100
NOTE = items.note_entry("")

# The index shows a deleted task for well under a second. Half a minute of nothing else is a fault.
PAUSE_SECONDS = 0.5
MAX_PAUSES = 60


@dataclass
class Forgotten:
    """How many things of a caller were deleted. Markers are direct replies and notes of messages."""

    tasks: int = 0
    keys: int = 0
    markers: int = 0
    rate_buckets: int = 0


@dataclass(frozen=True)
class Tables:
    """Where a caller's things are. `scan` is the tasks' table's own: no request ever reads a whole table."""

    tasks: Table
    scan: Callable[[Mapping[str, Any]], Iterator[Item]]
    callers: Table
    keys: TableKeys


class Forgetting:
    """The deletion of what one owner has. `forgotten` counts it while it goes on."""

    def __init__(self, owner: str, tables: Tables, pause: Callable[[float], object]) -> None:
        self._owner = owner
        self._tables = tables
        self._pause = pause
        self.forgotten = Forgotten()

    def run(self) -> None:
        """Delete everything. Keys go first, so that nothing new comes while the rest is deleted.

        Raises AdminError when there is no end of it.
        """
        self._delete_keys()
        self._delete_listed_tasks()
        self._delete_unlisted_items()
        self._delete_listed_tasks()
        self._delete_rate_bucket()

    def _delete_keys(self) -> None:
        keys = self._tables.keys
        for key_id in [key.key_id for key in keys.all() if owner_of_caller(key.caller) == self._owner]:
            keys.revoke(key_id)
            self.forgotten.keys += 1

    def _delete_listed_tasks(self) -> None:
        """Delete tasks until the index shows none."""
        pauses = 0
        while listed := self._listed():
            if sum(map(self._delete_task, listed)):
                pauses = 0
                continue
            if pauses == MAX_PAUSES:
                raise AdminError("the index keeps showing tasks that are deleted; run it again in a while")
            pauses += 1
            self._pause(PAUSE_SECONDS)

    def _delete_unlisted_items(self) -> None:
        # A task's items lie together, and all of them go when the first one is met.
        last = ""
        for item in self._tables.scan({"ProjectionExpression": "task_id", **self._owned()}):
            task_id = item["task_id"]["S"]
            if task_id != last:
                self._delete_task(task_id)
                last = task_id

    def _delete_rate_bucket(self) -> None:
        callers = self._tables.callers
        key = {"subject": {"S": self._owner}, "entry": {"S": RATE}}
        if callers.get(key) is not None:
            callers.delete(key)
            self.forgotten.rate_buckets += 1

    def _listed(self) -> list[str]:
        """The ids of the first tasks that the index shows."""
        pages = self._tables.tasks.pages(
            IndexName=INDEX,
            KeyConditionExpression="#owner = :owner",
            ExpressionAttributeNames={"#owner": "owner"},
            ExpressionAttributeValues={":owner": {"S": self._owner}},
            Limit=PAGE,
        )
        return [entry["task_id"]["S"] for entry in next(pages)["Items"]]

    def _delete_task(self, task_id: str) -> bool:
        """Delete all items of a task, those too that are written meanwhile; False where there are none."""
        found = False
        while left := self._items_of(task_id):
            found = True
            self._delete_items(task_id, left)
        return found

    def _delete_items(self, task_id: str, left: Sequence[Item]) -> None:
        beside = [item["entry"]["S"] for item in left if item["entry"]["S"] != items.HEAD]
        self._tables.tasks.delete_all([items.key(task_id, entry) for entry in beside])
        self.forgotten.markers += sum(entry.startswith(NOTE) for entry in beside)
        for head in left:
            if head["entry"]["S"] == items.HEAD:
                self._tables.tasks.delete(items.key(task_id, items.HEAD))
                # A direct reply has no state.
                self.forgotten.tasks += "state" in head
                self.forgotten.markers += "state" not in head

    def _items_of(self, task_id: str) -> list[Item]:
        """The items of a task that are the owner's: their entries, and the head's state."""
        owned = self._owned(task_id)
        owned["ExpressionAttributeNames"] |= {"#state": "state"}
        found = self._tables.tasks.query(
            ConsistentRead=True,
            KeyConditionExpression="task_id = :task_id",
            ProjectionExpression="entry, #state",
            **owned,
        )
        return list(found)

    def _owned(self, task_id: str | None = None) -> dict[str, Any]:
        """The arguments that leave other owners' items out, in one task or everywhere."""
        return {
            "FilterExpression": "#owner = :owner",
            "ExpressionAttributeNames": {"#owner": "owner"},
            "ExpressionAttributeValues": {
                ":owner": {"S": self._owner},
                **({} if task_id is None else {":task_id": {"S": task_id}}),
            },
        }
