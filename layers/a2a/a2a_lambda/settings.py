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

AgentName = Annotated[str, Meta(pattern=MODULE_AND_CLASS)]
"""The agent, as `module:Class`."""

Auth = Literal["none", "api-key", "jwt", "iam"]
"""How callers are told apart."""


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
    signing_key: Annotated[str, Meta(pattern=LIST)] = ""
    """KMS keys (ids or ARNs, separated by commas), the newest first. It signs the card, and all are published."""
    kms_endpoint: Annotated[str, Meta(pattern=ENDPOINT)] = ""
    """Another KMS than the region's own, as a URL."""

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
    dynamodb_endpoint: Annotated[str, Meta(pattern=ENDPOINT)] = ""
    """Another DynamoDB than the region's own, as a URL."""
    retention_days: Annotated[int, Meta(ge=1, le=3650)] = 30
    """How long a task is kept after its last change of state, in days."""
    idempotency_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 300
    """How long a message is remembered, so that a copy of it is not taken twice; 0 for not at all."""
    max_body_bytes: Annotated[int, Meta(ge=1, le=6_000_000)] = 65_536
    """The longest request body."""
    max_parts: Annotated[int, Meta(ge=1)] = 100
    """The most parts of a message from a client."""
    max_text_chars: Annotated[int, Meta(ge=1)] = 50_000
    """The longest text of a part of a message from a client, in characters."""
    max_messages: Annotated[int, Meta(ge=2)] = 1000
    """The most messages of a task: the client's, and the agent's questions."""
    max_artifact_bytes: Annotated[int, Meta(ge=1, le=4_194_304)] = 1_048_576
    """The largest artifact, as JSON, as one turn gives it."""
    max_task_bytes: Annotated[int, Meta(ge=1, le=4_194_304)] = 4_194_304
    """The most that a task's artifacts and its status message may have together, as JSON."""
    rate_per_second: Annotated[int, Meta(ge=1)] = 20
    """Requests a second that a caller may make in the long run, unless AUTH is none."""
    rate_burst: Annotated[int, Meta(ge=1)] = 200
    """Requests that a caller may make at once, unless AUTH is none."""


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
