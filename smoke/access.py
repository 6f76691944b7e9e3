"""The checks of who is let in, and from where (§7)."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from smoke.errors import NotCheckedError, WrongError
from smoke.expectations import Json, shown
from smoke.visit import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smoke.visit import Visit
    from smoke.wire import Answer

ORIGIN: Final = "https://smoke-test.example"
"""Where no page is."""

BODY: Final = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {"pageSize": 1}}).encode()


def has_credentials(visit: Visit) -> str:
    """The caller has what the card asks for."""
    _ = visit.stranger
    requirements = _list((visit.card or {}).get("securityRequirements"))
    if not requirements:
        visit.credentials = {}
        return "none are asked for"
    names = [[*_schemes(each)] for each in requirements]
    header = _header(visit)
    if header is None:
        raise WrongError(f"the card asks for {shown(names)}, which this walk cannot give")
    if not visit.settings.key:
        raise WrongError(f"the card asks for {shown(names)}: give a key or a token with KEY=")
    visit.credentials = _shown_in(header, visit.settings.key)
    return f"a key, as {header}"


def nobody_is_let_in(visit: Visit) -> str:
    """Without credentials the answer is 401, and says how to authenticate (§7.3)."""
    _asked_for(visit)
    return _turned_away(visit.stranger.post(BODY))


def a_wrong_key_is_refused(visit: Visit) -> str:
    """Something that is no key is 401 as well."""
    headers = _shown_in(_asked_for(visit), "no-key-of-anybody")
    return _turned_away(Endpoint(visit.wire, visit.stranger.url, headers).post(BODY))


def pages_may_call(visit: Visit) -> str:
    """A page in a browser is told that it may call, where every page may."""
    wanted = {"a2a-version", "content-type", "authorization", "x-api-key"}
    headers = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": ",".join(sorted(wanted)),
    }
    answer = visit.wire.send("OPTIONS", visit.stranger.url, headers)
    if answer.status not in {HTTPStatus.OK, HTTPStatus.NO_CONTENT}:
        raise WrongError(f"HTTP {answer.status}")
    origin = answer.headers.get("access-control-allow-origin")
    if origin is None:
        raise NotCheckedError(f"{ORIGIN} may not call; which origins may, it does not say")
    if origin not in {"*", ORIGIN}:
        raise WrongError(f"{shown(origin)} may call, says the answer to {ORIGIN}")
    if "POST" not in _names(answer, "access-control-allow-methods", str.upper):
        raise WrongError("POST is not allowed")
    if missing := wanted - _names(answer, "access-control-allow-headers", str.lower):
        raise WrongError(f"headers are not allowed: {', '.join(sorted(missing))}")
    return f"{shown(origin)} may POST"


def _names(answer: Answer, header: str, case: Callable[[str], str]) -> set[str]:
    return {case(each.strip()) for each in answer.headers.get(header, "").split(",")}


def _asked_for(visit: Visit) -> str:
    """The header that credentials are asked for in.

    Raises NotCheckedError.
    """
    _ = visit.stranger
    if not (visit.card or {}).get("securityRequirements"):
        raise NotCheckedError("the card asks for no credentials")
    header = _header(visit)
    if header is None:
        raise NotCheckedError("the card asks for what this walk cannot give")
    return header


def _turned_away(answer: Answer) -> str:
    answer.expect(HTTPStatus.UNAUTHORIZED)
    challenge = answer.headers.get("www-authenticate", "")
    if not challenge:
        raise WrongError("401 without WWW-Authenticate")
    return f"401, {shown(challenge)}"


def _header(visit: Visit) -> str | None:
    """The header of the first scheme that a single key or token satisfies; None where there is none."""
    card = visit.card or {}
    schemes = card.get("securitySchemes")
    for requirement in _list(card.get("securityRequirements")):
        needed = _schemes(requirement)
        if isinstance(schemes, dict) and len(needed) == 1:
            header = _header_of(schemes.get(next(iter(needed))))
            if header:
                return header
    return None


def _schemes(requirement: Json) -> dict[str, Json]:
    schemes = requirement.get("schemes") if isinstance(requirement, dict) else None
    return schemes if isinstance(schemes, dict) else {}


def _header_of(scheme: Json) -> str | None:
    match scheme:
        case {"apiKeySecurityScheme": {"location": "header", "name": str(name)}}:
            return name
        case {"httpAuthSecurityScheme": {"scheme": str(name)}} if name.lower() == "bearer":
            return "Authorization"
        case {"openIdConnectSecurityScheme": _} | {"oauth2SecurityScheme": _}:
            return "Authorization"
    return None


def _shown_in(header: str, key: str) -> Mapping[str, str]:
    return {header: f"Bearer {key}" if header.lower() == "authorization" else key}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
