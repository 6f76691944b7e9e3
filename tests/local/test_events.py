"""Events of payload format 2.0."""

import base64
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from local.events import Request, domain_name, make_event, split_target
from local.routes import Match, Route

REQUEST = Request(
    method="POST",
    path="/a2a",
    query="",
    headers={"host": "localhost:3000", "content-type": "application/json", "user-agent": "test"},
    body=b'{"a":1}',
    protocol="HTTP/1.1",
    source_ip="127.0.0.1",
    server_host="127.0.0.1",
    server_port=3000,
)
MATCH = Match(Route("POST /a2a", "F", 30), {})
NOW = datetime(2026, 9, 26, 20, 37, 31, 121000, tzinfo=UTC)


def event(request: Request = REQUEST, match: Match = MATCH) -> dict[str, Any]:
    return make_event(request, match, "request-1", NOW)


def with_headers(**headers: str) -> Request:
    return replace(REQUEST, headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_an_event_holds_what_api_gateway_says_of_a_request() -> None:
    assert event() == {
        "version": "2.0",
        "routeKey": "POST /a2a",
        "rawPath": "/a2a",
        "rawQueryString": "",
        "headers": {
            "host": "localhost:3000",
            "content-type": "application/json",
            "user-agent": "test",
            "x-forwarded-for": "127.0.0.1",
            "x-forwarded-port": "3000",
            "x-forwarded-proto": "http",
        },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "local",
            "domainName": "localhost",
            "domainPrefix": "localhost",
            "http": {
                "method": "POST",
                "path": "/a2a",
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": "test",
            },
            "requestId": "request-1",
            "routeKey": "POST /a2a",
            "stage": "$default",
            "time": "26/Sep/2026:20:37:31 +0000",
            "timeEpoch": 1790455051121,
        },
        "body": '{"a":1}',
        "isBase64Encoded": False,
    }


def test_what_a_request_lacks_is_not_in_its_event() -> None:
    assert not {"body", "cookies", "pathParameters", "queryStringParameters"} & event(replace(REQUEST, body=b"")).keys()


def test_path_variables_are_in_the_event_even_when_empty() -> None:
    assert event(match=Match(Route("POST /a2a/{proxy+}", "F", 30), {"proxy": ""}))["pathParameters"] == {"proxy": ""}


def test_query_parameters_are_decoded_and_duplicates_joined() -> None:
    query = "a=1&a=2&b=%20x+y&c="
    told = event(replace(REQUEST, query=query))
    assert told["rawQueryString"] == query
    assert told["queryStringParameters"] == {"a": "1,2", "b": " x y", "c": ""}


def test_cookies_leave_the_headers() -> None:
    told = event(with_headers(cookie="a=1; b=2"))
    assert told["cookies"] == ["a=1", "b=2"]
    assert "cookie" not in told["headers"]


def test_the_callers_address_follows_those_it_was_forwarded_from() -> None:
    assert event(with_headers(x_forwarded_for="10.0.0.1"))["headers"]["x-forwarded-for"] == "10.0.0.1, 127.0.0.1"


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", "Application/JSON", "text/plain", "application/xml"],
)
def test_text_is_told_as_text(content_type: str) -> None:
    told = event(replace(with_headers(content_type=content_type), body="ä".encode()))
    assert (told["body"], told["isBase64Encoded"]) == ("ä", False)


@pytest.mark.parametrize("content_type", ["", "application/octet-stream", "application/a2a+json", "image/png"])
def test_everything_else_is_told_as_base64(content_type: str) -> None:
    told = event(with_headers(content_type=content_type))
    assert (told["body"], told["isBase64Encoded"]) == (base64.b64encode(REQUEST.body).decode(), True)


def test_bytes_that_are_no_text_are_told_as_base64_whatever_their_type() -> None:
    told = event(replace(REQUEST, body=b'{"a":"\xff"}'))
    assert base64.b64decode(told["body"]) == b'{"a":"\xff"}'
    assert told["isBase64Encoded"] is True


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost:3000", "localhost"),
        ("LOCALHOST", "localhost"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("[::1]:3000", "[::1]"),
        ("[::1]", "[::1]"),
        ("attacker.example", "127.0.0.1"),
        ("attacker.example:3000", "127.0.0.1"),
        ("localhost.attacker.example", "127.0.0.1"),
        ("localhost@attacker.example", "127.0.0.1"),
        ("localhost:80@attacker.example", "127.0.0.1"),
        ("localhost/", "127.0.0.1"),
        ("", "127.0.0.1"),
    ],
)
def test_a_foreign_host_does_not_choose_the_domain(host: str, name: str) -> None:
    assert domain_name(host, "127.0.0.1") == name


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/a%20b/%E2%82%AC?x=%20", "/a b/€", "x=%20"),
        ("http://localhost:3000/a2a?x", "/a2a", "x"),
        ("//double", "//double", ""),
        ("*", "/", ""),
        ("/%ff", "/\ufffd", ""),
    ],
)
def test_the_path_is_decoded_and_the_query_is_not(target: str, path: str, query: str) -> None:
    assert split_target(target) == (path, query)
