"""Where dead letters are: in queues of this machine's database, of another endpoint, or of a deployed stack."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_lambda.queues import sqs_client
from admin.database import outputs_of, stack_and_endpoint, using
from admin.errors import AdminError
from local.endpoints import identify_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mypy_boto3_sqs import SQSClient

    from local.deployment import Deployment

OUTPUTS = ("WorkDeadLettersUrl", "PushDeadLettersUrl")
"""What a stack calls its queues of dead letters; it has the second one where PUSH is on."""


@dataclass(frozen=True)
class DeadLetters:
    """An SQS, and the URLs of the queues in it that have dead letters."""

    client: SQSClient
    urls: Sequence[str]


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
        yield _of_stack(stack) if stack else _at(endpoint or database, deployment)


def _of_stack(stack: str) -> DeadLetters:
    outputs = outputs_of(stack)
    urls = [outputs[name] for name in OUTPUTS if name in outputs]
    if not urls:
        raise AdminError(f"the stack {stack} has no output {OUTPUTS[0]}: deploy it anew")
    return DeadLetters(sqs_client(""), urls)


def _at(endpoint: str, deployment: Deployment) -> DeadLetters:
    identify_to(endpoint)
    try:
        client = sqs_client(endpoint)
    except ValueError as error:
        raise AdminError(f"{endpoint} is not an address: {error}") from error
    policies = [json.loads(queue.attributes.get("RedrivePolicy", "{}")) for queue in deployment.queues]
    targets = {policy.get("deadLetterTargetArn") for policy in policies}
    there = {url.rpartition("/")[2]: url for url in client.list_queues().get("QueueUrls", [])}
    return DeadLetters(
        client, [there[queue.name] for queue in deployment.queues if queue.arn in targets and queue.name in there]
    )
