"""Signed cards, verified by the official SDK's client and by a verifier written after the specification (§8.4.3).

The keys are in the embedded KMS, the function is the real one, and AUTH is api-key, whose card the SDK canonicalises
otherwise than the specification.
"""

import asyncio
import base64
import copy
import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import pytest
from a2a.client.card_resolver import A2ACardResolver
from a2a.utils._jcs import canonicalize
from a2a.utils.signing import SignatureVerificationError, create_signature_verifier
from botocore.session import get_session
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from hypothesis import given, settings
from hypothesis import strategies as st
from jwt import PyJWK, PyJWKSet

from a2a_lambda import jcs
from local.server import listen, port_of
from tests.local.processes import GATEWAY, Command

Json = Any
Handler = Callable[[Json, None], Json]
Fetch = Callable[[str], Json]

ROOT: Final = Path(__file__).resolve().parents[2]
ORIGIN: Final = "https://agent.example"
CARD: Final = f"{ORIGIN}/.well-known/agent-card.json"
NOBODYS_KEY: Final = "00000000-0000-0000-0000-000000000000"


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "A2A_AGENT": "order_status:OrderStatusAgent",
        "AUTH": "api-key",
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_SECRET_ACCESS_KEY": "local",
        "PUBLIC_URL": ORIGIN,
    }.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def kms(dynamodb: str) -> Iterator[Any]:
    client = get_session().create_client("kms", endpoint_url=dynamodb)
    yield client
    client.close()


def new_key(kms: Any) -> str:
    arn: str = kms.create_key(KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")["KeyMetadata"]["Arn"]
    return arn


@pytest.fixture
def deployed(dynamodb: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Fetch]:
    """What deploys the card function with these signing keys; what comes of it fetches a document by its address."""

    def deploy(*keys: str, **environ: str) -> Fetch:
        for name, value in {"SIGNING_KEY": ",".join(keys), "KMS_ENDPOINT": dynamodb, **environ}.items():
            monkeypatch.setenv(name, value)
        spec = importlib.util.spec_from_file_location("card_function", ROOT / "functions" / "card" / "app.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sample = json.loads((ROOT / "events" / "card.json").read_text())

        def fetch(url: str) -> Json:
            assert url.startswith(ORIGIN)
            answer = module.handler(sample | {"routeKey": f"GET {urlsplit(url).path}"}, None)
            assert answer["statusCode"] == 200
            return json.loads(answer["body"])

        return fetch

    return deploy


# The two verifiers. Each fetches the keys that the signature names.


def sdk_verifies(card: Json, fetch: Fetch) -> bool:
    """Whether the SDK's client accepts the card that it is sent."""

    def key(kid: str | None, jku: str | None) -> PyJWK:
        assert kid is not None
        assert jku is not None
        return PyJWKSet.from_dict(fetch(jku))[kid]

    async def resolve() -> None:
        transport = httpx.MockTransport(lambda _: httpx.Response(200, json=card))
        async with httpx.AsyncClient(transport=transport) as http:
            resolver = A2ACardResolver(http, ORIGIN)
            await resolver.get_agent_card(signature_verifier=create_signature_verifier(key, ["ES256"]))

    try:
        asyncio.run(resolve())
    except SignatureVerificationError:
        return False
    return True


def specification_verifies(card: Json, fetch: Fetch) -> bool:
    """Whether a signature is over the card as it is: it is published without defaults that are not REQUIRED."""
    unsigned = {name: value for name, value in card.items() if name != "signatures"}
    # The demo agent's card has no fractions and no names beyond ASCII: for it, this is RFC 8785.
    payload = json.dumps(unsigned, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
    return any(signature_verifies(signature, payload, fetch) for signature in card["signatures"])


def signature_verifies(signature: Json, payload: bytes, fetch: Fetch) -> bool:
    header = json.loads(decoded(signature["protected"]))
    assert (header["alg"], header["typ"]) == ("ES256", "JOSE")
    (jwk,) = (jwk for jwk in fetch(header["jku"])["keys"] if jwk["kid"] == header["kid"])
    x, y = (int.from_bytes(decoded(jwk[name])) for name in "xy")
    raw = decoded(signature["signature"])
    der = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    signed = f"{signature['protected']}.{base64.urlsafe_b64encode(payload).rstrip(b'=').decode()}"
    try:
        public_key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        public_key.verify(der, signed.encode(), ec.ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


VERIFIERS: Final = [sdk_verifies, specification_verifies]
Verifier = Callable[[Json, Fetch], bool]
each_verifier = pytest.mark.parametrize("verifies", VERIFIERS)


# What they say


@each_verifier
@pytest.mark.parametrize("auth", ["none", "api-key", "iam", "jwt"])
def test_a_signed_card_is_verified(kms: Any, deployed: Callable[..., Fetch], auth: str, verifies: Verifier) -> None:
    fetch = deployed(new_key(kms), AUTH=auth, JWT_ISSUER="https://issuer.example", REQUIRED_SCOPE="orders")

    assert verifies(fetch(CARD), fetch)


def test_each_verifier_has_a_signature_of_its_own(kms: Any, deployed: Callable[..., Fetch]) -> None:
    fetch = deployed(new_key(kms))
    card = fetch(CARD)
    of_the_specification, of_the_sdks = card["signatures"]

    only = [card | {"signatures": [signature]} for signature in (of_the_specification, of_the_sdks)]
    assert [specification_verifies(each, fetch) for each in only] == [True, False]
    assert [sdk_verifies(each, fetch) for each in only] == [False, True]


@each_verifier
def test_a_card_that_an_older_key_signed_is_still_verified(
    kms: Any, deployed: Callable[..., Fetch], verifies: Verifier
) -> None:
    old, new = new_key(kms), new_key(kms)
    card = deployed(old)(CARD)
    rotated = deployed(new, old)
    newer = rotated(CARD)

    assert verifies(card, rotated)
    assert verifies(newer, rotated)
    assert {kid(signature) for signature in newer["signatures"]}.isdisjoint(map(kid, card["signatures"]))


def kid(signature: Json) -> str:
    name: str = json.loads(decoded(signature["protected"]))["kid"]
    return name


def altered(value: Json) -> Iterator[Json]:
    """Yield a value with one thing in it changed, for every thing: a text, a truth, a list, a member more or less."""
    match value:
        case bool():
            yield not value
        case str():
            yield value + "x"
        case list():
            yield [*value, *copy.deepcopy(value[-1:])]
            for at, each in enumerate(value):
                yield from ([*value[:at], other, *value[at + 1 :]] for other in altered(each))
        case dict():
            yield from [] if value else [{"list": ["admin"]}]
            for name, each in value.items():
                yield {other: value[other] for other in value if other != name}
                yield from ({**value, name: other} for other in altered(each))


@each_verifier
def test_a_card_that_was_altered_anywhere_is_not_verified(
    kms: Any, deployed: Callable[..., Fetch], verifies: Verifier
) -> None:
    fetch = deployed(new_key(kms))
    card = fetch(CARD)
    signatures = card.pop("signatures")
    keys = fetch(f"{ORIGIN}/.well-known/jwks.json")
    requirements = {"securityRequirements": card.pop("securityRequirements")}

    forgeries = [requirements | forged | {"signatures": signatures} for forged in altered(card)]

    assert len(forgeries) > 50
    assert not [forgery for forgery in forgeries if verifies(forgery, lambda _: keys)]


def test_the_specifications_signature_covers_which_schemes_are_required(
    kms: Any, deployed: Callable[..., Fetch]
) -> None:
    fetch = deployed(new_key(kms))
    card = fetch(CARD)
    first = {"signatures": card["signatures"][:1]}

    forgeries = [
        card | first | {"securityRequirements": forged} for forged in [*altered(card["securityRequirements"]), []]
    ]

    assert specification_verifies(card | first, fetch)
    assert not [forgery for forgery in forgeries if specification_verifies(forgery, fetch)]


def test_the_sdks_signature_does_not_cover_schemes_that_are_required_without_a_scope(
    kms: Any, deployed: Callable[..., Fetch]
) -> None:
    """Their canonical form has no room for it. docs/security.md says so."""
    fetch = deployed(new_key(kms))
    card = fetch(CARD)
    del card["securityRequirements"]

    assert sdk_verifies(card, fetch)


@each_verifier
def test_another_servers_key_verifies_nothing(kms: Any, deployed: Callable[..., Fetch], verifies: Verifier) -> None:
    card = deployed(new_key(kms))(CARD)
    others = deployed(new_key(kms))(f"{ORIGIN}/.well-known/jwks.json")
    ours = kid(card["signatures"][0])
    (other,) = others["keys"]

    assert not verifies(card, lambda _: {"keys": [other | {"kid": ours}]})


@settings(derandomize=True, deadline=None, database=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.integers(-(2**53) + 1, 2**53 - 1)
        | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    )
)
def test_the_sdk_canonicalises_json_likewise(value: Json) -> None:
    assert jcs.canonical(value) == canonicalize(value).encode()


def test_the_local_gateway_signs_with_a_key_that_it_makes() -> None:
    with Command(GATEWAY, {"AUTH": "api-key", "SIGNING_KEY": "create"}) as gateway, httpx.Client() as http:
        origin = gateway.ready().gateway

        def fetch(url: str) -> Json:
            assert url.startswith(origin)
            return http.get(url).raise_for_status().json()

        card = fetch(f"{origin}/.well-known/agent-card.json")
        assert [verifies(card, fetch) for verifies in VERIFIERS] == [True, True]
        assert http.head(f"{origin}/.well-known/jwks.json").status_code == 200


def test_a_card_that_kms_does_not_sign_is_served_all_the_same(
    deployed: Callable[..., Fetch], caplog: pytest.LogCaptureFixture
) -> None:
    card = deployed(NOBODYS_KEY)(CARD)

    assert "signatures" not in card
    assert f"SIGNING_KEY: {NOBODYS_KEY} cannot be used" in caplog.text


def test_a_card_is_served_where_no_kms_answers(deployed: Callable[..., Fetch]) -> None:
    with listen(0) as taken:
        nobody = f"http://127.0.0.1:{port_of(taken)}"

    assert "signatures" not in deployed(NOBODYS_KEY, KMS_ENDPOINT=nobody)(CARD)
