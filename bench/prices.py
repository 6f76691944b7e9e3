"""What a million one-shot tasks cost in AWS. The prices stand in one table, with where and when they were read.

On-demand, us-east-1, first tier, no free tier. The assumptions that no measurement on this machine can replace are
constants here, and printed beside the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

MILLION = 1_000_000
GIGABYTE = 10**9

AWS = "AWS's pricing page, an undated copy"
OTHERS_2025 = "a third party, 2025"
OTHERS_2026 = "a third party, 2026"
UNDATED = "a third party, undated"
UNCHECKED = "not checked"


class Price(NamedTuple):
    """A price, and where it was read. AWS's own price list could not be."""

    dollars: float
    source: str


PRICES = {
    "HTTP API, a million requests": Price(1.00, OTHERS_2026),
    "Lambda, a million requests": Price(0.20, UNDATED),
    "Lambda arm64, a GB-second": Price(0.0000133334, "a third party, 2024"),
    "DynamoDB on demand, a million write units": Price(0.625, OTHERS_2025),
    "DynamoDB on demand, a million read units": Price(0.125, OTHERS_2025),
    "DynamoDB storage, a GB-month": Price(0.25, AWS),
    "DynamoDB point-in-time recovery, a GB-month": Price(0.20, UNCHECKED),
    "CloudWatch Logs, a GB taken in": Price(0.50, OTHERS_2026),
    "CloudWatch Logs, a GB-month kept": Price(0.03, OTHERS_2026),
    "CloudWatch, a metric for a month": Price(0.30, UNDATED),
    "X-Ray, a million traces recorded": Price(5.00, AWS),
    "Data out to the internet, a GB": Price(0.09, OTHERS_2025),
}

MEMORY_GB = 0.5
"""The rpc function's memory in template.yaml."""
CPU_SHARE = 512 / 1769
"""A function has one vCPU at 1,769 MB, and its share below that."""
CALL_SECONDS = 0.005
"""What a call of DynamoDB keeps a function in the same region waiting."""
COLD_STARTS = 0.01
"""Part of all requests that find no instance; AWS says it is under 1 % in most workloads. INIT is billed."""
TRACED = 0.05
"""Part of all requests that Lambda's default sampling records once there is more than one request a second."""
ACCESS_LOG_BYTES = 350
"""A line of the API's access log."""
LOG_EVENT_BYTES = 26
"""What CloudWatch adds to each log event."""
STORED_OVERHEAD_BYTES = 200
"""What DynamoDB adds to an item and to its index entry in storage: 100 bytes each."""
RETENTION_MONTHS = 1
"""RETENTION_DAYS in template.yaml; logs are kept as long."""
METRICS = 2
"""The metrics that these tasks make: Requests and Tasks, each with the values that its dimensions have here."""
HEADER_BYTES = 300
"""The headers of an answer."""


@dataclass(frozen=True)
class OneShot:
    """A one-shot SendMessage, as measured."""

    cpu_seconds: float
    cold_seconds: float
    calls: float
    write_units: float
    read_units: float
    stored_bytes: float
    log_bytes: float
    """Its log line and its metrics."""
    log_lines: float
    answer_bytes: float


def billed_seconds(task: OneShot) -> float:
    """The mean of what Lambda bills for a request: whole milliseconds, and its part of the cold starts."""
    warm = task.cpu_seconds / CPU_SHARE + task.calls * CALL_SECONDS
    return ceil(warm * 1000) / 1000 + COLD_STARTS * task.cold_seconds


def million(task: OneShot) -> dict[str, float]:
    """US dollars for a million such tasks, by what they are for."""
    price = {name: each.dollars for name, each in PRICES.items()}
    logged = (task.log_bytes + ACCESS_LOG_BYTES + (task.log_lines + 1) * LOG_EVENT_BYTES) * MILLION / GIGABYTE
    stored = (task.stored_bytes + STORED_OVERHEAD_BYTES) * MILLION / GIGABYTE * RETENTION_MONTHS
    sent = (task.answer_bytes + HEADER_BYTES) * MILLION / GIGABYTE
    return {
        "HTTP API": price["HTTP API, a million requests"],
        "Lambda requests": price["Lambda, a million requests"],
        "Lambda duration": billed_seconds(task) * MEMORY_GB * MILLION * price["Lambda arm64, a GB-second"],
        "DynamoDB writes": task.write_units * price["DynamoDB on demand, a million write units"],
        "DynamoDB reads": task.read_units * price["DynamoDB on demand, a million read units"],
        "DynamoDB storage": stored * price["DynamoDB storage, a GB-month"],
        "DynamoDB point-in-time recovery": stored * price["DynamoDB point-in-time recovery, a GB-month"],
        "Logs taken in": logged * price["CloudWatch Logs, a GB taken in"],
        "Logs kept": logged * price["CloudWatch Logs, a GB-month kept"] * RETENTION_MONTHS,
        "Traces": TRACED * price["X-Ray, a million traces recorded"],
        "Data out": sent * price["Data out to the internet, a GB"],
    }
