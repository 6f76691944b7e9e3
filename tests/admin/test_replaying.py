"""What the relay has given up is passed on again, as long as the stream has it."""

import json
from dataclasses import dataclass
from typing import Any

import botocore.session
import pytest
from msgspec.structs import replace

from a2a_lambda import task
from a2a_lambda.errors import UnavailableError
from a2a_lambda.push_configs import TablePushConfigs
from a2a_lambda.queues import FifoMessage, Queue, sqs_client
from a2a_lambda.relaying import Relay
from a2a_lambda.tables import Table
from a2a_lambda.task import Request
from admin.queues import DeadLetters
from admin.redriving import redrive
from admin.replaying import Failures, replay
from local.streams import event_record, failure_note
from tests.integration.tables import Tasks, new_client
from tests.integration.webhooks import config
from tests.unit.factories import DAY, NOON, SECOND, Ids, begun


@dataclass
class Stack:
    """A table with its stream, and the queues."""

    tasks: Tasks
    sqs: Any
    streams: Any

    def __post_init__(self) -> None:
        self.work, self.url = self.create("work"), self.create("failures")
        self.push = self.create("push.fifo")
        self.configs = TablePushConfigs(Table(self.tasks.client, self.tasks.name), clock=self.tasks.clock, new_id=Ids())
        relay = Relay(Queue(self.sqs, self.work), Queue(self.sqs, self.push), self.configs)
        self.failures = Failures(self.sqs, self.url, self.streams, relay)
        described = self.tasks.client.describe_table(TableName=self.tasks.name)["Table"]
        self.stream = described["LatestStreamArn"]
        self.shard = self.streams.describe_stream(StreamArn=self.stream)["StreamDescription"]["Shards"][0]["ShardId"]

    def create(self, name: str) -> str:
        attributes = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
        queue = f"{self.tasks.name}-{name}"
        url: str = self.sqs.create_queue(QueueName=queue, Attributes=attributes)["QueueUrl"]
        return url

    def begin(self) -> str:
        """Begin a task that waits for the worker; what its webhook is told of comes with it."""
        waiting = task.enqueue(replace(begun(), push=True), Request(metadata={"bytes": "x"}), now=NOON)
        self.tasks.store().prepare(None, waiting)()
        self.configs.put(replace(waiting, retention=30 * DAY // SECOND, sequence=0), config())
        return waiting.task_id

    def records(self) -> list[Any]:
        """Return all records of the stream."""
        iterator = self.streams.get_shard_iterator(
            StreamArn=self.stream, ShardId=self.shard, ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        found: list[Any] = self.streams.get_records(ShardIterator=iterator)["Records"]
        return found

    def give_up(self, records: list[Any]) -> None:
        """Tell of records that the relay has given up, as Lambda does."""
        events = [event_record(record, self.stream) for record in records]
        note = failure_note("RelayFunction", self.stream, self.shard, events, 11)
        self.sqs.send_message(QueueUrl=self.url, MessageBody=note)

    def waiting(self, url: str) -> list[Any]:
        answer = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)
        return [json.loads(message["Body"]) for message in answer.get("Messages", [])]


@pytest.fixture
def stack(dynamodb: str) -> Stack:
    streams = botocore.session.get_session().create_client("dynamodbstreams", endpoint_url=dynamodb)
    return Stack(Tasks(new_client(dynamodb), endpoint=dynamodb), sqs_client(dynamodb), streams)


def run(stack: Stack) -> None:
    replay(stack.failures, clock=lambda: NOON)


def test_changes_that_the_relay_has_given_up_are_passed_on(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    task_ids = [stack.begin() for _ in range(2)]
    stack.give_up(stack.records())

    run(stack)

    assert sorted(work["task_id"] for work in stack.waiting(stack.work)) == sorted(task_ids)
    assert [told["task_id"] for told in stack.waiting(stack.push)] == task_ids
    assert stack.waiting(stack.url) == []
    assert capsys.readouterr().out == "Passed on again: 2 changes that the relay had given up.\n"


def test_no_other_changes_are_passed_on(stack: Stack) -> None:
    task_ids = [stack.begin() for _ in range(3)]
    heads = [each for each in stack.records() if each["dynamodb"]["Keys"]["entry"] == {"S": "head"}]
    stack.give_up(heads[1:2])

    run(stack)

    assert [work["task_id"] for work in stack.waiting(stack.work)] == task_ids[1:2]


def test_changes_are_passed_on_in_their_order_however_they_are_told_of(stack: Stack) -> None:
    task_ids = [stack.begin() for _ in range(12)]
    heads = [each for each in stack.records() if each["dynamodb"]["Keys"]["entry"] == {"S": "head"}]
    for head in reversed(heads):
        stack.give_up([head])
    sent: list[str] = []
    stack.sqs.meta.events.register(
        "provide-client-params.sqs.SendMessage",
        lambda params, **_rest: sent.append(json.loads(params["MessageBody"])["task_id"]),
    )

    run(stack)

    assert sent == task_ids


def test_what_the_stream_no_longer_has_is_said(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    stack.begin()
    first = stack.records()[0]
    number = f"{1:021}"
    earlier = {**first, "dynamodb": {**first["dynamodb"], "SequenceNumber": number}}
    stack.give_up([earlier, first])

    run(stack)

    said = capsys.readouterr().out
    assert f"no longer has, which cannot be passed on: {stack.stream}, {stack.shard}, {number} to " in said
    assert "Passed on again: 0 changes" in said
    assert stack.waiting(stack.url) == []


@pytest.mark.parametrize("code", ["TrimmedDataAccessException", "ResourceNotFoundException"])
def test_what_aws_says_that_it_no_longer_has_is_said(
    stack: Stack, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    stack.begin()
    stack.give_up(stack.records())
    answer = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 400}}

    def refuse(**_call: Any) -> Any:
        return botocore.awsrequest.AWSResponse("http://streams", 400, {}, None), answer

    stack.streams.meta.events.register_first("before-call.dynamodbstreams.GetShardIterator", refuse)

    run(stack)

    assert "which cannot be passed on" in capsys.readouterr().out


def test_a_change_that_cannot_be_understood_is_said_and_holds_up_no_other(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = {"task_id": {"S": "t"}, "entry": {"S": "head"}, "outbox": {"S": "{"}}
    stack.tasks.client.put_item(TableName=stack.tasks.name, Item=broken)
    task_id = stack.begin()
    stack.give_up(stack.records())

    run(stack)

    assert [work["task_id"] for work in stack.waiting(stack.work)] == [task_id]
    assert "A change cannot be understood: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "body", ["{", "{}", '{"DDBStreamBatchInfo": {"startSequenceNumber": "x", "endSequenceNumber": "1"}}', "[]"]
)
def test_a_message_that_cannot_be_understood_stays(stack: Stack, capsys: pytest.CaptureFixture[str], body: str) -> None:
    stack.sqs.send_message(QueueUrl=stack.url, MessageBody=body)

    run(stack)

    assert "cannot be understood, and stay there: 1." in capsys.readouterr().out
    left = stack.sqs.get_queue_attributes(QueueUrl=stack.url, AttributeNames=["All"])["Attributes"]
    assert left["ApproximateNumberOfMessagesNotVisible"] == "1"


def test_an_interruption_loses_nothing(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = stack.begin()
    stack.give_up(stack.records())

    def send_fifo(_queue: Queue, _messages: list[FifoMessage]) -> None:
        raise UnavailableError

    send = Queue.send_fifo
    monkeypatch.setattr(Queue, "send_fifo", send_fifo)
    with pytest.raises(UnavailableError):
        run(stack)
    left = stack.sqs.get_queue_attributes(QueueUrl=stack.url, AttributeNames=["All"])["Attributes"]
    assert left["ApproximateNumberOfMessagesNotVisible"] == "1"

    monkeypatch.setattr(Queue, "send_fifo", send)
    stack.give_up(stack.records())
    run(stack)

    assert [told["task_id"] for told in stack.waiting(stack.push)] == [task_id]


def test_redrive_passes_on_what_the_relay_has_given_up(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    stack.begin()
    stack.give_up(stack.records())

    redrive(DeadLetters(stack.sqs, [], stack.failures), clock=lambda: NOON)

    assert "Passed on again: 1 change that" in capsys.readouterr().out
