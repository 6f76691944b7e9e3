"""The recorded exchanges with an order-status agent, in order, through the functions' handlers."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests.integration.functions import CARD_PATH, Context, content, http_event, load
from tests.integration.tables import Tasks
from tests.unit.factories import Json

RECORDED: Final = Path(__file__).with_name("order-status.json")
PLACEHOLDER: Final = re.compile(r"<(task|context|id)-\d+>")


class Likeness:
    """Compares answers with recorded ones, in which the same placeholder is always the same value."""

    def __init__(self) -> None:
        self._known: dict[str, Json] = {"<origin-host>": "localhost:3000"}

    def filled_in(self, recorded: str) -> str:
        """Return a recorded text with what is known of its placeholders."""
        for name, value in self._known.items():
            recorded = recorded.replace(name, str(value))
        return recorded

    def assert_like(self, actual: Json, recorded: Json, where: str = "") -> None:
        """Check that a value is as it was recorded."""
        if isinstance(recorded, dict):
            assert isinstance(actual, dict), where
            missing_or_new = set(recorded) ^ set(actual)
            assert not missing_or_new - ({"data"} if where.endswith(".error") else set()), where
            for name, value in recorded.items():
                self.assert_like(actual[name], value, f"{where}.{name}")
        elif isinstance(recorded, list):
            assert len(actual) == len(recorded), where
            for index, value in enumerate(recorded):
                self.assert_like(actual[index], value, f"{where}[{index}]")
        elif isinstance(recorded, str) and PLACEHOLDER.fullmatch(recorded):
            assert actual == self._known.setdefault(recorded, actual), where
        elif recorded == "<time>":
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", actual), where
        elif isinstance(recorded, str) and re.fullmatch("<.*>", recorded):
            assert isinstance(actual, str), where
            assert actual, where
        else:
            expected = self.filled_in(recorded) if isinstance(recorded, str) else recorded
            assert (type(actual), actual) == (type(recorded), expected), where


def test_the_recorded_exchanges_are_carried_out(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = {
        CARD_PATH: load("card", {}, monkeypatch),
        "/a2a": load("rpc", {"TASKS_TABLE": tasks.name, "CALLERS_TABLE": "callers"}, monkeypatch),
    }
    exchanges = msgspec.json.decode(RECORDED.read_bytes())
    likeness = Likeness()
    for exchange in exchanges:
        request, expected = exchange["request"], exchange["response"]
        body = None if request["body"] is None else likeness.filled_in(request["body"])
        headers: Mapping[str, Any] = request["headers"] | {"host": "localhost:3000"}
        event = http_event(request["method"], request["path"], headers, body, domain="localhost")
        answer = handlers[request["path"]](event, Context())

        assert answer["statusCode"] == expected["status"], exchange["name"]
        likeness.assert_like(content(answer), expected["json"], exchange["name"])
        for name, value in expected["headers"].items():
            if name != "Access-Control-Allow-Origin":  # API Gateway's own
                assert answer["headers"][name.lower()] == value, exchange["name"]
    assert len(exchanges) == 14
