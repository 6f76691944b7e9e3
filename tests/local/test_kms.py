"""The embedded KMS, and the signing key that is made in it."""

import hashlib
from typing import Any

import pytest
from botocore.session import get_session
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from local.errors import DatabaseUnreachableError
from local.server import listen, port_of
from local.signing_key import with_created_key

MESSAGE = b"message"
DIGEST = hashlib.sha256(MESSAGE).digest()


@pytest.fixture(autouse=True)
def _identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


def kms(endpoint: str) -> Any:
    return get_session().create_client("kms", endpoint_url=endpoint)


@pytest.mark.parametrize(("kind", "signed"), [("DIGEST", DIGEST), ("RAW", MESSAGE)])
def test_a_signature_of_a_message_and_of_its_digest_are_the_same_thing(dynamodb: str, kind: str, signed: bytes) -> None:
    key = with_created_key("create", dynamodb)
    public_key = load_der_public_key(kms(dynamodb).get_public_key(KeyId=key)["PublicKey"])
    assert isinstance(public_key, ec.EllipticCurvePublicKey)

    answer = kms(dynamodb).sign(KeyId=key, Message=signed, MessageType=kind, SigningAlgorithm="ECDSA_SHA_256")

    assert answer["KeyId"] == key
    public_key.verify(answer["Signature"], DIGEST, ec.ECDSA(Prehashed(SHA256())))


def test_moto_still_refuses_what_kms_refuses(dynamodb: str) -> None:
    client = kms(dynamodb)
    key = client.create_key(KeySpec="SYMMETRIC_DEFAULT")["KeyMetadata"]["KeyId"]

    with pytest.raises(client.exceptions.ClientError, match=r"ValidationException|InvalidKeyUsage"):
        client.sign(KeyId=key, Message=DIGEST, MessageType="DIGEST", SigningAlgorithm="ECDSA_SHA_256")


def test_a_key_is_made_where_the_setting_says_so(dynamodb: str) -> None:
    before, made, after = with_created_key("one,create,other", dynamodb).split(",")

    assert (before, after) == ("one", "other")
    assert kms(dynamodb).describe_key(KeyId=made)["KeyMetadata"]["KeySpec"] == "ECC_NIST_P256"
    assert with_created_key("one,other", dynamodb) == "one,other"


def test_a_key_that_cannot_be_made_is_one_clear_line() -> None:
    with listen(0) as taken:
        nobody = f"http://127.0.0.1:{port_of(taken)}"

    with pytest.raises(DatabaseUnreachableError, match=f"SIGNING_KEY=create: no KMS answers at {nobody}"):
        with_created_key("create", nobody)
