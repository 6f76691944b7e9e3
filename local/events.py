"""A request as API Gateway tells a function of it: the event of payload format 2.0.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
Not documented there, but observed: the path arrives decoded, the query string does
not, the cookies leave the headers, and a body is text for few media types only.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from local.template import ACCOUNT_ID

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from local.authorizers import Identity
    from local.routes import Match

TEXT_MEDIA_TYPES = frozenset({"application/json", "application/javascript", "application/xml"})
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True)
class Request:
    """An HTTP request as it arrived; header names in lower case, duplicates joined by commas."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    protocol: str
    source_ip: str
    server_host: str
    server_port: int


def split_target(target: str) -> tuple[str, str]:
    """The decoded path and the untouched query string of a request target."""
    if not target.startswith("/"):
        _, _, rest = target.partition("://")
        target = "/" + rest.partition("/")[2]
    path, _, query = target.partition("?")
    return unquote(path), query


def make_event(
    request: Request, match: Match, request_id: str, now: datetime, identity: Identity | None = None
) -> dict[str, object]:
    """The event that a function behind the matched route gets, with what an authorizer found out of the caller."""
    domain = domain_name(request.headers.get("host", ""), request.server_host)
    headers = {name: value for name, value in request.headers.items() if name != "cookie"}
    forwarded = request.headers.get("x-forwarded-for")
    headers["x-forwarded-for"] = f"{forwarded}, {request.source_ip}" if forwarded else request.source_ip
    headers["x-forwarded-port"] = str(request.server_port)
    headers["x-forwarded-proto"] = "http"
    body, is_base64 = _body(request.headers.get("content-type", ""), request.body)
    optional: dict[str, object] = {
        "cookies": [cookie.strip() for cookie in request.headers.get("cookie", "").split(";") if cookie.strip()],
        "queryStringParameters": _query_parameters(request.query),
        "pathParameters": dict(match.parameters),
        "body": body,
    }
    return {
        "version": "2.0",
        "routeKey": match.route.key,
        "rawPath": request.path,
        "rawQueryString": request.query,
        "headers": headers,
        "requestContext": {
            "accountId": ACCOUNT_ID,
            "apiId": "local",
            **({} if identity is None else {"authorizer": identity}),
            "domainName": domain,
            "domainPrefix": domain.partition(".")[0],
            "http": {
                "method": request.method,
                "path": request.path,
                "protocol": request.protocol,
                "sourceIp": request.source_ip,
                "userAgent": request.headers.get("user-agent", ""),
            },
            "requestId": request_id,
            "routeKey": match.route.key,
            "stage": "$default",
            "time": now.strftime("%d/%b/%Y:%H:%M:%S +0000"),
            "timeEpoch": int(now.timestamp() * 1000),
        },
        "isBase64Encoded": is_base64,
    } | {name: value for name, value in optional.items() if value}


def domain_name(host: str, server_host: str) -> str:
    """The name under which the request came.

    In AWS that is the API's own domain, which a client cannot choose; here it is a
    name of this machine, or else the address that the gateway listens on.
    """
    name, colon, port = host.rpartition(":")
    name = (name if colon and port.isdecimal() else host).lower()
    return name if name in LOCAL_HOSTS else server_host


def _query_parameters(query: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
    return parameters


def _body(content_type: str, body: bytes) -> tuple[str | None, bool]:
    """The body as the event holds it, and whether that is base64."""
    if not body:
        return None, False
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type.startswith("text/") or media_type in TEXT_MEDIA_TYPES:
        try:
            return body.decode(), False
        except UnicodeDecodeError:
            # What API Gateway does with bytes that are no text is not documented; base64 loses nothing.
            pass
    return base64.b64encode(body).decode(), True
