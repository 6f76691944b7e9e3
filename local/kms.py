"""The embedded KMS: moto's, which signs the SHA-256 of what it is given, also where that is the digest already."""

from __future__ import annotations

import base64
import json

from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256
from moto.kms import urls
from moto.kms.responses import KmsResponse


class KmsThatSignsDigests(KmsResponse):
    """moto's KMS, where MessageType DIGEST on a P-256 key means what it does in AWS. Verify is still moto's."""

    def sign(self) -> str:
        """The answer to Sign."""
        answer = json.loads(super().sign())
        if self._get_param("MessageType") == "DIGEST" and answer["SigningAlgorithm"] == "ECDSA_SHA_256":
            # moto has checked the request and answered it; only its signature is over another digest.
            key = self.kms_backend.describe_key(answer["KeyId"]).private_key.private_key  # type: ignore[attr-defined]
            signature = key.sign(self._get_param("Message"), ec.ECDSA(utils.Prehashed(SHA256())))
            answer["Signature"] = base64.b64encode(signature).decode()
        return json.dumps(answer)


def correct() -> None:
    """Serve this KMS in the place of moto's, from now on, in this process."""
    urls.url_paths = dict.fromkeys(urls.url_paths, KmsThatSignsDigests.dispatch)
