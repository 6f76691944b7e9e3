"""Passes the notes of changed items on to a queue, and says each note of the queue."""

import os
from typing import Any

from botocore.session import get_session


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    for record in event["Records"]:
        if record["eventSource"] == "aws:dynamodb":
            sqs = get_session().create_client("sqs", endpoint_url=os.environ["NOTES_QUEUE"].rpartition("/12")[0])
            note = record["dynamodb"]["NewImage"]["note"]["S"]
            sqs.send_message(QueueUrl=os.environ["NOTES_QUEUE"], MessageBody=note)
        else:
            print("Noted:", record["body"], flush=True)  # noqa: T201 - the test reads it
    return {"batchItemFailures": []}
