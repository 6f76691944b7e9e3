"""A card that can be trusted: its signatures, and the keys that they are verified with (§8.4).

A signature is a JWS with a detached payload: the card without its signatures, in canonical form. The official SDKs
canonicalise otherwise than the specification says; where the two forms differ there is one signature over each, and
a verifier takes any that is valid.

What the keeper of the keys has said once holds for the life of the Lambda instance, a refusal for ten seconds.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Protocol, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from a2a_lambda import jcs
from a2a_lambda.card import CACHE_CONTROL, CARD_TYPE, conditional, matches
from a2a_lambda.es256 import ALGORITHM, JsonWebKey, base64url, json_web_key, raw_signature
from a2a_lambda.model import AgentCard, AgentCardSignature

T = TypeVar("T")
Answer = tuple[int, bytes, Mapping[str, str]]

KEYS_PATH: Final = "/.well-known/jwks.json"
KEYS_TYPE: Final = "application/jwk-set+json"

KEYS_CACHE_CONTROL: Final = "public, max-age=300"
"""Shorter than the card's: a key that is taken out of the set must not be trusted for long."""

NOT_CACHED: Final = {"cache-control": "no-store"}
"""What was answered without the keys must not outlast the trouble."""

RETRY_MS: Final = 10_000
"""How long a key that could not be used is left alone, so that a broken one costs neither time nor requests."""

PATIENCE_MS: Final = 2_500
"""How long the keys are waited for, of the five seconds that the function has: those not asked by then are left out."""

CACHED_CARDS: Final = 16
"""Cards whose signatures are kept: there is one for each origin at which callers reach the server."""

logger = logging.getLogger(__name__)


class SigningUnavailableError(Exception):
    """A key cannot be used, now or ever. The message says why, to the operator."""


class Keeper(Protocol):
    """Keeps P-256 keys and signs with them."""

    def public_key(self, name: str) -> bytes:
        """Return a key's public half, as a DER SubjectPublicKeyInfo.

        Raises:
            SigningUnavailableError: it cannot be had.
        """

    def sign(self, name: str, digest: bytes) -> bytes:
        """Return the signature of a SHA-256 digest, as a DER Ecdsa-Sig-Value.

        Raises:
            SigningUnavailableError: the key cannot be used.
        """


class JsonWebKeySet(Struct, frozen=True):
    """The public keys (RFC 7517 §5)."""

    keys: list[JsonWebKey]


class Signer:
    """Publishes cards with signatures, and the keys to verify them with."""

    def __init__(self, names: Sequence[str], keeper: Keeper, clock: Callable[[], int]) -> None:
        """Args: the keys' names, the newest first: it signs; and a clock, in milliseconds."""
        self._names = names
        self._keeper = keeper
        self._clock = clock
        self._known: dict[str, JsonWebKey] = {}
        self._left_alone_until: dict[str, int] = {}
        self._signatures = lru_cache(CACHED_CARDS)(self._sign)

    def publish(self, card: AgentCard, base_url: str, if_none_match: str) -> Answer:
        """Return status, content and headers of the answer to a request for the card.

        The card goes out without signatures when its key cannot be used: it is still true, only not proven. Nobody
        may keep it then.
        """
        content = msgspec.json.encode(card)
        try:
            etag = _etag(content, self._key(self._names[0]).kid)
            headers = {"cache-control": CACHE_CONTROL, "etag": etag}
            if matches(if_none_match, etag):
                return 304, b"", headers
            signatures = self._signatures(content, base_url + KEYS_PATH)
        except SigningUnavailableError:
            return 200, content, {"content-type": CARD_TYPE, **NOT_CACHED}
        signed = msgspec.json.encode(replace(card, signatures=signatures))
        return 200, signed, {"content-type": CARD_TYPE, **headers}

    def publish_keys(self, if_none_match: str) -> Answer:
        """Return status, content and headers of the answer to a request for the keys.

        A key that cannot be read is left out, and what is then incomplete not kept.
        """
        enough = self._clock() + PATIENCE_MS
        keys = [key for name in self._names if self._clock() < enough and (key := self._key_if_any(name))]
        if not keys:
            headers = {"content-type": "application/json", "retry-after": str(RETRY_MS // 1000), **NOT_CACHED}
            return 503, b'{"message":"Service Unavailable"}', headers
        content = msgspec.json.encode(JsonWebKeySet(keys))
        if len(keys) < len(self._names):
            return 200, content, {"content-type": KEYS_TYPE, **NOT_CACHED}
        return conditional(content, KEYS_TYPE, KEYS_CACHE_CONTROL, if_none_match)

    def _sign(self, content: bytes, jku: str) -> list[AgentCardSignature]:
        newest = self._names[0]
        header = {"alg": ALGORITHM, "typ": "JOSE", "kid": self._key(newest).kid, "jku": jku}
        protected = base64url(msgspec.json.encode(header))
        return [self._signature(newest, protected, payload) for payload in canonical_forms(content)]

    def _signature(self, name: str, protected: str, payload: bytes) -> AgentCardSignature:
        digest = hashlib.sha256(f"{protected}.{base64url(payload)}".encode()).digest()
        raw = self._ask(name, lambda: raw_signature(self._keeper.sign(name, digest)))
        return AgentCardSignature(protected, base64url(raw))

    def _key(self, name: str) -> JsonWebKey:
        if name not in self._known:
            self._known[name] = self._ask(name, lambda: json_web_key(self._keeper.public_key(name)))
        return self._known[name]

    def _key_if_any(self, name: str) -> JsonWebKey | None:
        try:
            return self._key(name)
        except SigningUnavailableError:
            return None

    def _ask(self, name: str, question: Callable[[], T]) -> T:
        """Return what the keeper says of a key, unless it is being left alone.

        Raises:
            SigningUnavailableError: it says nothing, or nothing that can be used.
        """
        if self._clock() < self._left_alone_until.get(name, 0):
            raise SigningUnavailableError(f"{name} could not be used a moment ago")
        try:
            return question()
        except (SigningUnavailableError, ValueError) as error:
            self._left_alone_until[name] = self._clock() + RETRY_MS
            logger.exception("signing key unavailable", extra={"key": name})
            raise SigningUnavailableError(f"{name}: {error}") from error


def canonical_forms(content: bytes) -> list[bytes]:
    """Return what is signed of a card without signatures: the specification's form, and the SDKs' if it differs.

    A card is published as §8.4.1 wants it: what is unset or a default is not there, what is REQUIRED or was set is.
    """
    card = msgspec.json.decode(content)
    return list(dict.fromkeys([jcs.canonical(card), jcs.canonical(_without_empty(card) or {})]))


def _without_empty(value: Any) -> Any:
    """Return a value as the SDKs' verifiers see it, without empty strings, lists and objects; None for an empty one."""
    if isinstance(value, dict):
        members = {name: kept for name, each in value.items() if (kept := _without_empty(each)) is not None}
        return members or None
    if isinstance(value, list):
        return [kept for each in value if (kept := _without_empty(each)) is not None] or None
    return None if value == "" else value


def _etag(content: bytes, kid: str) -> str:
    """Return the ETag of a signed card. A weak one: each signature of the same content by the same key differs."""
    return f'W/"{hashlib.sha256(kid.encode() + content).hexdigest()[:32]}"'
