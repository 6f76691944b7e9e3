"""An answer as API Gateway makes it from what a function returned (payload format 2.0)."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field

# A synchronous Lambda response may be 6 MB; in AWS more is an error of the function.
MAX_RESULT_BYTES = 6 * 1024 * 1024

# Set by the gateway itself for the connection to the client.
HOP_BY_HOP = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding", "upgrade"})

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class BadResultError(Exception):
    """A function returned what API Gateway cannot make an answer from."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)


def message(status: int, text: str) -> Answer:
    """An answer of the gateway itself."""
    body = json.dumps({"message": text}, separators=(",", ":")).encode()
    return Answer(status, (("Content-Type", "application/json"),), body)


NOT_FOUND = message(404, "Not Found")
TOO_LARGE = message(413, "Request Entity Too Large")
INTERNAL_ERROR = message(500, "Internal Server Error")
UNAVAILABLE = message(503, "Service Unavailable")


def from_result(result: object) -> Answer:
    """The answer for a function's result.

    Without a `statusCode` the result is itself the JSON body of a 200. Raises
    BadResultError for what is neither that nor well-formed.
    """
    try:
        encoded = json.dumps(result).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadResultError(f"the result is not JSON: {error}") from error
    if len(encoded) > MAX_RESULT_BYTES:
        raise BadResultError(f"the result has {len(encoded)} bytes of JSON, over Lambda's {MAX_RESULT_BYTES}")
    if isinstance(result, dict) and "statusCode" in result:
        return Answer(_status(result["statusCode"]), _headers(result), _body(result))
    body = _encode(result) if isinstance(result, str) else encoded
    return Answer(200, (("Content-Type", "application/json"),), body)


def _status(value: object) -> int:
    if isinstance(value, (int, str)) and not isinstance(value, bool) and str(value).isdecimal():
        status = int(value)
        if 200 <= status <= 599:  # noqa: PLR2004 - the statuses of a final answer
            return status
    raise BadResultError(f"statusCode is {value!r}")


def _headers(result: dict[str, object]) -> tuple[tuple[str, str], ...]:
    given = result.get("headers") or {}
    cookies = result.get("cookies") or []
    if not isinstance(given, dict) or not isinstance(cookies, list):
        raise BadResultError("headers is not an object, or cookies is not an array")
    pairs = [_header(str(name), value) for name, value in given.items()]
    pairs += [_header("Set-Cookie", cookie) for cookie in cookies]
    pairs = [(name, value) for name, value in pairs if name.lower() not in HOP_BY_HOP]
    if not any(name.lower() == "content-type" for name, _ in pairs):
        pairs.append(("Content-Type", "text/plain;charset=UTF-8"))
    return tuple(pairs)


def _header(name: str, value: object) -> tuple[str, str]:
    text = json.dumps(value) if isinstance(value, bool) else str(value)
    if isinstance(value, (str, int, float)) and HEADER_NAME.fullmatch(name) and HEADER_VALUE.fullmatch(text):
        return name, text
    raise BadResultError(f"the header {name!r} has the value {value!r}")


def _body(result: dict[str, object]) -> bytes:
    body = result.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise BadResultError(f"body is a {type(body).__name__}, not a string")
    if result.get("isBase64Encoded") is not True:
        return _encode(body)
    try:
        return base64.b64decode(body, validate=True)
    except ValueError as error:
        raise BadResultError(f"body is not base64: {error}") from error


def _encode(body: str) -> bytes:
    try:
        return body.encode()
    except UnicodeEncodeError as error:
        raise BadResultError(f"body is not Unicode text: {error}") from error
