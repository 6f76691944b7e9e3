"""AWS KMS as a keeper of signing keys. Imported only where a card is signed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from a2a_lambda import clients
from a2a_lambda.signing import SigningUnavailableError

if TYPE_CHECKING:
    from mypy_boto3_kms import KMSClient

# The card function has five seconds: enough to give up on KMS and serve the card without it.
CLIENT_CONFIG = Config(
    connect_timeout=1,
    read_timeout=1,
    retries={"mode": "standard", "total_max_attempts": 2},
)


class Kms:
    """Keys of the kind ECC_NIST_P256, which never leave KMS. A key is named by its id or ARN."""

    def __init__(self, client: "KMSClient") -> None:
        self._client = client

    def public_key(self, name: str) -> bytes:
        """Return a key's public half, as a DER SubjectPublicKeyInfo.

        Raises:
            SigningUnavailableError: KMS does not give it.
        """
        with _unavailable(name):
            return self._client.get_public_key(KeyId=name)["PublicKey"]

    def sign(self, name: str, digest: bytes) -> bytes:
        """Return the signature of a SHA-256 digest, as a DER Ecdsa-Sig-Value.

        Raises:
            SigningUnavailableError: KMS does not sign.
        """
        with _unavailable(name):
            # The digest and not the message, of which KMS takes 4,096 bytes at most.
            return self._client.sign(
                KeyId=name, Message=digest, MessageType="DIGEST", SigningAlgorithm="ECDSA_SHA_256"
            )["Signature"]


def connect(endpoint: str) -> Kms:
    """Return KMS; the endpoint is a URL, or "" for the region's own."""
    return Kms(clients.client("kms", endpoint, CLIENT_CONFIG))


@contextmanager
def _unavailable(name: str) -> Iterator[None]:
    """Translate whatever KMS says: that it cannot be reached, or that this key is not to be used."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise SigningUnavailableError(f"SIGNING_KEY: {name} cannot be used: {error}") from error
