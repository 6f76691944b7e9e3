"""The settings: one table, read once, from environment variables named like its fields in capitals."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

S = TypeVar("S", bound=Struct)

MODULE_AND_CLASS = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*\Z"
BASE_URL = r"^(https://[^/?#\s]+|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?)(/[^?#\s]*)?\Z"
ENDPOINT = r"^https?://[^\s/?#]+/?\Z"
LIST = r"^[^\s,]+(,[^\s,]+)*\Z"
HOSTS = r"^[^\s,/@]+(,[^\s,/@]+)*\Z"
QUEUE = r"^https?://[^\s?#]+\Z"

AgentName = Annotated[str, Meta(pattern=MODULE_AND_CLASS)]
"""The agent, as `module:Class`."""

Auth = Literal["none", "api-key", "jwt", "iam"]
"""How callers are told apart."""

OnOff = Literal["on", "off"]
Endpoint = Annotated[str, Meta(pattern=ENDPOINT)]
"""Another service than the region's own, as a URL."""
QueueUrl = Annotated[str, Meta(pattern=QUEUE)]
"""A queue, as SQS names it."""
Hosts = Annotated[str, Meta(pattern=HOSTS)]
"""Names and addresses without ports, separated by commas; *.example.com is all names below example.com."""

RetentionDays = Annotated[int, Meta(ge=1, le=3650)]
"""How long a task is kept after its last change of state, in days."""
IdempotencySeconds = Annotated[int, Meta(ge=0, le=86_400)]
"""How long a message is remembered, so that a copy of it is not taken twice; 0 for not at all."""
MaxMessages = Annotated[int, Meta(ge=2)]
"""The most messages of a task: the client's, and the agent's questions."""
MaxBytes = Annotated[int, Meta(ge=1, le=4_194_304)]


class CardSettings(Struct, frozen=True, kw_only=True):
    """What the card function reads."""

    a2a_agent: AgentName
    auth: Auth = "none"
    jwt_issuer: Annotated[str, Meta(pattern=r"^https://\S+\Z")] = ""
    """Who issues the tokens, where AUTH is jwt. Required there."""
    required_scope: str = ""
    """The scope that a token must have, where AUTH is jwt."""
    public_url: Annotated[str, Meta(pattern=BASE_URL)] = ""
    """Where callers reach the deployment, when it is not where API Gateway says. https, or http on localhost."""
    push: OnOff = "off"
    """Whether the agent declares push notifications."""
    signing_key: Annotated[str, Meta(pattern=LIST)] = ""
    """KMS keys (ids or ARNs, separated by commas), the newest first. It signs the card, and all are published."""
    kms_endpoint: Endpoint = ""

    def __post_init__(self) -> None:
        """Refuse a card that could not say where tokens come from."""
        if self.auth == "jwt" and not self.jwt_issuer:
            # In msgspec's own words, which `load` understands.
            raise ValueError("Object missing required field `jwt_issuer`")


class RpcSettings(Struct, frozen=True, kw_only=True):
    """What the rpc function reads."""

    a2a_agent: AgentName
    auth: Auth = "none"
    required_scope: str = ""
    """The scope that a token must have, where AUTH is jwt."""
    tasks_table: str
    callers_table: str
    dynamodb_endpoint: Endpoint = ""
    retention_days: RetentionDays = 30
    idempotency_seconds: IdempotencySeconds = 300
    max_body_bytes: Annotated[int, Meta(ge=1, le=6_000_000)] = 65_536
    """The longest request body."""
    max_parts: Annotated[int, Meta(ge=1)] = 100
    """The most parts of a message from a client."""
    max_text_chars: Annotated[int, Meta(ge=1)] = 50_000
    """The longest text of a part of a message from a client, in characters."""
    max_messages: MaxMessages = 1000
    max_artifact_bytes: MaxBytes = 1_048_576
    """The largest artifact, as JSON, as one turn gives it."""
    max_task_bytes: MaxBytes = 4_194_304
    """The most that a task's artifacts and its status message may have together, as JSON."""
    rate_per_second: Annotated[int, Meta(ge=1)] = 20
    """Requests a second that a caller may make in the long run, unless AUTH is none."""
    rate_burst: Annotated[int, Meta(ge=1)] = 200
    """Requests that a caller may make at once, unless AUTH is none."""
    push: OnOff = "off"
    """Whether callers may have webhooks told of their tasks' updates."""
    push_allow_local: OnOff = "off"
    """Whether webhooks may be on this machine, also over http."""
    push_allowed_hosts: Hosts = ""
    """The only hosts that webhooks may be at; empty for any."""


class RelaySettings(Struct, frozen=True, kw_only=True):
    """What the relay function reads."""

    tasks_table: str
    dynamodb_endpoint: Endpoint = ""
    sqs_endpoint: Endpoint = ""
    work_queue: QueueUrl
    push_queue: QueueUrl = ""
    """Empty where there are no push notifications."""


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """What the worker function reads."""

    a2a_agent: AgentName
    tasks_table: str
    dynamodb_endpoint: Endpoint = ""
    sqs_endpoint: Endpoint = ""
    work_queue: QueueUrl
    retention_days: RetentionDays = 30
    idempotency_seconds: IdempotencySeconds = 300
    max_messages: MaxMessages = 1000
    max_artifact_bytes: MaxBytes = 1_048_576
    """The largest artifact, as JSON, as one turn gives it."""
    max_task_bytes: MaxBytes = 4_194_304
    """The most that a task's artifacts and its status message may have together, as JSON."""


class PushSettings(Struct, frozen=True, kw_only=True):
    """What the push function reads."""

    tasks_table: str
    dynamodb_endpoint: Endpoint = ""
    sqs_endpoint: Endpoint = ""
    push_queue: QueueUrl
    push_dead_letters: QueueUrl
    push_allow_local: OnOff = "off"
    """Whether webhooks may be on this machine, also over http."""
    push_allowed_hosts: Hosts = ""
    """The only hosts that webhooks may be at; empty for any."""


class InvalidSettingError(Exception):
    """A setting that cannot be used. The message names its environment variable."""


def load(settings_type: type[S], environ: Mapping[str, str]) -> S:
    """Return a function's settings. A variable that is empty counts as not set.

    Raises:
        InvalidSettingError: naming the variable and what it may be.
    """
    given = {name: environ.get(name.upper(), "") for name in settings_type.__struct_fields__}
    try:
        return msgspec.convert({name: value for name, value in given.items() if value}, settings_type, strict=False)
    except msgspec.ValidationError as error:
        # msgspec says "Expected `int` >= 1 - at `$.max_body_bytes`", or "… missing required field `tasks_table`".
        rule, _, place = str(error).rpartition(" - at ")
        name = place.strip("`$.").upper() if rule else str(error).rsplit("`", 2)[-2].upper()
        raise InvalidSettingError(f"{name}: {rule or 'must be set'}") from error
