"""Putting the rpc function together, once for each Lambda instance: settings, agent, client, store."""

import os
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import botocore.session
from botocore.config import Config

from a2a_lambda import settings, timestamps
from a2a_lambda.dynamodb import DynamoDBTaskStore
from a2a_lambda.jsonrpc import Endpoint
from a2a_lambda.loading import load_agent
from a2a_lambda.operations import Operations
from a2a_lambda.settings import RpcSettings

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

# Three tries of at most four seconds leave an agent most of API Gateway's thirty. What is sent is our own.
CLIENT_CONFIG = Config(
    connect_timeout=1,
    read_timeout=3,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=50,
    parameter_validation=False,
)


def new_id() -> str:
    """Return an id for a task, a context, a message, an artifact or a write: a random UUID."""
    return str(uuid.uuid4())


def dynamodb_client(endpoint: str) -> "DynamoDBClient":
    """Return a DynamoDB client; the endpoint is a URL, or "" for the region's own."""
    session = botocore.session.get_session()
    client = session.create_client("dynamodb", endpoint_url=endpoint or None, config=CLIENT_CONFIG)
    return cast("DynamoDBClient", client)


def rpc_endpoint(environ: Mapping[str, str] = os.environ) -> Endpoint:
    """Return the JSON-RPC endpoint as the environment configures it.

    Raises:
        InvalidSettingError: naming the variable.
    """
    configured = settings.load(RpcSettings, environ)
    store = DynamoDBTaskStore(
        dynamodb_client(configured.dynamodb_endpoint),
        configured.tasks_table,
        retention_days=configured.retention_days,
        clock=timestamps.now,
        new_id=new_id,
    )
    operations = Operations(load_agent(configured.a2a_agent), store, clock=timestamps.now, new_id=new_id)
    return Endpoint(operations, max_body_bytes=configured.max_body_bytes)
