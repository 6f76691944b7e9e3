"""What the agent takes part in: capabilities and media types."""

from typing import Final

import pytest

from a2a_lambda.agent import AgentProfile, completed
from a2a_lambda.capabilities import PUSH_OPERATIONS, UNDECLARED, check_capability, input_modes, media_type
from a2a_lambda.errors import (
    ContentTypeNotSupportedError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
)
from a2a_lambda.model import AgentSkill, Part, TaskState
from tests.unit.factories import SKILL, Json, server, yielding


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (Part(text="x"), "text/plain"),
        (Part(data=None), "application/json"),
        (Part(url="x:"), "application/octet-stream"),
        (Part(raw=b""), "application/octet-stream"),
        (Part(text="x", media_type="Text/HTML; charset=utf-8"), "text/html"),
        (Part(raw=b"", media_type=" image/png "), "image/png"),
    ],
)
def test_a_part_has_a_media_type(part: Part, kind: str) -> None:
    assert media_type(part) == kind


PUSHING: Final = {"configuration": {"taskPushNotificationConfig": {"url": "https://hook.example"}}}


@pytest.mark.parametrize(
    ("operation", "params"), [("SendMessage", PUSHING), *((each, {}) for each in sorted(PUSH_OPERATIONS))]
)
def test_push_notifications_are_refused_unless_the_card_declares_them(operation: str, params: Json) -> None:
    check_capability(operation, params, push=True)
    with pytest.raises(PushNotificationNotSupportedError):
        check_capability(operation, params, push=False)


@pytest.mark.parametrize("operation", UNDECLARED)
def test_what_no_card_declares_is_refused_with_push_notifications_too(operation: str) -> None:
    with pytest.raises(UnsupportedOperationError):
        check_capability(operation, {}, push=True)


def profile(*modes: str, skill_modes: tuple[str, ...] = ()) -> AgentProfile:
    skill = AgentSkill(id="s", name="s", description="s", tags=[], input_modes=list(skill_modes))
    return AgentProfile(name="n", description="d", version="1", skills=[SKILL, skill], default_input_modes=modes)


def test_an_agent_takes_its_default_modes_and_those_of_all_skills() -> None:
    assert input_modes(profile("Text/Plain;charset=utf-8", skill_modes=("image/PNG",))) == {"text/plain", "image/png"}


def test_a_part_that_a_skill_takes_is_taken() -> None:
    served = server(yielding(completed(), profile=profile("text/plain", skill_modes=("image/png",))))

    assert served.task([Part(raw=b"", media_type="IMAGE/PNG")]).status.state is TaskState.COMPLETED


def test_each_part_must_be_of_a_kind_that_the_agent_takes() -> None:
    served = server(yielding(completed(), profile=profile("text/plain")))
    with pytest.raises(ContentTypeNotSupportedError, match="text/plain"):
        served.task([Part(text="x"), Part(data=1)])
