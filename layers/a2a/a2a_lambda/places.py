"""Holding down how many things of a kind a task has, exactly, also when many come at once.

One item beside the head is their register: an attribute for each thing that has a place, with the time when it took
it, and their number. A thing takes a place before it is put, and leaves it after it was deleted. Who dies in between
leaves a place that nobody uses; it is cleared when it is needed.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from a2a_lambda import items
from a2a_lambda.tables import Item, RefusedError, Table, number

ATTEMPTS: Final = 3

UNUSED_MS: Final = 60_000
"""After so long nobody is still about to put a thing that has taken a place."""

OWN: Final = frozenset({"task_id", "entry", "owner", "expires_at", "taken"})
"""The attributes of a register that are no places."""


class Places:
    """The places for one kind of things. Every call may raise UnavailableError."""

    def __init__(self, table: Table, register: str, *, most: int, clock: Callable[[], int]) -> None:
        """Args: the register's entry; how many places there are; the time in milliseconds since the epoch."""
        self._table = table
        self._register = register
        self._most = most
        self._clock = clock

    def take(
        self, owner: str, task_id: str, name: str, *, expires_at: int, used: Callable[[str, str], set[str]]
    ) -> bool:
        """Find a place for a thing, and tell whether there is one. It may have one already.

        Args:
            owner: whose the task is.
            task_id: which task it is.
            name: the thing's.
            expires_at: the expiry of what lies beside the task. A register with another one was left by an earlier
                task with this id, which is gone.
            used: returns the names of an owner's task's things that there are.
        """
        for _ in range(ATTEMPTS):
            try:
                self._add(owner, task_id, name, expires_at)
            except RefusedError as refused:
                register = refused.current
            else:
                return True
            if register["expires_at"] != number(expires_at):
                self._begin(owner, task_id, expires_at)
            elif name in register:
                return True
            elif not self._clear(owner, task_id, register, used(owner, task_id)):
                return False
        return False

    def leave(self, owner: str, task_id: str, name: str) -> None:
        """Clear a thing's place, if it has one."""
        same_owner, has_place = "#owner = :owner", "attribute_exists(#name)"
        with suppress(RefusedError):
            self._table.update(
                items.key(task_id, self._register),
                UpdateExpression="SET taken = taken - :one REMOVE #name",
                ConditionExpression=f"{same_owner} AND {has_place}",
                ExpressionAttributeNames={"#owner": "owner", "#name": name},
                ExpressionAttributeValues={":owner": {"S": owner}, ":one": number(1)},
            )

    def _add(self, owner: str, task_id: str, name: str, expires_at: int) -> None:
        """Give a thing a place that has none.

        Raises:
            RefusedError: it has one, there is none left, or the register is another task's.
        """
        is_first, same_owner, same_task = "attribute_not_exists(task_id)", "#owner = :owner", "expires_at = :expires_at"
        has_none, is_left = "attribute_not_exists(#name)", "taken < :most"
        self._table.update(
            items.key(task_id, self._register),
            UpdateExpression=(
                "SET #name = :now, taken = if_not_exists(taken, :none) + :one, "
                "#owner = :owner, expires_at = :expires_at"
            ),
            ConditionExpression=f"{is_first} OR ({same_owner} AND {same_task} AND {has_none} AND {is_left})",
            ExpressionAttributeNames={"#name": name, "#owner": "owner"},
            ExpressionAttributeValues={
                ":now": number(self._clock()),
                ":none": number(0),
                ":one": number(1),
                ":most": number(self._most),
                ":owner": {"S": owner},
                ":expires_at": number(expires_at),
            },
        )

    def _begin(self, owner: str, task_id: str, expires_at: int) -> None:
        """Put an empty register in the place of one that an earlier task has left."""
        same_owner, other_task = "#owner = :owner", "expires_at <> :expires_at"
        kept = {"owner": {"S": owner}, "expires_at": number(expires_at)}
        with suppress(RefusedError):
            self._table.put(
                {**items.key(task_id, self._register), **kept, "taken": number(0)},
                ConditionExpression=f"{same_owner} AND {other_task}",
                ExpressionAttributeNames={"#owner": "owner"},
                ExpressionAttributeValues={":owner": kept["owner"], ":expires_at": kept["expires_at"]},
            )

    def _clear(self, owner: str, task_id: str, register: Item, used: set[str]) -> bool:
        """Clear the places that nobody uses, and tell whether there were any."""
        since = self._clock() - UNUSED_MS
        taken = {name: int(value["N"]) for name, value in register.items() if name not in OWN}
        unused = [name for name, taken_at in taken.items() if name not in used and taken_at < since]
        for name in unused:
            self.leave(owner, task_id, name)
        return bool(unused)
