"""The checks of single requests: versions, JSON-RPC, parameters, and what the card does not declare (§3.6, §9)."""

from __future__ import annotations

import json
import uuid
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from smoke.errors import NotCheckedError, WrongError
from smoke.expectations import Code, Json, check_error, shown
from smoke.visit import VERSION, read_reply

if TYPE_CHECKING:
    from smoke.visit import Visit

NO_TASK: Final = "00000000-0000-4000-8000-000000000000"

VERSION_NOT_SERVED: Final[list[dict[str, str]]] = [
    {},
    {"A2A-Version": ""},
    {"A2A-Version": "0.3"},
    {"A2A-Version": "1"},
    {"A2A-Version": "1.1"},
    {"A2A-Version": "one"},
]

VERSION_SERVED: Final[list[tuple[dict[str, str], str]]] = [
    ({"A2A-Version": VERSION}, ""),
    ({"A2A-Version": f"{VERSION}.1"}, ""),
    ({}, f"?A2A-Version={VERSION}"),
    ({"A2A-Version": VERSION}, "?A2A-Version=0.3"),
]
"""Headers, and what stands behind the address: the header comes first, and the patch number does not count."""

NO_REQUESTS: Final[list[tuple[Json, Json]]] = [
    ([], None),
    (7, None),
    ({}, None),
    ({"id": 7, "method": "GetTask"}, 7),
    ({"jsonrpc": "2.0", "id": "a", "method": 1}, "a"),
    ({"jsonrpc": "1.0", "id": 7, "method": "GetTask"}, 7),
]
"""JSON that is no request, and the id of the answer."""

PART: Final = {"text": "Hello"}
MESSAGE: Final = {"messageId": "smoke-test", "role": "ROLE_USER", "parts": [PART]}

WRONG_PARAMS: Final[list[tuple[str, Json, set[str]]]] = [
    ("SendMessage", {}, {"message"}),
    ("SendMessage", {"message": {}}, {"message.messageId", "message.role", "message.parts"}),
    ("SendMessage", {"message": {**MESSAGE, "parts": [{}]}}, {"message.parts[0]"}),
    ("SendMessage", {"message": {**MESSAGE, "parts": [{**PART, "url": "x"}]}}, {"message.parts[0]"}),
    ("SendMessage", {"message": MESSAGE, "configuration": {"historyLength": -1}}, {"configuration.historyLength"}),
    ("GetTask", {}, {"id"}),
    ("GetTask", {"id": NO_TASK, "historyLength": 1.5}, {"historyLength"}),
    ("ListTasks", {"pageSize": 0}, {"pageSize"}),
    ("ListTasks", {"pageSize": 101, "status": "TASK_STATE_LOST"}, {"pageSize", "status"}),
    ("ListTasks", {"statusTimestampAfter": "yesterday"}, {"statusTimestampAfter"}),
    ("ListTasks", {"pageToken": "no token"}, {"pageToken"}),
    ("CancelTask", {}, {"id"}),
]
"""Methods, parameters, and the fields of these that are wrong."""


def other_versions_are_refused(visit: Visit) -> str:
    """A version that is not 1.0, and none, is -32009 (§3.6.2)."""
    for headers in VERSION_NOT_SERVED:
        visit.caller.refusal(Code.VERSION_NOT_SUPPORTED, "GetTask", {"id": NO_TASK}, headers)
    return f"{Code.VERSION_NOT_SUPPORTED.value} for none, 0.3, 1, 1.1 and a word"


def the_version_is_taken_as_it_may_be_given(visit: Visit) -> str:
    """1.0 is taken from the header or the address, with a patch number too (§3.6.2)."""
    for headers, behind in VERSION_SERVED:
        visit.caller.refusal(Code.TASK_NOT_FOUND, "GetTask", {"id": NO_TASK}, headers, behind)
    return "as a header, with a patch number, as a parameter; the header comes first"


def broken_json_is_refused(visit: Visit) -> str:
    """What is no JSON is -32700, with id null (§9.5)."""
    for body in (b"", b"{", b'{"jsonrpc": "2.0"', b"\xff", b"NaN"):
        check_error(_error(read_reply(visit.caller.post(body), None)), Code.JSON_PARSE)
    return f"{Code.JSON_PARSE.value}"


def what_is_no_request_is_refused(visit: Visit) -> str:
    """JSON that is no request object is -32600, with its id where that can be read (§9.5)."""
    for value, identity in NO_REQUESTS:
        reply = read_reply(visit.caller.post(json.dumps(value).encode()), identity)
        check_error(_error(reply), Code.INVALID_REQUEST)
    return f"{Code.INVALID_REQUEST.value}, with the id where there is one"


def an_unknown_method_is_refused(visit: Visit) -> str:
    """A method that there is not is -32601 (§9.5)."""
    for method in ("Nothing", "sendMessage", "message/send"):
        visit.caller.refusal(Code.METHOD_NOT_FOUND, method, {})
    return f"{Code.METHOD_NOT_FOUND.value}"


def a_notification_has_no_answer(visit: Visit) -> str:
    """A request without an id is carried out, and has no answer."""
    request = {"jsonrpc": "2.0", "method": "GetTask", "params": {"id": NO_TASK}}
    answer = visit.caller.post(json.dumps(request).encode())
    answer.expect(HTTPStatus.NO_CONTENT)
    if answer.body:
        raise WrongError(f"204 with {len(answer.body)} bytes")
    return "204"


def a_trailing_slash_leads_to_the_same(visit: Visit) -> str:
    """Clients that join a slash to the address are answered; what stands behind it is nowhere."""
    visit.caller.refusal(Code.TASK_NOT_FOUND, "GetTask", {"id": NO_TASK}, behind="/")
    visit.caller.post(b"{}", behind="/elsewhere").expect(HTTPStatus.NOT_FOUND)
    return "the same; behind it 404"


def wrong_parameters_are_named(visit: Visit) -> str:
    """Every field that is wrong is named, with its path (§9.5)."""
    for method, params, fields in WRONG_PARAMS:
        named = set(visit.caller.refusal(Code.INVALID_PARAMS, method, params))
        if missing := fields - named:
            raise WrongError(f"{method} {shown(params)} names {sorted(named)}, and not {sorted(missing)}")
    return f"{Code.INVALID_PARAMS.value} with the fields, of {len(WRONG_PARAMS)} requests"


def an_unknown_task_is_not_found(visit: Visit) -> str:
    """A task that there is not is -32001, whoever made its id up (§3.3.2)."""
    for task_id in (NO_TASK, str(uuid.uuid4()), "no task", "x" * 600):
        for method in ("GetTask", "CancelTask"):
            visit.caller.refusal(Code.TASK_NOT_FOUND, method, {"id": task_id})
    visit.caller.refusal(Code.TASK_NOT_FOUND, "SendMessage", visit.message(taskId=NO_TASK))
    return f"{Code.TASK_NOT_FOUND.value} from GetTask, CancelTask and SendMessage"


def streaming_is_refused(visit: Visit) -> str:
    """Streaming that the card does not declare is -32004 (§3.3.4)."""
    if visit.capabilities.get("streaming"):
        raise NotCheckedError("the card declares it, and this walk reads no streams")
    caller = visit.caller
    caller.refusal(Code.UNSUPPORTED_OPERATION, "SendStreamingMessage", visit.message())
    caller.refusal(Code.UNSUPPORTED_OPERATION, "SubscribeToTask", {"id": NO_TASK})
    return f"{Code.UNSUPPORTED_OPERATION.value}, as the card does not declare it"


def the_extended_card_is_refused(visit: Visit) -> str:
    """An extended card that the card does not declare is -32004 (§3.3.4)."""
    if visit.capabilities.get("extendedAgentCard"):
        raise NotCheckedError("the card declares it, and this walk does not read it")
    visit.caller.refusal(Code.UNSUPPORTED_OPERATION, "GetExtendedAgentCard", {})
    return f"{Code.UNSUPPORTED_OPERATION.value}, as the card does not declare it"


def other_content_is_refused(visit: Visit) -> str:
    """A part of a type that the card does not name is -32005 (§3.1.1)."""
    media_type = "application/x-a2a-smoke-test"
    part = {"raw": "AA==", "mediaType": media_type}
    visit.caller.refusal(Code.CONTENT_TYPE_NOT_SUPPORTED, "SendMessage", {"message": {**MESSAGE, "parts": [part]}})
    return f"{Code.CONTENT_TYPE_NOT_SUPPORTED.value} for {media_type}"


def a_required_extension_is_required(visit: Visit) -> str:
    """A caller who does not list an extension that the card requires is refused with -32008 (§4.6)."""
    required = visit.required_extensions()
    if not required:
        raise NotCheckedError("the card requires none")
    headers = {"A2A-Version": VERSION, "A2A-Extensions": ""}
    visit.caller.refusal(Code.EXTENSION_SUPPORT_REQUIRED, "SendMessage", visit.message(), headers)
    return f"{Code.EXTENSION_SUPPORT_REQUIRED.value} without {shown(required[0]['uri'])}"


def _error(reply: dict[str, Json]) -> Json:
    if "error" not in reply:
        raise WrongError(f"answered: {shown(reply['result'])}")
    return reply["error"]
