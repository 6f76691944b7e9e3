"""The relay's and the worker's handlers: records and messages in, what is to come again out."""

import json
from typing import Any, Final

import msgspec
import pytest

from a2a_lambda.errors import UnavailableError
from a2a_lambda.queues import Queue
from a2a_lambda.timestamps import now
from tests.integration.functions import Context, Handler, content, load, rpc_event
from tests.integration.tables import Tasks, session
from tests.unit.factories import send_params

Json = Any
UNKNOWN: Final = "00000000-0000-4000-8000-000000000000"
NOBODYS: Final = {"owner": "anonymous", "task_id": UNKNOWN, "turn": 1, "run": 1}


class Stack:
    """The functions over one table and one queue."""

    def __init__(self, tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tasks = tasks
        self.sqs = session().create_client("sqs")
        self.queue = self.sqs.create_queue(QueueName=f"work-{tasks.name}", Attributes={"VisibilityTimeout": "330"})
        self.url = self.queue["QueueUrl"]
        tables = {"TASKS_TABLE": tasks.name, "CALLERS_TABLE": "callers"}
        self.rpc = load("rpc", tables, monkeypatch)
        self.relay = load("relay", {**tables, "WORK_QUEUE": self.url}, monkeypatch)
        self.worker = load("worker", {**tables, "WORK_QUEUE": self.url}, monkeypatch)

    def begin(self) -> str:
        """Begin a task that waits for the worker."""
        params = send_params(parts=[{"text": "A-1001"}]) | {"configuration": {"returnImmediately": True}}
        task_id: str = content(self.rpc(rpc_event("SendMessage", params), Context()))["result"]["task"]["id"]
        return task_id

    def state(self, task_id: str) -> str:
        answer = content(self.rpc(rpc_event("GetTask", {"id": task_id}), Context()))
        state: str = answer["result"]["status"]["state"]
        return state

    def record(self, task_id: str, sequence_number: str = "1") -> Json:
        """Return the stream's record of the task's last change."""
        image = self.tasks.items(task_id)["head"]
        return {"dynamodb": {"NewImage": image, "SequenceNumber": sequence_number}}

    def messages(self) -> list[Json]:
        """Receive what the work queue has, as the worker is given it."""
        found = self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10).get("Messages", [])
        return [_message(each["Body"], each["ReceiptHandle"], each["MessageId"]) for each in found]


def _message(body: str, receipt_handle: str = "receipt", message_id: str = "m-1") -> Json:
    return {"body": body, "receiptHandle": receipt_handle, "messageId": message_id}


def failed(handler: Handler, *records: Json) -> list[str]:
    """Return which records are to come again."""
    answer = handler({"Records": list(records)}, Context(300_000))
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


@pytest.fixture
def stack(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> Stack:
    return Stack(tasks, monkeypatch)


def test_a_task_goes_from_the_request_over_the_relay_to_the_worker(stack: Stack) -> None:
    task_id = stack.begin()
    assert stack.state(task_id) == "TASK_STATE_SUBMITTED"

    assert failed(stack.relay, stack.record(task_id)) == []
    messages = stack.messages()
    assert [msgspec.json.decode(each["body"])["task_id"] for each in messages] == [task_id]
    assert failed(stack.worker, *messages) == []
    assert stack.state(task_id) == "TASK_STATE_COMPLETED"


BROKEN: Final = [
    {"outbox": {"S": "{"}},
    {},
    {"outbox": {"S": "{}"}},
    {"outbox": {"N": "1"}},
]


@pytest.mark.parametrize("image", BROKEN)
def test_a_record_that_cannot_be_understood_is_written_down_counted_and_holds_up_no_other(
    stack: Stack,
    monkeypatch: pytest.MonkeyPatch,
    image: Json,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    broken = {"dynamodb": {"NewImage": image, "SequenceNumber": "2"}}
    first, third = stack.record(stack.begin(), "1"), stack.record(stack.begin(), "3")
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "")

    assert failed(stack.relay, first, broken, third) == []

    assert len(stack.messages()) == 2
    assert "an outbox cannot be understood" in caplog.text
    assert counted(capsys) == [("RelayedChanges", "ok", 2), ("RelayedChanges", "broken", 1)]


def test_a_record_without_an_image_is_broken(stack: Stack) -> None:
    assert failed(stack.relay, {"dynamodb": {"SequenceNumber": "2"}}) == []


def test_the_relay_stops_at_the_first_record_that_it_cannot_pass_on_now(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [stack.record(stack.begin(), f"{number}") for number in range(3)]
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "")
    real, sent = Queue.send, [1]

    def send(queue: Queue, body: str, **how: Json) -> None:
        if not sent:
            raise UnavailableError
        sent.pop()
        real(queue, body, **how)

    monkeypatch.setattr(Queue, "send", send)

    assert failed(stack.relay, *records) == ["1"]
    assert len(stack.messages()) == 1
    assert counted(capsys) == [("RelayedChanges", "ok", 1), ("RelayedChanges", "failed", 1)]


def test_a_queue_that_is_not_there_loses_no_record(stack: Stack) -> None:
    record = stack.record(stack.begin(), "1")
    stack.sqs.delete_queue(QueueUrl=stack.url)

    assert failed(stack.relay, record) == ["1"]


def counted(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str, int]]:
    """Return the metrics that were written, by outcome."""
    written = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    found = []
    for line in written:
        name = line["_aws"]["CloudWatchMetrics"][0]["Metrics"][0]["Name"]
        if "outcome" in line:
            found.append((name, line["outcome"], round(line[name][0])))
    return found


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "",
        "null",
        "[]",
        '"text"',
        "{}",
        msgspec.json.encode({**NOBODYS, "turn": "1"}).decode(),
        msgspec.json.encode({**NOBODYS, "more": 1}).decode(),
        msgspec.json.encode({**NOBODYS, "owner": None}).decode(),
    ],
)
def test_a_broken_message_is_left_to_the_queue_and_counted(
    stack: Stack,
    body: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "")
    before = stack.tasks.all_items()

    assert failed(stack.worker, _message(body)) == ["m-1"]
    assert stack.tasks.all_items() == before
    assert "a turn was not attended to" in caplog.text
    assert counted(capsys) == [("Turns", "failed", 1)]


def test_a_message_for_a_task_that_is_gone_is_dropped_and_logged(
    stack: Stack, caplog: pytest.LogCaptureFixture
) -> None:
    assert failed(stack.worker, _message(msgspec.json.encode(NOBODYS).decode())) == []
    (line,) = [record for record in caplog.records if record.message == "turn"]

    assert (line.outcome, line.task_id, line.levelname) == ("dropped", UNKNOWN, "INFO")  # type: ignore[attr-defined]


def test_a_message_that_meets_a_live_lease_comes_again_later(stack: Stack) -> None:
    task_id = stack.begin()
    failed(stack.relay, stack.record(task_id))
    (message,) = stack.messages()
    head = stack.tasks.items(task_id)["head"]
    live = {**head, "state": {"S": "TASK_STATE_WORKING"}, "deadline": {"N": str(now() + 60_000)}}
    del live["queued"]
    stack.tasks.client.put_item(TableName=stack.tasks.name, Item=live)

    assert failed(stack.worker, message) == [message["messageId"]]
    assert stack.messages() == []
    assert stack.state(task_id) == "TASK_STATE_WORKING"
