"""The settings: one table, read once, from environment variables named like its fields in capitals."""

from collections.abc import Mapping
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

S = TypeVar("S", bound=Struct)

MODULE_AND_CLASS = r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$"
BASE_URL = r"^(https://|http://(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/|$))[^?#\s]*$"


class CardSettings(Struct, frozen=True, kw_only=True):
    """What the card function reads."""

    a2a_agent: Annotated[str, Meta(pattern=MODULE_AND_CLASS)]
    """The agent, as `module:Class`."""
    public_url: Annotated[str, Meta(pattern=BASE_URL)] = ""
    """Where callers reach the deployment, when it is not where API Gateway says. https, or http on localhost."""


class RpcSettings(Struct, frozen=True, kw_only=True):
    """What the rpc function reads."""

    a2a_agent: Annotated[str, Meta(pattern=MODULE_AND_CLASS)]
    tasks_table: str
    """The table's name."""
    dynamodb_endpoint: str = ""
    """Another DynamoDB than the region's own, as a URL."""
    max_body_bytes: Annotated[int, Meta(ge=1, le=6_000_000)] = 65_536
    """The longest request body, in bytes."""
    retention_days: Annotated[int, Meta(ge=1, le=3650)] = 30
    """How long a task is kept after its last change of state, in days."""


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
