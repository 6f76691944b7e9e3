"""The bench's table, its prices and how it picks turns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.measurements import turns_near
from bench.prices import OneShot, billed_seconds, million
from bench.report import Row, number, table

TASK = OneShot(
    cpu_seconds=0,
    cold_seconds=0,
    calls=0,
    write_units=0,
    read_units=0,
    stored_bytes=0,
    log_bytes=0,
    log_lines=0,
    answer_bytes=0,
)


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


def test_lambda_bills_whole_milliseconds() -> None:
    assert billed_seconds(replace(TASK, calls=0.25)) == pytest.approx(0.002)


def test_a_cold_start_is_billed_for_its_part_of_the_requests() -> None:
    assert billed_seconds(replace(TASK, cold_seconds=0.5)) == pytest.approx(0.005)


def test_each_line_of_a_log_is_charged_for_more_than_its_bytes() -> None:
    few, many = (million(replace(TASK, log_bytes=1000, log_lines=lines))["Logs taken in"] for lines in (1, 3))

    assert many - few == pytest.approx(2 * 26 * 0.0005)


def test_a_write_unit_for_each_of_a_million_tasks_costs_the_price_of_a_million() -> None:
    assert million(replace(TASK, write_units=4))["DynamoDB writes"] == pytest.approx(2.5)
