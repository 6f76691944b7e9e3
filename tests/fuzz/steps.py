"""What callers and the worker do."""

from dataclasses import dataclass
from typing import Final

from tests.fuzz.matching import Json

SELF: Final = "self"
"""In the place of an id: the task that is being worked on or waited for."""
NOBODY: Final = "00000000-0000-4000-8000-ffffffffffff"
"""An id in the server's form that is no task's."""


@dataclass(frozen=True)
class Ask:
    """A caller's request."""

    owner: str
    method: str
    params: Json


@dataclass(frozen=True)
class Attend:
    """The worker's attention to a run of a turn; the current one of `SELF`."""

    owner: str
    task_id: str
    turn: int = 0
    run: int = 0


Step = Ask | Attend


def named(value: Json, task_id: str) -> Json:
    """Return a JSON value with an id for SELF."""
    match value:
        case dict():
            return {name: named(each, task_id) for name, each in value.items()}
        case list():
            return [named(each, task_id) for each in value]
    return task_id if value == SELF else value
