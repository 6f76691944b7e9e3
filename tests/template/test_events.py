"""Every sample event in events/ is what API Gateway would send, and gets the answer that its name promises."""

import json
from typing import Any

import pytest

from tests.template.invocations import invoke, outcome
from tests.template.sam import ROOT

COMPLETED = "TASK_STATE_COMPLETED"

# Each sample's HTTP status, and its task's state or its error's code.
ANSWERS: dict[str, tuple[int, str | int | None]] = {
    "batch": (200, -32600),
    "broken-json": (200, -32700),
    "cancel-task-unknown": (200, -32001),
    "card": (200, None),
    "card-head": (200, None),
    "card-not-modified": (304, None),
    "create-push-notification-config": (200, -32003),
    "get-extended-agent-card": (200, -32004),
    "get-task-unknown": (200, -32001),
    "list-tasks": (200, -32004),
    "send-data": (200, COMPLETED),
    "send-file": (200, -32005),
    "send-message": (200, COMPLETED),
    "send-message-base64": (200, COMPLETED),
    "send-message-input-required": (200, "TASK_STATE_INPUT_REQUIRED"),
    "send-message-invalid": (200, -32602),
    "send-message-notification": (204, None),
    "send-message-trailing-slash": (200, COMPLETED),
    "send-message-unknown-task": (200, -32001),
    "send-message-version-in-query": (200, COMPLETED),
    "send-streaming-message": (200, -32004),
    "subscribe-to-task": (200, -32004),
    "unknown-method": (200, -32601),
    "unknown-path": (404, None),
    "unsupported-version": (200, -32009),
}


def sample(name: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((ROOT / "events" / f"{name}.json").read_text())
    return event


@pytest.fixture(scope="module")
def answers(database: str) -> dict[str, dict[str, Any]]:
    names = sorted(ANSWERS)
    return dict(zip(names, invoke([sample(name) for name in names], database), strict=True))


def test_every_sample_has_its_answer_here() -> None:
    assert {file.stem for file in (ROOT / "events").iterdir()} == set(ANSWERS)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_sample_gets_its_answer(answers: dict[str, dict[str, Any]], name: str) -> None:
    answer = answers[name]

    assert (answer["statusCode"], outcome(answer)) == ANSWERS[name]


@pytest.mark.parametrize("name", ANSWERS)
def test_a_sample_agrees_with_itself(name: str) -> None:
    event = sample(name)
    context = event["requestContext"]
    method, path = context["http"]["method"], context["http"]["path"]

    assert event["version"] == "2.0"
    assert event["routeKey"] == context["routeKey"]
    assert event["routeKey"].split()[0] == method
    assert event["rawPath"] == path
    assert event["headers"]["host"] == context["domainName"]
    assert all(header == header.lower() for header in event["headers"])
    assert ("body" in event) == (method == "POST")
