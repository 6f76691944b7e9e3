"""Times on the wire."""

import pytest

from a2a_lambda.timestamps import format_timestamp


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_790_455_051_121, "2026-09-26T20:37:31.121Z"),
        (1_790_455_051_001, "2026-09-26T20:37:31.001Z"),
        (1_790_455_051_999, "2026-09-26T20:37:31.999Z"),
    ],
)
def test_a_time_is_utc_with_milliseconds(milliseconds: int, shown: str) -> None:
    assert format_timestamp(milliseconds) == shown
