"""The template's tables in a DynamoDB that may not have them yet. What is there is left as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore import exceptions
from botocore.config import Config
from botocore.session import get_session

from local.errors import DatabaseUnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from local.deployment import Table


def create_missing_tables(endpoint: str, tables: Iterable[Table]) -> None:
    """Create each table that the DynamoDB at the endpoint lacks, and wait until it can be used.

    Raises DatabaseUnreachableError.
    """
    config = Config(connect_timeout=5, retries={"total_max_attempts": 2})
    try:
        client = get_session().create_client("dynamodb", endpoint_url=endpoint, config=config)
        for table in tables:
            if not _exists(client, table.name):
                _create(client, table)
    except (exceptions.ConnectionError, exceptions.HTTPClientError) as error:
        raise DatabaseUnreachableError(f"no DynamoDB answers at {endpoint}") from error
    except (exceptions.BotoCoreError, exceptions.ClientError, ValueError) as error:
        raise DatabaseUnreachableError(f"the DynamoDB at {endpoint} cannot be used: {error}") from error


def _exists(client: Any, name: str) -> bool:
    try:
        client.describe_table(TableName=name)
    except exceptions.ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return False
        raise
    return True


def _create(client: Any, table: Table) -> None:
    try:
        client.create_table(**table.creation)
    except exceptions.ClientError as error:
        # Another gateway was faster, and sets the expiry too.
        if error.response["Error"]["Code"] != "ResourceInUseException":
            raise
    else:
        client.get_waiter("table_exists").wait(TableName=table.name)
        if table.expiry_attribute is not None:
            client.update_time_to_live(
                TableName=table.name,
                TimeToLiveSpecification={"Enabled": True, "AttributeName": table.expiry_attribute},
            )
