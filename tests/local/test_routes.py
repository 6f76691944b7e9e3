"""Which route answers a request."""

import pytest

from local.routes import Route, choose

KEYS = [
    "$default",
    "GET /pets/dog/1",
    "GET /pets/dog/{id}",
    "GET /pets/{kind}/{id}",
    "GET /pets/{proxy+}",
    "ANY /pets/dog/1",
    "ANY /{proxy+}",
    "POST /a2a",
    "POST /a2a/{proxy+}",
]
ROUTES = [Route(key, "F", 30) for key in KEYS]
WITHOUT_CATCH_ALL = [route for route in ROUTES if route.key not in {"$default", "ANY /{proxy+}"}]


@pytest.mark.parametrize(
    ("method", "path", "key"),
    [
        ("GET", "/pets/dog/1", "GET /pets/dog/1"),
        ("PUT", "/pets/dog/1", "ANY /pets/dog/1"),
        ("GET", "/pets/dog/2", "GET /pets/dog/{id}"),
        ("GET", "/pets/cat/2", "GET /pets/{kind}/{id}"),
        ("GET", "/pets/dog", "GET /pets/{proxy+}"),
        ("POST", "/a2a", "POST /a2a"),
        ("POST", "/a2a/", "POST /a2a/{proxy+}"),
        ("POST", "/elsewhere", "ANY /{proxy+}"),
    ],
)
def test_the_most_specific_route_is_chosen(method: str, path: str, key: str) -> None:
    match = choose(ROUTES, method, path)
    assert match is not None
    assert match.route.key == key


def test_the_default_route_takes_what_no_other_does() -> None:
    match = choose([Route("$default", "F", 30), Route("GET /x", "F", 30)], "GET", "/y")
    assert match is not None
    assert match.route.key == "$default"
    assert match.parameters == {}


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("/a2a/", {"proxy": ""}),
        ("/a2a/x/y", {"proxy": "x/y"}),
        ("/a2a//x", {"proxy": "/x"}),
        ("/a2a/\n", {"proxy": "\n"}),
    ],
)
def test_a_greedy_variable_takes_the_rest_of_the_path(path: str, parameters: dict[str, str]) -> None:
    match = choose(ROUTES, "POST", path)
    assert match is not None
    assert match.parameters == parameters


def test_a_variable_takes_one_segment() -> None:
    match = choose(ROUTES, "GET", "/pets/cat/2")
    assert match is not None
    assert match.parameters == {"kind": "cat", "id": "2"}


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/a2a"), ("HEAD", "/pets/dog/2"), ("POST", "/a2a2"), ("POST", "/A2A"), ("POST", ""), ("POST", "/a2a\n")],
)
def test_what_no_route_takes_has_none(method: str, path: str) -> None:
    assert choose(WITHOUT_CATCH_ALL, method, path) is None


def test_a_literal_segment_is_no_pattern() -> None:
    routes = [Route("GET /.well-known/agent-card.json", "F", 30)]
    assert choose(routes, "GET", "/.well-known/agent-card.json") is not None
    assert choose(routes, "GET", "/Xwell-known/agent-cardXjson") is None


def test_a_variable_does_not_take_an_empty_segment() -> None:
    assert choose([Route("GET /{id}", "F", 30)], "GET", "/") is None
