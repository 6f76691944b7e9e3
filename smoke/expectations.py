"""What an answer must be, as tables: the messages of A2A 1.0 (§4), and the errors (§5.4, §9.5).

A kind is a message of SHAPES or a value of VALUES. Behind it may stand `[]` (a list), `[+]` (a list that is not
empty) or `{}` (a map from strings), and `!` where the field must be there.
"""

from __future__ import annotations

import base64
import json
import re
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from smoke.errors import WrongError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Json = Any
"""A value as it is read from JSON."""

RUNNING: Final = frozenset({"TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"})
INTERRUPTED: Final = frozenset({"TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"})
FINISHED: Final = frozenset({"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"})

TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
SHOWN: Final = 80
"""The most characters that are shown of what a server says."""


class Code(IntEnum):
    """The codes of JSON-RPC errors that are looked for."""

    JSON_PARSE = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    TASK_NOT_FOUND = -32001
    TASK_NOT_CANCELABLE = -32002
    PUSH_NOTIFICATION_NOT_SUPPORTED = -32003
    UNSUPPORTED_OPERATION = -32004
    CONTENT_TYPE_NOT_SUPPORTED = -32005
    EXTENSION_SUPPORT_REQUIRED = -32008
    VERSION_NOT_SUPPORTED = -32009


WITH_VIOLATIONS: Final = frozenset({Code.INVALID_REQUEST, Code.INVALID_PARAMS})
"""Their `data` has a BadRequest, which names fields."""

WITHOUT_DETAILS: Final = frozenset({Code.JSON_PARSE, Code.METHOD_NOT_FOUND})
"""The others' `data` has an ErrorInfo, with the error's name as its reason."""

TYPE_PREFIX: Final = "type.googleapis.com/google.rpc."

RESULTS: Final[Mapping[str, str]] = {
    "SendMessage": "SendMessageResponse",
    "GetTask": "Task",
    "ListTasks": "ListTasksResponse",
    "CancelTask": "Task",
    "CreateTaskPushNotificationConfig": "TaskPushNotificationConfig",
    "GetTaskPushNotificationConfig": "TaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs": "ListTaskPushNotificationConfigsResponse",
    "DeleteTaskPushNotificationConfig": "Empty",
}
"""What each method answers."""

SHAPES: Final[Mapping[str, Mapping[str, str]]] = {
    "Task": {
        "id": "name!",
        "contextId": "name",
        "status": "TaskStatus!",
        "artifacts": "Artifact[]",
        "history": "Message[]",
        "metadata": "object",
    },
    "TaskStatus": {"state": "state!", "message": "Message", "timestamp": "time"},
    "Message": {
        "messageId": "name!",
        "contextId": "name",
        "taskId": "name",
        "role": "role!",
        "parts": "Part[+]!",
        "metadata": "object",
        "extensions": "string[]",
        "referenceTaskIds": "string[]",
    },
    "Part": {
        "text": "string",
        "raw": "bytes",
        "url": "string",
        "data": "value",
        "metadata": "object",
        "filename": "string",
        "mediaType": "string",
    },
    "Artifact": {
        "artifactId": "name!",
        "name": "string",
        "description": "string",
        "parts": "Part[+]!",
        "metadata": "object",
        "extensions": "string[]",
    },
    "SendMessageResponse": {"task": "Task", "message": "Message"},
    "ListTasksResponse": {
        "tasks": "Task[]!",
        "nextPageToken": "string!",
        "pageSize": "integer!",
        "totalSize": "integer!",
    },
    "TaskPushNotificationConfig": {
        "tenant": "string",
        "id": "name",
        "taskId": "name",
        "url": "name!",
        "token": "string",
        "authentication": "AuthenticationInfo",
    },
    "AuthenticationInfo": {"scheme": "name!", "credentials": "string"},
    "ListTaskPushNotificationConfigsResponse": {
        "configs": "TaskPushNotificationConfig[]",
        "nextPageToken": "string",
    },
    "Empty": {},
    "AgentCard": {
        "name": "name!",
        "description": "name!",
        "supportedInterfaces": "AgentInterface[+]!",
        "provider": "AgentProvider",
        "version": "name!",
        "documentationUrl": "string",
        "capabilities": "AgentCapabilities!",
        "securitySchemes": "SecurityScheme{}",
        "securityRequirements": "SecurityRequirement[]",
        "defaultInputModes": "string[+]!",
        "defaultOutputModes": "string[+]!",
        "skills": "AgentSkill[]!",
        "signatures": "AgentCardSignature[]",
        "iconUrl": "string",
    },
    "AgentInterface": {
        "url": "name!",
        "protocolBinding": "name!",
        "tenant": "string",
        "protocolVersion": "name!",
    },
    "AgentProvider": {"url": "name!", "organization": "name!"},
    "AgentCapabilities": {
        "streaming": "boolean",
        "pushNotifications": "boolean",
        "extensions": "AgentExtension[]",
        "extendedAgentCard": "boolean",
    },
    "AgentExtension": {"uri": "string", "description": "string", "required": "boolean", "params": "object"},
    "AgentSkill": {
        "id": "name!",
        "name": "name!",
        "description": "name!",
        "tags": "string[]!",
        "examples": "string[]",
        "inputModes": "string[]",
        "outputModes": "string[]",
        "securityRequirements": "SecurityRequirement[]",
    },
    "SecurityScheme": {
        "apiKeySecurityScheme": "APIKeySecurityScheme",
        "httpAuthSecurityScheme": "HTTPAuthSecurityScheme",
        "oauth2SecurityScheme": "object",
        "openIdConnectSecurityScheme": "OpenIdConnectSecurityScheme",
        "mtlsSecurityScheme": "object",
    },
    "APIKeySecurityScheme": {"description": "string", "location": "name!", "name": "name!"},
    "HTTPAuthSecurityScheme": {"description": "string", "scheme": "name!", "bearerFormat": "string"},
    "OpenIdConnectSecurityScheme": {"description": "string", "openIdConnectUrl": "name!"},
    "SecurityRequirement": {"schemes": "StringList{}"},
    "StringList": {"list": "string[]"},
    "AgentCardSignature": {"protected": "name!", "signature": "name!", "header": "object"},
}
"""The fields of each message."""

ONE_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "Part": ("text", "raw", "url", "data"),
    "SendMessageResponse": ("task", "message"),
    "SecurityScheme": tuple(SHAPES["SecurityScheme"]),
}
"""Messages of whose fields exactly one of these is there."""


def _is_base64(value: Json) -> bool:
    try:
        return isinstance(value, str) and bool(base64.b64decode(value, validate=True) or not value)
    except ValueError:
        return False


VALUES: Final[Mapping[str, Callable[[Json], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "name": lambda value: isinstance(value, str) and bool(value),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "value": lambda _: True,
    "bytes": _is_base64,
    "time": lambda value: isinstance(value, str) and bool(TIMESTAMP.fullmatch(value)),
    "state": lambda value: isinstance(value, str) and value in RUNNING | INTERRUPTED | FINISHED,
    "role": lambda value: isinstance(value, str) and value in {"ROLE_USER", "ROLE_AGENT"},
}
"""What a value of each kind is; a `name` is a string that is not empty."""


def shown(value: Json) -> str:
    """A value of a server's in one short line, from which nothing can break out."""
    written = json.dumps(value)
    return written if len(written) <= SHOWN else f"{written[:SHOWN]}…"


def check(value: Json, kind: str) -> None:
    """Check that a value is of a kind.

    Raises WrongError, with everything that it is not.
    """
    if wrong := [*faults(value, kind, kind)]:
        raise WrongError("; ".join(wrong))


def faults(value: Json, kind: str, place: str) -> Iterator[str]:
    """What keeps a value from being of its kind."""
    kind = kind.removesuffix("!")
    if kind in SHAPES:
        yield from _message_faults(value, kind, place)
    elif kind.endswith("{}"):
        if not isinstance(value, dict):
            yield f"{place} is no map: {shown(value)}"
            return
        for key, each in value.items():
            yield from faults(each, kind.removesuffix("{}"), f"{place}[{shown(key)}]")
    elif kind.endswith("]"):
        element, _, amount = kind.partition("[")
        if not isinstance(value, list) or (amount == "+]" and not value):
            yield f"{place} is no list{' that holds something' if amount == '+]' else ''}: {shown(value)}"
            return
        for index, each in enumerate(value):
            yield from faults(each, element, f"{place}[{index}]")
    elif not VALUES[kind](value):
        yield f"{place} is no {kind}: {shown(value)}"


def _message_faults(value: Json, kind: str, place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{place} is no {kind}: {shown(value)}"
        return
    fields = SHAPES[kind]
    for name in value.keys() - fields.keys():
        yield f"{place} has an unknown field {shown(name)}"
    for name, of in fields.items():
        if name in value:
            yield from faults(value[name], of, f"{place}.{name}")
        elif of.endswith("!"):
            yield f"{place} has no {name}"
    choices = ONE_OF.get(kind)
    if choices and len(choices & value.keys()) != 1:
        yield f"{place} has not exactly one of {', '.join(choices)}"


def check_error(error: Json, code: Code) -> list[str]:
    """Check the `error` of a JSON-RPC answer; the fields that it names as violated.

    Raises WrongError.
    """
    if not isinstance(error, dict) or not {"code", "message"} <= error.keys() <= {"code", "message", "data"}:
        raise WrongError(f"no JSON-RPC error: {shown(error)}")
    if error["code"] != code:
        raise WrongError(f"error {shown(error['code'])} {shown(error['message'])} in the place of {code.value}")
    if not isinstance(error["message"], str) or not error["message"]:
        raise WrongError(f"error {code.value} has no message")
    details = error.get("data", [])
    if not isinstance(details, list) or not all(isinstance(each, dict) for each in details):
        raise WrongError(f"error {code.value}: `data` is no list of objects: {shown(details)}")
    if code in WITH_VIOLATIONS:
        return _violated(details, code)
    if code not in WITHOUT_DETAILS:
        _check_info(details, code)
    return []


def _violated(details: list[dict[str, Json]], code: Code) -> list[str]:
    named = [
        violation["field"]
        for each in details
        if each.get("@type") == f"{TYPE_PREFIX}BadRequest"
        for violation in _list(each.get("fieldViolations"))
        if isinstance(violation, dict) and isinstance(violation.get("field"), str) and violation.get("description")
    ]
    if not named:
        raise WrongError(f"error {code.value} names no field")
    return named


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _check_info(details: list[dict[str, Json]], code: Code) -> None:
    infos = [each for each in details if each.get("@type") == f"{TYPE_PREFIX}ErrorInfo"]
    if [each.get("reason") for each in infos] != [code.name]:
        raise WrongError(f"error {code.value} has no ErrorInfo with the reason {code.name}: {shown(details)}")
    if infos[0].get("domain") != "a2a-protocol.org":
        raise WrongError(f"error {code.value}: the ErrorInfo's domain is {shown(infos[0].get('domain'))}")
