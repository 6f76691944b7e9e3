"""Answers from what functions return."""

import json
import math

import pytest

from local.answers import MAX_RESULT_BYTES, BadResultError, from_result

JSON = ("Content-Type", "application/json")


def test_a_result_with_a_status_is_the_answer() -> None:
    answer = from_result({"statusCode": 201, "headers": {"content-type": "a/b", "x-count": 3}, "body": "ä"})
    assert answer.status == 201
    assert answer.headers == (("content-type", "a/b"), ("x-count", "3"))
    assert answer.body == "ä".encode()


def test_a_status_alone_is_an_empty_text() -> None:
    answer = from_result({"statusCode": "204"})
    assert (answer.status, answer.body) == (204, b"")


def test_a_base64_body_is_decoded() -> None:
    assert from_result({"statusCode": 200, "body": "/wD/", "isBase64Encoded": True}).body == b"\xff\x00\xff"


def test_each_cookie_is_a_header_of_its_own() -> None:
    answer = from_result({"statusCode": 200, "cookies": ["a=1", "b=2"]})
    assert answer.headers[:2] == (("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"))


def test_headers_of_the_connection_are_the_gateways_own() -> None:
    answer = from_result({"statusCode": 200, "headers": {"Content-Length": "9", "Connection": "close"}})
    assert [name for name, _ in answer.headers] == ["Content-Type"]


@pytest.mark.parametrize(
    ("result", "body"), [({"a": 1}, b'{"a": 1}'), ([1], b"[1]"), ("text", b"text"), (None, b"null")]
)
def test_a_result_without_a_status_is_the_body(result: object, body: bytes) -> None:
    answer = from_result(result)
    assert (answer.status, answer.headers, answer.body) == (200, (JSON,), body)


@pytest.mark.parametrize(
    "result",
    [
        b"bytes",
        {"a": {1, 2}},
        {"statusCode": 99},
        {"statusCode": 100},
        {"statusCode": 600},
        {"statusCode": "ok"},
        {"statusCode": True},
        {"statusCode": None},
        {"statusCode": math.nan},
        {"statusCode": 200, "body": {"a": 1}},
        {"statusCode": 200, "body": "not base64", "isBase64Encoded": True},
        {"statusCode": 200, "body": "\ud800"},
        {"statusCode": 200, "headers": ["a"]},
        {"statusCode": 200, "headers": {"a": None}},
        {"statusCode": 200, "headers": {"a": "b\r\nc: d"}},
        {"statusCode": 200, "headers": {"a": "€"}},
        {"statusCode": 200, "headers": {"a b": "c"}},
        {"statusCode": 200, "cookies": "a=1"},
        {"statusCode": 200, "body": "x" * MAX_RESULT_BYTES},
        "\ud800",
    ],
)
def test_what_is_no_answer_is_an_error(result: object) -> None:
    with pytest.raises(BadResultError):
        from_result(result)


def test_a_result_that_contains_itself_is_an_error() -> None:
    result: list[object] = []
    result.append(result)
    with pytest.raises(BadResultError):
        from_result(result)


def test_a_result_just_under_lambdas_limit_is_an_answer() -> None:
    frame = len(json.dumps({"statusCode": 200, "body": ""}))
    assert from_result({"statusCode": 200, "body": "x" * (MAX_RESULT_BYTES - frame)}).status == 200
