"""The push function as Lambda runs it: SQS's event in, failures out, and what it writes down."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final

import pytest

from a2a_lambda.queues import Queue
from tests.integration.functions import Context, Handler, load
from tests.integration.tables import Tasks
from tests.integration.webhooks import CONFIG, WORD, Pushed
from tests.unit.factories import Json, asking

PATH: Final = "/over/there?word=dale"


class Hook(HTTPServer):
    """A webhook on this machine."""

    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.bodies: list[Json] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{PATH}"


class _Answer(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def pushed(tasks: Tasks, hook: Hook) -> Pushed:
    """Return a server with one update for a webhook in its queue."""
    pushed = Pushed(tasks, asking())
    tasks.clock.now = 4_000_000_000_000  # Whoever looks with a real clock finds nothing expired.
    pushed.send(config={**CONFIG, "url": hook.url})
    return pushed


def push(pushed: Pushed, monkeypatch: pytest.MonkeyPatch, **environ: str) -> Handler:
    given = {
        "TASKS_TABLE": pushed.tasks.name,
        "PUSH_QUEUE": pushed.push,
        "PUSH_DEAD_LETTERS": pushed.dead_letters,
        "PUSH_ALLOW_LOCAL": "on",
    }
    return load("push", {**given, **environ}, monkeypatch)


def event(*messages: Json, receipts: int = 1) -> Json:
    """Return SQS's event for received messages."""
    return {
        "Records": [
            {
                "messageId": message["MessageId"],
                "receiptHandle": message["ReceiptHandle"],
                "body": message["Body"],
                "attributes": {**message["Attributes"], "ApproximateReceiveCount": f"{receipts}"},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:push.fifo",
                "awsRegion": "us-east-1",
            }
            for message in messages
        ]
    }


def failures(answer: Any) -> list[str]:
    assert set(answer) == {"batchItemFailures"}
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def lines(capsys: pytest.CaptureFixture[str]) -> list[Json]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def metrics(written: list[Json]) -> list[tuple[str, Json]]:
    """Return the metrics among log lines, each with its outcome."""
    found = [line for line in written if "_aws" in line]
    return [(line["_aws"]["CloudWatchMetrics"][0]["Metrics"][0]["Name"], line.get("outcome")) for line in found]


def received(pushed: Pushed) -> Json:
    (message,) = pushed.receive(pushed.push)
    return message


def tried(pushed: Pushed, message: Json, tries: int) -> Json:
    """Return a message that a webhook has not taken so often, and receives once more."""
    pushed.webhooks.answering = lambda _url: 500
    for _ in range(tries):
        assert pushed.deliver(message).outcome == "retried"
    return message


def test_an_update_is_delivered_and_its_message_done(
    pushed: Pushed, hook: Hook, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = push(pushed, monkeypatch)

    assert failures(handler(event(received(pushed)), Context())) == []

    assert [body["statusUpdate"]["status"]["state"] for body in hook.bodies] == ["TASK_STATE_INPUT_REQUIRED"]
    (line,) = lines(capsys)
    assert (line["message"], line["outcome"], line["host"]) == ("delivery", "delivered", "127.0.0.1")
    assert (line["told"], line["tries"], line["receipts"]) == (1, 1, 1)


@pytest.mark.parametrize(("status", "tries"), [(200, 0), (500, 0), (500, 5)])
def test_no_line_tells_of_a_url_a_secret_or_what_was_said(
    pushed: Pushed,
    hook: Hook,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    status: int,
    tries: int,
) -> None:
    hook.status = status

    message = tried(pushed, received(pushed), tries)
    push(pushed, monkeypatch, POWERTOOLS_METRICS_DISABLED="")(event(message), Context())

    written = capsys.readouterr()
    for hidden in (WORD, "dale", "over/there", "Which one"):
        assert hidden not in written.out + written.err


def test_a_message_that_is_to_be_tried_again_is_hidden_and_reported(
    pushed: Pushed, hook: Hook, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hook.status = 500
    handler, message = push(pushed, monkeypatch), tried(pushed, received(pushed), 2)
    hidden: list[tuple[str, int]] = []
    monkeypatch.setattr(Queue, "hide", lambda _queue, receipt, seconds: hidden.append((receipt, seconds)))

    assert failures(handler(event(message, receipts=40), Context())) == [message["MessageId"]]
    assert hidden == [(message["ReceiptHandle"], 300)]

    (line,) = lines(capsys)
    assert (line["outcome"], line["reason"], line["tries"]) == ("retried", "the webhook answered 500", 3)


def test_what_there_is_no_time_for_is_received_at_once_again(
    pushed: Pushed, hook: Hook, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handler, message = push(pushed, monkeypatch), received(pushed)

    assert failures(handler(event(message), Context(11_000))) == [message["MessageId"]]

    assert hook.bodies == []
    assert lines(capsys)[0]["outcome"] == "continued"
    assert len(pushed.receive(pushed.push)) == 1


def test_a_webhook_that_is_switched_off_is_a_warning_and_a_metric(
    pushed: Pushed, hook: Hook, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hook.status = 500
    handler = push(pushed, monkeypatch, POWERTOOLS_METRICS_DISABLED="")

    assert failures(handler(event(tried(pushed, received(pushed), 5)), Context())) == []

    written = lines(capsys)
    (line,) = (line for line in written if "_aws" not in line)
    assert (line["level"], line["outcome"]) == ("WARNING", "switched-off")
    assert metrics(written) == [("Deliveries", "switched-off"), ("SwitchedOffConfigs", None)]
    assert len(pushed.waiting(pushed.dead_letters)) == 1


def test_where_local_webhooks_are_not_allowed_nothing_is_sent_to_one(
    pushed: Pushed, hook: Hook, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    push(pushed, monkeypatch, PUSH_ALLOW_LOCAL="off")(event(received(pushed)), Context())

    assert hook.bodies == []
    assert lines(capsys)[0]["reason"] == "the URL must be an https URL"


def test_a_host_that_is_not_allowed_is_sent_nothing(
    pushed: Pushed, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = received(pushed)

    assert failures(push(pushed, monkeypatch, PUSH_ALLOWED_HOSTS="hook.example")(event(message), Context()))
    assert hook.bodies == []
    assert not failures(push(pushed, monkeypatch, PUSH_ALLOWED_HOSTS="127.0.0.1")(event(message), Context()))


@pytest.mark.parametrize("body", ["", "{", "null", "{}", '{"owner": 5}'])
def test_a_broken_message_is_written_down_and_put_aside_so_that_it_holds_up_nobody(
    pushed: Pushed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], body: str
) -> None:
    message = {**received(pushed), "Body": body or "-"}
    before = pushed.tasks.all_items()

    assert failures(push(pushed, monkeypatch, POWERTOOLS_METRICS_DISABLED="")(event(message), Context())) == []

    written = lines(capsys)
    (line,) = (line for line in written if "_aws" not in line)
    assert (line["level"], line["message_id"]) == ("ERROR", message["MessageId"])
    assert metrics(written) == [("Deliveries", "broken")]
    assert [each["Body"] for each in pushed.receive(pushed.dead_letters)] == [body or "-"]
    assert pushed.tasks.all_items() == before


def test_a_broken_message_that_cannot_be_put_aside_now_stays(pushed: Pushed, monkeypatch: pytest.MonkeyPatch) -> None:
    message = {**received(pushed), "Body": "{"}

    handler = push(pushed, monkeypatch, SQS_ENDPOINT="http://127.0.0.1:9")

    assert failures(handler(event(message), Context())) == [message["MessageId"]]


def test_a_fault_is_written_down_counted_and_leaves_the_message(
    pushed: Pushed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = push(pushed, monkeypatch, TASKS_TABLE="no-such-table", POWERTOOLS_METRICS_DISABLED="")
    message = received(pushed)

    assert failures(handler(event(message), Context())) == [message["MessageId"]]

    written = lines(capsys)
    assert [line["level"] for line in written if "_aws" not in line] == ["ERROR", "INFO"]
    assert metrics(written) == [("Deliveries", "failed")]


def test_a_table_that_does_not_answer_leaves_the_message(
    pushed: Pushed, hook: Hook, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handler, message = push(pushed, monkeypatch, DYNAMODB_ENDPOINT="http://127.0.0.1:9"), received(pushed)
    hidden: list[tuple[str, int]] = []
    monkeypatch.setattr(Queue, "hide", lambda _queue, receipt, seconds: hidden.append((receipt, seconds)))

    assert failures(handler(event(message), Context())) == [message["MessageId"]]

    assert lines(capsys)[0]["outcome"] == "unavailable"
    assert hook.bodies == []
    assert hidden == [(message["ReceiptHandle"], 15)]


def test_what_comes_behind_a_message_that_failed_is_not_touched(
    pushed: Pushed, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook.status = 500
    message = received(pushed)
    others = [{**message, "MessageId": f"{number}"} for number in range(2)]

    failed = failures(push(pushed, monkeypatch)(event(message, *others), Context()))

    assert (failed, len(hook.bodies)) == ([message["MessageId"], "0", "1"], 1)
