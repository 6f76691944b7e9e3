"""What the bench makes of measurements and prices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.prices import MILLION, Share, Task, billed_seconds, idle_queue, million

SHARE = Share(
    memory_mb=512,
    invocations=1,
    cpu_seconds=0,
    cold_seconds=0,
    calls=0,
    queue_calls=0,
    posts=0,
    log_bytes=0,
    log_lines=0,
)
TASK = Task(
    shares=[SHARE],
    write_units=0,
    read_units=0,
    standard_requests=0,
    fair_requests=0,
    fifo_requests=0,
    stored_bytes=0,
    sent_bytes=0,
)


def test_lambda_bills_whole_milliseconds() -> None:
    assert billed_seconds(replace(SHARE, calls=0.25)) == pytest.approx(0.002)


def test_each_invocation_is_billed_in_whole_milliseconds() -> None:
    assert billed_seconds(replace(SHARE, invocations=4, calls=1)) == pytest.approx(4 * 0.002)


def test_a_cold_start_is_billed_for_its_part_of_the_invocations() -> None:
    assert billed_seconds(replace(SHARE, cold_seconds=0.5)) == pytest.approx(0.005)


def test_a_smaller_function_takes_longer_for_the_same_work() -> None:
    small, large = (billed_seconds(replace(SHARE, memory_mb=memory, cpu_seconds=0.1)) for memory in (256, 512))

    assert small == pytest.approx(2 * large, rel=0.01)


def test_no_function_is_faster_than_a_whole_cpu() -> None:
    assert billed_seconds(replace(SHARE, memory_mb=3538, cpu_seconds=0.1)) == pytest.approx(0.1)


def test_each_line_of_a_log_is_charged_for_more_than_its_bytes() -> None:
    few, many = (
        million(replace(TASK, shares=[replace(SHARE, log_bytes=1000, log_lines=lines)]))["Logs taken in"]
        for lines in (1, 3)
    )

    assert many - few == pytest.approx(2 * 26 * 0.0005)


def test_a_write_unit_for_each_of_a_million_tasks_costs_the_price_of_a_million() -> None:
    assert million(replace(TASK, write_units=4))["DynamoDB writes"] == pytest.approx(2.5)


def test_every_function_that_takes_part_is_an_invocation() -> None:
    assert million(replace(TASK, shares=[SHARE, replace(SHARE, invocations=4)]))["Lambda requests"] == pytest.approx(1)


def test_the_kinds_of_queues_have_prices_of_their_own() -> None:
    costs = million(replace(TASK, standard_requests=3, fair_requests=4, fifo_requests=2))

    assert costs["SQS, standard queue"] == pytest.approx(1.2)
    assert costs["SQS, fair queue"] == pytest.approx(2)
    assert costs["SQS, FIFO queue"] == pytest.approx(1)


def test_an_empty_queue_is_looked_into_all_month() -> None:
    assert idle_queue("standard") == pytest.approx(15 * 60 * 24 * 30 * 0.4 / MILLION)
