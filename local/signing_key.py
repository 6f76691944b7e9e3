"""The key that `create` stands for in SIGNING_KEY: made in the embedded KMS, gone with it."""

from __future__ import annotations

from typing import Any

from botocore import exceptions
from botocore.config import Config
from botocore.session import get_session

from local.errors import DatabaseUnreachableError

CREATE = "create"


def with_created_key(names: str, endpoint: str) -> str:
    """The names of signing keys, separated by commas, with a new key's ARN in the place of `create`.

    Raises DatabaseUnreachableError.
    """
    return ",".join(_create_key(endpoint) if name == CREATE else name for name in names.split(","))


def _create_key(endpoint: str) -> str:
    config = Config(connect_timeout=5, retries={"total_max_attempts": 2})
    try:
        client: Any = get_session().create_client("kms", endpoint_url=endpoint, config=config)
        created = client.create_key(KeySpec="ECC_NIST_P256", KeyUsage="SIGN_VERIFY")
    except (exceptions.BotoCoreError, exceptions.ClientError, ValueError) as error:
        raise DatabaseUnreachableError(f"SIGNING_KEY={CREATE}: no KMS answers at {endpoint}") from error
    arn: str = created["KeyMetadata"]["Arn"]
    return arn
