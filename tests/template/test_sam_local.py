"""`sam local start-api` serves the template's routes, its containers would find the local database, and the
functions answer the events that it makes, which are not quite API Gateway's.
"""

import json
import tomllib
from typing import Any

import pytest

from tests.template import sam
from tests.template.invocations import invoke, outcome
from tests.template.test_template import ROUTES

CARD = "/.well-known/agent-card.json"
KEYS = "/.well-known/jwks.json"


def send(message_id: str) -> str:
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": "Where is order A-1001?"}]}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}})


def http_request(method: str, path: str, body: str | None = None) -> dict[str, Any]:
    headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
    return {"method": method, "path": path, "headers": headers, "body": body}


REQUESTS = {
    "card": http_request("GET", CARD),
    "card head": http_request("HEAD", CARD),
    "keys": http_request("GET", KEYS),
    "message": http_request("POST", "/a2a", send("sam-1")),
    "message with a slash": http_request("POST", "/a2a/", send("sam-2")),
    "below the endpoint": http_request("POST", "/a2a/tasks", send("sam-3")),
    "no route": http_request("GET", "/a2a"),
}


@pytest.fixture(scope="module", params=["default", pytest.param("x86_64", marks=pytest.mark.thorough)])
def report(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What SAM makes of the template and of the requests under a samconfig.toml environment."""
    configuration = tomllib.loads((sam.ROOT / "samconfig.toml").read_text())
    options = configuration[request.param]["local_start_api"]["parameters"]
    options["parameter_overrides"] = dict(pair.split("=", 1) for pair in options["parameter_overrides"].split())
    template, requests = str(sam.ROOT / "template.yaml"), json.dumps(list(REQUESTS.values()))
    found: dict[str, Any] = sam.run_script("sam_local.py", template, json.dumps(options), stdin=requests)
    return found


@pytest.fixture
def invocations(report: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(REQUESTS, report["invocations"], strict=True))


def test_sam_serves_the_routes_of_the_template(report: dict[str, Any]) -> None:
    served = {route: name for route, name in report["routes"].items() if not route.startswith("OPTIONS ")}

    assert served == ROUTES


def test_the_containers_find_the_local_database(report: dict[str, Any]) -> None:
    variables = report["environments"]["RpcFunction"]

    assert variables["DYNAMODB_ENDPOINT"] == "http://host.docker.internal:8000"
    assert (variables["TASKS_TABLE"], variables["CALLERS_TABLE"]) == ("TasksTable", "CallersTable")


def test_the_containers_let_everybody_in(report: dict[str, Any]) -> None:
    """SAM has no authorizers of these kinds."""
    assert {report["environments"][function]["AUTH"] for function in ROUTES.values()} == {"none"}


def test_the_containers_have_credentials_without_an_aws_account(report: dict[str, Any]) -> None:
    for variables in report["environments"].values():
        assert variables["AWS_ACCESS_KEY_ID"]
        assert variables["AWS_SECRET_ACCESS_KEY"]


def test_a_path_without_a_route_reaches_no_function(invocations: dict[str, Any]) -> None:
    assert [name for name, invocation in invocations.items() if invocation is None] == ["no route"]


def test_the_functions_answer_the_events_that_sam_makes(invocations: dict[str, Any], database: str) -> None:
    reached = {name: invocation["event"] for name, invocation in invocations.items() if invocation}

    answers = dict(zip(reached, invoke(list(reached.values()), database), strict=True))

    assert {name: (answer["statusCode"], outcome(answer)) for name, answer in answers.items()} == {
        "card": (200, None),
        "card head": (200, None),
        "keys": (404, None),
        "message": (200, "TASK_STATE_COMPLETED"),
        "message with a slash": (200, "TASK_STATE_COMPLETED"),
        "below the endpoint": (404, None),
    }
    interfaces = json.loads(answers["card"]["body"])["supportedInterfaces"]
    assert [interface["url"] for interface in interfaces] == ["http://localhost:3000/a2a"]
