"""AWS in this process: the template's table, its stream and the queues, in the world's time.

Instances send it what they send to AWS, as HTTP. The event sources look at it directly.
"""

import functools
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final
from unittest import mock

import moto.sqs.models
from botocore.awsrequest import AWSPreparedRequest
from botocore.compat import HTTPHeaders
from moto import mock_aws
from moto.core.models import botocore_stubber
from moto.core.serialize import BaseJSONSerializer
from moto.dynamodb.models import dynamodb_backends
from moto.sqs.models import Message, sqs_backends

from a2a_lambda import bootstrap, queues
from local.patterns import matches_any
from local.queues import Queue as Deployed
from local.streams import event_record
from tests.deaths.deployment import DEPLOYMENT, REGION, STREAM
from tests.deaths.instances import milliseconds, seconds

ACCOUNT: Final = "123456789012"

Record = dict[str, Any]
Response = tuple[int, Mapping[str, str], bytes]


class Queue:
    """A queue as Lambda reads it, one message at a time."""

    def __init__(self, queue: Deployed) -> None:
        """Args: as it is deployed."""
        self.name = queue.name
        self._visibility = int(queue.attributes.get("VisibilityTimeout", "30"))
        self._backend = sqs_backends[ACCOUNT][REGION]

    @property
    def messages(self) -> list[Message]:
        """All that it holds, hidden ones too."""
        return list(self._backend.queues[self.name]._messages)  # noqa: SLF001 - SQS does not show them

    def due_at(self) -> int | None:
        """Return when the next message can be received, in milliseconds; None where there is none.

        A group of a FIFO queue gives its first message alone.
        """
        is_fifo = self.name.endswith(".fifo")
        first = {each.group_id if is_fifo else each.id: each for each in reversed(self.messages)}
        return min((1 + int(max(each.visible_at, each.delayed_until)) for each in first.values()), default=None)

    def receive(self) -> Record | None:
        """Receive a message, as it stands in a function's event; None where there is none now."""
        for message in self._backend.receive_message(self.name, 1, 0, self._visibility):
            attributes = {
                "ApproximateReceiveCount": str(message.approximate_receive_count),
                "MessageGroupId": message.group_id,
                "MessageDeduplicationId": message.deduplication_id,
            }
            return {
                "messageId": message.id,
                "receiptHandle": message.receipt_handle,
                "body": message.body,
                "attributes": {name: value for name, value in attributes.items() if value is not None},
            }
        return None

    def empty(self) -> list[Message]:
        """Delete all messages, and return them."""
        taken = self.messages
        queue = self._backend.queues[self.name]
        queue._messages.clear()  # noqa: SLF001 - as above
        queue.pending_messages.clear()
        queue.deleted_messages.clear()
        return taken

    def send(self, message: Message) -> None:
        """Put a message into a FIFO queue that was in another one."""
        self._backend.send_message(
            self.name, message.body, {}, 0, f"{message.deduplication_id}-again", message.group_id
        )

    def delete(self, record: Record) -> None:
        """Delete a message that was received."""
        self._backend.delete_message(self.name, record["receiptHandle"])


class Aws:
    """The table, the stream and the queues, all empty."""

    def __init__(self) -> None:
        """Serve them in this process, for good."""
        mock_aws().start()
        _make_fast()
        # SQS hides and delays by the world's time.
        mock.patch.object(moto.sqs.models, "unix_time_millis", milliseconds).start()
        mock.patch.object(moto.sqs.models, "unix_time", seconds).start()
        self._relayed = 0
        self._create()
        self.queues = {queue.name: Queue(queue) for queue in DEPLOYMENT.queues}
        self.work, self.push = self.queues["WorkQueue"], self.queues["PushQueue.fifo"]
        self.push_dead_letters = self.queues["PushDeadLetters.fifo"]

    def empty(self) -> None:
        """Forget all items, records and messages."""
        self._relayed = 0
        self._table.items.clear()
        self._table.stream_shard.items.clear()
        for queue in self.queues.values():
            queue.empty()

    def answer(self, method: str, url: str, headers: Mapping[str, str | bytes], body: bytes) -> Response:
        """Answer a request as AWS does."""
        sent = HTTPHeaders()
        for name, value in headers.items():
            sent[name] = value if isinstance(value, str) else value.decode()
        request = AWSPreparedRequest(method, url, sent, body, False)  # noqa: FBT003 - botocore's signature
        response = botocore_stubber.process_request(request)
        assert response is not None
        status, given, content = response
        return status, dict(given), content if isinstance(content, bytes) else content.encode()

    @property
    def records(self) -> list[Record]:
        """All records of the table's stream."""
        return [record.to_json() for record in self._table.stream_shard.items]

    def unrelayed(self) -> list[Record]:
        """Return the stream's next records that are for the relay, as it is told of them."""
        events = (event_record(record, "arn:aws:dynamodb") for record in self.records)
        wanted = [event for event in events if matches_any(STREAM.patterns, event)]
        return wanted[self._relayed :][: STREAM.batch_size]

    def relayed(self, count: int) -> None:
        """Go on behind so many of the records."""
        self._relayed += count

    def items(self) -> list[Record]:
        """Return all items of the tasks table."""
        return [item.to_json()["Attributes"] for item in self._table.all_items()]

    @property
    def _table(self) -> Any:
        return dynamodb_backends[ACCOUNT][REGION].tables["TasksTable"]

    def _create(self) -> None:
        dynamodb: Any = bootstrap.dynamodb_client("")
        for table in DEPLOYMENT.tables:
            dynamodb.create_table(**table.creation)
        sqs: Any = queues.sqs_client("")
        # A queue for dead letters must be there before those that name it.
        for queue in sorted(DEPLOYMENT.queues, key=lambda queue: "RedrivePolicy" in queue.attributes):
            sqs.create_queue(QueueName=queue.name, Attributes=dict(queue.attributes))


def _make_fast() -> None:
    """Spare moto what it does for every attribute of an item and every attribute of a queue, time and again."""
    structure = BaseJSONSerializer._serialize_type_structure  # noqa: SLF001 - moto's own

    def serialize(self: BaseJSONSerializer, serialized: Any, value: Any, shape: Any, key: str) -> None:
        if shape.name == "AttributeValue":
            serialized[key] = _attribute(value)
        else:
            structure(self, serialized, value, shape, key)

    mock.patch.object(BaseJSONSerializer, "_serialize_type_structure", serialize).start()
    camelcase = vars(moto.sqs.models)["camelcase_to_underscores"]
    mock.patch.object(moto.sqs.models, "camelcase_to_underscores", functools.cache(camelcase)).start()


def _attribute(value: Any) -> Any:
    """Return an item's attribute as JSON has it."""
    (kind, content), *_ = value.items()
    if kind == "L":
        return {kind: [_attribute(each) for each in content]}
    if kind == "M":
        return {kind: {name: _attribute(each) for name, each in content.items()}}
    return {kind: b64encode(content).decode() if isinstance(content, bytes) else content}
