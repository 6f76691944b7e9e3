"""The embedded SQS: moto's, made fit for several callers at a time, and for FIFO queues.

moto's own loses messages to parallel calls, waits for a message with all of a processor's
time where a FIFO group is blocked, forgets a deduplication id with its message, and draws
sequence numbers at random.
"""

from __future__ import annotations

import functools
import itertools
import threading
import time
from typing import TYPE_CHECKING, Any

from moto.sqs import models

if TYPE_CHECKING:
    from collections.abc import Callable

DEDUPLICATION_MILLISECONDS = 300_000
# Above AWS's own first ones, and of as many digits.
FIRST_SEQUENCE_NUMBER = 18_849_496_460_467_696_128
LOOK_SECONDS = 0.05
# Receipts of deleted messages, which may be deleted again.
REMEMBERED_RECEIPTS = 10_000

CALLS = (
    "change_message_visibility",
    "change_message_visibility_batch",
    "create_queue",
    "delete_message",
    "delete_message_batch",
    "delete_queue",
    "get_queue_attributes",
    "purge_queue",
    "send_message",
    "send_message_batch",
    "set_queue_attributes",
)


class FifoQueue(models.Queue):
    """moto's queue, which, where it is a FIFO one, takes a message once within the deduplication interval."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._numbers = itertools.count(FIRST_SEQUENCE_NUMBER)
        self._sent: dict[tuple[str | None, str], models.Message] = {}

    def add_message(self, message: models.Message) -> None:
        """Put a message into the queue; one that was sent before is that one again."""
        # A message that was received comes from the queue whose dead letters this one takes.
        if self.fifo_queue and message.deduplication_id and not message.approximate_receive_count:
            now: int = message.sent_timestamp  # type: ignore[assignment] # it has been sent
            self._forget(now - DEDUPLICATION_MILLISECONDS)
            group = message.group_id if vars(self)["deduplication_scope"] == "messageGroup" else None
            first = self._sent.setdefault((group, message.deduplication_id), message)
            if first is not message:
                message.id, message.sequence_number = first.id, first.sequence_number
                return
            message.sequence_number = str(next(self._numbers))
        with self._messages_lock:
            self._messages.append(message)
            self._messages_lock.notify_all()

    def _forget(self, horizon: int) -> None:
        """Forget what was sent before; the oldest comes first."""
        for key, message in list(self._sent.items()):
            if message.sent_timestamp > horizon:  # type: ignore[operator] # as above
                break
            del self._sent[key]

    def delete_message(self, receipt_handle: str) -> None:
        """Delete a message; the receipts of deleted ones are not kept for ever."""
        super().delete_message(receipt_handle)
        if len(self.deleted_messages) > REMEMBERED_RECEIPTS:
            self.deleted_messages.clear()


def correct() -> None:
    """Serve this SQS in the place of moto's, from now on, in this process."""
    models.Queue = FifoQueue  # type: ignore[misc]
    models.unix_time_millis = _milliseconds  # type: ignore[attr-defined, assignment]
    lock = threading.RLock()
    for name in CALLS:
        setattr(models.SQSBackend, name, _one_at_a_time(getattr(models.SQSBackend, name), lock))
    models.SQSBackend.receive_message = _waiting(  # type: ignore[method-assign]
        _one_at_a_time(models.SQSBackend.receive_message, lock)
    )


def _milliseconds() -> float:
    """The time since the epoch. moto's own is made of dates, and asked for each message of a queue at each call."""
    return time.time() * 1000


def _one_at_a_time(call: Callable[..., Any], lock: threading.RLock) -> Callable[..., Any]:
    @functools.wraps(call)
    def locked(*arguments: Any, **named: Any) -> Any:
        with lock:
            return call(*arguments, **named)

    return locked


def _waiting(receive: Callable[..., list[models.Message]]) -> Callable[..., list[models.Message]]:
    """The same call, which waits for a message here instead, without keeping others from the queue."""

    @functools.wraps(receive)
    def look(backend: models.SQSBackend, name: str, count: int, seconds: int, *rest: Any) -> list[models.Message]:
        end = time.monotonic() + seconds
        while not (messages := receive(backend, name, count, 0, *rest)) and time.monotonic() < end:
            time.sleep(LOOK_SECONDS)
        return messages

    return look
