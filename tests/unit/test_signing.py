"""Signed cards: what is signed, with which key, how often, and what is answered when it cannot be."""

import base64
import hashlib
import logging
from typing import Final

import msgspec
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from msgspec.structs import replace

from a2a_lambda.agent import AgentProfile
from a2a_lambda.card import agent_card, publish
from a2a_lambda.es256 import json_web_key
from a2a_lambda.model import AgentExtension, SecurityRequirement, StringList
from a2a_lambda.signing import CACHED_CARDS, PATIENCE_MS, Signer, SigningUnavailableError, canonical_forms
from tests.unit.factories import PROFILE, SECOND, Clock, Json

URL: Final = "https://agent.example"
CARD: Final = agent_card(PROFILE, URL)
WITH_EMPTY: Final = replace(CARD, security_requirements=[SecurityRequirement({"apiKey": StringList()})])
"""A card whose canonical form the SDKs see otherwise."""


class KeysInMemory:
    """P-256 keys, made when they are first named; those in `refused` are never answered. Counts the calls."""

    def __init__(self) -> None:
        self.keys: dict[str, ec.EllipticCurvePrivateKey] = {}
        self.refused: set[str] = set()
        self.calls: list[str] = []

    def key(self, name: str) -> ec.EllipticCurvePrivateKey:
        return self.keys.setdefault(name, ec.generate_private_key(ec.SECP256R1()))

    def kid(self, name: str) -> str:
        return json_web_key(self.der(name)).kid

    def der(self, name: str) -> bytes:
        return self.key(name).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    def public_key(self, name: str) -> bytes:
        self.called("public_key", name)
        return self.der(name)

    def sign(self, name: str, digest: bytes) -> bytes:
        self.called("sign", name)
        return self.key(name).sign(digest, ec.ECDSA(Prehashed(SHA256())))

    def called(self, what: str, name: str) -> None:
        self.calls.append(f"{what} {name}")
        if name in self.refused or f"{what} {name}" in self.refused:
            raise SigningUnavailableError("refused")


class Brokenly(KeysInMemory):
    """A keeper that signs with what is no signature."""

    def sign(self, name: str, digest: bytes) -> bytes:
        return super().sign(name, digest)[:-1]


@pytest.fixture
def keeper() -> KeysInMemory:
    return KeysInMemory()


def signer(keeper: KeysInMemory, *names: str, clock: Clock | None = None) -> Signer:
    return Signer(names or ("newest",), keeper, clock or Clock())


def signed(signer: Signer, url: str = URL) -> Json:
    status, content, _ = signer.publish(agent_card(PROFILE, url), url, "")
    assert status == 200
    return msgspec.json.decode(content)


def unpadded(text: str) -> bytes:
    assert "=" not in text
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def header(signature: Json) -> Json:
    return msgspec.json.decode(unpadded(signature["protected"]))


def verifies(signature: Json, payload: bytes, key: ec.EllipticCurvePrivateKey) -> bool:
    raw = unpadded(signature["signature"])
    assert len(raw) == 64
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    encoded = base64.urlsafe_b64encode(payload).rstrip(b"=")
    try:
        key.public_key().verify(der, signature["protected"].encode() + b"." + encoded, ec.ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


# What is signed


def test_a_signature_is_over_the_canonical_card_without_its_signatures(keeper: KeysInMemory) -> None:
    card = signed(signer(keeper))
    (signature,) = card.pop("signatures")
    (payload,) = canonical_forms(msgspec.json.encode(card))

    assert verifies(signature, payload, keeper.key("newest"))
    assert not verifies(signature, payload.replace(b"Test", b"Best"), keeper.key("newest"))


def test_a_signed_card_is_the_unsigned_one_with_signatures(keeper: KeysInMemory) -> None:
    card = signed(signer(keeper))

    assert card.pop("signatures")
    assert card == msgspec.json.decode(msgspec.json.encode(CARD))


def test_a_signature_names_its_key_and_where_the_keys_are(keeper: KeysInMemory) -> None:
    (signature,) = signed(signer(keeper))["signatures"]

    assert header(signature) == {
        "alg": "ES256",
        "typ": "JOSE",
        "kid": keeper.kid("newest"),
        "jku": "https://agent.example/.well-known/jwks.json",
    }


def test_where_the_forms_differ_there_is_a_signature_over_each(keeper: KeysInMemory) -> None:
    _, content, _ = signer(keeper).publish(WITH_EMPTY, URL, "")
    signatures = msgspec.json.decode(content)["signatures"]
    specified, of_the_sdks = canonical_forms(msgspec.json.encode(WITH_EMPTY))

    assert b'"securityRequirements":[{"schemes":{"apiKey":{}}}]' in specified
    assert b"securityRequirements" not in of_the_sdks
    assert [verifies(each, specified, keeper.key("newest")) for each in signatures] == [True, False]
    assert [verifies(each, of_the_sdks, keeper.key("newest")) for each in signatures] == [False, True]


def test_the_specifications_form_keeps_what_is_required_or_set() -> None:
    extension = AgentExtension(uri="urn:x", params={"none": None, "empty": "", "number": 1e21})
    profile = AgentProfile(
        name="n", description="", version="1", skills=[], extensions=[extension], documentation_url=""
    )

    specified, of_the_sdks = canonical_forms(msgspec.json.encode(agent_card(profile, URL)))

    assert specified.decode() == (
        '{"capabilities":{"extendedAgentCard":false,"extensions":'
        '[{"params":{"empty":"","none":null,"number":1e+21},"uri":"urn:x"}],'
        '"pushNotifications":false,"streaming":false},"defaultInputModes":["text/plain"],'
        '"defaultOutputModes":["text/plain"],"description":"","documentationUrl":"","name":"n","skills":[],'
        '"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"https://agent.example/a2a"}],'
        '"version":"1"}'
    )
    assert of_the_sdks.decode() == (
        '{"capabilities":{"extendedAgentCard":false,"extensions":[{"params":{"number":1e+21},"uri":"urn:x"}],'
        '"pushNotifications":false,"streaming":false},"defaultInputModes":["text/plain"],'
        '"defaultOutputModes":["text/plain"],"name":"n",'
        '"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"https://agent.example/a2a"}],'
        '"version":"1"}'
    )


# How often


def test_signatures_are_made_once_for_an_origin(keeper: KeysInMemory) -> None:
    one = signer(keeper)

    assert signed(one) == signed(one)
    assert keeper.calls == ["public_key newest", "sign newest"]

    other = signed(one, "https://other.example")
    assert header(other["signatures"][0])["jku"] == "https://other.example/.well-known/jwks.json"
    assert keeper.calls == ["public_key newest", "sign newest", "sign newest"]


def test_only_so_many_origins_are_remembered(keeper: KeysInMemory) -> None:
    one = signer(keeper)
    for number in range(CACHED_CARDS + 1):
        signed(one, f"https://{number}.example")
    before = len(keeper.calls)

    signed(one, f"https://{CACHED_CARDS}.example")
    assert len(keeper.calls) == before
    signed(one, "https://0.example")
    assert len(keeper.calls) == before + 1


# How it is published


def test_the_etag_of_a_signed_card_is_weak_and_the_same_in_every_instance(keeper: KeysInMemory) -> None:
    _, content, headers = signer(keeper).publish(CARD, URL, "")
    _, other_content, other_headers = signer(keeper).publish(CARD, URL, "")

    assert content != other_content
    assert headers == other_headers
    assert headers["etag"].startswith('W/"')
    assert headers["cache-control"] == "public, max-age=3600"
    assert headers["content-type"] == "application/json"


def test_the_etag_follows_the_card_and_the_key(keeper: KeysInMemory) -> None:
    etags = {
        headers["etag"].removeprefix("W/")
        for _, _, headers in [
            signer(keeper).publish(CARD, URL, ""),
            signer(keeper).publish(WITH_EMPTY, URL, ""),
            signer(keeper, "newer", "newest").publish(CARD, URL, ""),
            publish(CARD, ""),
        ]
    }

    assert len(etags) == 4


def test_who_has_the_card_gets_no_content_and_costs_no_signature(keeper: KeysInMemory) -> None:
    _, _, headers = signer(keeper).publish(CARD, URL, "")
    keeper.calls.clear()

    status, content, again = signer(keeper).publish(CARD, URL, headers["etag"])

    assert (status, content) == (304, b"")
    assert again == {name: headers[name] for name in ("etag", "cache-control")}
    assert keeper.calls == ["public_key newest"]


# Keys


def test_the_newest_key_signs_and_all_are_published(keeper: KeysInMemory) -> None:
    old_card = signed(signer(keeper, "old"))
    rotated = signer(keeper, "new", "old")
    status, content, headers = rotated.publish_keys("")
    keys = msgspec.json.decode(content)["keys"]

    assert status == 200
    assert [key["kid"] for key in keys] == [keeper.kid("new"), keeper.kid("old")]
    assert header(signed(rotated)["signatures"][0])["kid"] == keeper.kid("new")
    assert header(old_card["signatures"][0])["kid"] == keeper.kid("old")
    assert set(keys[0]) == {"kid", "kty", "crv", "x", "y", "alg", "use"}
    assert headers["content-type"] == "application/jwk-set+json"
    assert headers["cache-control"] == "public, max-age=300"


def test_who_has_the_keys_is_sent_no_content(keeper: KeysInMemory) -> None:
    _, content, headers = signer(keeper).publish_keys("")

    assert headers["etag"] == f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    assert signer(keeper).publish_keys(headers["etag"])[:2] == (304, b"")


def test_keys_are_asked_for_once(keeper: KeysInMemory) -> None:
    one = signer(keeper, "a", "b")
    signed(one)
    one.publish_keys("")
    one.publish_keys("")

    assert keeper.calls == ["public_key a", "sign a", "public_key b"]


# When a key cannot be used


@pytest.mark.parametrize("refused", ["public_key newest", "sign newest"])
def test_a_card_that_cannot_be_signed_goes_out_without_signatures_and_is_not_cached(
    keeper: KeysInMemory, refused: str, caplog: pytest.LogCaptureFixture
) -> None:
    keeper.refused.add(refused)

    status, content, headers = signer(keeper).publish(CARD, URL, "")

    assert (status, content) == (200, msgspec.json.encode(CARD))
    assert headers == {"content-type": "application/json", "cache-control": "no-store"}
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.ERROR, "signing key unavailable")


def test_a_key_that_cannot_be_used_is_left_alone_for_ten_seconds(keeper: KeysInMemory) -> None:
    clock = Clock()
    one = signer(keeper, clock=clock)
    keeper.refused.add("newest")
    assert "signatures" not in signed(one)
    keeper.refused.clear()

    clock.advance(10 * SECOND - 1)
    assert "signatures" not in signed(one)
    assert keeper.calls == ["public_key newest"]

    clock.advance(1)
    assert "signatures" in signed(one)


def test_who_has_a_signed_card_may_keep_it_while_nothing_can_be_signed(keeper: KeysInMemory) -> None:
    one = signer(keeper)
    _, _, headers = one.publish(CARD, URL, "")
    keeper.refused.add("newest")

    assert one.publish(CARD, URL, headers["etag"])[0] == 304


def test_an_old_key_that_is_gone_is_left_out_and_the_newest_signs(keeper: KeysInMemory) -> None:
    keeper.refused.add("gone")
    one = signer(keeper, "new", "gone")

    status, content, headers = one.publish_keys("")

    assert status == 200
    assert [key["kid"] for key in msgspec.json.decode(content)["keys"]] == [keeper.kid("new")]
    assert headers["cache-control"] == "no-store"
    assert "etag" not in headers
    assert "signatures" in signed(one)


class Slow(KeysInMemory):
    """Keys whose keeper takes a while for each, by the clock, before it answers or does not."""

    def __init__(self, clock: Clock, milliseconds: int) -> None:
        super().__init__()
        self.clock = clock
        self.milliseconds = milliseconds

    def called(self, what: str, name: str) -> None:
        self.clock.advance(self.milliseconds)
        super().called(what, name)


@pytest.mark.parametrize("count", [1, 2, 3, 10])
@pytest.mark.parametrize("milliseconds", [900, 2400, 2500, 5000])
def test_keys_are_not_waited_for_beyond_the_patience(count: int, milliseconds: int) -> None:
    clock = Clock()
    keeper = Slow(clock, milliseconds)
    names = [f"k{number}" for number in range(count)]
    keeper.refused = set(names)
    started = clock.now
    status, _, headers = signer(keeper, *names, clock=clock).publish_keys("")

    assert clock.now - started < PATIENCE_MS + milliseconds
    assert (status, headers["cache-control"]) == (503, "no-store")


def test_the_keys_that_were_answered_in_time_are_published_and_not_cached_until_all_are() -> None:
    clock = Clock()
    keeper = Slow(clock, 1000)
    publisher = signer(keeper, *[f"k{number}" for number in range(5)], clock=clock)
    status, content, headers = publisher.publish_keys("")

    assert [key["kid"] for key in msgspec.json.decode(content)["keys"]] == [keeper.kid(f"k{n}") for n in range(3)]
    assert (status, headers["cache-control"]) == (200, "no-store")

    status, content, headers = publisher.publish_keys("")
    assert len(msgspec.json.decode(content)["keys"]) == 5
    assert "max-age" in headers["cache-control"]


def test_no_keys_at_all_is_a_503_that_says_when_to_try_again(keeper: KeysInMemory) -> None:
    keeper.refused.add("newest")

    status, content, headers = signer(keeper).publish_keys("")

    assert (status, content) == (503, b'{"message":"Service Unavailable"}')
    assert headers == {"content-type": "application/json", "retry-after": "10", "cache-control": "no-store"}


def test_a_key_of_another_kind_signs_nothing(keeper: KeysInMemory) -> None:
    keeper.keys["newest"] = ec.generate_private_key(ec.SECP384R1())

    assert "signatures" not in signed(signer(keeper))
    assert signer(keeper).publish_keys("")[0] == 503


def test_what_is_no_signature_is_not_published() -> None:
    assert "signatures" not in signed(signer(Brokenly()))
