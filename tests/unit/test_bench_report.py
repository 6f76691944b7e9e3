"""The bench's table, and how it picks turns."""

from __future__ import annotations

import pytest

from bench.measurements import turns_near
from bench.report import Row, number, table


def test_a_value_at_its_limit_meets_the_budget() -> None:
    assert Row("calls", 2, limit=2).verdict == "met"
    assert Row("calls", 3, limit=2).verdict == "**missed**"


def test_a_row_without_a_limit_has_no_verdict() -> None:
    assert Row("calls", 2).cells() == ("calls", "2", "–", "–", "", "")


def test_a_ratio_shows_what_it_came_to() -> None:
    assert Row("cold", 300, 400, 600, 360, "0.6 × SDK", "ms").cells()[1:5] == (
        "300 ms",
        "400 ms",
        "600 ms",
        "≤ 360 ms (0.6 × SDK)",
    )


@pytest.mark.parametrize(("value", "shown"), [(3.0, "3"), (1234.5, "1,234"), (12.34, "12.3"), (1.234, "1.23")])
def test_a_number_has_three_digits(value: float, shown: str) -> None:
    assert number(value) == shown


def test_a_table_is_markdown() -> None:
    assert table(("what", "ms"), [("cold", "1")]) == "| what | ms |\n| ---- | -: |\n| cold |  1 |"


def test_turns_count_for_the_history_that_they_found() -> None:
    assert turns_near(2, [[1.0, 2.0, 3.0], [4.0, 5.0]]) == [2.0, 5.0]
    assert turns_near(100, [[float(turn) for turn in range(60)]]) == [50.0, 51.0]
