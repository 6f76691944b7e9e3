"""What one request comes to, for the log and the metrics: counted where it happens, read where it is told.

A tally belongs to the thread that answers the request.
"""

from contextvars import ContextVar
from typing import Any

from msgspec import Struct, field


class Tally(Struct):
    """The counts of one request."""

    caller: str = ""
    """The owner that calls, as soon as that is known."""
    calls: int = 0
    """Calls of DynamoDB."""
    units: float = 0.0
    """The read and write units that those calls consumed."""
    task_id: str = ""
    """The task that was begun, continued, read or canceled."""
    finished: list[str] = field(default_factory=list)
    """The final states that tasks came to."""
    conflicts: int = 0
    """Writes that lost a race."""
    unlimited: int = 0
    """Limits that could not be applied."""

    def add_call(self, answer: Any) -> None:
        """Count a call of DynamoDB, from its answer."""
        consumed = answer.get("ConsumedCapacity", [])
        self.calls += 1
        self.units += sum(each["CapacityUnits"] for each in (consumed if isinstance(consumed, list) else [consumed]))


_current: ContextVar[Tally] = ContextVar("tally")


def begin() -> Tally:
    """Return a new tally, which counts from now on."""
    tally = Tally()
    _current.set(tally)
    return tally


def current() -> Tally:
    """Return the tally of the request that is being answered."""
    return _current.get(None) or begin()
