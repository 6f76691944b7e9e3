"""The work queue: turns in the background, one a message. Messages in, failures out."""

import os
import time
from typing import Any

import msgspec
from aws_lambda_powertools import Logger

from a2a_lambda import background, tally
from a2a_lambda.observation import emit, report_turn
from a2a_lambda.working import Work

logger = Logger(use_rfc3339=True)
worker, queue = background.worker(os.environ)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Attend to the turns of a batch. A message that fails, or is hidden, is received again."""
    failed = [record["messageId"] for record in event["Records"] if not attended(record, context)]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def attended(record: dict[str, Any], context: Any) -> bool:
    """Attend to the turn that a message names, and tell whether the message has done its work."""
    started = time.perf_counter()
    counts = tally.begin()
    try:
        work = msgspec.json.decode(record["body"], type=Work)
        done = worker.attend(work, lambda: context.get_remaining_time_in_millis() / 1000)
        if done.outcome == "hidden":
            queue.hide(record["receiptHandle"], done.hidden_seconds)
    except Exception:
        logger.exception("a turn was not attended to", message_id=record["messageId"])
        emit([("Turns", 1, {"outcome": "failed"})])
        return False
    report_turn(logger, work, done, counts, duration_ms=(time.perf_counter() - started) * 1000)
    return done.outcome != "hidden"
