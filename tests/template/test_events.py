"""Every sample event in events/ is what AWS would send, and gets the answer that its name promises."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from local.endpoints import LOCAL_IDENTITY
from local.signing_key import CREATE, with_created_key
from tests.template.invocations import OPEN, invoke, outcome
from tests.template.sam import ROOT

COMPLETED = "TASK_STATE_COMPLETED"

TOKENS = {"AUTH": "jwt", "JWT_ISSUER": "https://issuer.example/pool", "JWT_AUDIENCE": "agents"}
SETTINGS = {
    "none": OPEN,
    "api-key": {"AUTH": "api-key"},
    "jwt": TOKENS,
    "jwt with a scope": {**TOKENS, "REQUIRED_SCOPE": "agent:use"},
    "iam": {"AUTH": "iam"},
    "a signing key": {**OPEN, "SIGNING_KEY": CREATE},
    "push": {**OPEN, "PUSH": "on"},
}

# Each sample's HTTP status under some settings, and its task's state or its error's code.
ANSWERS: dict[tuple[str, str], tuple[int, str | int | None]] = {
    ("batch", "none"): (200, -32600),
    ("broken-json", "none"): (200, -32700),
    ("cancel-task-unknown", "none"): (200, -32001),
    ("card", "none"): (200, None),
    ("card", "api-key"): (200, None),
    ("card", "jwt"): (200, None),
    ("card", "iam"): (200, None),
    ("card", "push"): (200, None),
    ("card", "a signing key"): (200, None),
    ("card-head", "none"): (200, None),
    ("card-not-modified", "none"): (304, None),
    ("create-push-notification-config", "none"): (200, -32003),
    ("create-push-notification-config-inwards", "none"): (200, -32003),
    ("create-push-notification-config-inwards", "push"): (200, -32602),
    ("delete-push-notification-config", "none"): (200, -32003),
    ("delete-push-notification-config", "push"): (200, -32001),
    ("get-extended-agent-card", "none"): (200, -32004),
    ("get-push-notification-config", "none"): (200, -32003),
    ("get-push-notification-config", "push"): (200, -32001),
    ("get-task-unknown", "none"): (200, -32001),
    ("jwks", "none"): (404, None),
    ("jwks", "a signing key"): (200, None),
    ("jwks-head", "a signing key"): (200, None),
    ("list-push-notification-configs", "none"): (200, -32003),
    ("list-push-notification-configs", "push"): (200, -32001),
    ("list-tasks", "none"): (200, None),
    ("list-tasks-filtered", "none"): (200, None),
    ("list-tasks-forged-token", "none"): (200, -32602),
    ("list-tasks-invalid", "none"): (200, -32602),
    ("send-data", "none"): (200, COMPLETED),
    ("send-file", "none"): (200, -32005),
    ("send-message", "none"): (200, COMPLETED),
    # Without a key, and without what API Gateway adds when it has verified a caller.
    ("send-message", "api-key"): (401, -32000),
    ("send-message", "jwt"): (401, -32000),
    ("send-message", "iam"): (401, -32000),
    ("send-message-base64", "none"): (200, COMPLETED),
    ("send-message-iam", "iam"): (200, COMPLETED),
    ("send-message-input-required", "none"): (200, "TASK_STATE_INPUT_REQUIRED"),
    ("send-message-invalid", "none"): (200, -32602),
    ("send-message-jwt", "jwt"): (200, COMPLETED),
    ("send-message-jwt", "jwt with a scope"): (200, COMPLETED),
    ("send-message-jwt", "iam"): (401, -32000),
    ("send-message-jwt", "api-key"): (401, -32000),
    ("send-message-jwt-of-a-client", "jwt"): (200, COMPLETED),
    ("send-message-jwt-without-scope", "jwt"): (200, COMPLETED),
    ("send-message-jwt-without-scope", "jwt with a scope"): (403, -32000),
    ("send-message-jwt-without-subject", "jwt"): (401, -32000),
    ("send-message-notification", "none"): (204, None),
    ("send-message-return-immediately", "none"): (200, "TASK_STATE_SUBMITTED"),
    ("send-message-trailing-slash", "none"): (200, COMPLETED),
    ("send-message-unknown-task", "none"): (200, -32001),
    ("send-message-version-in-query", "none"): (200, COMPLETED),
    ("send-message-wrong-bearer", "api-key"): (401, -32000),
    ("send-message-wrong-key", "api-key"): (401, -32000),
    ("send-streaming-message", "none"): (200, -32004),
    ("subscribe-to-task", "none"): (200, -32004),
    ("unknown-method", "none"): (200, -32601),
    ("unknown-path", "none"): (404, None),
    ("unsupported-version", "none"): (200, -32009),
}

# Of each sample from a stream or a queue, the record that has to come again.
FAILURES: dict[str, str | None] = {
    "push-broken-json": None,
    "push-update-unknown": None,
    "relay-outboxes": None,
    "worker-broken-json": "00000000-0000-4000-8000-000000000002",
    "worker-turn-unknown": None,
}


def sample(name: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((ROOT / "events" / f"{name}.json").read_text())
    return event


def with_key(settings: Mapping[str, str], endpoint: str) -> Mapping[str, str]:
    """The settings with a key of the embedded KMS where they ask for one."""
    if "SIGNING_KEY" not in settings:
        return settings
    with pytest.MonkeyPatch.context() as environment:
        for name, value in LOCAL_IDENTITY.items():
            environment.setenv(name, value)
        key = with_created_key(settings["SIGNING_KEY"], endpoint)
    return {**settings, "SIGNING_KEY": key, "KMS_ENDPOINT": endpoint}


@pytest.fixture(scope="module")
def answers(database: str) -> dict[tuple[str, str], dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name, settings in SETTINGS.items():
        cases = [case for case in ANSWERS if case[1] == name]
        events = [sample(case[0]) for case in cases]
        found |= dict(zip(cases, invoke(events, database, with_key(settings, database)), strict=True))
    return found


def test_every_sample_has_its_answer_here() -> None:
    assert {file.stem for file in (ROOT / "events").iterdir()} == {name for name, _ in ANSWERS} | set(FAILURES)


@pytest.mark.parametrize("case", ANSWERS, ids=" with ".join)
def test_a_sample_gets_its_answer(answers: dict[tuple[str, str], dict[str, Any]], case: tuple[str, str]) -> None:
    answer = answers[case]

    assert (answer["statusCode"], outcome(answer)) == ANSWERS[case]


@pytest.fixture(scope="module")
def results(database: str) -> dict[str, dict[str, Any]]:
    return dict(zip(FAILURES, invoke([sample(name) for name in FAILURES], database, SETTINGS["push"]), strict=True))


@pytest.mark.parametrize("name", FAILURES)
def test_of_a_sample_that_comes_unasked_the_failure_comes_again(results: dict[str, dict[str, Any]], name: str) -> None:
    failure = FAILURES[name]

    assert results[name] == {"batchItemFailures": [{"itemIdentifier": failure}] if failure else []}
