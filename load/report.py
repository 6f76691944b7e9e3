"""How fast it was, and what went wrong: lines for the console. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, Final

from bench.report import number, table
from load import calls
from load.calls import OK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from load.callers import Answer
    from load.checks import Checks, Evidence

OPERATIONS: Final = (
    calls.NEW,
    calls.NEXT,
    calls.COPY,
    calls.GET,
    calls.LIST,
    calls.CANCEL,
    calls.BAD,
    calls.FOREIGN,
)
HEADINGS: Final = ("ms", "requests", "p50", "p90", "p99", "max")
SHOWN: Final = 10
"""How many faults of a kind are shown."""


def speed(answers: Sequence[Answer]) -> str:
    """A table of latencies in milliseconds, by operation and together."""
    grouped: dict[str, list[float]] = defaultdict(list)
    for answer in answers:
        grouped[answer.call.operation].append(answer.seconds * 1000)
    rows = [_row(operation, grouped[operation]) for operation in OPERATIONS if operation in grouped]
    return table(HEADINGS, [*rows, _row("all", [each for latencies in grouped.values() for each in latencies])])


def errors(answers: Sequence[Answer]) -> list[str]:
    """How many answers of each operation were no results, by kind."""
    counts = Counter((answer.call.operation, answer.kind) for answer in answers if answer.kind != OK)
    return [f"{count:6}  {kind} to {operation}" for (operation, kind), count in sorted(counts.items())]


def verdicts(checks: Checks, evidence: Evidence) -> Iterator[tuple[bool, str]]:
    """Whether each check holds, with the lines that say so."""
    for name, check in checks.items():
        faults = list(check(evidence))
        if not faults:
            yield True, f"ok      {name}: {(check.__doc__ or '').strip()}"
            continue
        shown = [f"          {fault}" for fault in islice(faults, SHOWN)]
        yield False, "\n".join([f"FAILED  {name}: {len(faults)} fault{'s'[: len(faults) != 1]}", *shown])


def percentile(values: Sequence[float], percent: int) -> float:
    """The least of the sorted values that so many percent of them do not exceed."""
    return values[max(0, ceil(len(values) * percent / 100) - 1)]


def _row(name: str, latencies: list[float]) -> tuple[str, ...]:
    ordered = sorted(latencies)
    found = [percentile(ordered, percent) for percent in (50, 90, 99, 100)] if ordered else []
    return (name, number(len(ordered)), *(number(round(value)) for value in found))
