"""The tasks table's stream: what changes leave in a task's outbox goes to the queues. Records in, failures out."""

import os
from collections import Counter
from typing import Any, Literal

from aws_lambda_powertools import Logger

from a2a_lambda import background, items, tally, timestamps
from a2a_lambda.observation import emit, relay_metrics

logger = Logger(use_rfc3339=True)
relay = background.relay(os.environ)


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Pass on the outboxes of a batch, in order. The first that cannot be now ends it: it and those behind come again.

    One that cannot be understood would not be by the next try either: it is written down, and those behind go on.
    """
    tally.begin()
    outcomes: Counter[str] = Counter()
    failures = []
    for record in event["Records"]:
        outcome = passed_on(record)
        outcomes[outcome] += 1
        if outcome == "failed":
            failures.append({"itemIdentifier": record["dynamodb"]["SequenceNumber"]})
            break
    emit(relay_metrics(outcomes))
    return {"batchItemFailures": failures}


def passed_on(record: dict[str, Any]) -> Literal["ok", "broken", "failed"]:
    """Pass on the outbox of a record, and return what came of it."""
    sequence_number = record["dynamodb"]["SequenceNumber"]
    try:
        relay.pass_on(items.read_outbox(record["dynamodb"]["NewImage"]), timestamps.now())
    except (LookupError, TypeError, ValueError):
        logger.exception("an outbox cannot be understood", sequence_number=sequence_number)
        return "broken"
    except Exception:
        logger.exception("an outbox was not passed on", sequence_number=sequence_number)
        return "failed"
    return "ok"
