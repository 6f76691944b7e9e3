"""Holding down how many things of a kind a task has, exactly, also when many come at once.

One item beside the head is their register: an attribute for each thing that has a place, and their number. A thing
takes a place before it is put, and leaves it after it was deleted. Who dies in between leaves a place that nobody uses;
it is cleared when it is needed.

A place is had by one generation of its thing, which is another one each time that the thing is put. So of two that
meet, one deleting a thing and one putting it anew (time runs down):

    delete the thing, which is generation 1
                                                 take its place for generation 2
    leave the place, if it is generation 1's     put the thing, generation 2
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from a2a_lambda import items
from a2a_lambda.tables import Item, RefusedError, Table, number
from a2a_lambda.task import Head

ATTEMPTS: Final = 3

UNUSED_MS: Final = 60_000
"""After so long nobody is still about to put a thing that has taken a place."""

OWN: Final = frozenset({"task_id", "entry", "owner", "begun_at", "expires_at", "taken"})
"""The attributes of a register that are no places."""


class Places:
    """The places for one kind of things. Every call may raise UnavailableError."""

    def __init__(self, table: Table, register: str, *, most: int, clock: Callable[[], int]) -> None:
        """Args: the register's entry; how many places there are; the time in milliseconds since the epoch."""
        self._table = table
        self._register = register
        self._most = most
        self._clock = clock

    def take(self, head: Head, name: str, generation: str, *, used: Callable[[str, str], set[str]]) -> bool:
        """Find a place for a generation of a thing, and tell whether there is one: its own, if it has one already.

        Args:
            head: the task, kept or about to be. A register with another beginning was left by an earlier task with
                its id, which is gone.
            name: the thing's.
            generation: one that was never given before.
            used: returns the names of an owner's task's things that there are.
        """
        for _ in range(ATTEMPTS):
            try:
                self._add(head, name, generation)
            except RefusedError as refused:
                register = refused.current
            else:
                return True
            if register["begun_at"] != number(head.created_at):
                self._begin(head)
            elif name in register:
                if self._renew(head, name, generation):
                    return True
            elif not self._clear(head, register, used(head.owner, head.task_id)):
                return False
        return False

    def leave(self, owner: str, task_id: str, name: str, generation: str) -> None:
        """Clear the place of a generation of a thing, unless a later one has it."""
        same_owner, same_generation = "#owner = :owner", "#name.generation = :generation"
        with suppress(RefusedError):
            self._table.update(
                items.key(task_id, self._register),
                UpdateExpression="SET taken = taken - :one REMOVE #name",
                ConditionExpression=f"{same_owner} AND {same_generation}",
                ExpressionAttributeNames={"#owner": "owner", "#name": name},
                ExpressionAttributeValues={
                    ":owner": {"S": owner},
                    ":generation": {"S": generation},
                    ":one": number(1),
                },
            )

    def _add(self, head: Head, name: str, generation: str) -> None:
        """Give a thing a place that has none.

        Raises:
            RefusedError: it has one, there is none left, or the register is another task's.
        """
        is_first, same_owner, same_task = "attribute_not_exists(task_id)", "#owner = :owner", "begun_at = :begun_at"
        has_none, is_left = "attribute_not_exists(#name)", "taken < :most"
        self._table.update(
            items.key(head.task_id, self._register),
            UpdateExpression=(
                "SET #name = :place, taken = if_not_exists(taken, :none) + :one, "
                "#owner = :owner, begun_at = :begun_at, expires_at = :expires_at"
            ),
            ConditionExpression=f"{is_first} OR ({same_owner} AND {same_task} AND {has_none} AND {is_left})",
            ExpressionAttributeNames={"#name": name, "#owner": "owner"},
            ExpressionAttributeValues={
                ":place": self._place(generation),
                ":none": number(0),
                ":one": number(1),
                ":most": number(self._most),
                **{f":{attribute}": value for attribute, value in _identity(head).items()},
            },
        )

    def _renew(self, head: Head, name: str, generation: str) -> bool:
        """Give the place of a thing to another generation, and tell whether it still had one."""
        same_owner, has_place = "#owner = :owner", "attribute_exists(#name)"
        try:
            self._table.update(
                items.key(head.task_id, self._register),
                UpdateExpression="SET #name = :place",
                ConditionExpression=f"{same_owner} AND {has_place}",
                ExpressionAttributeNames={"#name": name, "#owner": "owner"},
                ExpressionAttributeValues={":place": self._place(generation), ":owner": {"S": head.owner}},
            )
        except RefusedError:
            return False
        return True

    def _begin(self, head: Head) -> None:
        """Put an empty register in the place of one that an earlier task has left."""
        same_owner, other_task = "#owner = :owner", "begun_at <> :begun_at"
        identity = _identity(head)
        with suppress(RefusedError):
            self._table.put(
                {**items.key(head.task_id, self._register), **identity, "taken": number(0)},
                ConditionExpression=f"{same_owner} AND {other_task}",
                ExpressionAttributeNames={"#owner": "owner"},
                ExpressionAttributeValues={":owner": identity["owner"], ":begun_at": identity["begun_at"]},
            )

    def _clear(self, head: Head, register: Item, used: set[str]) -> bool:
        """Clear the places that nobody uses, and tell whether there were any."""
        since = self._clock() - UNUSED_MS
        taken = {name: place["M"] for name, place in register.items() if name not in OWN}
        unused = {
            name: place["generation"]["S"]
            for name, place in taken.items()
            if name not in used and int(place["taken_at"]["N"]) < since
        }
        for name, generation in unused.items():
            self.leave(head.owner, head.task_id, name, generation)
        return bool(unused)

    def _place(self, generation: str) -> Item:
        return {"M": {"generation": {"S": generation}, "taken_at": number(self._clock())}}


def _identity(head: Head) -> dict[str, Any]:
    """Return whose a register is."""
    return {
        "owner": {"S": head.owner},
        "begun_at": number(head.created_at),
        "expires_at": number(items.beside_expiry(head)),
    }
