"""Who calls. From what a request carries to the owner whose tasks it may see (§7, §13.1).

An owner is a name that no other caller can have: each way of authenticating has a prefix of its own. Nothing here
believes a header but an API key, which is a secret; tokens and signatures are verified by API Gateway, and what
it found is in the event.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from ipaddress import ip_network
from typing import Any, Final, Protocol

from msgspec import Struct

from a2a_lambda import tally
from a2a_lambda.errors import PermissionDeniedError, UnauthenticatedError

ANONYMOUS: Final = "anonymous"

KEY: Final = re.compile(r"[!-~]{20,200}")
"""What may be an API key. Anything else is wrong without a look at the table."""

KEY_CACHE_MS: Final = 60_000
"""How long an instance remembers a key, and so how long a revoked one may still be taken."""

KEY_CACHE_SIZE: Final = 1000

MAX_OWNER_LENGTH: Final = 512
"""Characters of an owner; DynamoDB's index keys hold 2,048 bytes. A longer one is replaced by its hash."""


class Credentials(Struct, frozen=True, kw_only=True):
    """What a request carries to say who sent it."""

    api_key: str = ""
    """The x-api-key header."""
    authorization: str = ""
    """The Authorization header."""
    claims: Mapping[str, Any] | None = None
    """The claims of a JWT that API Gateway verified."""
    iam: Mapping[str, Any] | None = None
    """The identity whose signature API Gateway verified."""
    source_address: str = ""
    """The IP address that the request came from."""


class Authenticator(Protocol):
    """Tells who calls."""

    def owner(self, credentials: Credentials) -> str:
        """Return the owner.

        Raises:
            UnauthenticatedError: nobody is known by these credentials.
            PermissionDeniedError: the caller is known, and may not call.
        """


class KeyStore(Protocol):
    """Keeps API keys."""

    def caller_of(self, key_hash: str) -> str | None:
        """Return the caller whose key has this SHA-256 (hexadecimal); None where no valid key has."""


class Limiter(Protocol):
    """Counts what a subject (a caller, a source address) does, against a rate."""

    def check(self, subject: str) -> None:
        """Refuse a subject that is known to be over its rate. Costs no call.

        Raises:
            RateLimitedError: saying when to try again.
        """

    def take(self, subject: str) -> None:
        """Count one more.

        Raises:
            RateLimitedError: the subject is over its rate.
        """


class NoAuthentication:
    """Everybody is the same caller: for local use, and behind something that authenticates."""

    def owner(self, _credentials: Credentials) -> str:
        """Return the one owner that there is."""
        return ANONYMOUS


class ApiKeyAuthentication:
    """Callers show an API key, as `x-api-key` or as a bearer token.

    Failures are counted by source address. An address with too many is told to wait; from there only keys that
    the instance knows already are taken meanwhile, so that nobody behind the same address is shut out.
    """

    CHALLENGE: Final = 'Bearer realm="a2a"'

    def __init__(self, keys: KeyStore, failures: Limiter, clock: Callable[[], int]) -> None:
        """Args: the clock gives milliseconds since the epoch."""
        self._keys = keys
        self._failures = failures
        self._clock = clock
        self._known: dict[str, tuple[str, int]] = {}

    def owner(self, credentials: Credentials) -> str:
        """Return the owner of the key; two keys of one caller are one owner.

        Raises:
            UnauthenticatedError: there is no key, it is not valid, or two different ones are shown.
            RateLimitedError: this address has failed too often.
        """
        if not (credentials.api_key or credentials.authorization):
            raise UnauthenticatedError(self.CHALLENGE)
        key, source = _shown_key(credentials), _network(credentials.source_address)
        caller = self._remembered(key)
        if caller is None:
            self._failures.check(source)
            caller = self._look_up(key) if key else None
        if caller is None:
            self._failures.take(source)
            raise UnauthenticatedError(self.CHALLENGE)
        return owner_of_caller(caller)

    def _remembered(self, key: str) -> str | None:
        caller, until = self._known.get(_hash(key), (None, 0))
        return caller if self._clock() < until else None

    def _look_up(self, key: str) -> str | None:
        caller = self._keys.caller_of(_hash(key))
        if caller is not None:
            if len(self._known) >= KEY_CACHE_SIZE:
                del self._known[next(iter(self._known))]
            self._known[_hash(key)] = caller, self._clock() + KEY_CACHE_MS
        return caller


class JwtAuthentication:
    """Callers show a token that API Gateway's JWT authorizer has verified."""

    CHALLENGE: Final = "Bearer"

    def __init__(self, required_scope: str = "") -> None:
        """Args: the scope that a token must have; "" for none."""
        self._required_scope = required_scope

    def owner(self, credentials: Credentials) -> str:
        """Return the owner: issuer and subject together, or issuer and `client_id` where a machine is the subject.

        `azp` is no subject: tokens of different people have the same.

        Raises:
            UnauthenticatedError: the event has no claims, or they name nobody.
            PermissionDeniedError: the required scope is missing.
        """
        claims = credentials.claims or {}
        kind = "sub" if "sub" in claims else "client_id"
        issuer, subject = claims.get("iss"), claims.get(kind)
        if not (_is_name(issuer) and _is_name(subject)):
            raise UnauthenticatedError(self.CHALLENGE)
        owner = _owner("jwt", f"{issuer} {kind} {subject}")
        if self._required_scope and self._required_scope not in _scopes(claims):
            tally.current().caller = owner
            raise PermissionDeniedError(f"The scope {self._required_scope} is required", scope=self._required_scope)
        return owner


class IamAuthentication:
    """Callers sign their requests (SigV4), and API Gateway has verified it."""

    CHALLENGE: Final = "AWS4-HMAC-SHA256"

    def owner(self, credentials: Credentials) -> str:
        """Return the owner: the account's user or role, whatever the name of the role's session.

        Raises:
            UnauthenticatedError: the event has no identity.
        """
        arn: Any = (credentials.iam or {}).get("userArn")
        if not _is_name(arn):
            raise UnauthenticatedError(self.CHALLENGE)
        kind, _, rest = arn.rpartition(":")[2].partition("/")
        if kind == "assumed-role":
            arn = arn.removesuffix("/" + rest.partition("/")[2])
        # All users of a Cognito identity pool have one role.
        identity: Any = ((credentials.iam or {}).get("cognitoIdentity") or {}).get("identityId")
        return _owner("iam", f"{arn} {identity}" if identity else arn)


def owner_of_caller(caller: str) -> str:
    """Return the owner that all API keys of a caller stand for."""
    return _owner("key", caller)


def _owner(kind: str, name: str) -> str:
    owner = f"{kind}:{name}"
    if len(owner) <= MAX_OWNER_LENGTH:
        return owner
    return f"{kind}-sha256:{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _network(address: str) -> str:
    """Return what failures are counted by: an address, of IPv6 the network that one customer has (RFC 6177)."""
    if ":" not in address:
        return address
    try:
        return str(ip_network((address, 64), strict=False))
    except ValueError:
        return address


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _shown_key(credentials: Credentials) -> str:
    """Return the key that a request shows, "" where it shows none, several, or what cannot be one."""
    scheme, _, token = credentials.authorization.partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    shown = {key for key in (credentials.api_key, bearer) if key}
    if len(shown) != 1:
        return ""
    key = shown.pop()
    return key if KEY.fullmatch(key) else ""


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _scopes(claims: Mapping[str, Any]) -> set[str]:
    """Return a token's scopes: `scope` is one string, `scp` a string or, as API Gateway writes lists, "[a b]"."""
    listed = f"{claims.get('scope', '')} {claims.get('scp', '')}"
    return set(listed.replace("[", " ").replace("]", " ").split())
