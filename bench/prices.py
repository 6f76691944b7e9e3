"""What a million tasks cost in AWS. The prices stand in one table, with where and when they were read.

On-demand, us-east-1, first tier, no free tier. The assumptions that no measurement on this machine can replace are
constants here, and printed beside the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    "SQS standard queue, a million requests": Price(0.40, OTHERS_2026),
    "SQS fair queue, a million requests": Price(0.50, OTHERS_2026),
    "SQS FIFO queue, a million requests": Price(0.50, OTHERS_2026),
    "CloudWatch Logs, a GB taken in": Price(0.50, OTHERS_2026),
    "CloudWatch Logs, a GB-month kept": Price(0.03, OTHERS_2026),
    "CloudWatch, a metric for a month": Price(0.30, UNDATED),
    "X-Ray, a million traces recorded": Price(5.00, AWS),
    "Data out to the internet, a GB": Price(0.09, OTHERS_2025),
}

FULL_CPU_MB = 1769
"""A function has one vCPU at this memory, and its share below that."""
CALL_SECONDS = 0.005
"""What a call of DynamoDB keeps a function in the same region waiting."""
QUEUE_SECONDS = 0.010
"""What a call of SQS keeps a function in the same region waiting."""
POST_SECONDS = 0.100
"""What a webhook keeps a function waiting, TLS included."""
RELAY_BATCH = 1
"""Outboxes that the relay is handed together: of a million tasks spread over a month, hardly two come at once."""
COLD_STARTS = 0.01
"""Part of all invocations that find no instance; AWS says it is under 1 % in most workloads. INIT is billed."""
TRACED = 0.05
"""Part of all invocations that Lambda's default sampling records once there is more than one a second."""
ACCESS_LOG_BYTES = 350
"""A line of the API's access log."""
LOG_EVENT_BYTES = 26
"""What CloudWatch adds to each log event."""
RETENTION_MONTHS = 1
"""RETENTION_DAYS in template.yaml; logs are kept as long."""
METRICS = 2
"""The metrics that one-shot tasks make: Requests and Tasks, each with the values that its dimensions have here."""
HEADER_BYTES = 300
"""The headers of an answer, or of what a webhook is sent."""
POLLS_A_MINUTE = 15
"""Lambda's requests to a queue in which there is nothing: five pollers that each wait 20 seconds. It makes do with
two only where a mapping has no MaximumConcurrency."""
MINUTES_A_MONTH = 30 * 24 * 60


@dataclass(frozen=True)
class Share:
    """What one function does of a task, as measured."""

    memory_mb: float
    invocations: float
    cpu_seconds: float
    """Of all its invocations."""
    cold_seconds: float
    """Of a cold start."""
    calls: float
    """Its calls of DynamoDB."""
    queue_calls: float
    """Its calls of SQS."""
    posts: float
    """Its requests to webhooks."""
    log_bytes: float
    """Its log lines and its metrics."""
    log_lines: float


@dataclass(frozen=True)
class Task:
    """A task, as measured: one request, and what the functions do of it."""

    shares: Sequence[Share]
    write_units: float
    read_units: float
    standard_requests: float
    fair_requests: float
    fifo_requests: float
    stored_bytes: float
    sent_bytes: float
    """The answer, and what a webhook is sent; without headers."""


def billed_seconds(share: Share) -> float:
    """What Lambda bills for a function's share: whole milliseconds an invocation, and its part of the cold starts."""
    waiting = share.calls * CALL_SECONDS + share.queue_calls * QUEUE_SECONDS + share.posts * POST_SECONDS
    warm = share.cpu_seconds / min(1, share.memory_mb / FULL_CPU_MB) + waiting
    return share.invocations * (ceil(warm / share.invocations * 1000) / 1000 + COLD_STARTS * share.cold_seconds)


def million(task: Task) -> dict[str, float]:
    """US dollars for a million such tasks, by what they are for."""
    price = {name: each.dollars for name, each in PRICES.items()}
    invocations = sum(share.invocations for share in task.shares)
    lines = 1 + sum(share.log_lines for share in task.shares)
    logged = ACCESS_LOG_BYTES + lines * LOG_EVENT_BYTES + sum(share.log_bytes for share in task.shares)
    logs = logged * MILLION / GIGABYTE
    stored = task.stored_bytes * MILLION / GIGABYTE * RETENTION_MONTHS
    sent = task.sent_bytes + (1 + sum(share.posts for share in task.shares)) * HEADER_BYTES
    gigabyte_seconds = sum(billed_seconds(share) * share.memory_mb / 1024 for share in task.shares) * MILLION
    return {
        "HTTP API": price["HTTP API, a million requests"],
        "Lambda requests": invocations * price["Lambda, a million requests"],
        "Lambda duration": gigabyte_seconds * price["Lambda arm64, a GB-second"],
        "DynamoDB writes": task.write_units * price["DynamoDB on demand, a million write units"],
        "DynamoDB reads": task.read_units * price["DynamoDB on demand, a million read units"],
        "DynamoDB storage": stored * price["DynamoDB storage, a GB-month"],
        "DynamoDB point-in-time recovery": stored * price["DynamoDB point-in-time recovery, a GB-month"],
        "SQS, standard queue": task.standard_requests * price["SQS standard queue, a million requests"],
        "SQS, fair queue": task.fair_requests * price["SQS fair queue, a million requests"],
        "SQS, FIFO queue": task.fifo_requests * price["SQS FIFO queue, a million requests"],
        "Logs taken in": logs * price["CloudWatch Logs, a GB taken in"],
        "Logs kept": logs * price["CloudWatch Logs, a GB-month kept"] * RETENTION_MONTHS,
        "Traces": invocations * TRACED * price["X-Ray, a million traces recorded"],
        "Data out": sent * MILLION / GIGABYTE * price["Data out to the internet, a GB"],
    }


def idle_queue(kind: str) -> float:
    """US dollars a month for Lambda's looking into an empty queue of a kind, `standard`, `fair` or `FIFO`."""
    return POLLS_A_MINUTE * MINUTES_A_MONTH / MILLION * PRICES[f"SQS {kind} queue, a million requests"].dollars
