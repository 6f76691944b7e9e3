"""Answers with the event, the context and the environment that it was invoked with."""

import json
import os
from typing import Any

VARIABLES = ("GREETING", "ITEMS_TABLE", "HAS_SECRETS")


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    heard = {
        "event": event,
        "context": {
            "function": context.function_name,
            "memory": context.memory_limit_in_mb,
            "arn": context.invoked_function_arn,
            "request": context.aws_request_id,
            "milliseconds": context.get_remaining_time_in_millis(),
        },
        "environment": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }
    headers = {"content-type": "application/json", "access-control-allow-origin": "https://own.example"}
    return {"statusCode": 200, "headers": headers, "body": json.dumps(heard)}
