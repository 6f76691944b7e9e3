"""The tasks table's stream: what changes leave in a task's outbox goes to the queues. Records in, failures out."""

import os
from typing import Any

from aws_lambda_powertools import Logger

from a2a_lambda import background, items, timestamps

logger = Logger(use_rfc3339=True)
relay = background.relay(os.environ)


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Pass on the outboxes of a batch, in order. The first that cannot be ends it: it and those behind come again."""
    for record in event["Records"]:
        try:
            relay.pass_on(items.read_outbox(record["dynamodb"]["NewImage"]), timestamps.now())
        except Exception:
            sequence_number = record["dynamodb"]["SequenceNumber"]
            logger.exception("an outbox was not passed on", sequence_number=sequence_number)
            return {"batchItemFailures": [{"itemIdentifier": sequence_number}]}
    return {"batchItemFailures": []}
