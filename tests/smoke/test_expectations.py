"""The tables of expectations are the protocol's, and a walk survives whatever it is told."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from a2a.types import a2a_pb2
from google.api import field_behavior_pb2
from google.protobuf.descriptor import Descriptor
from hypothesis import given, settings
from hypothesis import strategies as st

from smoke.errors import WrongError
from smoke.expectations import ONE_OF, SHAPES, Code, Json, check, check_error, shown
from smoke.settings import CARD_PATH, read_settings
from smoke.visit import Visit
from smoke.walk import CHECKS, walk
from smoke.wire import Answer, Wire

NOT_MESSAGES = {"Empty"}

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["JSONRPC", "1.0"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([name for shape in SHAPES.values() for name in shape]), inner, max_size=4)
    ),
    max_leaves=12,
)


def descriptor(name: str) -> Descriptor:
    found: Descriptor = getattr(a2a_pb2, name).DESCRIPTOR
    return found


@pytest.mark.parametrize("name", sorted(SHAPES.keys() - NOT_MESSAGES))
def test_a_messages_fields_are_those_of_the_protocol(name: str) -> None:
    assert SHAPES[name].keys() == {field.json_name for field in descriptor(name).fields}


@pytest.mark.parametrize("name", sorted(SHAPES.keys() - NOT_MESSAGES))
def test_the_fields_that_must_be_there_are_those_of_the_protocol(name: str) -> None:
    required = {
        field.json_name
        for field in descriptor(name).fields
        if field_behavior_pb2.REQUIRED in field.GetOptions().Extensions[field_behavior_pb2.field_behavior]
    }
    assert {field for field, kind in SHAPES[name].items() if kind.endswith("!")} == required


@pytest.mark.parametrize("name", ONE_OF)
def test_the_alternatives_are_those_of_the_protocol(name: str) -> None:
    (alternatives,) = (each for each in descriptor(name).oneofs if not each.name.startswith("_"))
    assert set(ONE_OF[name]) == {field.json_name for field in alternatives.fields}


@pytest.mark.parametrize(
    ("value", "kind", "fault"),
    [
        ({"id": "1"}, "Task", "Task has no status"),
        ({"id": "1", "status": {"state": "TASK_STATE_DONE"}}, "Task", "Task.status.state is no state"),
        ({"text": "a", "data": 1}, "Part", "exactly one of"),
        ({}, "Part", "exactly one of"),
        ({"text": "a", "mimeType": "x"}, "Part", 'unknown field "mimeType"'),
        ({"raw": "not base64"}, "Part", "Part.raw is no bytes"),
        ({"messageId": "1", "role": "agent", "parts": []}, "Message", "Message.parts is no list that holds something"),
        ({"schemes": {"a": {"list": [1]}}}, "SecurityRequirement", 'schemes["a"].list[0] is no string'),
        ({"schemes": []}, "SecurityRequirement", "is no map"),
        (7, "Task", "Task is no Task: 7"),
    ],
)
def test_what_a_value_is_not_is_said(value: Json, kind: str, fault: str) -> None:
    with pytest.raises(WrongError) as wrong:
        check(value, kind)
    assert fault in str(wrong.value)


def test_all_that_a_value_is_not_is_said_at_once() -> None:
    with pytest.raises(WrongError, match=r"artifactId.*parts|parts.*artifactId"):
        check({"parts": "none"}, "Artifact")


@pytest.mark.parametrize("data", [0, "", False, None, [], {}])
def test_a_data_part_may_hold_anything(data: Json) -> None:
    check({"data": data}, "Part")


@pytest.mark.parametrize("error", [None, 1, {}, {"code": -32001}, {"code": -32001, "message": ""}, {"code": "x"}])
def test_what_is_no_error_is_told_apart(error: Json) -> None:
    with pytest.raises(WrongError):
        check_error(error, Code.TASK_NOT_FOUND)


def test_what_a_server_says_cannot_break_out_of_its_line() -> None:
    assert "\n" not in shown("a\nb\x1b[31m\u202e" * 50)
    assert shown("\x1b").isascii()


class TellsAnything(Wire):
    """Answers with values that were made up: everything, or what is behind a good card and a good envelope."""

    def __init__(self, values: list[Json], *, card: Json) -> None:
        super().__init__()
        self._values = values
        self._card = card
        self._sent = 0

    def send(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        del method, headers
        self._sent += 1
        value = self._values[self._sent % len(self._values)]
        if url.endswith(CARD_PATH) and self._card is not None:
            value = self._card
        elif body is not None and self._card is not None:
            value = {"jsonrpc": "2.0", "id": _id(body), ["result", "error"][self._sent % 2]: value}
        return Answer(200, {"content-type": "application/json"}, json.dumps(value).encode())


def _id(body: bytes) -> Any:
    try:
        request = json.loads(body)
    except ValueError:
        return None
    return request.get("id") if isinstance(request, dict) else None


GOOD_CARD = {
    "name": "Test",
    "supportedInterfaces": [{"url": "https://a.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
}


@settings(max_examples=150, deadline=None)
@given(
    values=st.lists(VALUES, min_size=1, max_size=5),
    changes=st.none()
    | st.dictionaries(
        st.sampled_from(sorted(SHAPES["AgentCard"].keys() - {"supportedInterfaces"})), VALUES, max_size=3
    ),
)
def test_whatever_a_server_says_every_check_has_a_line_and_one_fails(
    values: list[Json], changes: dict[str, Json] | None
) -> None:
    wire = TellsAnything(values, card=None if changes is None else GOOD_CARD | changes)
    lines: list[str] = []
    visit = Visit(read_settings({"URL": "https://a.example", "KEY": "k"}), wire, pause=lambda _: None)
    counts = walk(CHECKS, visit, lines.append)
    assert len(lines) == len(CHECKS)
    assert counts["FAILED"]
