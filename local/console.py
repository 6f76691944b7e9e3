"""What the gateway says on the console: one line a request, and one for each batch of records."""

from __future__ import annotations

import json
import re
import sys

PARSED_BYTES = 256 * 1024


def say(line: str) -> None:
    """Print a line at once, whoever reads it."""
    print(line, flush=True)  # noqa: T201 - this is the console


def complain(line: str) -> None:
    """Print a line for what went wrong."""
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - this is the console


def request_line(method: str, path: str, call: str, status: int, milliseconds: float) -> str:
    """The log line of a request; nothing that a client sent can break out of it."""
    words = [method, path, call, str(status), f"{milliseconds:.0f} ms"]
    return " ".join(word.encode("unicode_escape").decode() for word in words if word)


def batch_line(function: str, records: int, failed: int, milliseconds: float) -> str:
    """The log line of an invocation with a batch of records."""
    count = f"{records} record" + ("s" if records != 1 else "")
    return f"{function} {count}{f', {failed} failed' if failed else ''} {milliseconds:.0f} ms"


def describe_call(request: bytes, response: bytes) -> str:
    """The JSON-RPC method and what became of it, where the bodies tell; otherwise empty.

    Of what a caller wrote, only the method's name is shown.
    """
    answer = _parse(response)
    if answer.get("jsonrpc") != "2.0":
        return ""
    method = _parse(request).get("method")
    if not isinstance(method, str) or not re.fullmatch(r"[\w./-]{1,64}", method, re.ASCII):
        method = ""
    return " ".join(word for word in (method, _outcome(answer)) if word)


def _outcome(response: dict[str, object]) -> str:
    error = _member(response, "error")
    if error:
        return f"error {error.get('code')}"
    result = _member(response, "result")
    task = _member(result, "task") or result
    state = _member(task, "status").get("state")
    return str(state) if state else ""


def _member(parent: dict[str, object], name: str) -> dict[str, object]:
    value = parent.get(name)
    return value if isinstance(value, dict) else {}


def _parse(body: bytes) -> dict[str, object]:
    if len(body) > PARSED_BYTES:
        return {}
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
