"""Behaves badly in the way that the path names."""

import threading
from typing import Any

never = threading.Event()


def handler(event: dict[str, Any], _context: Any) -> object:
    way = event["pathParameters"]["way"]
    if way == "raise":
        raise RuntimeError("the handler's own words")
    if way == "hang":
        never.wait()
    if way == "garbage":
        return {"statusCode": 200, "body": b"bytes"}
    return {"statusCode": 200, "isBase64Encoded": True, "body": "/wD/"}
