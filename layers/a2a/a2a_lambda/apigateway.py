"""API Gateway's HTTP API, payload format 2.0: its events in, its responses out."""

import binascii
from collections.abc import Mapping
from typing import Any, Final

from a2a_lambda.callers import Credentials

Event = Mapping[str, Any]
Response = dict[str, Any]

LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})

HSTS: Final = {"strict-transport-security": "max-age=31536000"}
"""Browsers are to come back by https only (RFC 6797); over plain http they ignore it."""

MAX_TEXT_BYTES: Final = 3_000_000
"""The longest body that goes to Lambda as text: twice that fits into the 6 MB of its answer."""

NOT_FOUND: Final[Response] = {
    "statusCode": 404,
    "headers": {"content-type": "application/json", **HSTS},
    "body": '{"message":"Not Found"}',
}
"""What API Gateway itself says to a path without a route."""


def body(event: Event) -> bytes:
    """Return the request's body as the client sent it.

    A body that claims to be base64 and is not is returned as it stands: whoever parses it will say so.
    """
    content: str = event.get("body") or ""
    # A lone surrogate, which only a hand-made event can hold, stays as bytes that are not UTF-8.
    encoded = content.encode("utf-8", "surrogatepass")
    if not event.get("isBase64Encoded"):
        return encoded
    try:
        return binascii.a2b_base64(encoded, strict_mode=True)
    except binascii.Error:
        return encoded


def header(event: Event, name: str) -> str:
    """Return a header by its lower-case name, "" where there is none.

    API Gateway sends names in lower case, `sam local start-api` as the client wrote them.
    """
    return next((value for key, value in event.get("headers", {}).items() if key.lower() == name), "")


def listed(event: Event, name: str) -> list[str]:
    """Return the values of a header that is a comma-separated list."""
    return [value.strip() for value in header(event, name).split(",") if value.strip()]


def parameter(event: Event, name: str) -> str:
    """Return a query parameter, "" where there is none."""
    value: str = (event.get("queryStringParameters") or {}).get(name, "")
    return value


def credentials(event: Event) -> Credentials:
    """Return what a request carries to say who sent it."""
    context = event["requestContext"]
    authorizer = context.get("authorizer") or {}
    return Credentials(
        api_key=header(event, "x-api-key"),
        authorization=header(event, "authorization"),
        claims=(authorizer.get("jwt") or {}).get("claims"),
        iam=authorizer.get("iam"),
        source_address=context["http"]["sourceIp"],
    )


def base_url(event: Event) -> str:
    """Return the address at which the client reached the API, without a trailing slash.

    API Gateway's own domain name is trusted, the Host header is not; only where the domain is this machine does
    the header add its port.
    """
    context = event["requestContext"]
    domain: str = context["domainName"]
    stage: str = context["stage"]
    path = "" if stage == "$default" else f"/{stage}"
    if domain not in LOCAL_HOSTS:
        return f"https://{domain}{path}"
    name, colon, port = header(event, "host").rpartition(":")
    is_local = name in LOCAL_HOSTS and port.isascii() and port.isdigit()
    return f"http://{name}{colon}{port}{path}" if is_local else f"http://{domain}{path}"


def response(status: int, content: bytes, headers: Mapping[str, str]) -> Response:
    """Return an answer. The content is text in UTF-8; an answer without content has no body.

    Lambda writes the body into JSON once more, which may double text; base64 adds a third, whatever the text.
    """
    answer: Response = {"statusCode": status, "headers": {**headers, **HSTS}}
    if len(content) > MAX_TEXT_BYTES:
        answer |= {"body": binascii.b2a_base64(content, newline=False).decode(), "isBase64Encoded": True}
    elif content:
        answer["body"] = content.decode()
    return answer
