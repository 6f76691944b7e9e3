"""Cross-origin requests."""

from dataclasses import replace

import pytest

from local.answers import Answer
from local.cors import allow, preflight
from local.deployment import Cors
from local.events import Request

RULES = Cors(
    origins=("https://one.example", "http://*"),
    methods=("GET", "POST"),
    headers=("Content-Type",),
    exposed=("ETag",),
    max_age="600",
    credentials=True,
)
ANYBODY = Cors(("*",), ("GET",), (), (), None, credentials=False)
REQUEST = Request("POST", "/a2a", "", {}, b"", "HTTP/1.1", "127.0.0.1", "127.0.0.1", 3000)
PREFLIGHT = replace(
    REQUEST,
    method="OPTIONS",
    headers={"origin": "https://one.example", "access-control-request-method": "POST"},
)


def from_origin(origin: str) -> Request:
    return replace(REQUEST, headers={"origin": origin})


def test_a_preflight_is_answered_with_all_the_rules() -> None:
    answer = preflight(RULES, PREFLIGHT)
    assert answer is not None
    assert answer.status == 204
    assert dict(answer.headers) == {
        "Access-Control-Allow-Origin": "https://one.example",
        "Access-Control-Allow-Methods": "GET,POST",
        "Access-Control-Allow-Headers": "Content-Type",
        "Access-Control-Expose-Headers": "ETag",
        "Access-Control-Max-Age": "600",
        "Access-Control-Allow-Credentials": "true",
    }


def test_a_preflight_from_another_origin_is_answered_with_nothing() -> None:
    other = replace(PREFLIGHT, headers={**PREFLIGHT.headers, "origin": "https://other.example"})
    assert preflight(RULES, other) == Answer(204)


@pytest.mark.parametrize("missing", ["origin", "access-control-request-method"])
def test_options_without_a_preflights_headers_is_none(missing: str) -> None:
    headers = {name: value for name, value in PREFLIGHT.headers.items() if name != missing}
    assert preflight(RULES, replace(PREFLIGHT, headers=headers)) is None


def test_another_method_is_no_preflight() -> None:
    assert preflight(RULES, replace(PREFLIGHT, method="POST")) is None


@pytest.mark.parametrize("origin", ["https://one.example", "HTTPS://one.example", "http://any.example"])
def test_an_allowed_origin_is_named(origin: str) -> None:
    assert ("Access-Control-Allow-Origin", origin) in allow(RULES, from_origin(origin), Answer(200)).headers


@pytest.mark.parametrize("origin", ["https://other.example", "null", "https://one.example.other"])
def test_no_other_origin_is(origin: str) -> None:
    assert allow(RULES, from_origin(origin), Answer(200)).headers == ()


def test_with_a_star_every_origin_is_allowed() -> None:
    assert allow(ANYBODY, from_origin("https://x"), Answer(200)).headers == (("Access-Control-Allow-Origin", "*"),)


def test_a_request_without_an_origin_gets_no_cors_headers() -> None:
    assert allow(ANYBODY, REQUEST, Answer(200)).headers == ()


def test_a_functions_own_cors_headers_are_dropped() -> None:
    own = Answer(200, (("access-control-allow-origin", "https://own.example"), ("ETag", "1")))
    assert allow(ANYBODY, REQUEST, own).headers == (("ETag", "1"),)
