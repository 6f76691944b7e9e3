"""The push queue: changes of tasks for webhooks, one a message. Messages in, failures out."""

import os
import time
from contextlib import suppress
from typing import Any, Final

from aws_lambda_powertools import Logger

from a2a_lambda import background, tally
from a2a_lambda.delivering import Received
from a2a_lambda.errors import UnavailableError
from a2a_lambda.notifications import Delivery, Notification, read_notification
from a2a_lambda.observation import delivery_metrics, emit, report_delivery
from a2a_lambda.queues import FifoMessage

UNAVAILABLE_SECONDS: Final = 15
"""The pause until a message is received again for which the table or the queue did not answer."""

logger = Logger(use_rfc3339=True)
deliverer, queue = background.deliverer(os.environ)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Deliver the changes of a batch, in order. The first that is to come again ends it: those behind come again."""
    records = event["Records"]
    done = next((at for at, record in enumerate(records) if not delivered(record, context)), len(records))
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in records[done:]]}


def delivered(record: dict[str, Any], context: Any) -> bool:
    """Deliver the change that a message names, and tell whether the message has done its work."""
    started = time.perf_counter()
    counts = tally.begin()
    received = _received(record)
    try:
        notification = read_notification(record["body"])
    except ValueError:
        logger.exception("a message of the push queue is broken", message_id=record["messageId"])
        return _put_aside(received)
    delivery = _deliver(notification, received, record["receiptHandle"], context)
    report_delivery(
        logger,
        notification,
        delivery,
        counts,
        receipts=received.receipts,
        duration_ms=(time.perf_counter() - started) * 1000,
    )
    return delivery.is_done


def _received(record: dict[str, Any]) -> Received:
    attributes = record["attributes"]
    message = FifoMessage(record["body"], attributes["MessageGroupId"], attributes["MessageDeduplicationId"])
    return Received(message, int(attributes["ApproximateReceiveCount"]))


def _put_aside(received: Received) -> bool:
    """Make a message that cannot be understood a dead letter, so that it holds up nobody."""
    emit(delivery_metrics(Delivery(outcome="broken")))
    try:
        deliverer.put_aside(received)
    except UnavailableError:
        return False
    return True


def _deliver(notification: Notification, received: Received, receipt_handle: str, context: Any) -> Delivery:
    try:
        delivery = deliverer.deliver(notification, received, lambda: context.get_remaining_time_in_millis() / 1000)
        if delivery.hide_seconds is not None:
            queue.hide(receipt_handle, delivery.hide_seconds)
    except UnavailableError:
        with suppress(UnavailableError):
            queue.hide(receipt_handle, UNAVAILABLE_SECONDS)
        return Delivery(outcome="unavailable")
    except Exception:
        logger.exception("a message of the push queue was not attended to", task_id=notification.task_id)
        return Delivery(outcome="failed")
    return delivery
