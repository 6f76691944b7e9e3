"""A queue as Lambda reads it: some batches of messages at a time, each deleted when its function is done with it.

What fails stays in the queue until its visibility timeout ends, or the function has changed that.
"""

from __future__ import annotations

import base64
import threading
from typing import TYPE_CHECKING, Any

from botocore import exceptions

from local import batches
from local.console import complain
from local.template import REGION, queue_arn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from local.batches import Record
    from local.functions import LoadedFunction
    from local.mappings import QueueMapping

# The most that one call of SQS takes.
CALL_MESSAGES = 10


class QueueSource:
    """Invokes a function with the messages of a queue, in as many threads as its mapping says."""

    def __init__(
        self,
        client: Any,
        url: str,
        mapping: QueueMapping,
        function: LoadedFunction,
        handled: Callable[[], None],
    ) -> None:
        """Args: the queue's address, and who is told that a batch was handled."""
        self._client = client
        self._url = url
        self._mapping = mapping
        self._function = function
        self._handled = handled
        self._slots = threading.Semaphore(mapping.concurrency)

    def look(self) -> bool:
        """Hand the next messages to a thread, once there is one free, and tell whether there were any."""
        self._slots.acquire()
        messages: list[dict[str, Any]] = []
        try:
            messages = self._receive()
        finally:
            if not messages:
                self._slots.release()
        if messages:
            threading.Thread(target=self._handle, args=(messages,), daemon=True).start()
        return bool(messages)

    def _receive(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = []
        while wanted := min(CALL_MESSAGES, self._mapping.batch_size - len(messages)):
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=wanted,
                WaitTimeSeconds=0,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
            if not answer.get("Messages"):
                break
            messages += answer["Messages"]
        return messages

    def _handle(self, messages: Sequence[dict[str, Any]]) -> None:
        try:
            arn = queue_arn(self._url)
            records = {message["MessageId"]: event_record(message, arn) for message in messages}
            failed = batches.invoke(self._function, records, reports=self._mapping.reports)
            self._delete([message for message in messages if message["MessageId"] not in failed])
        except (exceptions.BotoCoreError, exceptions.ClientError) as error:
            complain(f"Warning: messages of {self._url} are done, but come again: {error}")
        finally:
            self._slots.release()
            self._handled()

    def _delete(self, messages: Sequence[Mapping[str, Any]]) -> None:
        for start in range(0, len(messages), CALL_MESSAGES):
            self._client.delete_message_batch(
                QueueUrl=self._url,
                Entries=[
                    {"Id": str(index), "ReceiptHandle": message["ReceiptHandle"]}
                    for index, message in enumerate(messages[start : start + CALL_MESSAGES])
                ],
            )


def event_record(message: Mapping[str, Any], arn: str) -> Record:
    """A message as it stands in a function's event.

    https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
    """
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": dict(message["Attributes"]),
        "messageAttributes": {name: _attribute(value) for name, value in message.get("MessageAttributes", {}).items()},
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": REGION,
    }


def _attribute(value: Mapping[str, Any]) -> dict[str, Any]:
    attribute: dict[str, Any] = {"stringListValues": [], "binaryListValues": [], "dataType": value["DataType"]}
    if "StringValue" in value:
        attribute["stringValue"] = value["StringValue"]
    if "BinaryValue" in value:
        attribute["binaryValue"] = base64.b64encode(value["BinaryValue"]).decode()
    return attribute
