"""The JSON-RPC 2.0 binding (§9): a request's bytes in, an answer's bytes out. Knows nothing of API Gateway.

The checks come in this order: size, caller, rate, JSON, request object, version, method, capability, parameters;
what follows is the operations' business.
"""

import logging
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from a2a_lambda.calls import Call
from a2a_lambda.capabilities import check_capability
from a2a_lambda.errors import (
    InternalError,
    InvalidRequestError,
    JSONParseError,
    MethodNotFoundError,
    PayloadTooLargeError,
    ProtocolError,
    ServerError,
    VersionNotSupportedError,
    Violation,
)
from a2a_lambda.model import (
    PROTOCOL_VERSION,
    CancelTaskRequest,
    CreateTaskPushNotificationConfigRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    SendMessageRequest,
)
from a2a_lambda.operations import Operations
from a2a_lambda.portable import is_portable
from a2a_lambda.validation import Validator

log: Final = logging.getLogger("a2a.jsonrpc")

SERVED_VERSION: Final = re.compile(r"1\.0(\.[0-9]+)?")
UNNAMED_VERSION: Final = "0.3"
"""What a request without a version asks for (§3.6.2)."""

Method = tuple[type[Struct], Callable[[Operations, Any, Call], Struct]]

METHODS: Final[dict[str, Method | None]] = {
    "SendMessage": (SendMessageRequest, Operations.send_message),
    "GetTask": (GetTaskRequest, Operations.get_task),
    "ListTasks": (ListTasksRequest, Operations.list_tasks),
    "CancelTask": (CancelTaskRequest, Operations.cancel_task),
    "SendStreamingMessage": None,
    "SubscribeToTask": None,
    "CreateTaskPushNotificationConfig": (CreateTaskPushNotificationConfigRequest, Operations.create_push_config),
    "GetTaskPushNotificationConfig": (GetTaskPushNotificationConfigRequest, Operations.get_push_config),
    "ListTaskPushNotificationConfigs": (ListTaskPushNotificationConfigsRequest, Operations.list_push_configs),
    "DeleteTaskPushNotificationConfig": (DeleteTaskPushNotificationConfigRequest, Operations.delete_push_config),
    "GetExtendedAgentCard": None,
}
"""The methods of A2A 1.0 (§9.4): their parameters and operations; None where the capability check refuses."""


class Answer(Struct, frozen=True, kw_only=True):
    """What goes back over HTTP, and what the log may tell of it."""

    status: int = 200
    body: bytes = b""
    method: str = ""
    """The method, where it is one of METHODS: a caller's own words are not logged."""
    error: ProtocolError | None = None

    @property
    def headers(self) -> dict[str, str]:
        """What HTTP says about the answer."""
        content = {"content-type": "application/json"} if self.body else {}
        return {**content, **(self.error.headers() if self.error else {})}

    @property
    def outcome(self) -> str:
        """How the request ended, in one word: `ok`, or the name of its error."""
        return type(self.error).__name__ if self.error else "ok"


class Endpoint:
    """The JSON-RPC endpoint of one agent."""

    def __init__(
        self, operations: Operations, validator: Validator, *, max_body_bytes: int, push: bool = False
    ) -> None:
        """Args: max_body_bytes is the longest body that is read at all; push, whether the card declares it."""
        self._operations = operations
        self._validator = validator
        self._max_body_bytes = max_body_bytes
        self._push = push

    def answer(self, body: bytes, *, version: str, admit: Callable[[], Call]) -> Answer:
        """Answer one request. Nothing is raised: every error becomes an answer.

        Args:
            body: the request as it came.
            version: what the client named as A2A-Version, "" where it named none (§3.6.2).
            admit: tells who calls, or raises why they may not.

        Returns:
            HTTP 200 with a JSON-RPC response; 204 for a notification that was understood; 401, 403, 413 and 429
            with a JSON-RPC error.
        """
        try:
            self._check_size(body)
            call = _admitted(admit)
        except ProtocolError as error:
            return _refused_unread(error, body)
        identity = None
        try:
            request = _decode(body)
            identity = _identity(request)
            _check_request(request)
        except ProtocolError as error:
            return _refusal(error, identity)
        method = request["method"] if request["method"] in METHODS else ""
        reply = self._reply(request, version, call)
        if "id" not in request:
            return Answer(status=204, method=method, error=reply if isinstance(reply, ProtocolError) else None)
        if isinstance(reply, ProtocolError):
            return _refusal(reply, identity, method)
        return Answer(body=msgspec.json.encode({"jsonrpc": "2.0", "id": identity, "result": reply}), method=method)

    def _reply(self, request: dict[str, Any], version: str, call: Call) -> Struct | ProtocolError:
        try:
            return self._carry_out(request, version, call)
        except ProtocolError as error:
            return error
        except Exception:
            log.exception("a fault of the server")
            return InternalError()

    def _check_size(self, body: bytes) -> None:
        if len(body) > self._max_body_bytes:
            raise PayloadTooLargeError(f"The request body is longer than {self._max_body_bytes} bytes")

    def _carry_out(self, request: dict[str, Any], version: str, call: Call) -> Struct:
        check_version(version)
        name, params = request["method"], request.get("params")
        if name not in METHODS:
            raise MethodNotFoundError
        check_capability(name, params, push=self._push)
        method = METHODS[name]
        if method is None:
            raise MethodNotFoundError
        request_type, operation = method
        return operation(self._operations, self._validator.read(request_type, params), call)


def _admitted(admit: Callable[[], Call]) -> Call:
    try:
        return admit()
    except ProtocolError:
        raise
    except Exception as error:
        log.exception("a fault of the server")
        raise InternalError from error


def check_version(version: str) -> None:
    """Refuse every version but 1.0, whose patch number does not matter (§3.6.2).

    Raises:
        VersionNotSupportedError: naming the version that was asked for and the one that is served.
    """
    asked = version.strip()
    if not SERVED_VERSION.fullmatch(asked):
        shown = asked[:32] or UNNAMED_VERSION
        raise VersionNotSupportedError(
            f"A2A version {shown} is not supported; this agent serves {PROTOCOL_VERSION}",
            requestedVersion=shown,
            supportedVersions=PROTOCOL_VERSION,
        )


def _decode(body: bytes) -> Any:
    try:
        value = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        raise JSONParseError from error
    if not is_portable(body, value):
        raise JSONParseError
    return value


def _identity_in(body: bytes) -> str | float | None:
    """Return the id of a request that is refused unread, null where it cannot be read."""
    try:
        return _identity(_decode(body))
    except JSONParseError:
        return None


def _refused_unread(error: ProtocolError, body: bytes) -> Answer:
    """Return the answer to a request that is refused before it is looked into: with its id, where it can be read."""
    if isinstance(error, PayloadTooLargeError):
        return _refusal(error, None)
    if not isinstance(error, ServerError) and _is_notification(body):
        return Answer(status=204, error=error)
    return _refusal(error, _identity_in(body))


def _is_notification(body: bytes) -> bool:
    """Tell whether a request that is refused unread expects no answer."""
    try:
        request = _decode(body)
        _check_request(request)
    except ProtocolError:
        return False
    return "id" not in request


def _identity(request: Any) -> str | float | None:
    """Return a request's id, null where it has none that can be repeated (§9.2)."""
    identity = request.get("id") if isinstance(request, dict) else None
    return identity if isinstance(identity, str | int | float) and not isinstance(identity, bool) else None


def _check_request(request: Any) -> None:
    """Check that a JSON value is a request object (§9.2).

    Raises:
        InvalidRequestError: with everything that is wrong.
    """
    if not isinstance(request, dict):
        raise InvalidRequestError.at("request", "must be an object; batches are not supported")
    violations = []
    if request.get("jsonrpc") != "2.0":
        violations.append(Violation("jsonrpc", 'must be "2.0"'))
    if request.get("id") is not None and _identity(request) is None:
        violations.append(Violation("id", "must be a string, a number or null"))
    if not isinstance(request.get("method"), str):
        violations.append(Violation("method", "must be a string"))
    if violations:
        raise InvalidRequestError(violations)


def _refusal(error: ProtocolError, identity: Any, method: str = "") -> Answer:
    shown: dict[str, Any] = {"code": error.code, "message": error.message}
    if details := error.details():
        shown["data"] = details
    content = msgspec.json.encode({"jsonrpc": "2.0", "id": identity, "error": shown})
    return Answer(status=error.http_status, body=content, method=method, error=error)
