"""Where dead letters are, and what the relay has given up: of this machine, of another endpoint, or of a stack."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.session import get_session

from a2a_lambda import background
from a2a_lambda.queues import sqs_client
from a2a_lambda.settings import InvalidSettingError
from admin.database import outputs_of, stack_and_endpoint, using
from admin.errors import AdminError
from admin.replaying import Failures
from local.endpoints import identify_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mypy_boto3_sqs import SQSClient

    from local.deployment import Deployment

OUTPUTS = ("WorkDeadLettersUrl", "PushDeadLettersUrl")
"""What a stack calls its queues of dead letters; it has the second one where PUSH is on."""

RELAY_OUTPUTS = {"TASKS_TABLE": "TasksTableName", "WORK_QUEUE": "WorkQueueUrl", "PUSH_QUEUE": "PushQueueUrl"}
"""What a stack calls what its relay is told of; it has the last one where PUSH is on."""

RELAY_FAILURES = "RelayFailures"


@dataclass(frozen=True)
class DeadLetters:
    """An SQS, and the URLs of the queues in it that have dead letters."""

    client: SQSClient
    urls: Sequence[str]
    failures: Failures | None = None
    """What the relay has given up; None where there are no queues for it."""


@contextmanager
def open_dead_letters(deployment: Deployment) -> Iterator[DeadLetters]:
    """The dead letters where the environment says: STACK, SQS_ENDPOINT, or where the database is.

    What goes wrong inside is raised as AdminError. The deployment is the template's: it says
    which queues there are on this machine.
    """
    stack, database = stack_and_endpoint()
    endpoint = os.environ.get("SQS_ENDPOINT", "")
    if stack and endpoint:
        raise AdminError("give STACK or SQS_ENDPOINT, not both")
    with using(f"the stack {stack}" if stack else endpoint or database):
        yield _of_stack(stack) if stack else _at(endpoint or database, database, deployment)


def _of_stack(stack: str) -> DeadLetters:
    outputs = outputs_of(stack)
    needed = {OUTPUTS[0], "RelayFailuresUrl", "TasksTableName", "WorkQueueUrl"}
    if missing := needed - outputs.keys():
        raise AdminError(f"the stack {stack} has no output {' and no '.join(sorted(missing))}: deploy it anew")
    client = sqs_client("")
    told = {name: outputs[output] for name, output in RELAY_OUTPUTS.items() if output in outputs}
    failures = Failures(client, outputs["RelayFailuresUrl"], _streams(""), background.relay(told))
    return DeadLetters(client, [outputs[name] for name in OUTPUTS if name in outputs], failures)


def _at(endpoint: str, database: str, deployment: Deployment) -> DeadLetters:
    identify_to(endpoint)
    identify_to(database)
    try:
        client = sqs_client(endpoint)
        there = {url.rpartition("/")[2]: url for url in client.list_queues().get("QueueUrls", [])}
        failures = _failures_at(endpoint, database, deployment, there)
    except (ValueError, InvalidSettingError) as error:
        raise AdminError(f"{endpoint} is not an address: {error}") from error
    policies = [json.loads(queue.attributes.get("RedrivePolicy", "{}")) for queue in deployment.queues]
    targets = {policy.get("deadLetterTargetArn") for policy in policies}
    return DeadLetters(
        client,
        [there[queue.name] for queue in deployment.queues if queue.arn in targets and queue.name in there],
        failures,
    )


def _failures_at(endpoint: str, database: str, deployment: Deployment, there: Mapping[str, str]) -> Failures | None:
    variables = deployment.variables()
    names = {name: variables[name].rpartition("/")[2] for name in ("WORK_QUEUE", "PUSH_QUEUE")}
    if not {RELAY_FAILURES, names["WORK_QUEUE"]} <= there.keys():
        return None
    told = {"DYNAMODB_ENDPOINT": database, "SQS_ENDPOINT": endpoint, "TASKS_TABLE": variables["TASKS_TABLE"]}
    relay = background.relay(told | {name: there[queue] for name, queue in names.items() if queue in there})
    return Failures(sqs_client(endpoint), there[RELAY_FAILURES], _streams(database), relay)


def _streams(endpoint: str) -> Any:
    return get_session().create_client("dynamodbstreams", endpoint_url=endpoint or None)
