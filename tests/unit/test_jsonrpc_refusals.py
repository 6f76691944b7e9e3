"""Requests that are refused before they are read: size, caller and rate, and the order of these checks."""

from typing import Any, Final

import msgspec
import pytest

from a2a_lambda.calls import Call
from a2a_lambda.errors import (
    PermissionDeniedError,
    ProtocolError,
    RateLimitedError,
    UnauthenticatedError,
    UnavailableError,
)
from a2a_lambda.jsonrpc import Answer
from tests.unit.factories import Json, call, rpc, send_params

DOMAIN: Final = "a2a-lambda"
TYPE: Final = "type.googleapis.com/google.rpc."

REFUSALS: Final[dict[str, tuple[ProtocolError, int, dict[str, str], Json]]] = {
    "nobody": (
        UnauthenticatedError('Bearer realm="a2a"'),
        401,
        {"www-authenticate": 'Bearer realm="a2a"'},
        {
            "code": -32000,
            "message": "Valid credentials are required",
            "data": [{"@type": f"{TYPE}ErrorInfo", "reason": "UNAUTHENTICATED", "domain": DOMAIN}],
        },
    ),
    "without the scope": (
        PermissionDeniedError("The scope a2a is required", scope="a2a"),
        403,
        {},
        {
            "code": -32000,
            "message": "The scope a2a is required",
            "data": [
                {
                    "@type": f"{TYPE}ErrorInfo",
                    "reason": "PERMISSION_DENIED",
                    "domain": DOMAIN,
                    "metadata": {"scope": "a2a"},
                }
            ],
        },
    ),
    "too often": (
        RateLimitedError(7),
        429,
        {"retry-after": "7"},
        {
            "code": -32000,
            "message": "Too many requests; try again in 7 s",
            "data": [
                {"@type": f"{TYPE}ErrorInfo", "reason": "RATE_LIMITED", "domain": DOMAIN},
                {"@type": f"{TYPE}RetryInfo", "retryDelay": "7s"},
            ],
        },
    ),
}

each_refusal = pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
Refusal = tuple[ProtocolError, int, dict[str, str], Json]


def request(**members: Json) -> bytes:
    return msgspec.json.encode(
        {"jsonrpc": "2.0", "id": "id-1", "method": "SendMessage", "params": send_params()} | members
    )


NOTIFICATION: Final = msgspec.json.encode({"jsonrpc": "2.0", "method": "SendMessage", "params": send_params()})


@each_refusal
def test_a_refusal_has_its_status_its_headers_and_a_json_rpc_error(refusal: Refusal) -> None:
    error, status, headers, shown = refusal
    answer = rpc().refused(request(), error)

    assert (answer.status, answer.headers) == (status, {"content-type": "application/json"} | headers)
    assert msgspec.json.decode(answer.body) == {"jsonrpc": "2.0", "id": "id-1", "error": shown}
    assert answer.outcome == type(error).__name__


@each_refusal
@pytest.mark.parametrize(
    ("body", "identity"),
    [
        (request(id=7), 7),
        (request(id=None), None),
        (request(id="x", jsonrpc="1.0", method=5), "x"),
        (request(id={}), None),
        (request(id=True), None),
        (NOTIFICATION, None),
        (b"", None),
        (b"{", None),
        (b"[]", None),
        (b"5", None),
        (b"\xff", None),
        (b"[" * 5000, None),
        (request(extra=1).replace(b'"extra":1', b'"extra":' + b"[" * 200 + b"]" * 200), None),
    ],
    ids=range(13),
)
def test_the_id_is_repeated_when_it_can_be_read(refusal: Refusal, body: bytes, identity: Json) -> None:
    error, status, _, shown = refusal
    answer = rpc().refused(body, error)

    assert answer.status == status
    assert msgspec.json.decode(answer.body) == {"jsonrpc": "2.0", "id": identity, "error": shown}


@each_refusal
def test_a_refused_request_is_not_carried_out(refusal: Refusal) -> None:
    endpoint = rpc()
    for body in (request(), NOTIFICATION):
        endpoint.refused(body, refusal[0])

    assert (endpoint.store.reads, endpoint.store.writes) == (0, 0)


@each_refusal
@pytest.mark.parametrize("body", [b"{", request(jsonrpc="1.0"), request(method="none"), request(params=[])])
def test_the_caller_beats_the_request(refusal: Refusal, body: bytes) -> None:
    assert rpc().refused(body, refusal[0]).status == refusal[1]


def too_large(admit: Any) -> Answer:
    return rpc(max_body_bytes=10).endpoint.answer(request(), version="1.0", admit=admit)


def test_the_size_beats_the_caller() -> None:
    asked: list[int] = []

    def admit() -> Call:
        asked.append(1)
        return call()

    answer = too_large(admit)

    assert (answer.status, asked) == (413, [])
    assert msgspec.json.decode(answer.body)["error"]["code"] == -32000


def test_the_caller_is_asked_for_once() -> None:
    asked: list[int] = []

    def admit() -> Call:
        asked.append(1)
        return call()

    rpc().endpoint.answer(request(), version="1.0", admit=admit)

    assert asked == [1]


def test_a_table_that_does_not_answer_who_calls_is_an_internal_error() -> None:
    answer = rpc().refused(request(), UnavailableError())

    assert answer.status == 200
    assert msgspec.json.decode(answer.body) == {
        "jsonrpc": "2.0",
        "id": "id-1",
        "error": {
            "code": -32603,
            "message": "Internal error",
            "data": [{"@type": f"{TYPE}RetryInfo", "retryDelay": "1s"}],
        },
    }


def test_a_fault_while_asking_who_calls_is_logged_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    answer = rpc().refused(request(), ZeroDivisionError("secret"))

    assert answer.status == 200
    assert msgspec.json.decode(answer.body) == {
        "jsonrpc": "2.0",
        "id": "id-1",
        "error": {"code": -32603, "message": "Internal error"},
    }
    assert "ZeroDivisionError: secret" in caplog.text


def test_a_notification_that_meets_an_internal_error_is_answered_with_nothing() -> None:
    answer = rpc().refused(NOTIFICATION, UnavailableError())

    assert (answer.status, answer.body, answer.outcome) == (204, b"", "UnavailableError")


def test_a_secret_in_a_refused_request_is_not_repeated() -> None:
    body = request(params=send_params(parts=[{"text": "secret"}]), method="secret")
    for error, *_ in REFUSALS.values():
        answer = rpc().refused(body, error)
        assert b"secret" not in answer.body
        assert answer.method == ""
