"""Times on the wire: RFC 3339, UTC, milliseconds (§5.6.1). Inside, a time is milliseconds since the epoch."""

import time
from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

LAST: Final = 253_402_300_799_999
"""The last millisecond that can be written: of the year 9999."""


def now() -> int:
    """Return the time, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def format_timestamp(milliseconds: int) -> str:
    """Return a time as it is written: `2026-09-26T20:37:31.121Z`."""
    seconds, remainder = divmod(milliseconds, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{remainder:03d}Z"


def to_milliseconds(moment: datetime) -> int:
    """Return a time in milliseconds since the epoch, rounded up, to LAST at most; negative before 1970."""
    return min(-((EPOCH - moment) // timedelta(milliseconds=1)), LAST)
