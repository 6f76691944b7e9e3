"""The template's queues, in an SQS that may not have them yet. What is there is left as it is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore import exceptions
from botocore.config import Config
from botocore.session import get_session

from local.errors import QueuesUnreachableError
from local.template import ACCOUNT_ID, REGION, mapping, queue_arn, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from local.template import Template, Value

QUEUE = "AWS::SQS::Queue"
FIFO = ".fifo"

# The attributes of a queue that matter here; how it is encrypted and who may use it do not.
ATTRIBUTES = (
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "DelaySeconds",
    "FifoQueue",
    "FifoThroughputLimit",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "VisibilityTimeout",
)


@dataclass(frozen=True)
class Queue:
    """An SQS queue: its address, and the attributes that it is created with."""

    url: str
    attributes: Mapping[str, str]

    @property
    def name(self) -> str:
        """The last part of its address."""
        return self.url.rpartition("/")[2]

    @property
    def arn(self) -> str:
        """The ARN by which mappings name it."""
        return queue_arn(self.url)


def queue_urls(template: Template, endpoint: str) -> dict[str, str]:
    """The address of each queue of the template, by logical id, at the endpoint or at AWS's own."""
    origin = endpoint.rstrip("/") or f"https://sqs.{REGION}.amazonaws.com"
    urls = {}
    for name, body in template.of_type(QUEUE).items():
        properties = mapping(template.resolve(mapping(body.get("Properties"))))
        is_fifo = text(properties.get("FifoQueue", False)) == "true"
        queue = text(properties.get("QueueName", name + (FIFO if is_fifo else "")))
        urls[name] = f"{origin}/{ACCOUNT_ID}/{queue}"
    return urls


def read_queues(template: Template) -> tuple[Queue, ...]:
    """The queues of the template."""
    return tuple(
        Queue(
            url=text(template.reference(name)),
            attributes=_attributes(mapping(template.resolve(mapping(body.get("Properties"))))),
        )
        for name, body in template.of_type(QUEUE).items()
    )


def _attributes(properties: Mapping[str, Value]) -> dict[str, str]:
    attributes = {name: text(properties[name]) for name in ATTRIBUTES if name in properties}
    if redrive := properties.get("RedrivePolicy"):
        attributes["RedrivePolicy"] = json.dumps(redrive)
    return attributes


def client(service: str, endpoint: str, session: Any = None) -> Any:
    """A client of an AWS service at the endpoint, made fast where the session has made others before."""
    config = Config(
        connect_timeout=5, retries={"total_max_attempts": 2}, max_pool_connections=50, parameter_validation=False
    )
    return (session or get_session()).create_client(service, endpoint_url=endpoint, config=config)


def serves_queues(endpoint: str) -> bool:
    """Whether an SQS answers at the endpoint."""
    try:
        client("sqs", endpoint).list_queues(MaxResults=1)
    except (exceptions.BotoCoreError, exceptions.ClientError, ValueError):
        return False
    return True


def create_missing_queues(endpoint: str, queues: Iterable[Queue]) -> None:
    """Create each queue that the SQS at the endpoint lacks.

    Raises QueuesUnreachableError.
    """
    try:
        sqs = client("sqs", endpoint)
        # A queue for dead letters must be there before those that name it.
        for queue in sorted(queues, key=lambda queue: "RedrivePolicy" in queue.attributes):
            _create_missing(sqs, queue)
    except (exceptions.BotoCoreError, exceptions.ClientError, ValueError) as error:
        raise QueuesUnreachableError(f"the SQS at {endpoint} cannot be used: {error}") from error


def _create_missing(sqs: Any, queue: Queue) -> None:
    try:
        sqs.get_queue_url(QueueName=queue.name)
    except sqs.exceptions.QueueDoesNotExist:
        sqs.create_queue(QueueName=queue.name, Attributes=dict(queue.attributes))
