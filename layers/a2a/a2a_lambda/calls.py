"""What an operation is told besides its parameters: who calls, and what the rules do not make themselves."""

from collections.abc import Callable, Collection

from msgspec import Struct


class Call(Struct, frozen=True, kw_only=True):
    """Who calls, and under which conditions: what a binding knows besides the parameters."""

    owner: str
    extensions: Collection[str] = ()
    """The extensions that the client listed (§3.2.6)."""
    seconds_left: Callable[[], float]
    """The time until the function is stopped."""


class World(Struct, frozen=True, kw_only=True):
    """What the rules do not make themselves."""

    clock: Callable[[], int]
    """The time in milliseconds since the epoch."""
    new_id: Callable[[], str]
    """Ids that match `ledger.TASK_ID`, none twice."""
    pause: Callable[[float], None]
    """Waits for so many seconds."""
    later: Callable[[float, Callable[[], None]], Callable[[], None]]
    """Carries out an action in so many seconds, beside what goes on; returns what calls it off."""
