"""The embedded DynamoDB's streams, where moto's own are not enough."""

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from local.deployment import Table
from local.queues import client
from local.shards import Shard
from local.tables import create_missing_tables
from local.template import Value

NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


class Items:
    """A table of this test's own, and its stream."""

    def __init__(self, endpoint: str) -> None:
        name = f"items-{next(NUMBERS)}"
        creation: dict[str, Value] = {
            "TableName": name,
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
            "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        }
        create_missing_tables(endpoint, [Table(name, creation, None)])
        self._dynamodb, self._streams = client("dynamodb", endpoint), client("dynamodbstreams", endpoint)
        self._name = name
        self._stream = self._dynamodb.describe_table(TableName=name)["Table"]["LatestStreamArn"]

    def put(self, key: str) -> None:
        self._dynamodb.put_item(TableName=self._name, Item={"id": {"S": key}})

    def begin(self, kind: str = "TRIM_HORIZON", **number: str) -> str:
        (shard,) = self._streams.describe_stream(StreamArn=self._stream)["StreamDescription"]["Shards"]
        found: str = self._streams.get_shard_iterator(
            StreamArn=self._stream, ShardId=shard["ShardId"], ShardIteratorType=kind, **number
        )["ShardIterator"]
        return found

    def read(self, iterator: str, limit: int = 1000) -> tuple[list[Any], str]:
        answer = self._streams.get_records(ShardIterator=iterator, Limit=limit)
        return answer["Records"], answer["NextShardIterator"]


def keys(records: list[Any]) -> str:
    return "".join(record["dynamodb"]["Keys"]["id"]["S"] for record in records)


def test_records_are_read_in_order_from_where_a_reader_is(dynamodb: str) -> None:
    items = Items(dynamodb)
    for key in "abcde":
        items.put(key)
    first, iterator = items.read(items.begin(), limit=2)
    then, iterator = items.read(iterator)
    assert (keys(first), keys(then)) == ("ab", "cde")
    items.put("f")
    assert keys(items.read(iterator)[0]) == "f"


def test_an_iterator_may_be_used_again(dynamodb: str) -> None:
    items = Items(dynamodb)
    items.put("a")
    iterator = items.begin()
    assert [keys(items.read(iterator)[0]) for _ in range(2)] == ["a", "a"]


def test_a_reader_begins_where_it_wants_to(dynamodb: str) -> None:
    items = Items(dynamodb)
    for key in "abc":
        items.put(key)
    number = items.read(items.begin())[0][1]["dynamodb"]["SequenceNumber"]
    assert keys(items.read(items.begin("AT_SEQUENCE_NUMBER", SequenceNumber=number))[0]) == "bc"
    assert keys(items.read(items.begin("AFTER_SEQUENCE_NUMBER", SequenceNumber=number))[0]) == "c"
    latest = items.begin("LATEST")
    items.put("d")
    assert keys(items.read(latest)[0]) == "d"


class Records:
    """A shard without a database around it, that keeps three records in any case and ten at most."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("local.shards.KEPT", 3)
        monkeypatch.setattr("local.shards.MOST", 10)
        table: Any = SimpleNamespace(
            stream_specification={"StreamViewType": "NEW_IMAGE"},
            lambda_event_source_mappings={},
            hash_key_attr="id",
            range_key_attr=None,
        )
        self._shard = Shard("123456789012", table)
        self._first = self._shard.starting_sequence_number

    def add(self, count: int) -> None:
        key = SimpleNamespace(to_json=lambda: {"S": "1"})
        item: Any = SimpleNamespace(hash_key=key, to_json=lambda: {"Attributes": {}})
        for _ in range(count):
            self._shard.add(None, item)

    def passed(self, reader: str, index: int, now: float = 0) -> None:
        self._shard.passed(reader, self._first + index, now)

    def held(self, start: int = 0) -> list[int]:
        records = self._shard.get(self._first + start, 1000)
        return [int(record["dynamodb"]["SequenceNumber"]) - self._first for record in records]


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Records:
    return Records(monkeypatch)


def test_what_is_unread_is_kept(records: Records) -> None:
    records.add(8)
    assert records.held() == list(range(8))


def test_what_has_been_read_is_forgotten_but_for_the_newest(records: Records) -> None:
    records.add(8)
    records.passed("one", 4)
    assert records.held() == [4, 5, 6, 7]
    records.passed("one", 8)
    assert records.held() == [5, 6, 7]


def test_numbers_go_on_behind_what_is_forgotten(records: Records) -> None:
    records.add(8)
    records.passed("one", 8)
    records.add(2)
    assert records.held(8) == [8, 9]


def test_the_slowest_reader_decides(records: Records) -> None:
    records.add(8)
    records.passed("slow", 1)
    records.passed("fast", 8)
    assert records.held() == list(range(1, 8))


def test_a_reader_that_is_gone_is_not_waited_for(records: Records) -> None:
    records.add(8)
    records.passed("gone", 1, now=0)
    records.passed("here", 6, now=301)
    assert records.held() == [5, 6, 7]


def test_the_oldest_is_forgotten_where_there_are_too_many(records: Records) -> None:
    records.add(25)
    assert records.held() == list(range(15, 25))
