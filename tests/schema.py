"""Answers against the protocol's own messages, as the official SDK carries them.

An answer is parsed strictly into its message: no unknown field, no wrong type. Then it is compared, field by field,
with what ProtoJSON writes for that message (§5.5–5.7), so that a field under its proto name, a default that should
have been left out and a REQUIRED field that was left out show.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from a2a.types import a2a_pb2
from google.api import field_behavior_pb2
from google.protobuf import empty_pb2, json_format
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.rpc import error_details_pb2

Json = Any
Event = dict[str, Any]
Answer = dict[str, Any]

RESULTS: Final[Mapping[str, type[Message]]] = {
    "SendMessage": a2a_pb2.SendMessageResponse,
    "GetTask": a2a_pb2.Task,
    "ListTasks": a2a_pb2.ListTasksResponse,
    "CancelTask": a2a_pb2.Task,
    "CreateTaskPushNotificationConfig": a2a_pb2.TaskPushNotificationConfig,
    "GetTaskPushNotificationConfig": a2a_pb2.TaskPushNotificationConfig,
    "ListTaskPushNotificationConfigs": a2a_pb2.ListTaskPushNotificationConfigsResponse,
    "DeleteTaskPushNotificationConfig": empty_pb2.Empty,
}
"""What each method answers."""

MAY_BE_EMPTY: Final = frozenset(
    {
        "lf.a2a.v1.AgentCard.skills",
        "lf.a2a.v1.AgentSkill.tags",
        "lf.a2a.v1.ListTasksResponse.next_page_token",
        "lf.a2a.v1.ListTasksResponse.tasks",
        "lf.a2a.v1.ListTasksResponse.total_size",
    }
)
"""REQUIRED fields that say something when they are empty. The others hold something (§5.7)."""

EMPTY_IN_A_LIST: Final = "lf.a2a.v1.Task.artifacts"
"""Written in a list that was asked for artifacts, also where there are none (§3.1.4)."""

TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

BAD_REQUEST: Final = error_details_pb2.BadRequest.DESCRIPTOR.full_name
ERROR_INFO: Final = error_details_pb2.ErrorInfo.DESCRIPTOR.full_name
RETRY_INFO: Final = error_details_pb2.RetryInfo.DESCRIPTOR.full_name

DETAILS: Final[Mapping[int, tuple[tuple[str, ...], ...]]] = {
    -32700: ((),),
    -32603: ((), (RETRY_INFO,)),
    -32602: ((BAD_REQUEST,),),
    -32601: ((),),
    -32600: ((BAD_REQUEST,),),
    -32000: ((ERROR_INFO,), (ERROR_INFO, RETRY_INFO)),
}
"""What an error's `data` holds, by its code; those of A2A hold an ErrorInfo (§9.5)."""

REASONS: Final = {
    (-32001, 200): "TASK_NOT_FOUND",
    (-32002, 200): "TASK_NOT_CANCELABLE",
    (-32003, 200): "PUSH_NOTIFICATION_NOT_SUPPORTED",
    (-32004, 200): "UNSUPPORTED_OPERATION",
    (-32005, 200): "CONTENT_TYPE_NOT_SUPPORTED",
    (-32007, 200): "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    (-32008, 200): "EXTENSION_SUPPORT_REQUIRED",
    (-32009, 200): "VERSION_NOT_SUPPORTED",
    (-32000, 401): "UNAUTHENTICATED",
    (-32000, 403): "PERMISSION_DENIED",
    (-32000, 413): "PAYLOAD_TOO_LARGE",
    (-32000, 429): "RATE_LIMITED",
}
"""An ErrorInfo's reason, by the error's code and its HTTP status."""


def checked(handler: Callable[[Event, Any], Answer]) -> Callable[[Event, Any], Answer]:
    """Return a function's handler, every answer of which is checked."""

    def handle(event: Event, context: Any) -> Answer:
        answer = handler(event, context)
        check_answer(event, answer)
        return answer

    return handle


def check_answer(event: Event, answer: Answer) -> None:
    """Check what a function answers to an event of API Gateway's. Other routes' answers are not the protocol's."""
    route = event.get("routeKey")
    if route == "GET /.well-known/agent-card.json" and answer["statusCode"] == 200:
        check_message(a2a_pb2.AgentCard, read(body_of(answer)))
    elif route in {"POST /a2a", "POST /a2a/{proxy+}"} and answer["statusCode"] != 404:
        check_rpc(body_of(event), answer["statusCode"], body_of(answer))


def body_of(carrier: Mapping[str, Any]) -> bytes:
    """Return the bytes that an event or an answer carries. A body that only claims to be base64 is itself."""
    content = carrier.get("body") or ""
    encoded: bytes = content.encode("utf-8", "surrogatepass")
    if not carrier.get("isBase64Encoded"):
        return encoded
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:
        return encoded


def read(content: bytes) -> Json:
    """Return a JSON value from strict JSON: UTF-8, no NaN, no name twice in an object."""
    return json.loads(content.decode(), object_pairs_hook=_object, parse_constant=_refuse_constant)


def _object(pairs: list[tuple[str, Json]]) -> Json:
    assert len(dict(pairs)) == len(pairs), "a name is there twice"
    return dict(pairs)


def _refuse_constant(name: str) -> Json:
    raise AssertionError(f"{name} is not JSON")


def check_rpc(request: bytes, status: int, response: bytes) -> None:
    """Check the answer to a JSON-RPC request (§9): its envelope, and what is in it."""
    if status == 204:
        assert not response
        return
    asked = _asked(request)
    answer = read(response)
    assert answer["jsonrpc"] == "2.0"
    if "error" in answer:
        assert set(answer) == {"jsonrpc", "id", "error"}
        assert answer["id"] is None or _same(answer["id"], asked.get("id"))
        check_error(answer["error"], status)
        return
    assert set(answer) == {"jsonrpc", "id", "result"}
    assert status == 200
    assert _same(answer["id"], asked["id"])
    check_message(RESULTS[asked["method"]], answer["result"])


def _asked(request: bytes) -> Mapping[str, Json]:
    try:
        asked = json.loads(request)
    except (ValueError, RecursionError):
        return {}
    return asked if isinstance(asked, dict) else {}


def _same(one: Json, other: Json) -> bool:
    return isinstance(one, str) == isinstance(other, str) and bool(one == other)


def check_error(error: Json, status: int) -> None:
    """Check an error (§9.5): code and HTTP status belong together, and `data` holds what goes with them."""
    assert set(error) <= {"code", "message", "data"}
    code, data = error["code"], error.get("data", [])
    assert error["message"]
    assert isinstance(error["message"], str)
    assert isinstance(data, list)
    assert data or "data" not in error
    types = tuple(each["@type"].removeprefix("type.googleapis.com/") for each in data)
    assert types in DETAILS.get(code, ((ERROR_INFO,),)), f"{code} with {types}"
    for detail in data:
        json_format.ParseDict(detail, AnyMessage())
        if detail["@type"].endswith(BAD_REQUEST):
            assert detail["fieldViolations"]
            assert all(set(each) == {"field", "description"} for each in detail["fieldViolations"])
        if detail["@type"].endswith(ERROR_INFO):
            assert detail["reason"] == REASONS[code, status]
            assert (detail["domain"] == "a2a-protocol.org") == (code != -32000)


def check_message(message_type: type[Message], given: Json) -> None:
    """Check that a JSON value is a message, and written as ProtoJSON writes it."""
    message = message_type()
    json_format.ParseDict(given, message)
    _check_written(message, given, message_type.__name__)


def _check_written(message: Message, given: Json, where: str) -> None:
    match message.DESCRIPTOR.full_name:
        case "google.protobuf.Timestamp":
            assert TIMESTAMP.fullmatch(given), f"{where}: {given}"
        case "google.protobuf.Struct" | "google.protobuf.Value":
            assert _doubles(json_format.MessageToDict(message)) == _doubles(given), where
        case _:
            fields = {field.json_name: field for field in message.DESCRIPTOR.fields}
            assert not set(given) - set(fields), f"{where}: {set(given) - set(fields)}"
            for oneof in message.DESCRIPTOR.oneofs:
                is_optional = oneof.name.startswith("_")
                assert is_optional or message.WhichOneof(oneof.name), f"{where}: no {oneof.name}"
            for name, field in fields.items():
                _check_field(message, field, given.get(name), is_written=name in given, where=f"{where}.{name}")


def _check_field(message: Message, field: Any, given: Json, *, is_written: bool, where: str) -> None:
    value = getattr(message, field.name)
    is_set = message.HasField(field.name) if field.has_presence else bool(value)
    if field_behavior_pb2.REQUIRED in field.GetOptions().Extensions[field_behavior_pb2.field_behavior]:
        assert is_written, f"{where} is REQUIRED"
        assert is_set or field.full_name in MAY_BE_EMPTY, f"{where} is empty"
    elif not (field.full_name == EMPTY_IN_A_LIST and given == []):
        assert is_written == is_set, f"{where} is {'written' if is_written else 'left out'}"
    if not is_written:
        return
    if not field.is_repeated:
        _check_value(field, value, given, where)
    elif field.message_type and field.message_type.GetOptions().map_entry:
        of_map = field.message_type.fields_by_name["value"]
        for key in value:
            _check_value(of_map, value[key], given[key], f"{where}[{key}]")
    else:
        for index, (each, one) in enumerate(zip(value, given, strict=True)):
            _check_value(field, each, one, f"{where}[{index}]")


def _check_value(field: Any, value: Any, given: Json, where: str) -> None:
    if field.message_type:
        _check_written(value, given, where)
        return
    expected = value
    if field.enum_type:
        expected = field.enum_type.values_by_number[value].name
    elif isinstance(value, bytes):
        expected = base64.b64encode(value).decode()
    assert (type(given), given) == (type(expected), expected), where


def _doubles(value: Json) -> Json:
    """Return a JSON value with its numbers as protobuf keeps them."""
    match value:
        case bool():
            return value
        case int():
            return float(value)
        case list():
            return [_doubles(each) for each in value]
        case dict():
            return {name: _doubles(each) for name, each in value.items()}
    return value
