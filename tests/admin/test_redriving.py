"""Dead letters go back where they come from."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from a2a_lambda.queues import FifoMessage, Queue, sqs_client
from admin.__main__ import TEMPLATE
from admin.errors import AdminError
from admin.queues import DeadLetters, open_dead_letters
from admin.redriving import redrive
from local.deployment import Deployment, read_deployment
from local.queues import create_missing_queues
from tests.admin.cloudformation import cloudformation

NOW = 9_000_000_000_000
"""Long after all that the tests send."""


@pytest.fixture
def sqs() -> Iterator[Any]:
    with mock_aws():
        yield sqs_client("")


def create(sqs: Any, name: str, **attributes: str) -> str:
    fifo = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
    url: str = sqs.create_queue(QueueName=name, Attributes={**fifo, **attributes})["QueueUrl"]
    return url


def queues(sqs: Any, suffix: str = ".fifo") -> tuple[str, str]:
    """Make a queue and another one for its dead letters."""
    dead = create(sqs, f"Dead{suffix}")
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 3})
    return create(sqs, f"Source{suffix}", RedrivePolicy=policy), dead


def received(sqs: Any, url: str) -> list[Any]:
    messages: list[Any] = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=60, MessageSystemAttributeNames=["All"]
    ).get("Messages", [])
    return messages


def bodies(sqs: Any, url: str) -> list[str]:
    return [message["Body"] for message in received(sqs, url)]


def run(sqs: Any, dead: str, *, until: int = NOW) -> None:
    redrive(DeadLetters(sqs, [dead]), clock=lambda: until)


def letters(count: int, *, groups: int = 1) -> list[FifoMessage]:
    return [FifoMessage(f"{number}", f"group-{number % groups}", f"id-{number}") for number in range(count)]


def test_dead_letters_go_back_in_order_with_their_groups(sqs: Any, capsys: pytest.CaptureFixture[str]) -> None:
    source, dead = queues(sqs)
    Queue(sqs, dead).send_fifo(letters(8, groups=2))

    run(sqs, dead)

    back = received(sqs, source)
    for group in ("group-0", "group-1"):
        in_group = [each["Body"] for each in back if each["Attributes"]["MessageGroupId"] == group]
        assert in_group == [f"{number}" for number in range(8) if f"group-{number % 2}" == group]
    assert bodies(sqs, dead) == []
    assert capsys.readouterr().out == "Put back into Source.fifo: 8 messages.\n"


def test_more_than_one_call_takes_go_back_in_order(sqs: Any, capsys: pytest.CaptureFixture[str]) -> None:
    source, dead = queues(sqs)
    Queue(sqs, dead).send_fifo(letters(23))

    run(sqs, dead)

    assert bodies(sqs, source) == [f"{number}" for number in range(10)]
    assert "23 messages" in capsys.readouterr().out


def test_a_message_that_was_sent_a_moment_ago_is_not_taken_for_a_copy(sqs: Any) -> None:
    source, dead = queues(sqs)
    for url in (source, dead):
        Queue(sqs, url).send_fifo(letters(1))
    (first,) = received(sqs, source)
    sqs.delete_message(QueueUrl=source, ReceiptHandle=first["ReceiptHandle"])

    run(sqs, dead)

    assert bodies(sqs, source) == ["0"]


def test_turns_go_back_to_the_workers_queue(sqs: Any, capsys: pytest.CaptureFixture[str]) -> None:
    source, dead = queues(sqs, "")
    for number in range(3):
        Queue(sqs, dead).send(f"{number}")

    run(sqs, dead)

    assert sorted(bodies(sqs, source)) == ["0", "1", "2"]
    assert bodies(sqs, dead) == []
    assert capsys.readouterr().out == "Put back into Source: 3 messages.\n"


def test_a_turn_goes_back_with_its_callers_group(sqs: Any) -> None:
    source, dead = queues(sqs, "")
    Queue(sqs, dead).send("{}", group="caller")

    run(sqs, dead)

    (back,) = received(sqs, source)
    assert back["Attributes"]["MessageGroupId"] == "caller"


def test_what_became_a_dead_letter_meanwhile_stays_and_can_be_seen(
    sqs: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    source, dead = queues(sqs)
    Queue(sqs, dead).send_fifo(letters(2))

    run(sqs, dead, until=1)

    assert bodies(sqs, source) == []
    assert bodies(sqs, dead) == ["0", "1"]
    assert capsys.readouterr().out == "Put back into Source.fifo: 0 messages.\n"


@pytest.mark.parametrize("call", ["SendMessageBatch", "DeleteMessage"])
def test_an_interruption_loses_nothing(sqs: Any, capsys: pytest.CaptureFixture[str], call: str) -> None:
    source, dead = queues(sqs)
    Queue(sqs, dead).send_fifo(letters(3))

    def interrupt(**_call: Any) -> None:
        sqs.meta.events.unregister(f"before-call.sqs.{call}", interrupt)
        raise KeyboardInterrupt

    sqs.meta.events.register_first(f"before-call.sqs.{call}", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(sqs, dead)

    run(sqs, dead)
    assert "3 messages in Dead.fifo cannot be seen now; run this again in a minute." in capsys.readouterr().out
    left = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["All"])["Attributes"]
    assert left["ApproximateNumberOfMessagesNotVisible"] == "3"
    assert set(bodies(sqs, source)) <= {"0", "1", "2"}


def test_a_dead_letter_is_sent_under_the_same_id_by_every_run(sqs: Any) -> None:
    source, dead = queues(sqs)
    Queue(sqs, dead).send_fifo(letters(1))
    (message,) = received(sqs, dead)

    def stay(**_call: Any) -> Any:
        raise KeyboardInterrupt

    sqs.meta.events.register_first("before-call.sqs.DeleteMessage", stay)
    for _ in range(2):
        sqs.change_message_visibility(QueueUrl=dead, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)
        with pytest.raises(KeyboardInterrupt):
            run(sqs, dead)

    assert bodies(sqs, source) == ["0"]


def test_a_queue_of_nobodys_dead_letters_is_left_alone(sqs: Any) -> None:
    dead = create(sqs, "Dead.fifo")

    with pytest.raises(AdminError, match=r"Dead\.fifo has the dead letters of 0 queues"):
        run(sqs, dead)


# Where they are


def deployment() -> Deployment:
    return read_deployment(TEMPLATE, {"PUSH": "on"})


def names(dead_letters: DeadLetters) -> list[str]:
    return sorted(url.rpartition("/")[2] for url in dead_letters.urls)


def test_on_this_machine_they_are_beside_the_database(dynamodb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNAMODB_ENDPOINT", dynamodb)
    create_missing_queues(dynamodb, deployment().queues)

    with open_dead_letters(deployment()) as dead_letters:
        assert names(dead_letters) == ["PushDeadLetters.fifo", "WorkDeadLetters"]
        assert dead_letters.failures
        redrive(dead_letters, clock=lambda: NOW)


def test_a_deployed_stack_says_itself_where_they_are(dynamodb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create_missing_queues(dynamodb, deployment().queues)
    urls = {name: f"{dynamodb}/123456789012/{queue}" for name, queue in URLS.items()}
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", dynamodb)
    urls["TasksTableName"] = "TasksTable"
    quiet = {name: url for name, url in urls.items() if not name.startswith("Push")}
    stacks = {"agent": urls, "quiet": quiet, "other": {"EndpointUrl": "x"}}
    with cloudformation(stacks) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", address)
        for stack, found in (("agent", ["PushDeadLetters.fifo", "WorkDeadLetters"]), ("quiet", ["WorkDeadLetters"])):
            monkeypatch.setenv("STACK", stack)
            with open_dead_letters(deployment()) as dead_letters:
                assert names(dead_letters) == found
                assert dead_letters.failures
                assert dead_letters.failures.url == urls["RelayFailuresUrl"]
                redrive(dead_letters, clock=lambda: NOW)
        monkeypatch.setenv("STACK", "other")
        with pytest.raises(AdminError, match="no output RelayFailuresUrl and no"), open_dead_letters(deployment()):
            pass


URLS = {
    "WorkQueueUrl": "WorkQueue",
    "WorkDeadLettersUrl": "WorkDeadLetters",
    "RelayFailuresUrl": "RelayFailures",
    "PushQueueUrl": "PushQueue.fifo",
    "PushDeadLettersUrl": "PushDeadLetters.fifo",
}


@pytest.mark.parametrize("other", ["DYNAMODB_ENDPOINT", "SQS_ENDPOINT"])
def test_a_stack_and_an_endpoint_are_one_too_many(monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    monkeypatch.setenv("STACK", "agent")
    monkeypatch.setenv(other, "http://127.0.0.1:8000")

    with pytest.raises(AdminError, match=f"STACK or {other}, not both"), open_dead_letters(deployment()):
        pass


@pytest.mark.parametrize("endpoint", ["x", "http://127.0.0.1:9"])
def test_where_no_queues_are_it_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    monkeypatch.setenv("SQS_ENDPOINT", endpoint)

    with pytest.raises(AdminError) as refused, open_dead_letters(deployment()):
        pass
    assert "\n" not in str(refused.value)
