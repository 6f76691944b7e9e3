"""What botocore raises when the moment is wrong and not the request, told apart from everything else."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as BotoConnectionError

from a2a_lambda.errors import UnavailableError

SERVER_ERROR: Final = 500
TRY_AGAIN: Final = frozenset(
    {
        "InternalServerError",
        "LimitExceededException",
        "OverLimit",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestTimeout",
        "ServiceUnavailable",
        "ThrottlingException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
"""The error codes that say nothing about the request, only about the moment."""


@contextmanager
def unavailable() -> Iterator[None]:
    """Raise UnavailableError for what AWS says about the moment. What it says about the request is left as it is."""
    try:
        yield
    except (BotoConnectionError, HTTPClientError) as error:
        raise UnavailableError from error
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        if error.response["Error"]["Code"] in TRY_AGAIN or status >= SERVER_ERROR:
            raise UnavailableError from error
        raise
