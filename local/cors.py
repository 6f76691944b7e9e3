"""Cross-origin requests, as API Gateway treats them for an API with a `CorsConfiguration`.

It answers preflights itself, whatever the routes are, and replaces a function's own
CORS headers. https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-cors.html
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from local.answers import Answer

if TYPE_CHECKING:
    from local.deployment import Cors
    from local.events import Request


def preflight(cors: Cors, request: Request) -> Answer | None:
    """The answer to a preflight request; None for every other request."""
    if request.method != "OPTIONS" or not {"origin", "access-control-request-method"} <= request.headers.keys():
        return None
    headers = _shared_headers(cors, request.headers["origin"])
    if headers:
        if cors.methods:
            headers.append(("Access-Control-Allow-Methods", ",".join(cors.methods)))
        if cors.headers:
            headers.append(("Access-Control-Allow-Headers", ",".join(cors.headers)))
        if cors.max_age is not None:
            headers.append(("Access-Control-Max-Age", cors.max_age))
    return Answer(204, tuple(headers))


def allow(cors: Cors, request: Request, answer: Answer) -> Answer:
    """The answer with the API's CORS headers, which only a request with an Origin gets."""
    own = [(name, value) for name, value in answer.headers if not name.lower().startswith("access-control-")]
    if "origin" in request.headers:
        own += _shared_headers(cors, request.headers["origin"])
    return replace(answer, headers=tuple(own))


def _shared_headers(cors: Cors, origin: str) -> list[tuple[str, str]]:
    if "*" in cors.origins:
        headers = [("Access-Control-Allow-Origin", "*")]
    elif any(_matches(allowed, origin) for allowed in cors.origins):
        headers = [("Access-Control-Allow-Origin", origin)]
    else:
        return []
    if cors.exposed:
        headers.append(("Access-Control-Expose-Headers", ",".join(cors.exposed)))
    if cors.credentials:
        headers.append(("Access-Control-Allow-Credentials", "true"))
    return headers


def _matches(allowed: str, origin: str) -> bool:
    """Whether an allowed origin, or a whole scheme (`https://*`), takes this one."""
    return origin.startswith(allowed[:-1]) if allowed.endswith("://*") else origin.lower() == allowed.lower()
