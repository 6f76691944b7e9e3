"""A table's stream as Lambda reads it: shard by shard, record by record, as events for a function.

A gateway begins with the oldest record that the stream holds. Two gateways with the same
database read the same stream, and each hands every record on: the functions behind it must
bear to see a record again, as they must in AWS.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore import exceptions

from local import batches
from local.delivery import Delivery
from local.patterns import matches_any
from local.template import function_arn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from local.batches import Record
    from local.functions import LoadedFunction
    from local.mappings import StreamMapping

LIMIT = 1_000


class StreamReader:
    """Reads the shards of a stream, one after the other, and those that come of a shard after that one."""

    def __init__(self, client: Any, arn: str, starts_at: str) -> None:
        self.arn = arn
        self._client = client
        self._starts_at = starts_at
        self._iterators: dict[str, str] = {}
        self._last: dict[str, str] = {}
        self._finished: set[str] = set()

    def read(self) -> tuple[str, list[dict[str, Any]]]:
        """A shard's id and its next records, as the API gives them; no records where there are none for now.

        What was read before counts as dealt with.
        """
        if not self._iterators:
            self._open()
        for shard in list(self._iterators):
            if records := self._read(shard):
                return shard, records
        return "", []

    def _read(self, shard: str) -> list[dict[str, Any]]:
        try:
            answer = self._client.get_records(ShardIterator=self._iterators.pop(shard), Limit=LIMIT)
        except exceptions.ClientError:
            # The iterator is too old, perhaps. The next one goes by the last record.
            self._iterators.clear()
            raise
        records: list[dict[str, Any]] = _part(answer, "Records")
        if records:
            self._last[shard] = records[-1]["dynamodb"]["SequenceNumber"]
        if following := answer.get("NextShardIterator"):
            self._iterators[shard] = following
        else:
            self._finished.add(shard)
            self._iterators.clear()
        return records

    def _open(self) -> None:
        shards = _part(self._client.describe_stream(StreamArn=self.arn), "StreamDescription")["Shards"]
        unfinished = {shard["ShardId"] for shard in shards} - self._finished
        for shard in shards:
            name = shard["ShardId"]
            if name in unfinished and shard.get("ParentShardId") not in unfinished:
                answer = self._client.get_shard_iterator(StreamArn=self.arn, ShardId=name, **self._place(name))
                self._iterators[name] = _part(answer, "ShardIterator")

    def _place(self, shard: str) -> dict[str, str]:
        if shard in self._last:
            return {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": self._last[shard]}
        return {"ShardIteratorType": self._starts_at}


def _part(answer: dict[str, Any], name: str) -> Any:
    """A part of an answer that every answer has, unless the database ended while it was sent.

    Raises IncompleteReadError.
    """
    if name not in answer:
        raise exceptions.IncompleteReadError(actual_bytes=0, expected_bytes=len(name))
    return answer[name]


class StreamSource:
    """Invokes a function with the records of a stream that its mapping wants."""

    def __init__(
        self,
        reader: StreamReader,
        mapping: StreamMapping,
        function: LoadedFunction,
        send_failure: Callable[[str], None],
        delivered: Callable[[], None],
    ) -> None:
        """Args: where notes on records that are given up go, and who is told that records were delivered."""
        self._reader = reader
        self._mapping = mapping
        self._function = function
        self._send_failure = send_failure
        self._delivered = delivered

    def look(self) -> bool:
        """Deliver the next records, and tell whether there were any."""
        shard, read = self._reader.read()
        events = (event_record(record, self._reader.arn) for record in read)
        wanted = [event for event in events if matches_any(self._mapping.patterns, event)]

        def give_up(records: Sequence[Record], attempts: int) -> None:
            self._send_failure(failure_note(self._function.function.name, self._reader.arn, shard, records, attempts))

        delivery = Delivery(self._attempt, give_up, time.sleep, self._mapping)
        for start in range(0, len(wanted), self._mapping.batch_size):
            delivery.deliver(wanted[start : start + self._mapping.batch_size])
            self._delivered()
        return bool(read)

    def _attempt(self, records: Sequence[Record]) -> int:
        numbers = [_number(record) for record in records]
        batch = dict(zip(numbers, records, strict=True))
        failed = batches.invoke(self._function, batch, reports=self._mapping.reports)
        return next((index for index, number in enumerate(numbers) if number in failed), len(numbers))


def event_record(record: Mapping[str, Any], arn: str) -> Record:
    """A record of the API as it stands in a function's event.

    https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
    """
    change = record["dynamodb"]
    changed_at = int(change["ApproximateCreationDateTime"].timestamp())
    return {
        "eventID": record["eventID"],
        "eventName": record["eventName"],
        "eventVersion": record["eventVersion"],
        "eventSource": record["eventSource"],
        "awsRegion": record["awsRegion"],
        "dynamodb": {**_plain(change), "ApproximateCreationDateTime": changed_at},
        "eventSourceARN": arn,
    }


def _plain(value: Any) -> Any:
    """A value of the API as JSON holds it: bytes as base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(member) for member in value] if isinstance(value, list) else value


def failure_note(function: str, arn: str, shard: str, records: Sequence[Record], attempts: int) -> str:
    """What the on-failure queue is told of records that are not tried again: where they are, not what.

    https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
    """
    first, last = records[0], records[-1]
    note = {
        "requestContext": {
            "requestId": str(uuid.uuid4()),
            "functionArn": function_arn(function),
            "condition": "RetryAttemptsExhausted",
            "approximateInvokeCount": attempts,
        },
        "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
        "version": "1.0",
        "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "DDBStreamBatchInfo": {
            "shardId": shard,
            "startSequenceNumber": _number(first),
            "endSequenceNumber": _number(last),
            "approximateArrivalOfFirstRecord": _arrival(first),
            "approximateArrivalOfLastRecord": _arrival(last),
            "batchSize": len(records),
            "streamArn": arn,
        },
    }
    return json.dumps(note)


def _number(record: Record) -> str:
    number: str = record["dynamodb"]["SequenceNumber"]
    return number


def _arrival(record: Record) -> str:
    seconds = record["dynamodb"]["ApproximateCreationDateTime"]
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
