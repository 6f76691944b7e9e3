"""ECDSA on P-256 with SHA-256: from KMS's notation (DER) into JOSE's (RFC 7515, 7517, 7518). No cryptography here."""

import hashlib
from base64 import urlsafe_b64encode
from typing import Final

from msgspec import Struct

ALGORITHM: Final = "ES256"
SIZE: Final = 32
"""Bytes of a coordinate, and of each half of a signature."""

P256_PUBLIC_KEY: Final = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
"""How the DER of every P-256 key begins (RFC 5480): id-ecPublicKey, prime256v1, an uncompressed point."""

SEQUENCE: Final = 0x30
INTEGER: Final = 0x02
LONG_FORM: Final = 0x80


class JsonWebKey(Struct, frozen=True):
    """A public key (RFC 7517, RFC 7518 §6.2). Its id is its thumbprint (RFC 7638), so that it can name no other key."""

    kid: str
    x: str
    y: str
    kty: str = "EC"
    crv: str = "P-256"
    alg: str = ALGORITHM
    use: str = "sig"


def json_web_key(der: bytes) -> JsonWebKey:
    """Return a public key that is given as a DER SubjectPublicKeyInfo.

    Raises:
        ValueError: it is not an uncompressed P-256 key.
    """
    point = der.removeprefix(P256_PUBLIC_KEY)
    if len(point) != 2 * SIZE or len(der) == len(point):
        raise ValueError("not an ECC_NIST_P256 key")
    x, y = base64url(point[:SIZE]), base64url(point[SIZE:])
    members = f'{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}'
    return JsonWebKey(base64url(hashlib.sha256(members.encode()).digest()), x, y)


def raw_signature(der: bytes) -> bytes:
    """Return a signature that is given as a DER Ecdsa-Sig-Value as r and s, 32 bytes each (RFC 7518 §3.4).

    Raises:
        ValueError: it is not one.
    """
    integers, rest = _value(der, SEQUENCE)
    r, integers = _value(integers, INTEGER)
    s, end = _value(integers, INTEGER)
    if rest or end:
        raise ValueError("not a DER signature")
    return _unsigned(r) + _unsigned(s)


def base64url(content: bytes) -> str:
    """Return bytes in base64url without padding (RFC 7515 §2)."""
    return urlsafe_b64encode(content).rstrip(b"=").decode()


def _value(der: bytes, tag: int) -> tuple[bytes, bytes]:
    """Return the value of the DER element that comes first, and what follows it."""
    # A P-256 signature has 72 bytes at most: every length is one byte.
    length = der[1] if der[:1] == bytes([tag]) and der[1:] else LONG_FORM
    value, rest = der[2 : 2 + length], der[2 + length :]
    if length >= LONG_FORM or len(value) < length:
        raise ValueError("not a DER signature")
    return value, rest


def _unsigned(integer: bytes) -> bytes:
    """Return a positive DER integer in its fixed size, without the zero that keeps a high bit from being a sign."""
    number = int.from_bytes(integer, signed=True)
    if not 0 < number < 1 << 8 * SIZE:
        raise ValueError("not a P-256 signature")
    return number.to_bytes(SIZE)
