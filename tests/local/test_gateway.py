"""The gateway without sockets."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from local.answers import INTERNAL_ERROR, NOT_FOUND, TOO_LARGE, UNAVAILABLE, message
from local.authorizers import IamAuthorizer
from local.deployment import Cors, Function
from local.events import Request
from local.functions import Handler, LoadedFunction
from local.gateway import MAX_BODY_BYTES, Gateway
from local.routes import Route

REQUEST = Request("POST", "/a2a", "", {}, b"", "HTTP/1.1", "127.0.0.1", "127.0.0.1", 3000)
ANYBODY = Cors(("*",), ("GET",), (), (), None, credentials=False)


def gateway(handler: Handler, rules: Cors | None = None, timeout: float = 5) -> Gateway:
    function = LoadedFunction(Function("F", Path(), "app.handler", timeout, 128, {}, ()), handler)
    return Gateway([Route("POST /a2a", "F", 30)], {"F": function}, rules)


def guarded(handler: Handler, rules: Cors | None = None) -> Gateway:
    """A gateway whose route is for signed requests."""
    function = LoadedFunction(Function("F", Path(), "app.handler", 5, 128, {}, ()), handler)
    return Gateway([Route("POST /a2a", "F", 30, IamAuthorizer())], {"F": function}, rules)


def test_a_functions_answer_carries_the_id_of_its_request() -> None:
    answer = gateway(lambda _event, context: {"statusCode": 200, "body": context.aws_request_id}).answer(REQUEST)
    assert ("Apigw-Requestid", answer.body.decode()) in answer.headers


def test_what_has_no_route_is_not_found() -> None:
    assert gateway(lambda _event, _context: None).answer(replace(REQUEST, path="/other")) == NOT_FOUND


@pytest.mark.parametrize(("size", "status"), [(MAX_BODY_BYTES, 200), (MAX_BODY_BYTES + 1, 413)])
def test_a_body_over_ten_megabytes_is_too_large(size: int, status: int) -> None:
    answer = gateway(lambda _event, _context: {}).answer(replace(REQUEST, body=b"x" * size))
    assert answer.status == status
    assert status == 200 or answer == TOO_LARGE


def test_what_a_handler_raises_is_shown_on_the_console_and_not_to_the_caller(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def handler(_event: object, _context: object) -> object:
        raise RuntimeError("the handler's own words")

    answer = gateway(handler).answer(REQUEST)
    assert (answer.status, answer.body) == (500, INTERNAL_ERROR.body)
    assert "the handler's own words" in capsys.readouterr().err


def test_a_result_that_is_no_answer_is_an_internal_error(capsys: pytest.CaptureFixture[str]) -> None:
    answer = gateway(lambda _event, _context: {"statusCode": "what?"}).answer(REQUEST)
    assert (answer.status, answer.body) == (500, INTERNAL_ERROR.body)
    assert "what?" in capsys.readouterr().err


def test_a_handler_that_raises_a_timeout_of_its_own_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    def handler(_event: object, _context: object) -> object:
        raise TimeoutError("of something else")

    assert gateway(handler).answer(REQUEST).status == 500
    assert "of something else" in capsys.readouterr().err


def test_a_handler_that_takes_too_long_is_unavailable(capsys: pytest.CaptureFixture[str]) -> None:
    gate = threading.Event()
    answer = gateway(lambda _event, _context: gate.wait(), timeout=0.01).answer(REQUEST)
    gate.set()
    assert (answer.status, answer.body) == (503, UNAVAILABLE.body)
    assert "F did not answer within 0.01 s" in capsys.readouterr().err


def test_cors_applies_to_the_gateways_own_answers_too() -> None:
    request = replace(REQUEST, path="/other", headers={"origin": "https://x"})
    answer = gateway(lambda _event, _context: None, ANYBODY).answer(request)
    assert ("Access-Control-Allow-Origin", "*") in answer.headers
    assert answer.status == 404


def test_without_cors_rules_a_functions_own_headers_stay() -> None:
    own = {"access-control-allow-origin": "https://own.example"}
    answer = gateway(lambda _event, _context: {"statusCode": 200, "headers": own}).answer(REQUEST)
    assert ("access-control-allow-origin", "https://own.example") in answer.headers


def test_without_cors_rules_a_preflight_is_a_request_like_any_other() -> None:
    headers = {"origin": "https://x", "access-control-request-method": "POST"}
    request = replace(REQUEST, method="OPTIONS", headers=headers)
    assert gateway(lambda _event, _context: None).answer(request) == message(404, "Not Found")


def test_who_may_not_reach_a_route_does_not_reach_its_function() -> None:
    reached: list[object] = []
    answer = guarded(lambda event, _context: reached.append(event)).answer(REQUEST)
    assert (answer.status, answer.body, reached) == (403, b'{"message":"Forbidden"}', [])
    assert "Apigw-Requestid" in dict(answer.headers)


def test_a_function_is_told_who_reached_it() -> None:
    credential = "AWS4-HMAC-SHA256 Credential=ALICE/20260926/us-east-1/execute-api/aws4_request"
    signed = {"authorization": f"{credential}, SignedHeaders=host, Signature={'0' * 64}"}
    answer = guarded(lambda event, _context: event).answer(replace(REQUEST, headers=signed))
    assert json.loads(answer.body)["requestContext"]["authorizer"]["iam"]["accessKey"] == "ALICE"


def test_a_function_without_an_authorizer_is_told_of_nobody() -> None:
    answer = gateway(lambda event, _context: event).answer(REQUEST)
    assert "authorizer" not in json.loads(answer.body)["requestContext"]


def test_a_refusal_has_the_apis_cors_headers() -> None:
    answer = guarded(lambda _event, _context: None, ANYBODY).answer(replace(REQUEST, headers={"origin": "https://x"}))
    assert answer.status == 403
    assert ("Access-Control-Allow-Origin", "*") in answer.headers


def test_a_preflight_needs_no_credential() -> None:
    headers = {"origin": "https://x", "access-control-request-method": "POST"}
    request = replace(REQUEST, method="OPTIONS", headers=headers)
    assert guarded(lambda _event, _context: None, ANYBODY).answer(request).status == 204
