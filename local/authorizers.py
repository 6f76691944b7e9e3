"""API Gateway's authorizers, imitated: who may reach a route, and what its function is told of them.

Nothing is verified here, neither the signature of a token nor that of a request: whoever calls
this gateway is whoever they say. In AWS both are verified. Beside the documents

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-troubleshooting-jwt.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-access-control-iam.html

stands what is observed only: claims arrive as the strings that Go prints them as, and the wording
of all refusals but the one for the audience.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from local.answers import message
from local.template import ACCOUNT_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from local.answers import Answer

Identity: TypeAlias = "dict[str, object]"

TOKEN_SEGMENTS = 3

SIGNED = re.compile(
    r"AWS4-HMAC-SHA256 +"
    r"Credential=(?P<key>[^/\s,]+)/\d{8}/[^/\s,]+/execute-api/aws4_request, *"
    r"SignedHeaders=[^\s,]+, *"
    r"Signature=[0-9a-f]{64}"
)

FORBIDDEN = message(403, "Forbidden")


class RefusedError(Exception):
    """The caller may not reach the route."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.status)
        self.answer = answer


class Authorizer(Protocol):
    """What stands before a route."""

    warning: ClassVar[str]

    def identify(self, headers: Mapping[str, str], now: float) -> Identity:
        """What the event's `requestContext.authorizer` says of the caller.

        Header names are in lower case; the time is in seconds since the epoch. Raises
        RefusedError.
        """


@dataclass(frozen=True)
class JwtAuthorizer:
    """Lets tokens in whose claims fit."""

    issuer: str
    audience: tuple[str, ...]
    header: str

    warning: ClassVar[str] = "AUTH=jwt: the signatures of tokens are NOT verified here, only their claims"

    def identify(self, headers: Mapping[str, str], now: float) -> Identity:
        """The claims of the token in the header."""
        scheme, _, rest = headers.get(self.header, "").strip().partition(" ")
        token = rest.strip() if scheme.lower() == "bearer" else f"{scheme}{rest}"
        if not token:
            raise _unauthorized("Bearer")
        claims = _claims(token)
        if claims.get("iss") != self.issuer:
            raise _invalid_token("issuer does not match")
        # `client_id` counts only where there is no `aud`.
        if not set(self.audience) & _names(claims.get("aud", claims.get("client_id"))):
            raise _invalid_token("the token does not have a valid audience")
        _check_times(claims, now)
        return {"jwt": {"claims": {name: _printed(value) for name, value in claims.items()}, "scopes": None}}


@dataclass(frozen=True)
class IamAuthorizer:
    """Lets requests in that look signed (SigV4): an access key is a user of its own."""

    warning: ClassVar[str] = "AUTH=iam: the signatures of requests are NOT verified here; an access key id is a user"

    def identify(self, headers: Mapping[str, str], now: float) -> Identity:  # noqa: ARG002 - a signature's age is not verified
        """The identity that the access key stands for."""
        signed = SIGNED.fullmatch(headers.get("authorization", "").strip())
        if signed is None:
            raise RefusedError(FORBIDDEN)
        key = signed["key"]
        return {
            "iam": {
                "accessKey": key,
                "accountId": ACCOUNT_ID,
                "callerId": key,
                "cognitoIdentity": None,
                "principalOrgId": None,
                "userArn": f"arn:aws:iam::{ACCOUNT_ID}:user/{key}",
                "userId": key,
            }
        }


def _unauthorized(challenge: str) -> RefusedError:
    answer = message(401, "Unauthorized")
    return RefusedError(replace(answer, headers=(*answer.headers, ("WWW-Authenticate", challenge))))


def _invalid_token(description: str) -> RefusedError:
    return _unauthorized(f'Bearer scope="" error="invalid_token" error_description="{description}"')


def _claims(token: str) -> dict[str, Any]:
    segments = token.split(".")
    if len(segments) != TOKEN_SEGMENTS:
        raise _invalid_token("token contains an invalid number of segments")
    _object(segments[0])
    return _object(segments[1])


def _object(segment: str) -> dict[str, Any]:
    try:
        decoded = base64.b64decode(segment + "=" * (-len(segment) % 4), altchars=b"-_", validate=True)
        value = json.loads(decoded)
    except (ValueError, RecursionError) as error:
        raise _invalid_token("the token cannot be decoded") from error
    if not isinstance(value, dict):
        raise _invalid_token("the token cannot be decoded")
    return value


def _names(value: Any) -> set[str]:
    return {name for name in (value if isinstance(value, list) else [value]) if isinstance(name, str)}


def _check_times(claims: Mapping[str, Any], now: float) -> None:
    """`exp` must be after now, `nbf` and `iat`, where they are, before."""
    if not (_is_time(claims.get("exp")) and now < claims["exp"]):
        raise _invalid_token("the token has expired")
    for name in ("nbf", "iat"):
        if name in claims and not (_is_time(claims[name]) and claims[name] <= now):
            raise _invalid_token("the token is not valid yet")


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _printed(value: Any) -> str:
    """A claim as the string that arrives: lists as "[a b]", objects as "map[a:b c:d]"."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"[{' '.join(_printed(item) for item in value)}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_printed(value[name])}' for name in sorted(value))}]"
    return "<nil>" if value is None else json.dumps(value)
