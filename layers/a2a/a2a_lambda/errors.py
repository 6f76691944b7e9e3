"""The errors of the protocol: one class a row of the specification's tables (§3.3.2, §5.4, §9.5).

A class says what kind of error it is; an instance says what happened. The bindings translate both: `code`
and `details` for JSON-RPC, `http_status` where a binding speaks HTTP. Nothing else is raised on purpose.
"""

from typing import Any, ClassVar, Final, Self

from msgspec import Struct

TYPE_PREFIX: Final = "type.googleapis.com/google.rpc."
A2A_DOMAIN: Final = "a2a-protocol.org"
SERVER_DOMAIN: Final = "a2a-lambda"
"""The ErrorInfo domain of the errors that are this server's and not the protocol's."""


class Violation(Struct, frozen=True):
    """One field of a request that breaks a rule: its path (`message.parts[0].text`) and the rule."""

    field: str
    description: str


class ProtocolError(Exception):
    """An error that the caller is told of. `message` is for people and holds nothing of Python's."""

    code: ClassVar[int]
    http_status: ClassVar[int] = 200
    domain: ClassVar[str] = A2A_DOMAIN
    reason: ClassVar[str] = ""
    standard_message: ClassVar[str]

    def __init__(self, message: str = "", **metadata: str) -> None:
        self.message = message or self.standard_message
        self.metadata = metadata
        super().__init__(self.message)

    def headers(self) -> dict[str, str]:
        """Return what a binding that speaks HTTP sends along."""
        return {}

    def details(self) -> list[dict[str, Any]]:
        """Return the error's `data` (§9.5): objects that each carry an `@type`; none for plain errors."""
        if not self.reason:
            return []
        info: dict[str, Any] = {
            "@type": f"{TYPE_PREFIX}ErrorInfo",
            "reason": self.reason,
            "domain": self.domain,
        }
        if self.metadata:
            info["metadata"] = self.metadata
        return [info]


class JSONParseError(ProtocolError):
    """The body is not JSON (§9.5)."""

    code = -32700
    standard_message = "Invalid JSON payload"


class ViolationsError(ProtocolError):
    """A request with fields that break rules: the answer names all of them, not the first."""

    def __init__(self, violations: list[Violation]) -> None:
        super().__init__()
        self.violations = violations

    @classmethod
    def at(cls, field: str, description: str) -> Self:
        """Return the error for a single field."""
        return cls([Violation(field, description)])

    def details(self) -> list[dict[str, Any]]:
        """Return one google.rpc.BadRequest that names every violated field."""
        violations = [{"field": each.field, "description": each.description} for each in self.violations]
        return [{"@type": f"{TYPE_PREFIX}BadRequest", "fieldViolations": violations}]


class InvalidRequestError(ViolationsError):
    """The body is JSON, but not a JSON-RPC request object (§9.5)."""

    code = -32600
    standard_message = "Request payload validation error"


class MethodNotFoundError(ProtocolError):
    """The protocol has no such method (§9.5)."""

    code = -32601
    standard_message = "Method not found"


class InvalidParamsError(ViolationsError):
    """The parameters break rules of their operation (§9.5)."""

    code = -32602
    standard_message = "Invalid parameters"


class InternalError(ProtocolError):
    """A fault of the server, of which the log says more than the caller is told (§9.5)."""

    code = -32603
    standard_message = "Internal error"


class UnavailableError(InternalError):
    """The request could not be carried out now; the same request may succeed later, and is not taken twice."""

    RETRY_AFTER_SECONDS: Final = 1

    def details(self) -> list[dict[str, Any]]:
        """Return a google.rpc.RetryInfo that says how long to wait."""
        return [_retry_info(self.RETRY_AFTER_SECONDS)]


class TaskNotFoundError(ProtocolError):
    """The task does not exist, or is not the caller's: nobody can tell which (§3.3.2)."""

    code = -32001
    reason = "TASK_NOT_FOUND"
    standard_message = "Task not found"


class TaskNotCancelableError(ProtocolError):
    """The task is finished (§3.1.5)."""

    code = -32002
    reason = "TASK_NOT_CANCELABLE"
    standard_message = "Task cannot be canceled"


class PushNotificationNotSupportedError(ProtocolError):
    """The agent card declares no push notifications (§3.3.4)."""

    code = -32003
    reason = "PUSH_NOTIFICATION_NOT_SUPPORTED"
    standard_message = "Push notifications are not supported by this agent"


class UnsupportedOperationError(ProtocolError):
    """The agent, or the task in its state, does not take part in this (§3.3.2)."""

    code = -32004
    reason = "UNSUPPORTED_OPERATION"
    standard_message = "This operation is not supported"


class ContentTypeNotSupportedError(ProtocolError):
    """A part holds what the agent does not take (§3.1.1)."""

    code = -32005
    reason = "CONTENT_TYPE_NOT_SUPPORTED"
    standard_message = "Content type is not supported by this agent"


class InvalidAgentResponseError(ProtocolError):
    """The agent broke the rules for its updates. Its task fails; no caller is told this (§3.3.2)."""

    code = -32006
    reason = "INVALID_AGENT_RESPONSE"
    standard_message = "The agent's response was invalid"


class ExtensionSupportRequiredError(ProtocolError):
    """The client did not list an extension that the agent requires (§4.6)."""

    code = -32008
    reason = "EXTENSION_SUPPORT_REQUIRED"
    standard_message = "This agent requires an extension that the client did not list"


class VersionNotSupportedError(ProtocolError):
    """The request asks for another version of the protocol (§3.6.2)."""

    code = -32009
    reason = "VERSION_NOT_SUPPORTED"
    standard_message = "This A2A version is not supported"


class ServerError(ProtocolError):
    """An error of this server's own, for which the protocol leaves the words to HTTP."""

    code = -32000
    domain = SERVER_DOMAIN


class UnauthenticatedError(ServerError):
    """Nobody is known by what the request carries. It says the same whatever is wrong with that."""

    http_status = 401
    reason = "UNAUTHENTICATED"
    standard_message = "Valid credentials are required"

    def __init__(self, challenge: str) -> None:
        """Args: the challenge is the WWW-Authenticate header (RFC 9110 §11.6.1)."""
        super().__init__()
        self.challenge = challenge

    def headers(self) -> dict[str, str]:
        """Return the challenge."""
        return {"www-authenticate": self.challenge}


class PermissionDeniedError(ServerError):
    """The caller is known, and may not do this."""

    http_status = 403
    reason = "PERMISSION_DENIED"
    standard_message = "The caller may not do this"


class RateLimitedError(ServerError):
    """The caller has used up its rate; the same request will pass later."""

    http_status = 429
    reason = "RATE_LIMITED"
    standard_message = "Too many requests"

    def __init__(self, retry_after: int) -> None:
        """Args: retry_after is in whole seconds, at least 1."""
        super().__init__(f"Too many requests; try again in {retry_after} s")
        self.retry_after = retry_after

    def headers(self) -> dict[str, str]:
        """Return when to try again."""
        return {"retry-after": str(self.retry_after)}

    def details(self) -> list[dict[str, Any]]:
        """Return the ErrorInfo, and a google.rpc.RetryInfo that says how long to wait."""
        return [*super().details(), _retry_info(self.retry_after)]


class PayloadTooLargeError(ServerError):
    """The body is longer than the server reads."""

    http_status = 413
    reason = "PAYLOAD_TOO_LARGE"
    standard_message = "Request body is too large"


def _retry_info(seconds: int) -> dict[str, Any]:
    return {"@type": f"{TYPE_PREFIX}RetryInfo", "retryDelay": f"{seconds}s"}
