"""SQS's calls as this server makes them: whole, in order, and with its errors told apart."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from botocore.config import Config
from msgspec import Struct

from a2a_lambda import clients
from a2a_lambda.errors import UnavailableError
from a2a_lambda.outages import unavailable

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

BATCH_MESSAGES: Final = 10
"""Messages a call, as many as SQS takes."""

MAX_DELAY_SECONDS: Final = 900
"""The most that SQS takes."""

MAX_HIDDEN_SECONDS: Final = 36_000
"""SQS takes twelve hours, counted from the receipt on; so this leaves room for what came before."""

# What is sent is our own.
CLIENT_CONFIG: Final = Config(
    connect_timeout=1,
    read_timeout=3,
    retries={"mode": "standard", "total_max_attempts": 3},
    parameter_validation=False,
)

SLOW_SECONDS: Final = 15
"""How long another SQS than the region's own is waited for."""


class FifoMessage(Struct, frozen=True):
    """A message for a FIFO queue. Those of a group are received in order, one after the other."""

    body: str
    group: str
    deduplication_id: str
    """A message whose id was sent within the last five minutes is taken, and dropped."""


class Queue:
    """One queue. Every call may raise UnavailableError."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        """Args: the URL is the queue's, as SQS names it."""
        self._client = client
        self._url = url

    def send(self, body: str, *, delay_seconds: int = 0, group: str = "") -> None:
        """Send a message to a standard queue, to be received after a delay: 900 s at most, what is more is cut.

        Messages of groups that have few there do not wait behind all those of a group that has many (fair queues).
        """
        delay = _within(delay_seconds, MAX_DELAY_SECONDS)
        grouped: Any = {"MessageGroupId": group} if group else {}
        with unavailable():
            self._client.send_message(QueueUrl=self._url, MessageBody=body, DelaySeconds=delay, **grouped)

    def send_fifo(self, messages: Sequence[FifoMessage]) -> None:
        """Send messages to a FIFO queue, in order.

        Where one is not taken, no later one of its group has been sent, and all may be sent again: the
        deduplication ids tell which were.
        """
        for batch in _without_repeated_groups(messages):
            with unavailable():
                answer = self._client.send_message_batch(
                    QueueUrl=self._url,
                    Entries=[
                        {
                            "Id": str(index),
                            "MessageBody": message.body,
                            "MessageGroupId": message.group,
                            "MessageDeduplicationId": message.deduplication_id,
                        }
                        for index, message in enumerate(batch)
                    ],
                )
            if refused := answer.get("Failed"):
                raise UnavailableError(f"SQS did not take a message: {refused[0]['Code']}")

    def hide(self, receipt_handle: str, seconds: int) -> None:
        """Hide a received message from now on, for ten hours at most; 0 shows it at once."""
        timeout = _within(seconds, MAX_HIDDEN_SECONDS)
        with unavailable():
            self._client.change_message_visibility(
                QueueUrl=self._url, ReceiptHandle=receipt_handle, VisibilityTimeout=timeout
            )


def sqs_client(endpoint: str) -> "SQSClient":
    """Return an SQS client; the endpoint is a URL, or "" for the region's own."""
    config = CLIENT_CONFIG.merge(Config(read_timeout=SLOW_SECONDS)) if endpoint else CLIENT_CONFIG
    return cast("SQSClient", clients.client("sqs", endpoint, config))


def _without_repeated_groups(messages: Iterable[FifoMessage]) -> Iterator[list[FifoMessage]]:
    """Yield messages in batches, no two of a group in one: of a batch, SQS may take any and refuse others."""
    batch: dict[str, FifoMessage] = {}
    for message in messages:
        if message.group in batch or len(batch) == BATCH_MESSAGES:
            yield list(batch.values())
            batch = {}
        batch[message.group] = message
    if batch:
        yield list(batch.values())


def _within(seconds: int, most: int) -> int:
    return min(max(seconds, 0), most)
