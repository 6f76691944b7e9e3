"""DER as KMS writes it, and what JOSE makes of it."""

import base64
import hashlib
import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from a2a_lambda.es256 import base64url, json_web_key, raw_signature

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551

NUMBERS = {
    "one": 1,
    "below a high bit": 0x7F,
    "a high bit in one byte": 0x80,
    "31 bytes": 1 << 240,
    "a high bit in 31 bytes": 1 << 247,
    "below a high bit in 32 bytes": (1 << 255) - 1,
    "a high bit in 32 bytes": 1 << 255,
    "the largest": ORDER - 1,
}


def spki(key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey) -> bytes:
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def decoded(text: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


@pytest.mark.parametrize("s", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("r", NUMBERS.values(), ids=NUMBERS)
def test_r_and_s_have_32_bytes_each(r: int, s: int) -> None:
    assert raw_signature(encode_dss_signature(r, s)) == r.to_bytes(32) + s.to_bytes(32)


@pytest.mark.parametrize(
    "der",
    [
        "",
        "30",
        "3000",
        "3006020101",  # shorter than it says
        "30060201010202",
        "300602010102010200",  # something behind it
        "3009020101020102020103",  # a third number
        "3003020101",  # only one
        "3106020101020102",  # a SET
        "3006040101020102",  # an OCTET STRING
        "30060201000201 02",  # zero
        "3006020181020102",  # negative
        "30050200020102",  # a number without bytes
        "308106020101020102",  # the long form
        "30800201010201020000",  # the indefinite form
        "3026" + "0221" + "01" + "00" * 32 + "020101",  # 33 bytes that are not a sign's
    ],
)
def test_what_is_no_signature_is_refused(der: str) -> None:
    with pytest.raises(ValueError, match="signature"):
        raw_signature(bytes.fromhex(der))


def test_a_public_key_becomes_its_coordinates() -> None:
    public = ec.generate_private_key(ec.SECP256R1()).public_key()

    key = json_web_key(spki(public))

    assert (decoded(key.x), decoded(key.y)) == (public.public_numbers().x, public.public_numbers().y)
    assert (key.kty, key.crv, key.alg, key.use) == ("EC", "P-256", "ES256", "sig")


def test_coordinates_keep_their_leading_zeros() -> None:
    # One key in 256 has them.
    public = next(
        public
        for factor in range(1, 10_000)
        if (public := ec.derive_private_key(factor, ec.SECP256R1()).public_key()).public_numbers().x < 1 << 248
    )

    assert len(json_web_key(spki(public)).x) == 43


def test_a_key_is_called_by_its_thumbprint() -> None:
    key = json_web_key(spki(ec.generate_private_key(ec.SECP256R1()).public_key()))
    required = {"crv": key.crv, "kty": key.kty, "x": key.x, "y": key.y}

    digest = hashlib.sha256(json.dumps(required, separators=(",", ":"), sort_keys=True).encode()).digest()

    assert key.kid == base64url(digest)


@pytest.mark.parametrize(
    "der",
    [
        spki(ec.generate_private_key(ec.SECP384R1()).public_key()),
        spki(ec.generate_private_key(ec.SECP256K1()).public_key()),
        spki(rsa.generate_private_key(65537, 2048).public_key()),
        spki(ec.generate_private_key(ec.SECP256R1()).public_key())[:-1],
        spki(ec.generate_private_key(ec.SECP256R1()).public_key()) + b"\0",
        bytes(64),
        b"",
    ],
    ids=["P-384", "secp256k1", "RSA", "cut short", "too long", "no header", "nothing"],
)
def test_other_keys_are_refused(der: bytes) -> None:
    with pytest.raises(ValueError, match="ECC_NIST_P256"):
        json_web_key(der)
