"""The whole way of a message: the request, the relay behind the table's stream, the functions behind the queues.

This is what AWS does between the functions: it reads the stream, and of it what the relay's mapping lets through; it
receives from the queues, one message at a time, and deletes what was handled. A stream's record goes to the relay by
itself. Runs in the measured interpreters too, so it imports next to nothing.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bench import calls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bench.calls import Event

RPC, RELAY, WORKER, PUSH = "RpcFunction", "RelayFunction", "WorkerFunction", "PushFunction"
FUNCTIONS = (RPC, RELAY, WORKER, PUSH)
REQUESTS_A_MESSAGE = 2
"""Lambda's own: it receives a message, and deletes it."""


@dataclass(frozen=True)
class Place:
    """Where a deployment's functions find what lies between them."""

    endpoint: str
    table: str
    queues: Mapping[str, str]
    """The address of the queue behind which a function is, by the function's name."""


@dataclass
class Chain:
    """Carries what one function leaves behind to the next. Nothing that was there before is touched."""

    place: Place
    clients: Callable[[str], Any]
    """Makes a client of an AWS service."""
    invoke: Callable[[str, Event], Any]
    """Invokes a function by its name, and returns its answer."""
    _iterator: str = field(init=False)

    def __post_init__(self) -> None:
        """Begin behind the newest record of the stream."""
        self._sqs = self.clients("sqs")
        self._streams = self.clients("dynamodbstreams")
        table = self.clients("dynamodb").describe_table(TableName=self.place.table)["Table"]
        arn = table["LatestStreamArn"]
        (shard,) = self._streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
        self._iterator = self._streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="LATEST"
        )["ShardIterator"]

    def run(self, message: Event) -> Any:
        """Send a message, go on until nothing is left to do, and return the answer to the message."""
        answer = self.invoke(RPC, message)
        while self._relay() or self._handle_one():
            pass
        return answer

    def _relay(self) -> bool:
        """Hand each new outbox to the relay, and tell whether there was any."""
        found = self._streams.get_records(ShardIterator=self._iterator)
        self._iterator = found["NextShardIterator"]
        records = [record for record in found["Records"] if "outbox" in record["dynamodb"].get("NewImage", {})]
        for record in records:
            self._invoke(RELAY, stream_event(record))
        return bool(records)

    def _handle_one(self) -> bool:
        """Hand a message to the function behind its queue, and tell whether there was any."""
        return any(self._handle(function, queue) for function, queue in self.place.queues.items())

    def _handle(self, function: str, queue: str) -> bool:
        """Hand the next message of a queue to the function behind it, and tell whether there was any."""
        received = self._sqs.receive_message(QueueUrl=queue, MessageSystemAttributeNames=["All"])
        for message in received.get("Messages", []):
            self._invoke(function, queue_event(message))
            self._sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        return bool(received.get("Messages"))

    def _invoke(self, function: str, event: Event) -> None:
        calls.check(event, self.invoke(function, event))


def stream_event(record: Mapping[str, Any]) -> Event:
    """A stream's record, as the API gives it, as the event of a function."""
    change = {name: value for name, value in record["dynamodb"].items() if name != "ApproximateCreationDateTime"}
    return {"Records": [{**record, "dynamodb": as_json(change), "eventSource": "aws:dynamodb"}]}


def queue_event(message: Mapping[str, Any]) -> Event:
    """A message, as it was received, as the event of a function."""
    record = {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": dict(message["Attributes"]),
        "messageAttributes": {},
        "eventSource": "aws:sqs",
    }
    return {"Records": [record]}


def as_json(value: Any) -> Any:
    """A value of the API as JSON has it: bytes as base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: as_json(member) for name, member in value.items()}
    return [as_json(member) for member in value] if isinstance(value, list) else value
