"""DynamoDB's price list in units, by its published rules. Pure: items in, units out.

The rules are those of "DynamoDB item sizes and formats", "Read and write operations" and "Using global secondary
indexes" in Amazon's Developer Guide. Items and keys are as the low-level client has them: {"task_id": {"S": "…"}}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

Item = Mapping[str, Any]

WRITE_BYTES = 1024
READ_BYTES = 4096
QUERY_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Index:
    """A global secondary index: its key, and what else is in its entries (None: everything)."""

    key: tuple[str, ...]
    projected: frozenset[str] | None

    def entry(self, item: Item | None) -> Item | None:
        """The entry of an item in this index; None where the item lacks a part of the index's key."""
        if item is None or any(name not in item for name in self.key):
            return None
        return {name: value for name, value in item.items() if self.projected is None or name in self.projected}


def indexes(table: Mapping[str, Any]) -> list[Index]:
    """The global secondary indexes of a table, as DescribeTable tells of them."""
    table_key = key_names(table["KeySchema"])
    found = []
    for index in table.get("GlobalSecondaryIndexes", []):
        key = key_names(index["KeySchema"])
        projection = index["Projection"]
        everything = projection["ProjectionType"] == "ALL"
        projected = frozenset((*table_key, *key, *projection.get("NonKeyAttributes", [])))
        found.append(Index(key, None if everything else projected))
    return found


def key_names(key_schema: Sequence[Mapping[str, str]]) -> tuple[str, ...]:
    """The names of a key's attributes."""
    return tuple(key["AttributeName"] for key in key_schema)


def item_size(item: Item) -> int:
    """The bytes of an item: its attributes' names and values."""
    return sum(len(name.encode()) + value_size(value) for name, value in item.items())


def value_size(value: Item) -> int:
    """The bytes of a value."""
    ((kind, content),) = value.items()
    if kind not in SIZES:
        raise ValueError(f"DynamoDB has no type {kind}")
    return SIZES[kind](content)


def number_size(number: str) -> int:
    """The bytes of a number: one for two significant digits, one more, and one for a minus."""
    mantissa = number.lstrip("-").lower().partition("e")[0]
    whole, _, fraction = mantissa.partition(".")
    fraction = fraction.rstrip("0")
    digits = (whole + fraction).lstrip("0")
    significant = digits if fraction else digits.rstrip("0")
    return ceil(len(significant) / 2) + 1 + number.startswith("-")


SIZES: Mapping[str, Callable[[Any], int]] = {
    "S": lambda text: len(text.encode()),
    "B": len,
    "N": number_size,
    "BOOL": lambda _: 1,
    "NULL": lambda _: 1,
    "SS": lambda texts: sum(len(text.encode()) for text in texts),
    "BS": lambda binaries: sum(map(len, binaries)),
    "NS": lambda numbers: sum(map(number_size, numbers)),
    "L": lambda elements: 3 + sum(1 + value_size(element) for element in elements),
    "M": lambda members: 3 + sum(1 + len(name.encode()) + value_size(member) for name, member in members.items()),
}
"""The size of a value, by its type's name on the wire."""


def write_units(old: Item | None, new: Item | None, table_indexes: Sequence[Index]) -> int:
    """The units of one write: of the table's item, and of each index whose entry the write touches."""
    return _table_units(old, new) + sum(_index_units(index, old, new) for index in table_indexes)


def refused_write_units(current: Item | None) -> int:
    """The units of a write whose condition does not hold: those of the item in its way."""
    return _table_units(current, None)


def read_units(size: int, *, consistent: bool) -> float:
    """The units of one read: of an item, or of all that a query reads together."""
    units = max(1, ceil(size / READ_BYTES))
    return units if consistent else units / 2


def query_calls(size: int, entries: int) -> int:
    """The calls of a query that reads so many entries of a size: each ends after a megabyte."""
    return max(1, ceil(entries * size / QUERY_BYTES))


def query_read_units(size: int, entries: int, *, consistent: bool) -> float:
    """The units of all calls of such a query."""
    whole, rest = divmod(entries * size, QUERY_BYTES)
    last = read_units(rest, consistent=consistent) if rest or not whole else 0
    return whole * read_units(QUERY_BYTES, consistent=consistent) + last


def _table_units(old: Item | None, new: Item | None) -> int:
    size = max(item_size(item) if item else 0 for item in (old, new))
    return max(1, ceil(size / WRITE_BYTES))


def _index_units(index: Index, old: Item | None, new: Item | None) -> int:
    before, after = index.entry(old), index.entry(new)
    if before == after:
        return 0
    if before is None or after is None:
        return _table_units(before, after)
    if all(before[name] == after[name] for name in index.key):
        return _table_units(before, after)
    # The entry moves: it is deleted in one place and put into another.
    return _table_units(before, None) + _table_units(None, after)
