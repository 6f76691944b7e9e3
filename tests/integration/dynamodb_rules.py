"""What DynamoDB demands of a request and moto lets pass: each test's calls are held to it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

HASH_BYTES: Final = 2048
RANGE_BYTES: Final = 1024
ITEM_BYTES: Final = 400 * 1024
BATCH_BYTES: Final = 16 * 1024 * 1024
KEY_BYTES: Final = {
    "task_id": HASH_BYTES,
    "subject": HASH_BYTES,
    "owner": HASH_BYTES,
    "entry": RANGE_BYTES,
    "status_order": RANGE_BYTES,
}
"""The attributes that are keys of a table or an index, and how long they may be."""

EXPRESSIONS: Final = (
    "ConditionExpression",
    "FilterExpression",
    "KeyConditionExpression",
    "ProjectionExpression",
    "UpdateExpression",
)
TOKEN: Final = re.compile(r"[#:]?[A-Za-z_][A-Za-z0-9_]*")
OPERATORS: Final = frozenset(
    [
        "AND",
        "OR",
        "NOT",
        "IN",
        "BETWEEN",
        "SET",
        "REMOVE",
        "ADD",
        "DELETE",
        "attribute_not_exists",
        "attribute_exists",
        "if_not_exists",
        "size",
    ]
)
BETWEEN: Final = re.compile(r"(\w+) BETWEEN (:\w+) AND (:\w+)")
AT_LEAST: Final = re.compile(r"(\w+) >= (:\w+)")

Parameters = Mapping[str, Any]


class BrokenRuleError(AssertionError):
    """DynamoDB would have refused a request."""


def obey(client: Any) -> None:
    """Hold all calls of a client to the rules."""
    client.meta.events.register("provide-client-params.dynamodb", _check)


def _check(params: Parameters, model: Any, **_rest: Any) -> None:
    broken = list(_broken(model.name, params))
    if broken:
        raise BrokenRuleError(f"{model.name}: {'; '.join(broken)}")


def _broken(operation: str, params: Parameters) -> Iterator[str]:
    yield from _broken_expressions(params)
    yield from _broken_keys([params.get("Key", {}), params.get("Item", {}), params.get("ExclusiveStartKey", {})])
    yield from _broken_items([params.get("Item", {})])
    if operation == "Query":
        yield from _broken_query(params)
    for write in params.get("TransactItems", []):
        for arguments in write.values():
            yield from _broken("Write", arguments)
    if operation in {"BatchGetItem", "BatchWriteItem"}:
        for requests in params["RequestItems"].values():
            yield from _broken_batch(operation, requests)


def _broken_expressions(params: Parameters) -> Iterator[str]:
    tokens = {token for name in EXPRESSIONS for token in TOKEN.findall(params.get(name, ""))}
    for kind, mark in (("ExpressionAttributeNames", "#"), ("ExpressionAttributeValues", ":")):
        given, used = set(params.get(kind, {})), {token for token in tokens if token.startswith(mark)}
        if kind in params and not given:
            yield f"{kind} is empty"
        if given != used:
            yield f"{kind}: unused {sorted(given - used)}, undefined {sorted(used - given)}"
    plain = {token for token in tokens if token[0] not in "#:"} - OPERATORS
    if reserved := {token for token in plain if token.upper() in ReservedKeywords.get_reserved_keywords()}:
        yield f"reserved words {sorted(reserved)}"


def _broken_keys(items: Iterable[Parameters]) -> Iterator[str]:
    for item in items:
        for name, most in KEY_BYTES.items():
            length = len(item[name]["S"].encode()) if name in item else 1
            if not 0 < length <= most:
                yield f"{name} has {length} bytes"


def _broken_items(items: Iterable[Parameters]) -> Iterator[str]:
    for item in items:
        if (size := _size(item)) > ITEM_BYTES:
            yield f"an item of {size} bytes"


def _broken_query(params: Parameters) -> Iterator[str]:
    condition, values = params["KeyConditionExpression"], params["ExpressionAttributeValues"]
    start = params.get("ExclusiveStartKey", {})
    if params.get("Limit", 1) < 1:
        yield f"a limit of {params['Limit']}"
    for _, lower, upper in BETWEEN.findall(condition):
        if values[lower]["S"] > values[upper]["S"]:
            yield f"{values[lower]['S']} is behind {values[upper]['S']}"
    for name, least in AT_LEAST.findall(condition):
        if name in start and start[name]["S"] < values[least]["S"]:
            yield f"the starting key {start[name]['S']} is outside of the query, which begins at {values[least]['S']}"
    if "IndexName" in params:
        if params.get("ConsistentRead"):
            yield "a consistent read of an index"
        if start and set(start) != {"task_id", "entry", "owner", "status_order"}:
            yield f"a starting key of {sorted(start)}"


def _broken_batch(operation: str, requests: Any) -> Iterator[str]:
    if operation == "BatchGetItem":
        keys, most = requests["Keys"], 100
    else:
        keys, most = (
            [each["PutRequest"]["Item"] if "PutRequest" in each else each["DeleteRequest"]["Key"] for each in requests],
            25,
        )
        yield from _broken_items(keys)
        if sum(map(_size, keys)) > BATCH_BYTES:
            yield "more than 16 MB"
    yield from _broken_keys(keys)
    if not 0 < len(keys) <= most:
        yield f"{len(keys)} items"
    names = [json.dumps([key.get(name) for name in ("task_id", "subject", "entry")]) for key in keys]
    if len(set(names)) < len(names):
        yield "an item twice"


def _size(item: Parameters) -> int:
    return sum(len(name) + _value_size(value) for name, value in item.items())


def _value_size(value: Parameters) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "L":
            return 3 + sum(1 + _value_size(each) for each in content)
        case "BOOL":
            return 1
        case _:
            return len(content)
