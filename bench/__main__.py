"""Measure, print the table, and write it to bench/RESULTS.md."""

from __future__ import annotations

import datetime as dt
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench import costs, measurements, tables
from bench.interpreters import InterpreterError
from bench.staging import StageError, alone, prepare
from local.errors import LocalError

if TYPE_CHECKING:
    from bench.staging import Stage

RESULTS = Path(__file__).parent / "RESULTS.md"

INTRODUCTION = """\
# Results

Written by `make bench`; what was tried to get here is in [docs/performance.md](../docs/performance.md).
The budgets are ratios of what the official SDK needs in the same run, or plain numbers. CPU is the function's own
process only; this server's database is another process, sqlite is in the SDK's own. A cold start is a fresh
interpreter with compiled code, from its start to the answer; it has neither Lambda's own start in it nor its smaller
CPU. Messages and questions are of 1 KB, and a follow-up's answer carries two messages (`historyLength` 2) unless the
row says otherwise.
"""


def main() -> None:
    """Run the whole bench, or say why that cannot be."""
    try:
        with alone(), measurements.aws() as (deployed, endpoint):
            stage = prepare(deployed)
            results = measurements.measure(stage, deployed, endpoint)
    except (StageError, LocalError, InterpreterError) as error:
        sys.exit(f"bench: {error}")
    found = [
        tables.budgets(stage, results),
        tables.usage(results),
        tables.passing(results),
        costs.report(stage, results),
    ]
    text = "\n\n".join([INTRODUCTION.rstrip(), machine(stage), *found])
    print(text)  # noqa: T201 - this is what it is for
    RESULTS.write_text(text + "\n", encoding="utf-8")


def machine(stage: Stage) -> str:
    """Where and when this was measured."""
    version = subprocess.run([stage.python, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    today = dt.datetime.now(dt.UTC).date().isoformat()
    cpus, load = os.cpu_count(), os.getloadavg()[1]
    return f"{today}, {processor()}, {cpus} CPUs, load {load:.1f}, {platform.system()} {platform.machine()}, {version}."


def processor() -> str:
    """The processor's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown processor"
    )


if __name__ == "__main__":
    main()
