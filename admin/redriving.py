"""Putting dead letters back into the queues that they come from.

A message is received, sent, and then deleted: one that this is interrupted over is still there,
and is sent again by the next run. That is harmless: a run of a turn is claimed once, and a
webhook's messages are numbered.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from a2a_lambda.queues import FifoMessage, Queue
from admin.errors import AdminError
from admin.replaying import replay
from local.console import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mypy_boto3_sqs import SQSClient

    from admin.queues import DeadLetters

# Longer than ten messages take to be sent and deleted.
HIDDEN_SECONDS = 60
# Asks all of SQS's servers, and not some of them.
WAIT_SECONDS = 1

Message = Any


@dataclass
class Moved:
    """What became of a queue's dead letters: how many were put back, and how many are left."""

    source: str
    back: int = 0
    hidden: int = 0


def redrive(dead_letters: DeadLetters, *, clock: Callable[[], int]) -> None:
    """Put all dead letters back that there are at this moment, and pass on what the relay has given up; say how many.

    Those that become dead letters meanwhile stay: a webhook that is still switched off would keep this going.
    """
    if dead_letters.failures:
        replay(dead_letters.failures, clock=clock)
    for url in dead_letters.urls:
        moved = _Redrive(dead_letters.client, url, clock()).run()
        say(f"Put back into {_name(moved.source)}: {_count(moved.back)}.")
        if moved.hidden:
            say(f"{_count(moved.hidden)} in {_name(url)} cannot be seen now; run this again in a minute.")


class _Redrive:
    """One queue's dead letters, up to a time in milliseconds since the epoch."""

    def __init__(self, client: SQSClient, url: str, until: int) -> None:
        self._client = client
        self._url = url
        self._until = until
        self._moved = Moved(self._source())
        self._queue = Queue(client, self._moved.source)

    def run(self) -> Moved:
        """Move them, in order."""
        newer: list[Message] = []
        try:
            while messages := self._receive():
                older = [message for message in messages if self._is_older(message)]
                newer += [message for message in messages if not self._is_older(message)]
                self._put_back(older)
        finally:
            self._release(newer)
        attributes = self._client.get_queue_attributes(
            QueueUrl=self._url, AttributeNames=["ApproximateNumberOfMessagesNotVisible"]
        )["Attributes"]
        self._moved.hidden = int(attributes["ApproximateNumberOfMessagesNotVisible"])
        return self._moved

    def _source(self) -> str:
        sources = self._client.list_dead_letter_source_queues(QueueUrl=self._url)["queueUrls"]
        if len(sources) != 1:
            raise AdminError(f"{_name(self._url)} has the dead letters of {len(sources)} queues, and not of one")
        return sources[0]

    def _receive(self) -> list[Message]:
        answer: Any = self._client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=10,
            VisibilityTimeout=HIDDEN_SECONDS,
            WaitTimeSeconds=WAIT_SECONDS,
            MessageSystemAttributeNames=["All"],
        )
        messages: list[Message] = answer.get("Messages", [])
        return messages

    def _is_older(self, message: Message) -> bool:
        return int(message["Attributes"]["SentTimestamp"]) <= self._until

    def _put_back(self, messages: list[Message]) -> None:
        if self._url.endswith(".fifo"):
            self._queue.send_fifo([_again(message) for message in messages])
        for message in messages:
            if not self._url.endswith(".fifo"):
                self._queue.send(message["Body"], group=message["Attributes"].get("MessageGroupId", ""))
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
            self._moved.back += 1

    def _release(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._client.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
            )


def _again(message: Message) -> FifoMessage:
    """A dead letter as it is sent again, in its group.

    Under its own deduplication id the queue would drop it where it was first sent within the last
    five minutes. The new one is the same each time that this dead letter is sent.
    """
    attributes = message["Attributes"]
    identity = f"{attributes['MessageDeduplicationId']}#{message['MessageId']}"
    return FifoMessage(message["Body"], attributes["MessageGroupId"], hashlib.sha256(identity.encode()).hexdigest())


def _name(url: str) -> str:
    return url.rpartition("/")[2]


def _count(number: int) -> str:
    return f"{number} message{'' if number == 1 else 's'}"
