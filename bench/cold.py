"""One cold start: a fresh interpreter imports a function and answers one event. Run as a script, never imported.

    python bench/cold.py EVENT RESULT

Times are of the machine's monotonic clock, so that the parent can add when it started this interpreter. json and
the event are here before the clock of the import starts, as in Lambda's own runtime.
"""

import importlib
import json
import os
import sys
import time

from bench.calls import Context


def main() -> None:
    """Import, answer, and leave what happened in the result file."""
    event_path, result_path = sys.argv[1:]
    with open(event_path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib would be a part of the measurement
        event = json.load(file)
    ready = time.monotonic_ns()
    handler = importlib.import_module("app").handler
    imported = time.monotonic_ns()
    answer = handler(event, Context())
    answered = time.monotonic_ns()
    result = {
        "ready": ready,
        "imported": imported,
        "answered": answered,
        "cpu": time.process_time(),
        "peak": peak_memory(),
        "aws_client": "botocore" in sys.modules,
        "answer": answer,
    }
    with open(result_path, "w", encoding="utf-8") as file:  # noqa: PTH123 - as above
        json.dump(result, file)
    sys.stdout.flush()
    # The SDK's database has a thread that would keep the interpreter waiting.
    os._exit(0)


def peak_memory() -> int:
    """The most memory that this process ever held, in KiB; 0 where the system does not say."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:  # noqa: PTH123 - as above
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except OSError:
        return 0


main()
