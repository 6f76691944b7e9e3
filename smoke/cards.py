"""The checks of the card (§8)."""

from __future__ import annotations

import base64
import json
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from smoke.errors import NotCheckedError, WrongError
from smoke.expectations import Json, check, shown
from smoke.settings import CARD_PATH

if TYPE_CHECKING:
    from smoke.visit import Visit

HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def is_served(visit: Visit) -> str:
    """The card is JSON at the well-known path (§8.2)."""
    answer = visit.wire.send("GET", visit.settings.base + CARD_PATH)
    answer.expect(HTTPStatus.OK)
    card = answer.json()
    if not isinstance(card, dict):
        raise WrongError(f"no object: {shown(card)}")
    visit.card = card
    return f"{shown(card.get('name'))} {shown(card.get('version'))}, {len(answer.body)} bytes"


def is_well_formed(visit: Visit) -> str:
    """Every field of the card is the protocol's (§4.4)."""
    card = _card(visit)
    check(card, "AgentCard")
    skills = ", ".join(skill["id"] for skill in card["skills"])
    return f"skills {shown(skills)}" if skills else "no skills"


def names_this_address(visit: Visit) -> str:
    """The card names an endpoint, and it is here: nobody's key is sent elsewhere."""
    interfaces = _card(visit).get("supportedInterfaces")
    urls = [
        each["url"]
        for each in (interfaces if isinstance(interfaces, list) else [])
        if isinstance(each, dict)
        and (each.get("protocolBinding"), each.get("protocolVersion")) == ("JSONRPC", "1.0")
        and isinstance(each.get("url"), str)
    ]
    if not urls:
        raise WrongError("no interface is JSONRPC 1.0")
    url, base = str(urls[0]), visit.settings.base
    if not url.startswith(f"{base}/"):
        raise WrongError(f"the endpoint is {shown(url)}, not below {base}: walk that address, or set PUBLIC_URL")
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in HERE:
        raise WrongError(f"the endpoint is {shown(url)}: not https")
    visit.url = url
    return url


def can_be_cached(visit: Visit) -> str:
    """The card has an ETag and an age, and whoever has it is sent no copy (§8.6)."""
    _card(visit)
    address = visit.settings.base + CARD_PATH
    whole = visit.wire.send("GET", address)
    etag, control = whole.headers.get("etag", ""), whole.headers.get("cache-control", "")
    if not re.fullmatch(r'(W/)?"[^"]+"', etag):
        raise WrongError(f"the ETag is {shown(etag)}")
    if not re.search(r"\bmax-age=\d+", control):
        raise WrongError(f"Cache-Control names no max-age: {shown(control)}")
    again = visit.wire.send("GET", address, {"If-None-Match": etag})
    again.expect(HTTPStatus.NOT_MODIFIED)
    if again.body:
        raise WrongError(f"304 with {len(again.body)} bytes")
    return f"304 for {etag}, {control}"


def answers_head(visit: Visit) -> str:
    """HEAD is GET without the content."""
    _card(visit)
    address = visit.settings.base + CARD_PATH
    whole, head = visit.wire.send("GET", address), visit.wire.send("HEAD", address)
    head.expect(HTTPStatus.OK)
    for name in ("content-type", "etag"):
        if head.headers.get(name) != whole.headers.get(name):
            raise WrongError(f"{name} is {shown(head.headers.get(name))}, with GET {shown(whole.headers.get(name))}")
    return "200"


def is_signed(visit: Visit) -> str:
    """The keys that signed the card are published where it says (§8.4). The signatures are not verified."""
    signatures = _card(visit).get("signatures")
    if not signatures:
        raise NotCheckedError("the card is not signed")
    check(signatures, "AgentCardSignature[]")
    for signature in signatures:
        header = _protected(signature["protected"])
        jku, kid = header.get("jku"), header.get("kid")
        if not isinstance(jku, str) or not jku.startswith(f"{visit.settings.base}/"):
            raise WrongError(f"the keys' address is {shown(jku)}, not below {visit.settings.base}")
        answer = visit.wire.send("GET", jku)
        answer.expect(HTTPStatus.OK)
        published = answer.json("application/jwk-set+json")
        keys = published.get("keys") if isinstance(published, dict) else None
        if kid not in [key.get("kid") for key in keys or [] if isinstance(key, dict)]:
            raise WrongError(f"{jku} has no key {shown(kid)}")
    return f"{len(signatures)} signatures, their keys are published; not verified here"


def _protected(text: str) -> dict[str, Json]:
    try:
        header = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError as error:
        raise WrongError(f"a signature's header cannot be read: {shown(text)}") from error
    if not isinstance(header, dict):
        raise WrongError(f"a signature's header is no object: {shown(header)}")
    return header


def _card(visit: Visit) -> dict[str, Json]:
    if visit.card is None:
        raise NotCheckedError("there is no card")
    return visit.card
