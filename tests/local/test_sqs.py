"""The embedded SQS, where moto's own is not enough."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from local.errors import QueuesUnreachableError
from local.queues import Queue, client, create_missing_queues, serves_queues
from local.server import listen, port_of

ACCOUNT = "123456789012"
NUMBERS = itertools.count()

FIFO = {"FifoQueue": "true", "DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId"}


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


class Letters:
    """A queue of this test's own."""

    def __init__(self, endpoint: str, **attributes: str) -> None:
        self.name = f"letters-{next(NUMBERS)}" + (".fifo" if "FifoQueue" in attributes else "")
        self._sqs = client("sqs", endpoint)
        self.url = f"{endpoint}/{ACCOUNT}/{self.name}"
        create_missing_queues(endpoint, [Queue(self.url, attributes)])

    def send(self, body: str, group: str = "", key: str = "") -> Any:
        fifo = {"MessageGroupId": group, "MessageDeduplicationId": key or body} if group else {}
        return self._sqs.send_message(QueueUrl=self.url, MessageBody=body, **fifo)

    def receive(self, count: int = 1, **more: Any) -> list[Any]:
        answer = self._sqs.receive_message(
            QueueUrl=self.url, MaxNumberOfMessages=count, MessageSystemAttributeNames=["All"], **more
        )
        messages: list[Any] = answer.get("Messages", [])
        return messages

    def take(self, count: int = 1) -> list[str]:
        """Receive messages and delete them; their bodies."""
        messages = self.receive(count)
        for message in messages:
            self._sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return [message["Body"] for message in messages]

    def show(self, message: Any) -> None:
        self._sqs.change_message_visibility(
            QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
        )


def test_a_missing_queue_is_created_and_an_existing_one_is_left_as_it_is(dynamodb: str) -> None:
    letters = Letters(dynamodb, VisibilityTimeout="7")
    create_missing_queues(dynamodb, [Queue(letters.url, {"VisibilityTimeout": "8"})])
    found = client("sqs", dynamodb).get_queue_attributes(QueueUrl=letters.url, AttributeNames=["VisibilityTimeout"])
    assert found["Attributes"] == {"VisibilityTimeout": "7"}


def test_a_queue_is_created_behind_the_one_that_takes_its_dead_letters(dynamodb: str) -> None:
    lost = f"lost-{next(NUMBERS)}"
    policy = f'{{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:{ACCOUNT}:{lost}", "maxReceiveCount": 1}}'
    letters = Queue(f"{dynamodb}/{ACCOUNT}/letters-{lost}", {"VisibilityTimeout": "0", "RedrivePolicy": policy})
    create_missing_queues(dynamodb, [letters, Queue(f"{dynamodb}/{ACCOUNT}/{lost}", {})])
    sqs = client("sqs", dynamodb)
    sqs.send_message(QueueUrl=letters.url, MessageBody="hopeless")
    assert [len(sqs.receive_message(QueueUrl=letters.url).get("Messages", [])) for _ in range(2)] == [1, 0]
    (found,) = sqs.receive_message(QueueUrl=f"{dynamodb}/{ACCOUNT}/{lost}")["Messages"]
    assert found["Body"] == "hopeless"


def test_gateways_that_start_together_create_a_queue_once(dynamodb: str) -> None:
    queue = Queue(f"{dynamodb}/{ACCOUNT}/raced.fifo", FIFO)
    with ThreadPoolExecutor(4) as gateways:
        for done in [gateways.submit(create_missing_queues, dynamodb, [queue]) for _ in range(4)]:
            done.result()


def test_parallel_calls_lose_no_message_and_hand_none_out_twice(dynamodb: str) -> None:
    letters = Letters(dynamodb)
    sent = [str(number) for number in range(100)]
    with ThreadPoolExecutor(8) as callers:
        sending = [callers.submit(letters.send, body) for body in sent]
        taking = [callers.submit(letters.take) for _ in range(100)]
        for call in sending:
            call.result()
        taken = [body for call in taking for body in call.result()]
    while more := letters.take(10):
        taken += more
    assert sorted(taken) == sorted(sent)


def test_a_message_of_a_group_is_hidden_while_one_before_it_is_dealt_with(dynamodb: str) -> None:
    letters = Letters(dynamodb, **FIFO)
    for body, group in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        letters.send(body, group)
    first, other = letters.receive()[0], letters.receive()[0]
    assert (first["Body"], other["Body"], letters.receive()) == ("a1", "b1", [])
    letters.show(first)
    assert letters.take() == ["a1"]
    assert letters.take() == ["a2"]


def test_a_group_that_is_blocked_is_waited_for_without_haste(dynamodb: str) -> None:
    letters = Letters(dynamodb, **FIFO)
    letters.send("a1", "a")
    letters.send("a2", "a")
    (first,) = letters.receive()
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(letters.receive, WaitTimeSeconds=20)
        letters.show(first)
        assert [message["Body"] for message in waiting.result(10)] == ["a1"]


def test_a_message_is_taken_once_though_its_first_copy_is_gone(dynamodb: str) -> None:
    letters = Letters(dynamodb, **FIFO)
    first = letters.send("a1", "a", "same")
    assert letters.take() == ["a1"]
    again = letters.send("a1", "a", "same")
    assert letters.take() == []
    assert (again["MessageId"], again["SequenceNumber"]) == (first["MessageId"], first["SequenceNumber"])


def test_messages_are_told_apart_by_group_where_the_queue_says_so(dynamodb: str) -> None:
    by_group, by_queue = Letters(dynamodb, **FIFO), Letters(dynamodb, FifoQueue="true")
    for letters in (by_group, by_queue):
        letters.send("a1", "a", "same")
        letters.send("b1", "b", "same")
    assert (by_group.take(10), by_queue.take(10)) == (["a1", "b1"], ["a1"])


def test_sequence_numbers_grow(dynamodb: str) -> None:
    letters = Letters(dynamodb, **FIFO)
    numbers = [int(letters.send(str(body), "a")["SequenceNumber"]) for body in range(5)]
    assert numbers == sorted(numbers)
    assert {len(str(number)) for number in numbers} == {20}


def test_a_dead_letter_is_taken_although_it_was_sent_before(dynamodb: str) -> None:
    lost = Letters(dynamodb, **FIFO)
    policy = f'{{"deadLetterTargetArn": "arn:aws:sqs:us-east-1:{ACCOUNT}:{lost.name}", "maxReceiveCount": 1}}'
    letters = Letters(dynamodb, **FIFO, RedrivePolicy=policy)
    letters.send("a1", "a")
    letters.show(letters.receive()[0])
    assert letters.receive() == []
    assert lost.take() == ["a1"]


def test_who_serves_queues_is_found_out(dynamodb: str) -> None:
    assert serves_queues(dynamodb)
    with listen(0) as taken:
        nobody = f"http://127.0.0.1:{port_of(taken)}"
    assert not serves_queues(nobody)
    assert not serves_queues("x")


@pytest.mark.parametrize("endpoint", ["x", "http://127.0.0.1:9"])
def test_an_sqs_that_is_not_there_is_an_error(endpoint: str) -> None:
    with pytest.raises(QueuesUnreachableError, match=endpoint):
        create_missing_queues(endpoint, [Queue(f"{endpoint}/{ACCOUNT}/any", {})])
