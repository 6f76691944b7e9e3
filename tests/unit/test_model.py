"""How the wire types are written: names, presence, and what is left out."""

from typing import Any

import msgspec
import pytest

from a2a_lambda.model import (
    AgentCapabilities,
    Artifact,
    Message,
    Part,
    Role,
    SendMessageResponse,
    Task,
    TaskState,
    TaskStatus,
)
from tests.unit.factories import Json


def written(value: Any) -> Json:
    return msgspec.json.decode(msgspec.json.encode(value))


def test_names_are_camel_case() -> None:
    message = Message("m", Role.USER, [Part(text="x", media_type="text/plain")], task_id="t", context_id="c")
    assert written(message) == {
        "messageId": "m",
        "role": "ROLE_USER",
        "parts": [{"text": "x", "mediaType": "text/plain"}],
        "taskId": "t",
        "contextId": "c",
    }


def test_required_fields_are_written_when_they_are_empty() -> None:
    assert written(Artifact("", [])) == {"artifactId": "", "parts": []}


def test_fields_that_are_unset_are_left_out() -> None:
    assert written(Task("t", TaskStatus(TaskState.WORKING))) == {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}


@pytest.mark.parametrize("value", [None, 0, "", False, [], {}])
def test_data_is_written_whatever_its_value(value: Json) -> None:
    assert written(Part(data=value)) == {"data": value}


def test_an_empty_text_is_written() -> None:
    assert written(Part(text="")) == {"text": ""}


def test_bytes_are_written_as_base64() -> None:
    assert written(Part(raw=b"\xfb\xff")) == {"raw": "+/8="}


def test_an_optional_field_is_written_when_it_is_set_to_false() -> None:
    assert written(AgentCapabilities(streaming=False)) == {"streaming": False}


def test_metadata_that_is_set_is_written_when_it_is_empty() -> None:
    assert written(Part(text="x", metadata={})) == {"text": "x", "metadata": {}}


def test_a_response_holds_the_one_thing_that_is_set() -> None:
    message = Message("m", Role.AGENT, [Part(text="x")])
    assert list(written(SendMessageResponse(message=message))) == ["message"]


def test_the_states_are_numbered_as_in_the_proto() -> None:
    assert [state.name for state in TaskState] == [
        "SUBMITTED",
        "WORKING",
        "COMPLETED",
        "FAILED",
        "CANCELED",
        "INPUT_REQUIRED",
        "REJECTED",
        "AUTH_REQUIRED",
    ]
