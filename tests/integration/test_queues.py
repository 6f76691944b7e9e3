"""Messages through SQS: in order, once, and told when they are not taken."""

from collections.abc import Iterator
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError
from moto import mock_aws

from a2a_lambda.errors import UnavailableError
from a2a_lambda.queues import FifoMessage, Queue, sqs_client
from tests.integration.tables import error, response

URL: Final = "http://sqs"


@pytest.fixture
def sqs() -> Iterator[Any]:
    with mock_aws():
        yield sqs_client("")


def standard(sqs: Any) -> str:
    url: str = sqs.create_queue(QueueName="work")["QueueUrl"]
    return url


def fifo(sqs: Any) -> str:
    url: str = sqs.create_queue(QueueName="push.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    return url


def received(sqs: Any, url: str) -> list[Any]:
    messages: list[Any] = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=30, MessageSystemAttributeNames=["All"]
    ).get("Messages", [])
    return messages


def calls(sqs: Any) -> list[Any]:
    """Return the parameters of the client's calls from now on."""
    noted: list[Any] = []
    sqs.meta.events.register("provide-client-params.sqs", lambda params, **_rest: noted.append(params))
    return noted


def answering(sqs: Any, operation: str, answer: Any) -> None:
    def respond(**_call: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    sqs.meta.events.register_first(f"before-call.sqs.{operation}", respond)


def test_a_message_is_received_as_it_was_sent(sqs: Any) -> None:
    url = standard(sqs)

    Queue(sqs, url).send('{"task_id":"ü"}')

    assert [message["Body"] for message in received(sqs, url)] == ['{"task_id":"ü"}']


def test_a_message_may_have_a_group_that_does_not_hold_it_up(sqs: Any) -> None:
    url = standard(sqs)

    for body in ("one", "two"):
        Queue(sqs, url).send(body, group="caller")
    Queue(sqs, url).send("three")

    found = {message["Body"]: message["Attributes"].get("MessageGroupId") for message in received(sqs, url)}
    assert found == {"one": "caller", "two": "caller", "three": None}


@pytest.mark.parametrize(("asked", "sent"), [(-3, 0), (0, 0), (61, 61), (5000, 900)])
def test_a_delay_is_a_quarter_of_an_hour_at_most(sqs: Any, asked: int, sent: int) -> None:
    url, noted = standard(sqs), calls(sqs)

    Queue(sqs, url).send("{}", delay_seconds=asked)

    assert noted[0]["DelaySeconds"] == sent


def test_messages_keep_their_order_group_and_deduplication_id(sqs: Any) -> None:
    url = fifo(sqs)
    messages = [FifoMessage(f"body {n}", f"group-{n % 2}", f"id-{n}") for n in range(7)]

    Queue(sqs, url).send_fifo(messages)

    found = received(sqs, url)
    for group in ("group-0", "group-1"):
        assert [
            (message["Body"], message["Attributes"]["MessageDeduplicationId"])
            for message in found
            if message["Attributes"]["MessageGroupId"] == group
        ] == [(message.body, message.deduplication_id) for message in messages if message.group == group]


def test_a_message_that_is_sent_again_is_received_once(sqs: Any) -> None:
    url = fifo(sqs)
    messages = [FifoMessage("one", "group", "1"), FifoMessage("two", "group", "2")]

    Queue(sqs, url).send_fifo(messages[:1])
    Queue(sqs, url).send_fifo(messages)

    assert [message["Body"] for message in received(sqs, url)] == ["one", "two"]


def test_a_call_takes_many_groups_and_one_message_of_each(sqs: Any) -> None:
    url, noted = fifo(sqs), calls(sqs)
    messages = [
        FifoMessage(f"{event} {group}", f"{group}", f"{event}-{group}") for event in "ab" for group in range(12)
    ]

    Queue(sqs, url).send_fifo(messages)

    sent = [[entry["MessageBody"] for entry in call["Entries"]] for call in noted]
    assert [len(batch) for batch in sent] == [10, 10, 4]
    assert [body for batch in sent for body in batch] == [message.body for message in messages]


def test_after_a_message_that_is_not_taken_no_later_one_of_its_group_is_sent(sqs: Any) -> None:
    url, noted = fifo(sqs), calls(sqs)
    failed = [{"Id": "0", "SenderFault": False, "Code": "InternalError", "Message": "no"}]
    answering(sqs, "SendMessageBatch", response(Failed=failed))

    with pytest.raises(UnavailableError, match="InternalError"):
        Queue(sqs, url).send_fifo([FifoMessage("one", "group", "1"), FifoMessage("two", "group", "2")])

    assert len(noted) == 1


def test_nothing_to_send_is_no_call(sqs: Any) -> None:
    noted = calls(sqs)

    Queue(sqs, "").send_fifo([])

    assert noted == []


@pytest.mark.parametrize(("asked", "hidden"), [(-1, 0), (600, 600), (100_000, 36_000)])
def test_a_message_is_hidden_for_ten_hours_at_most(sqs: Any, asked: int, hidden: int) -> None:
    url = standard(sqs)
    queue = Queue(sqs, url)
    queue.send("{}")
    (message,) = received(sqs, url)
    noted = calls(sqs)

    queue.hide(message["ReceiptHandle"], asked)

    assert noted[0]["VisibilityTimeout"] == hidden


@pytest.mark.parametrize(
    "failure",
    [
        error("RequestThrottled"),
        error("OverLimit", 403),
        error("InternalError", 500),
        ConnectTimeoutError(endpoint_url=URL),
    ],
)
def test_a_queue_that_cannot_answer_now_is_unavailable(sqs: Any, failure: Any) -> None:
    url = standard(sqs)
    for operation in ("SendMessage", "SendMessageBatch", "ChangeMessageVisibility"):
        answering(sqs, operation, failure)
    queue = Queue(sqs, url)

    with pytest.raises(UnavailableError):
        queue.send("{}")
    with pytest.raises(UnavailableError):
        queue.send_fifo([FifoMessage("{}", "group", "1")])
    with pytest.raises(UnavailableError):
        queue.hide("receipt", 1)


def test_a_queue_that_there_is_not_is_a_fault(sqs: Any) -> None:
    with pytest.raises(ClientError, match="NonExistentQueue"):
        Queue(sqs, "https://sqs.us-east-1.amazonaws.com/123456789012/other").send("{}")
