"""The gateway over real connections, in front of the small deployment."""

import base64
import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.local.processes import SMALL_GATEWAY, Command

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def command() -> Iterator[Command]:
    with Command(SMALL_GATEWAY, {"ALLOWED_ORIGINS": "*", "GREETING": "hi"}) as running:
        yield running.ready()


@pytest.fixture(scope="module")
def address(command: Command) -> tuple[str, int]:
    parts = urlsplit(command.gateway)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


class Reply:
    """An answer, read to its end."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    address: tuple[str, int],
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    connection = http.client.HTTPConnection(*address, timeout=60)
    try:
        connection.request(method, path, body, dict(headers or {}))
        return Reply(connection.getresponse())
    finally:
        connection.close()


def ask_in_bytes(address: tuple[str, int], request: bytes) -> Reply:
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(request)
        response = http.client.HTTPResponse(connection)
        response.begin()
        return Reply(response)


def test_a_function_gets_event_context_and_environment(address: tuple[str, int]) -> None:
    reply = ask(address, "POST", "/echo?a=1&a=2", b'{"x":1}', JSON | {"X-Twice": "1"})
    told = reply.json
    assert told["event"]["headers"]["host"] == f"127.0.0.1:{address[1]}"
    assert told["event"]["headers"]["x-forwarded-port"] == str(address[1])
    assert told["event"]["headers"]["x-twice"] == "1"
    assert told["event"]["queryStringParameters"] == {"a": "1,2"}
    assert told["event"]["requestContext"]["domainName"] == "127.0.0.1"
    assert told["event"]["body"] == '{"x":1}'
    assert told["context"]["function"] == "EchoFunction"
    assert told["context"]["request"] == told["event"]["requestContext"]["requestId"]
    assert 0 < told["context"]["milliseconds"] <= 5000
    assert told["environment"] == {"GREETING": "hi", "ITEMS_TABLE": "ItemsTable"}


def test_duplicate_headers_are_joined(address: tuple[str, int]) -> None:
    request = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 0\r\n\r\n"
    assert ask_in_bytes(address, request).json["event"]["headers"]["x-a"].split(", ") == ["1", "2"]


def test_a_foreign_host_does_not_choose_the_domain(address: tuple[str, int]) -> None:
    told = ask(address, "POST", "/echo", b"", {"Host": "attacker.example"}).json["event"]
    assert told["requestContext"]["domainName"] == "127.0.0.1"
    assert told["headers"]["host"] == "attacker.example"


def test_a_trailing_slash_is_an_empty_proxy(address: tuple[str, int]) -> None:
    told = ask(address, "POST", "/echo/").json["event"]
    assert told["pathParameters"] == {"proxy": ""}
    assert (told["rawPath"], told["routeKey"]) == ("/echo/", "ANY /echo/{proxy+}")


def test_a_chunked_body_arrives_whole(address: tuple[str, int]) -> None:
    request = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert ask_in_bytes(address, request + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n").json["event"]["body"] == "abcde"


def test_invalid_utf_8_arrives_byte_for_byte(address: tuple[str, int]) -> None:
    told = ask(address, "POST", "/echo", b'{"a":"\xff"}', JSON).json["event"]
    assert base64.b64decode(told["body"]) == b'{"a":"\xff"}'


def test_a_base64_answer_is_sent_as_bytes(address: tuple[str, int]) -> None:
    assert ask(address, "GET", "/odd/bytes").body == b"\xff\x00\xff"


def test_head_is_answered_without_a_body(address: tuple[str, int]) -> None:
    reply = ask(address, "HEAD", "/echo/")
    assert (reply.status, reply.body) == (200, b"")
    assert int(reply.headers["content-length"]) > 0


def test_what_has_no_route_is_not_found(address: tuple[str, int]) -> None:
    reply = ask(address, "GET", "/nothing")
    assert (reply.status, reply.headers["content-type"]) == (404, "application/json")
    assert reply.json == {"message": "Not Found"}


@pytest.mark.parametrize("way", ["raise", "garbage"])
def test_a_failing_function_is_an_internal_error(address: tuple[str, int], way: str) -> None:
    reply = ask(address, "GET", f"/odd/{way}")
    assert (reply.status, reply.json) == (500, {"message": "Internal Server Error"})


def test_a_function_that_hangs_is_unavailable(address: tuple[str, int]) -> None:
    reply = ask(address, "GET", "/odd/hang")
    assert (reply.status, reply.json) == (503, {"message": "Service Unavailable"})


def test_a_body_over_ten_megabytes_is_too_large(address: tuple[str, int]) -> None:
    reply = ask(address, "POST", "/echo", b"x" * (10 * 1024 * 1024 + 1), JSON)
    assert (reply.status, reply.json) == (413, {"message": "Request Entity Too Large"})


def test_a_body_that_says_it_is_larger_than_is_read_is_too_large(address: tuple[str, int]) -> None:
    reply = ask_in_bytes(address, b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n")
    assert (reply.status, reply.json) == (413, {"message": "Request Entity Too Large"})


def head_of(size: int) -> bytes:
    """Request line and headers of that many bytes, with the empty line that ends them."""
    start, end = b"GET /nothing HTTP/1.1\r\nHost: x\r\nX-Long: ", b"\r\n\r\n"
    return start + b"x" * (size - len(start) - len(end)) + end


@pytest.mark.parametrize(("size", "status"), [(10_240, 404), (10_241, 431), (100_000, 431)])
def test_request_line_and_headers_may_have_10240_bytes(address: tuple[str, int], size: int, status: int) -> None:
    reply = ask_in_bytes(address, head_of(size))
    assert reply.status == status
    assert status == 404 or reply.json == {"message": "Request Header Fields Too Large"}


@pytest.mark.parametrize(
    "request_bytes", [b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"]
)
def test_what_is_no_request_is_a_bad_request(address: tuple[str, int], request_bytes: bytes) -> None:
    reply = ask_in_bytes(address, request_bytes)
    assert (reply.status, reply.json) == (400, {"message": "Bad Request"})


def test_a_preflight_is_answered_by_the_gateway(address: tuple[str, int]) -> None:
    asked = {"Origin": "https://x", "Access-Control-Request-Method": "POST"}
    reply = ask(address, "OPTIONS", "/echo", None, asked)
    assert (reply.status, reply.body) == (204, b"")
    assert reply.headers["access-control-allow-origin"] == "*"
    assert reply.headers["access-control-allow-methods"] == "GET,POST"


def test_cors_headers_are_the_apis_own(address: tuple[str, int]) -> None:
    assert ask(address, "POST", "/echo", None, {"Origin": "https://x"}).headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in ask(address, "POST", "/echo").headers


def test_a_connection_is_kept_for_the_next_request(address: tuple[str, int]) -> None:
    connection = http.client.HTTPConnection(*address, timeout=60)
    connection.request("POST", "/echo", b"1")
    connection.getresponse().read()
    kept = connection.sock
    connection.request("POST", "/echo", b"2")
    connection.getresponse().read()
    assert connection.sock is kept
    connection.close()


def test_hundreds_of_requests_at_the_same_time_are_answered(address: tuple[str, int]) -> None:
    with ThreadPoolExecutor(300) as callers:
        replies = list(callers.map(lambda number: ask(address, "POST", "/echo", str(number).encode()), range(300)))
    assert [reply.status for reply in replies] == [200] * 300
    bodies = [base64.b64decode(reply.json["event"]["body"]).decode() for reply in replies]
    assert bodies == [str(number) for number in range(300)]


def test_each_request_is_one_line_on_the_console(address: tuple[str, int], command: Command) -> None:
    ask(address, "GET", "/one%0Aline?secret")
    line = command.until("/one")
    assert line.startswith("GET /one\\nline 404 ")
    assert line.endswith(" ms\n")
