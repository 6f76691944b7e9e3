"""Putting the relay, the worker and the push function together, once for each Lambda instance."""

from collections.abc import Mapping

from a2a_lambda import settings, timestamps
from a2a_lambda.bootstrap import dynamodb_client, new_id, task_limits, task_store, webhook_policy, world
from a2a_lambda.delivering import Deliverer
from a2a_lambda.ledger import Ledger
from a2a_lambda.loading import load_agent
from a2a_lambda.push_configs import TablePushConfigs
from a2a_lambda.queues import Queue, sqs_client
from a2a_lambda.relaying import Relay
from a2a_lambda.running import Runner
from a2a_lambda.settings import PushSettings, RelaySettings, WorkerSettings
from a2a_lambda.tables import Table
from a2a_lambda.webhooks import Webhooks
from a2a_lambda.working import Worker


def relay(environ: Mapping[str, str]) -> Relay:
    """Return the relay as the environment configures it.

    Raises:
        InvalidSettingError: naming the variable.
    """
    configured = settings.load(RelaySettings, environ)
    client = sqs_client(configured.sqs_endpoint)
    table = Table(dynamodb_client(configured.dynamodb_endpoint), configured.tasks_table)
    return Relay(
        Queue(client, configured.work_queue),
        Queue(client, configured.push_queue) if configured.push_queue else None,
        TablePushConfigs(table, clock=timestamps.now, new_id=new_id),
    )


def worker(environ: Mapping[str, str]) -> tuple[Worker, Queue]:
    """Return the worker as the environment configures it, and the queue of its messages.

    Raises:
        InvalidSettingError: naming the variable.
    """
    configured = settings.load(WorkerSettings, environ)
    agent = load_agent(configured.a2a_agent)
    table = Table(dynamodb_client(configured.dynamodb_endpoint), configured.tasks_table)
    store = task_store(table, retention_days=configured.retention_days, window_seconds=configured.idempotency_seconds)
    surroundings = world()
    ledger = Ledger(store, surroundings, read_only=agent.read_only)
    runner = Runner(agent, store, ledger, task_limits(configured), surroundings)
    return (
        Worker(store, ledger, runner, surroundings),
        Queue(sqs_client(configured.sqs_endpoint), configured.work_queue),
    )


def deliverer(environ: Mapping[str, str]) -> tuple[Deliverer, Queue]:
    """Return what the push function delivers with, as the environment configures it, and the queue of its messages.

    Raises:
        InvalidSettingError: naming the variable.
    """
    configured = settings.load(PushSettings, environ)
    table = Table(dynamodb_client(configured.dynamodb_endpoint), configured.tasks_table)
    client = sqs_client(configured.sqs_endpoint)
    return (
        Deliverer(
            TablePushConfigs(table, clock=timestamps.now, new_id=new_id),
            Webhooks(webhook_policy(configured)),
            Queue(client, configured.push_dead_letters),
        ),
        Queue(client, configured.push_queue),
    )
