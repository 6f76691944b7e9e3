"""A client's requests as API Gateway hands them to a function (payload format 2.0), and the context beside them.

Runs in the measured interpreters too, so it imports next to nothing.
"""

from __future__ import annotations

import json
from typing import Any

Event = dict[str, Any]

DOMAIN = "abcdef1234.execute-api.us-east-1.amazonaws.com"
KILOBYTE = 1024
PAGE_SIZE = 50


class Context:
    """What a function is told of its invocation."""

    aws_request_id = "8c1c2f4e-5f0b-4d5a-9d5e-0a4b6f1c2d3e"
    function_name = "bench"
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:bench"

    def get_remaining_time_in_millis(self) -> int:
        """The milliseconds until the function is stopped."""
        return 29_000


def kilobyte(text: str) -> str:
    """The text, filled up to a kilobyte with words that mean nothing."""
    return (text + " and so on" * KILOBYTE)[:KILOBYTE]


def card() -> Event:
    """A request for the agent card."""
    return _event("GET", "/.well-known/agent-card.json", None)


def send(message_id: str, text: str, *, task: str | None = None, history_length: int | None = None) -> Event:
    """A SendMessage: a new task, or the next turn of `task`."""
    message: dict[str, Any] = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}
    if task is not None:
        message["taskId"] = task
    params: dict[str, Any] = {"message": message}
    if history_length is not None:
        params["configuration"] = {"historyLength": history_length}
    return _call("SendMessage", params)


def background(message_id: str, text: str, *, webhook: str = "") -> Event:
    """A SendMessage that is answered at once, and worked on in the background; updates go to a webhook."""
    configuration: dict[str, Any] = {"returnImmediately": True}
    if webhook:
        configuration["taskPushNotificationConfig"] = {"url": webhook}
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}
    return _call("SendMessage", {"message": message, "configuration": configuration})


def renamed(event: Event, message_id: str) -> Event:
    """The same SendMessage with another message id."""
    body = json.loads(event["body"])
    body["params"]["message"]["messageId"] = message_id
    return {**event, "body": json.dumps(body)}


def get(task: str, *, history_length: int | None = None) -> Event:
    """A GetTask."""
    params: dict[str, Any] = {"id": task}
    if history_length is not None:
        params["historyLength"] = history_length
    return _call("GetTask", params)


def cancel(task: str) -> Event:
    """A CancelTask."""
    return _call("CancelTask", {"id": task})


def list_tasks() -> Event:
    """A ListTasks: the first page of all tasks."""
    return _call("ListTasks", {"pageSize": PAGE_SIZE})


def page(answer: dict[str, Any]) -> None:
    """Look at a page of tasks: anything else than a full one ends the measurement."""
    if len(result(answer).get("tasks", [])) != PAGE_SIZE:
        raise SystemExit(f"not a full page: {answer}")


def result(answer: dict[str, Any]) -> dict[str, Any]:
    """The task of an answer. Anything else than a task ends the measurement: its time would mean nothing."""
    response = json.loads(answer["body"])
    if answer["statusCode"] != 200 or "result" not in response:  # noqa: PLR2004 - HTTP's own
        raise SystemExit(f"not the answer that was to be measured: {answer}")
    found: dict[str, Any] = response["result"]
    task: dict[str, Any] = found.get("task", found)
    return task


def check(event: Event, answer: dict[str, Any]) -> None:
    """Look at what a function made of an event: anything else than success ends the measurement."""
    if "Records" in event:
        if answer != {"batchItemFailures": []}:
            raise SystemExit(f"records have failed: {answer}")
    elif event["requestContext"]["http"]["method"] == "POST":
        result(answer)


def _call(method: str, params: dict[str, Any]) -> Event:
    return _event("POST", "/a2a", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))


def _event(method: str, path: str, body: str | None) -> Event:
    event: Event = {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {
            "a2a-version": "1.0",
            "accept": "*/*",
            "content-type": "application/json",
            "host": DOMAIN,
            "user-agent": "bench",
            "x-amzn-trace-id": "Root=1-68d6f4a0-1c2d3e4f5a6b7c8d9e0f1a2b",
            "x-forwarded-for": "203.0.113.10",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
        },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "abcdef1234",
            "domainName": DOMAIN,
            "domainPrefix": "abcdef1234",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.10",
                "userAgent": "bench",
            },
            "requestId": "RzXkJhVZFiAEPdw=",
            "routeKey": f"{method} {path}",
            "stage": "$default",
            "time": "26/Sep/2026:20:37:31 +0000",
            "timeEpoch": 1790455051121,
        },
        "isBase64Encoded": False,
    }
    if body is not None:
        event["body"] = body
    return event
