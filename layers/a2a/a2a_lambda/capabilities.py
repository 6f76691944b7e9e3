"""What the agent takes part in, and the refusals of the rest (§3.3.4): capabilities, extensions, media types."""

from collections.abc import Collection
from typing import Any, Final

from msgspec import UNSET

from a2a_lambda.agent import APPLICATION_JSON, TEXT_PLAIN, AgentProfile
from a2a_lambda.errors import (
    ContentTypeNotSupportedError,
    ExtensionSupportRequiredError,
    PushNotificationNotSupportedError,
    UnsupportedOperationError,
)
from a2a_lambda.model import Part

OCTET_STREAM: Final = "application/octet-stream"

UNDECLARED: Final = {
    "SendStreamingMessage": "streaming",
    "SubscribeToTask": "streaming",
    "GetExtendedAgentCard": "extended card",
}
"""Operations that the card does not declare, and the capability that they need."""

PUSH_OPERATIONS: Final = frozenset(
    {
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
    }
)


def check_capability(operation: str, params: Any, *, push: bool) -> None:
    """Refuse what the agent card does not declare. `params` are the request's, unchecked; `push` says if that is.

    Raises:
        UnsupportedOperationError: a streaming operation, or the extended card.
        PushNotificationNotSupportedError: a push operation, or a message with a push configuration, without push.
    """
    if capability := UNDECLARED.get(operation):
        raise UnsupportedOperationError(f"{operation} is not supported: the agent card declares no {capability}")
    if push:
        return
    if operation in PUSH_OPERATIONS or (operation == "SendMessage" and _asks_for_push(params)):
        raise PushNotificationNotSupportedError


def check_extensions(profile: AgentProfile, listed: Collection[str]) -> None:
    """Refuse a client that did not list an extension which the agent requires (§4.6).

    Raises:
        ExtensionSupportRequiredError: naming those that are missing.
    """
    missing = [each.uri for each in profile.extensions if each.required and each.uri not in listed]
    if missing:
        raise ExtensionSupportRequiredError(
            f"List {missing[0]} in the A2A-Extensions header: this agent requires it", extensions=", ".join(missing)
        )


def check_content(parts: Collection[Part], taken: frozenset[str]) -> None:
    """Refuse parts that hold what the agent does not take.

    Raises:
        ContentTypeNotSupportedError: saying what it takes.
    """
    if any(media_type(part) not in taken for part in parts):
        raise ContentTypeNotSupportedError(f"This agent takes parts of these media types: {', '.join(sorted(taken))}")


def media_type(part: Part) -> str:
    """Return what a part holds, as it is compared: in lower case, without parameters."""
    if part.media_type:
        return _essence(part.media_type)
    if part.text is not UNSET:
        return TEXT_PLAIN
    return APPLICATION_JSON if part.data is not UNSET else OCTET_STREAM


def input_modes(profile: AgentProfile) -> frozenset[str]:
    """Return the media types that an agent takes, by default or for any of its skills."""
    by_skill = (mode for skill in profile.skills for mode in skill.input_modes)
    return frozenset(_essence(mode) for mode in (*profile.default_input_modes, *by_skill))


def _essence(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def _asks_for_push(params: Any) -> bool:
    configuration = params.get("configuration") if isinstance(params, dict) else None
    if not isinstance(configuration, dict):
        return False
    names = ("taskPushNotificationConfig", "task_push_notification_config")
    return any(configuration.get(name) is not None for name in names)
