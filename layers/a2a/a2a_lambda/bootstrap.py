"""Putting the rpc function together, once for each Lambda instance: settings, agent, client, tables."""

import contextvars
import os
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from botocore.config import Config

from a2a_lambda import clients, settings, tally, task, timestamps, validation
from a2a_lambda.callers import (
    ApiKeyAuthentication,
    Authenticator,
    Credentials,
    IamAuthentication,
    JwtAuthentication,
    Limiter,
    NoAuthentication,
)
from a2a_lambda.calls import World
from a2a_lambda.dynamodb import DynamoDBTaskStore
from a2a_lambda.jsonrpc import Endpoint
from a2a_lambda.keys import TableKeys
from a2a_lambda.loading import load_agent
from a2a_lambda.operations import Operations
from a2a_lambda.rates import TableLimiter
from a2a_lambda.settings import RpcSettings
from a2a_lambda.tables import Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from a2a_lambda.addresses import Policy
    from a2a_lambda.pushing import PushConfigs, Webhooks
    from a2a_lambda.settings import PushSettings, WorkerSettings

# Three tries of at most four seconds leave an agent most of API Gateway's thirty. What is sent is our own.
CLIENT_CONFIG = Config(
    connect_timeout=1,
    read_timeout=3,
    retries={"mode": "standard", "total_max_attempts": 3},
    max_pool_connections=50,
    parameter_validation=False,
)

SLOW_SECONDS = 15
"""How long another DynamoDB than the region's own is waited for: an emulator may take seconds for a long list."""

LOOKUP_SECONDS = 5.0
"""How long a webhook's name may take to be looked up while its config is created."""

FAILURES_PER_SECOND = 0.2
FAILURES_BURST = 20
"""Failed authentications that are told apart from an attack: a source address's rate, and how many at once."""


class Server:
    """What the rpc function is made of: who may call, and what then answers."""

    def __init__(self, authenticator: Authenticator, limiter: Limiter | None, endpoint: Endpoint) -> None:
        """Args: without a limiter callers may come as often as they like."""
        self._authenticator = authenticator
        self._limiter = limiter
        self.endpoint = endpoint

    def admit(self, credentials: Credentials) -> str:
        """Return the owner that calls.

        Raises:
            UnauthenticatedError, PermissionDeniedError, RateLimitedError: they may not, or not now.
        """
        owner = self._authenticator.owner(credentials)
        tally.current().caller = owner
        if self._limiter:
            self._limiter.take(owner)
        return owner


def new_id() -> str:
    """Return an id for a task, a context, a message, an artifact or a write: a random UUID."""
    return str(uuid.uuid4())


def dynamodb_client(endpoint: str) -> "DynamoDBClient":
    """Return a DynamoDB client; the endpoint is a URL, or "" for the region's own."""
    config = CLIENT_CONFIG.merge(Config(read_timeout=SLOW_SECONDS)) if endpoint else CLIENT_CONFIG
    return cast("DynamoDBClient", clients.client("dynamodb", endpoint, config))


def rpc_server(environ: Mapping[str, str] = os.environ) -> Server:
    """Return the rpc function's parts as the environment configures them.

    Raises:
        InvalidSettingError: naming the variable.
    """
    configured = settings.load(RpcSettings, environ)
    clock = timestamps.now
    client = dynamodb_client(configured.dynamodb_endpoint)
    callers, tasks = Table(client, configured.callers_table), Table(client, configured.tasks_table)
    window = configured.idempotency_seconds
    operations = Operations(
        load_agent(configured.a2a_agent),
        task_store(tasks, retention_days=configured.retention_days, window_seconds=window),
        task_limits(configured),
        world(),
        window_seconds=window,
        push=_push(configured, tasks) if configured.push == "on" else None,
    )
    limits = validation.Limits(max_parts=configured.max_parts, max_text_chars=configured.max_text_chars)
    return Server(
        _authenticator(configured, callers, clock),
        _limiter(configured, callers, clock),
        Endpoint(
            operations,
            validation.Validator(limits),
            max_body_bytes=configured.max_body_bytes,
            push=configured.push == "on",
        ),
    )


def task_store(table: Table, *, retention_days: int, window_seconds: int) -> DynamoDBTaskStore:
    """Return the store of a tasks table."""
    return DynamoDBTaskStore(
        table,
        retention_days=retention_days,
        window_seconds=window_seconds,
        clock=timestamps.now,
        new_id=new_id,
    )


def task_limits(configured: "RpcSettings | WorkerSettings") -> task.Limits:
    """Return how much a task may hold."""
    return task.Limits(
        max_messages=configured.max_messages,
        max_artifact_bytes=configured.max_artifact_bytes,
        max_task_bytes=configured.max_task_bytes,
    )


def webhook_policy(configured: "RpcSettings | PushSettings") -> "Policy":
    """Return where webhooks may be."""
    from a2a_lambda.addresses import Policy  # noqa: PLC0415 - for those alone that have webhooks

    hosts = tuple(filter(None, configured.push_allowed_hosts.split(",")))
    return Policy(allow_local=configured.push_allow_local == "on", allowed_hosts=hosts)


def world() -> World:
    """Return the world as it is."""
    return World(clock=timestamps.now, new_id=new_id, pause=time.sleep, later=later)


def later(seconds: float, action: Callable[[], None]) -> Callable[[], None]:
    """Carry out an action in so many seconds, counted with the request that asks for it; return what calls it off."""
    timer = threading.Timer(seconds, contextvars.copy_context().run, [action])
    timer.daemon = True
    timer.start()
    return timer.cancel


def _authenticator(configured: RpcSettings, callers: Table, clock: Callable[[], int]) -> Authenticator:
    match configured.auth:
        case "api-key":
            failures = TableLimiter(callers, per_second=FAILURES_PER_SECOND, burst=FAILURES_BURST, clock=clock)
            return ApiKeyAuthentication(TableKeys(callers, clock=clock), failures, clock)
        case "jwt":
            return JwtAuthentication(configured.required_scope)
        case "iam":
            return IamAuthentication()
        case "none":
            return NoAuthentication()


def _push(configured: RpcSettings, tasks: Table) -> "tuple[PushConfigs, Webhooks]":
    """Return where push notification configs are kept, and what knows where notifications may be sent."""
    from a2a_lambda.push_configs import TablePushConfigs  # noqa: PLC0415 - for those alone that want it
    from a2a_lambda.webhooks import Webhooks  # noqa: PLC0415 - the same

    configs = TablePushConfigs(tasks, clock=timestamps.now, new_id=new_id)
    return configs, Webhooks(webhook_policy(configured), seconds=LOOKUP_SECONDS)


def _limiter(configured: RpcSettings, callers: Table, clock: Callable[[], int]) -> Limiter | None:
    """Return what limits each caller's rate; nothing does where callers are not told apart."""
    if configured.auth == "none":
        return None
    return TableLimiter(callers, per_second=configured.rate_per_second, burst=configured.rate_burst, clock=clock)
