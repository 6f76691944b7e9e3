"""The card function: which document a route gets, and what it loads."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from tests.unit.factories import Json

ROOT: Final = Path(__file__).resolve().parents[2]
FUNCTION: Final = ROOT / "functions" / "card"

PROGRAM: Final = """
import json, sys, app
event = json.loads(sys.argv[1])
assert app.handler(event, None)["statusCode"] == 200
event["routeKey"] = "GET /.well-known/jwks.json"
assert app.handler(event, None)["statusCode"] == 404
print(*sys.modules)
"""


def event(document: str, method: str = "GET") -> Json:
    sample = json.loads((ROOT / "events" / "card.json").read_text())
    return sample | {"routeKey": f"{method} /.well-known/{document}"}


def loaded(monkeypatch: pytest.MonkeyPatch, **environ: str) -> ModuleType:
    for name, value in {"A2A_AGENT": "order_status:OrderStatusAgent", "SIGNING_KEY": "", **environ}.items():
        monkeypatch.setenv(name, value)
    spec = importlib.util.spec_from_file_location("card_function", FUNCTION / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_card_declares_what_callers_need(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    answer = loaded(monkeypatch, AUTH="api-key").handler(event("agent-card.json", method), None)

    assert set(json.loads(answer["body"])["securitySchemes"]) == {"apiKey", "bearer"}


@pytest.mark.parametrize(("setting", "declared"), [("on", True), ("off", False)])
def test_the_card_declares_push_notifications_by_the_setting(
    monkeypatch: pytest.MonkeyPatch, *, setting: str, declared: bool
) -> None:
    answer = loaded(monkeypatch, PUSH=setting).handler(event("agent-card.json"), None)

    assert json.loads(answer["body"])["capabilities"]["pushNotifications"] is declared


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_without_a_signing_key_there_are_no_keys(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    answer = loaded(monkeypatch).handler(event("jwks.json", method), None)

    assert (answer["statusCode"], answer["body"]) == (404, '{"message":"Not Found"}')


@pytest.mark.parametrize("document", ["agent-card.json", "jwks.json"])
def test_browsers_are_to_come_back_by_https(monkeypatch: pytest.MonkeyPatch, document: str) -> None:
    answer = loaded(monkeypatch).handler(event(document), None)

    assert answer["headers"]["strict-transport-security"] == "max-age=31536000"


def test_without_a_signing_key_nothing_is_loaded_that_signs() -> None:
    paths = [FUNCTION, ROOT / "layers" / "a2a", ROOT / "layers" / "agent"]
    environ = {
        "A2A_AGENT": "order_status:OrderStatusAgent",
        "AUTH": "api-key",
        "PYTHONPATH": ":".join(map(str, paths)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-c", PROGRAM, json.dumps(event("agent-card.json"))]
    modules = subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout.split()

    assert "a2a_lambda.security" in modules
    assert {"botocore", "boto3", "urllib3", "a2a_lambda.kms", "a2a_lambda.signing"}.isdisjoint(modules)
