"""Counts what a function asks of DynamoDB: its calls, and their read and write units by the rules of `units`.

The meter listens to the client's events. Before and after each call it reads the items concerned itself, by another
client, so that sizes are those of the items that were really there. Queries that only count are left out: see `counts`.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.units import Index, indexes, item_size, key_names, read_units, refused_write_units, write_units

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bench.units import Item

NOT_FILTERED = (
    "TableName",
    "IndexName",
    "ConsistentRead",
    "ScanIndexForward",
    "Limit",
    "ExclusiveStartKey",
    "KeyConditionExpression",
)
"""The arguments of a query that decide what it reads; the others decide what of that it returns."""

REFUSALS = {"ConditionalCheckFailedException", "TransactionCanceledException"}

TRANSACTION_WRITES = 2
"""How often each item of a transaction is written: to prepare it, and to commit it."""

STORED_OVERHEAD_BYTES = 100
"""What DynamoDB adds to an item, and to its entry in an index, in storage."""


@dataclass
class Usage:
    """What an operation has asked for so far."""

    calls: int = 0
    write_units: float = 0
    read_units: float = 0
    written_bytes: int = 0
    """The sizes of what was written, index entries included."""


@dataclass(frozen=True)
class Table:
    """The schema of a table."""

    key: tuple[str, ...]
    indexes: list[Index]


class Meter:
    """A meter for the DynamoDB clients that it is attached to."""

    def __init__(self, client: Any) -> None:
        """Args: client is one that is not metered itself."""
        self._client = client
        self._usage: Usage | None = None
        self._tables: dict[str, Table] = {}

    @contextmanager
    def measuring(self) -> Iterator[Usage]:
        """Count from here to the end of the block."""
        usage = self._usage = Usage()
        yield usage
        self._usage = None

    def attach(self, client: Any) -> None:
        """Count what this client does."""
        client.meta.events.register("before-parameter-build.dynamodb", self._before)
        client.meta.events.register("after-call.dynamodb", self._after)

    def _before(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        if self._usage is None:
            return
        context["metered"] = params
        context["items_before"] = [self._item(table, item) for table, item in written(model.name, params)]

    def _after(self, parsed: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        if self._usage is None:
            return
        params, usage = context["metered"], self._usage
        if params.get("Select") == "COUNT":
            return
        usage.calls += 1
        usage.read_units += self._read(model.name, params)
        refused = parsed.get("Error", {}).get("Code") in REFUSALS
        times = TRANSACTION_WRITES if model.name == "TransactWriteItems" else 1
        for (table, item), old in zip(written(model.name, params), context["items_before"], strict=True):
            if refused:
                usage.write_units += times * refused_write_units(old)
                continue
            new, table_indexes = self._item(table, item), self._table(table).indexes
            entries = [new, *(index.entry(new) for index in table_indexes)]
            usage.write_units += times * write_units(old, new, table_indexes)
            usage.written_bytes += sum(item_size(each or {}) for each in entries)

    def _read(self, operation: str, params: Mapping[str, Any]) -> float:
        match operation:
            case "GetItem":
                return self._read_item(params["TableName"], params["Key"], params)
            case "BatchGetItem":
                asked = params["RequestItems"].items()
                return sum(self._read_item(table, key, each) for table, each in asked for key in each["Keys"])
            case "Query":
                items = self._client.query(**without_filter(params))["Items"]
                return read_units(sum(map(item_size, items)), consistent=params.get("ConsistentRead", False))
            case _:
                return 0

    def _read_item(self, table: str, key: Item, asked: Mapping[str, Any]) -> float:
        return read_units(item_size(self._item(table, key) or {}), consistent=asked.get("ConsistentRead", False))

    def _item(self, table: str, item: Item) -> Item | None:
        """The item with the key of this one, as it stands."""
        key = {name: item[name] for name in self._table(table).key}
        found: Item | None = self._client.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item")
        return found

    def _table(self, name: str) -> Table:
        if name not in self._tables:
            description = self._client.describe_table(TableName=name)["Table"]
            self._tables[name] = Table(key_names(description["KeySchema"]), indexes(description))
        return self._tables[name]


def stored_bytes(client: Any, table: str, task_id: str) -> int:
    """What all items of a task take up in storage, index entries included: each has so many bytes more than its own."""
    table_indexes = indexes(client.describe_table(TableName=table)["Table"])
    found = client.query(
        TableName=table,
        KeyConditionExpression="task_id = :task_id",
        ExpressionAttributeValues={":task_id": {"S": task_id}},
    )["Items"]
    entries = [entry for item in found for index in table_indexes if (entry := index.entry(item))]
    return sum(item_size(each) + STORED_OVERHEAD_BYTES for each in (*found, *entries))


def written(operation: str, params: Mapping[str, Any]) -> list[tuple[str, Item]]:
    """What a call writes: the table of each item, and the item or its key."""
    match operation:
        case "PutItem":
            return [(params["TableName"], params["Item"])]
        case "UpdateItem" | "DeleteItem":
            return [(params["TableName"], params["Key"])]
        case "BatchWriteItem":
            return [
                (table, request["PutRequest"]["Item"] if "PutRequest" in request else request["DeleteRequest"]["Key"])
                for table, requests in params["RequestItems"].items()
                for request in requests
            ]
        case "TransactWriteItems":
            return [
                (write["TableName"], write["Item"] if kind == "Put" else write["Key"])
                for each in params["TransactItems"]
                for kind, write in each.items()
            ]
        case "GetItem" | "BatchGetItem" | "Query":
            return []
        case _:
            raise ValueError(f"the meter does not know {operation}")


def without_filter(query: Mapping[str, Any]) -> dict[str, Any]:
    """The query that returns all that this one reads, with no name or value that it does not use."""
    arguments = {name: query[name] for name in NOT_FILTERED if name in query}
    used = set(re.findall(r"[#:]\w+", query["KeyConditionExpression"]))
    for kind in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
        if kept := {name: value for name, value in query.get(kind, {}).items() if name in used}:
            arguments[kind] = kept
    return arguments
