"""API Gateway's events: bodies, headers, and the address under which a client came."""

import base64

import pytest

from a2a_lambda import apigateway
from tests.unit.factories import Json

AWS = "abc123.execute-api.eu-central-1.amazonaws.com"


def event(domain: str = AWS, stage: str = "$default", **headers: str) -> Json:
    return {"headers": headers, "requestContext": {"domainName": domain, "stage": stage}}


@pytest.mark.parametrize("content", [b"", b"hello", "é😀".encode()])
def test_a_body_is_what_the_client_sent(content: bytes) -> None:
    assert apigateway.body({"body": content.decode(), "isBase64Encoded": False}) == content
    assert apigateway.body({"body": base64.b64encode(content).decode(), "isBase64Encoded": True}) == content


@pytest.mark.parametrize("absent", [{}, {"body": None}, {"body": ""}, {"body": None, "isBase64Encoded": True}])
def test_a_request_without_a_body_has_an_empty_one(absent: Json) -> None:
    assert apigateway.body(absent) == b""


@pytest.mark.parametrize("body", ["{}", "e30", "e3\n0=", "é", "====", "\ud800"])
def test_what_claims_to_be_base64_and_is_not_is_left_to_the_parser(body: str) -> None:
    assert apigateway.body({"body": body, "isBase64Encoded": True}) == body.encode("utf-8", "surrogatepass")


def test_bytes_that_are_not_utf_8_arrive_as_they_are() -> None:
    assert apigateway.body({"body": base64.b64encode(b"\xff\x00").decode(), "isBase64Encoded": True}) == b"\xff\x00"


def test_a_header_that_is_missing_is_empty() -> None:
    assert apigateway.header({}, "x") == apigateway.header({"headers": {}}, "x") == ""


@pytest.mark.parametrize(
    ("header", "values"), [("", []), ("a", ["a"]), ("a, b,c ", ["a", "b", "c"]), (",", []), ("a,,b", ["a", "b"])]
)
def test_a_list_is_split_at_its_commas(header: str, values: list[str]) -> None:
    assert apigateway.listed({"headers": {"x": header}}, "x") == values


@pytest.mark.parametrize("absent", [{}, {"queryStringParameters": None}, {"queryStringParameters": {}}])
def test_a_parameter_that_is_missing_is_empty(absent: Json) -> None:
    assert apigateway.parameter(absent, "x") == ""


@pytest.mark.parametrize("authorizer", [{}, None, {"jwt": None}, {"jwt": {}}, {"jwt": {"claims": None}}, {"iam": None}])
def test_an_authorizer_that_says_nothing_says_nothing(authorizer: Json) -> None:
    came = {"headers": {}, "requestContext": {"http": {"sourceIp": "192.0.2.7"}, "authorizer": authorizer}}
    found = apigateway.credentials(came)

    assert not found.claims
    assert (found.iam, found.source_address) == (None, "192.0.2.7")


# Addresses


def test_the_address_is_the_apis_own_domain() -> None:
    assert apigateway.base_url(event()) == f"https://{AWS}"


def test_the_stage_is_part_of_the_address() -> None:
    assert apigateway.base_url(event(stage="prod")) == f"https://{AWS}/prod"


@pytest.mark.parametrize("host", ["evil.example", "localhost:3000", "evil.example:443", f"{AWS}.evil.example", ""])
def test_the_host_that_a_client_names_is_not_believed(host: str) -> None:
    assert apigateway.base_url(event(host=host)) == f"https://{AWS}"


@pytest.mark.parametrize("host", ["evil.example", "x-forwarded"])
def test_forwarding_headers_are_not_believed(host: str) -> None:
    forged = {"x-forwarded-host": host, "x-forwarded-proto": "http", "forwarded": f"host={host}"}

    assert apigateway.base_url({**event(), "headers": forged}) == f"https://{AWS}"


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]"])
def test_this_machine_is_reached_by_http_at_its_port(name: str) -> None:
    assert apigateway.base_url(event(name, host=f"{name}:3000")) == f"http://{name}:3000"


def test_this_machine_keeps_the_name_by_which_it_was_called() -> None:
    assert apigateway.base_url(event("localhost", host="127.0.0.1:3000")) == "http://127.0.0.1:3000"


@pytest.mark.parametrize(
    "host", ["", "localhost", "evil.example:3000", "evil.example", "localhost:", "localhost:x", "a@localhost:1", ":80"]
)
def test_on_this_machine_too_no_other_host_is_believed(host: str) -> None:
    assert apigateway.base_url(event("localhost", host=host)) == "http://localhost"


# Answers


def test_an_answer_has_status_headers_and_text() -> None:
    assert apigateway.response(200, "é".encode(), {"a": "b"}) == {
        "statusCode": 200,
        "headers": {"a": "b", "strict-transport-security": "max-age=31536000"},
        "body": "é",
    }


def test_an_answer_without_content_has_no_body() -> None:
    assert apigateway.response(204, b"", {}) == {
        "statusCode": 204,
        "headers": {"strict-transport-security": "max-age=31536000"},
    }
