"""The push queue: updates for webhooks, one a message. Messages in, failures out."""

import os
import time
from typing import Any

from aws_lambda_powertools import Logger

from a2a_lambda import background, tally
from a2a_lambda.delivering import Received
from a2a_lambda.errors import UnavailableError
from a2a_lambda.notifications import Delivery, Notification, read_notification
from a2a_lambda.observation import report_delivery
from a2a_lambda.queues import FifoMessage

logger = Logger(use_rfc3339=True)
deliverer, queue = background.deliverer(os.environ)


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Deliver the updates of a batch, in order. The first that is to come again ends it: those behind come again."""
    records = event["Records"]
    done = next((at for at, record in enumerate(records) if not delivered(record)), len(records))
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in records[done:]]}


def delivered(record: dict[str, Any]) -> bool:
    """Deliver the update that a message names, and tell whether the message has done its work.

    One that cannot be understood is left to the queue, which puts it aside in the end.
    """
    started = time.perf_counter()
    counts = tally.begin()
    try:
        notification = read_notification(record["body"])
    except ValueError:
        logger.exception("a message of the push queue is broken", message_id=record["messageId"])
        return False
    received = _received(record)
    delivery = _deliver(notification, received, record["receiptHandle"])
    report_delivery(
        logger,
        notification,
        delivery,
        counts,
        tries=received.tries,
        duration_ms=(time.perf_counter() - started) * 1000,
    )
    return delivery.is_done


def _received(record: dict[str, Any]) -> Received:
    attributes = record["attributes"]
    message = FifoMessage(record["body"], attributes["MessageGroupId"], attributes["MessageDeduplicationId"])
    return Received(message, int(attributes["ApproximateReceiveCount"]))


def _deliver(notification: Notification, received: Received, receipt_handle: str) -> Delivery:
    try:
        delivery = deliverer.deliver(notification, received)
        if delivery.hide_seconds is not None:
            queue.hide(receipt_handle, delivery.hide_seconds)
    except UnavailableError:
        return Delivery(outcome="unavailable")
    return delivery
