"""Functions that are invoked with what a table's stream and a queue hold."""

import itertools
import json
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local.deployment import Deployment, Function, Table
from local.functions import LoadedFunction
from local.mappings import QueueMapping, SourceMapping, StreamMapping
from local.patterns import read_pattern
from local.queues import Queue, client, create_missing_queues
from local.sources import Sources
from local.tables import create_missing_tables
from local.template import Value

ARN = "arn:aws:sqs:us-east-1:123456789012"
NUMBERS = itertools.count()
DEADLINE = 30.0


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


class Post:
    """A table with a stream, a queue, and a function that hands what it is given to the test."""

    def __init__(self, endpoint: str, **attributes: str) -> None:
        number = next(NUMBERS)
        self.table = f"posted-{number}"
        self.queue = f"posts-{number}" + (".fifo" if "FifoQueue" in attributes else "")
        self.given: queue.Queue[Any] = queue.Queue()
        self.dynamodb, self.sqs = client("dynamodb", endpoint), client("sqs", endpoint)
        self.url = f"{endpoint}/123456789012/{self.queue}"
        self.endpoint = endpoint
        self._queues = (Queue(self.url, attributes),)
        creation: dict[str, Value] = {
            "TableName": self.table,
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
            "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        }
        create_missing_tables(endpoint, [Table(self.table, creation, None)])
        create_missing_queues(endpoint, self._queues)
        self._sources: list[Sources] = []

    def read_stream(self, answer: Callable[[Any], Any] = lambda _event: None, **changes: Any) -> None:
        mapping: dict[str, Any] = {
            "starts_at": "TRIM_HORIZON",
            "batch_size": 100,
            "patterns": (),
            "retries": 0,
            "bisects": False,
            "on_failure": None,
        }
        self._start(StreamMapping("F", self.table, reports=True, **(mapping | changes)), answer)

    def read_queue(self, answer: Callable[[Any], Any] = lambda _event: None, **changes: Any) -> None:
        mapping: dict[str, Any] = {"batch_size": 1, "concurrency": 2}
        self._start(QueueMapping("F", f"{ARN}:{self.queue}", reports=True, **(mapping | changes)), answer)

    def _start(self, mapping: SourceMapping, answer: Callable[[Any], Any]) -> None:
        def handler(event: Any, _context: Any) -> Any:
            self.given.put(event["Records"])
            return answer(event)

        function = LoadedFunction(Function("F", Path(), "app.handler", 30, 512, {}, ()), handler)
        sources = Sources(Deployment({}, (), None, (), self._queues, ()), self.endpoint, self.endpoint)
        sources.start([mapping], {"F": function})
        self._sources.append(sources)

    def put(self, key: str, **attributes: Any) -> None:
        self.dynamodb.put_item(TableName=self.table, Item={"id": {"S": key}} | attributes)

    def send(self, body: str, **more: Any) -> None:
        self.sqs.send_message(QueueUrl=self.url, MessageBody=body, **more)

    def next(self) -> Any:
        return self.given.get(timeout=DEADLINE)

    def left(self) -> dict[str, str]:
        """How many messages the queue still has, and how many of them are hidden."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found: dict[str, str] = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)["Attributes"]
        return found

    def stop(self) -> None:
        for sources in self._sources:
            sources.stop()


@pytest.fixture
def post(dynamodb: str) -> Iterator[Post]:
    made = Post(dynamodb)
    yield made
    made.stop()


@pytest.fixture
def fifo(dynamodb: str) -> Iterator[Post]:
    made = Post(dynamodb, FifoQueue="true", DeduplicationScope="messageGroup")
    yield made
    made.stop()


def keys(records: Any) -> list[str]:
    return [record["dynamodb"]["Keys"]["id"]["S"] for record in records]


def test_a_change_arrives_as_lambda_tells_of_it(post: Post) -> None:
    post.put("a", raw={"B": b"\x00\xff"}, deep={"L": [{"M": {"raw": {"B": b"x"}}}, {"N": "1"}]})
    post.read_stream()
    (record,) = post.next()
    assert json.loads(json.dumps(record)) == record
    arn = record.pop("eventSourceARN")
    assert arn.startswith(f"arn:aws:dynamodb:us-east-1:123456789012:table/{post.table}/stream/")
    assert len(record.pop("eventID")) == 32
    change = record["dynamodb"]
    assert {type(change.pop(name)) for name in ("ApproximateCreationDateTime", "SizeBytes")} == {int}
    assert change.pop("SequenceNumber").isdecimal()
    assert record == {
        "eventName": "INSERT",
        "eventVersion": "1.0",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": {
            "Keys": {"id": {"S": "a"}},
            "NewImage": {
                "id": {"S": "a"},
                "raw": {"B": "AP8="},
                "deep": {"L": [{"M": {"raw": {"B": "eA=="}}}, {"N": "1"}]},
            },
            "StreamViewType": "NEW_IMAGE",
        },
    }


def test_changes_arrive_in_order_whether_they_were_made_before_or_after_the_start(post: Post) -> None:
    post.put("a")
    post.put("b")
    post.read_stream()
    assert keys(post.next()) == ["a", "b"]
    post.put("c")
    assert keys(post.next()) == ["c"]


def test_only_changes_that_the_pattern_takes_invoke_the_function(post: Post) -> None:
    pattern = read_pattern('{"dynamodb":{"NewImage":{"outbox":{"S":[{"exists":true}]}}}}')
    post.put("a")
    post.put("b", outbox={"S": "{}"})
    post.put("c")
    post.put("d", outbox={"S": "{}"})
    post.read_stream(patterns=(pattern,))
    assert keys(post.next()) == ["b", "d"]


def test_a_batch_is_not_larger_than_the_mapping_says(post: Post) -> None:
    for key in "abc":
        post.put(key)
    post.read_stream(batch_size=2)
    assert [keys(post.next()), keys(post.next())] == [["a", "b"], ["c"]]


def test_a_batch_comes_again_from_the_first_change_that_failed(post: Post) -> None:
    failures = iter([1, 0])

    def answer(event: Any) -> Any:
        index = next(failures, None)
        numbers = [record["dynamodb"]["SequenceNumber"] for record in event["Records"]]
        return {"batchItemFailures": [] if index is None else [{"itemIdentifier": numbers[index]}]}

    for key in "abc":
        post.put(key)
    post.read_stream(answer, retries=2)
    assert [keys(post.next()) for _ in range(3)] == [["a", "b", "c"], ["b", "c"], ["b", "c"]]


def test_changes_that_are_given_up_are_noted_and_the_next_ones_arrive(post: Post) -> None:
    post.put("a")
    post.put("b")
    post.read_stream(
        lambda event: {"batchItemFailures": [{"itemIdentifier": ""}] if len(event["Records"]) > 1 else []},
        on_failure=f"{ARN}:{post.queue}",
    )
    records = post.next()
    post.put("c")
    assert keys(post.next()) == ["c"]
    (message,) = post.sqs.receive_message(QueueUrl=post.url)["Messages"]
    note = json.loads(message["Body"])
    assert note["requestContext"]["condition"] == "RetryAttemptsExhausted"
    assert note["requestContext"]["approximateInvokeCount"] == 1
    found = note["DDBStreamBatchInfo"]
    assert found["batchSize"] == 2
    assert found["streamArn"] == records[0]["eventSourceARN"]
    numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
    assert [found["startSequenceNumber"], found["endSequenceNumber"]] == numbers


def test_two_gateways_each_see_every_change(post: Post) -> None:
    post.read_stream()
    post.read_stream()
    post.put("a")
    assert [keys(post.next()), keys(post.next())] == [["a"], ["a"]]


def test_a_message_arrives_as_lambda_tells_of_it(fifo: Post) -> None:
    colour = {"colour": {"DataType": "String", "StringValue": "red"}}
    fifo.send("hello", MessageGroupId="a", MessageDeduplicationId="1", MessageAttributes=colour)
    fifo.read_queue()
    (record,) = fifo.next()
    attributes = record.pop("attributes")
    assert attributes.pop("SentTimestamp").isdecimal()
    assert attributes.pop("ApproximateFirstReceiveTimestamp").isdecimal()
    assert attributes.pop("SequenceNumber").isdecimal()
    assert attributes.pop("SenderId")
    assert attributes == {"ApproximateReceiveCount": "1", "MessageGroupId": "a", "MessageDeduplicationId": "1"}
    assert len(record.pop("messageId")) == 36
    assert record.pop("receiptHandle")
    assert record == {
        "body": "hello",
        "messageAttributes": {
            "colour": {"stringValue": "red", "stringListValues": [], "binaryListValues": [], "dataType": "String"}
        },
        "md5OfBody": "5d41402abc4b2a76b9719d911017c592",
        "eventSource": "aws:sqs",
        "eventSourceARN": f"{ARN}:{fifo.queue}",
        "awsRegion": "us-east-1",
    }


def test_messages_are_dealt_with_at_the_same_time_but_not_too_many(post: Post) -> None:
    together, gate = threading.Semaphore(0), threading.Event()

    def answer(_event: Any) -> None:
        together.release()
        gate.wait(DEADLINE)

    for body in "abc":
        post.send(body)
    post.read_queue(answer, concurrency=2)
    assert together.acquire(timeout=DEADLINE)
    assert together.acquire(timeout=DEADLINE)
    assert post.left()["ApproximateNumberOfMessages"] == "1"
    gate.set()
    assert sorted(post.next()[0]["body"] for _ in range(3)) == ["a", "b", "c"]


def test_messages_of_a_group_are_dealt_with_one_after_the_other(fifo: Post) -> None:
    for number in range(10):
        fifo.send(str(number), MessageGroupId="a", MessageDeduplicationId=str(number))
    fifo.read_queue(concurrency=5)
    assert [fifo.next()[0]["body"] for _ in range(10)] == [str(number) for number in range(10)]


def test_only_what_failed_stays_in_the_queue(post: Post) -> None:
    def answer(event: Any) -> Any:
        failed = [record["messageId"] for record in event["Records"] if record["body"] == "b"]
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}

    for body in "abc":
        post.send(body)
    post.read_queue(answer, batch_size=3)
    assert len(post.next()) == 3
    post.send("d")
    assert post.next()[0]["body"] == "d"
    assert post.left()["ApproximateNumberOfMessagesNotVisible"] in {"1", "2"}


def test_a_message_whose_function_raised_comes_again(post: Post) -> None:
    def answer(event: Any) -> None:
        record = event["Records"][0]
        if record["attributes"]["ApproximateReceiveCount"] == "1":
            post.sqs.change_message_visibility(
                QueueUrl=post.url, ReceiptHandle=record["receiptHandle"], VisibilityTimeout=0
            )
            raise LookupError

    post.send("a")
    post.read_queue(answer)
    received = [post.next()[0]["attributes"]["ApproximateReceiveCount"] for _ in range(2)]
    assert received == ["1", "2"]
