"""A warm function: an interpreter that measures the calls it is told to make, until its input ends. Run as a script.

    python bench/warm.py RESULTS-FD

Each line of the input is a command as JSON, `{"make": "sends", "count": 50}`; each gets one line of JSON, the CPU
seconds of each measured call. CPU is the time of this whole process, its other threads included; building a
request and looking at its answer are not in it. Logs go to the standard output, as on Lambda.
"""

import gc
import importlib
import json
import os
import sys
import time
import uuid
from collections.abc import Callable

from bench import calls
from bench.calls import Context, Event

COMPLETING = calls.kilobyte("Where is order A-1001?")
ASKING = calls.kilobyte("Where is my order?")
COUNT_ASIDE = "COUNT_ASIDE" in os.environ
"""Whether ListTasks is measured without its count."""

if COUNT_ASIDE:
    importlib.import_module("bench.counts").leave_aside()
app = importlib.import_module("app")
handler = app.handler


def measure(event: Event) -> tuple[float, dict[str, object]]:
    """The CPU seconds of one call, and the task it was answered with."""
    before = time.process_time()
    answer = handler(event, Context())
    return time.process_time() - before, calls.result(answer)


def new_id() -> str:
    """A message id."""
    return str(uuid.uuid4())


def begin(text: str) -> str:
    """A new task, not measured."""
    _, task = measure(calls.send(new_id(), text))
    return str(task["id"])


def sends(count: int) -> list[float]:
    """New tasks that complete at once."""
    return [measure(calls.send(new_id(), COMPLETING))[0] for _ in range(count)]


def gets(count: int) -> list[float]:
    """Reads of completed tasks."""
    tasks = [begin(COMPLETING) for _ in range(10)]
    return [measure(calls.get(tasks[index % len(tasks)]))[0] for index in range(count)]


def cancels(count: int) -> list[float]:
    """Cancellations of tasks that wait for their caller."""
    tasks = [begin(ASKING) for _ in range(count)]
    return [measure(calls.cancel(task))[0] for task in tasks]


def turns(count: int) -> list[float]:
    """The turns of one conversation, each after the first a follow-up: turn n meets 2 (n - 1) messages.

    Each answer carries the newest two messages, so that what is measured is the turn and not its display.
    """
    first, task = measure(calls.send(new_id(), ASKING, history_length=2))
    follow_ups = [
        measure(calls.send(new_id(), ASKING, task=str(task["id"]), history_length=2))[0] for _ in range(count - 1)
    ]
    return [first, *follow_ups]


def lists(count: int) -> list[float]:
    """First pages of a list of tasks."""
    return [measure_list() for _ in range(count)]


def measure_list() -> float:
    """The CPU seconds of one page."""
    before = time.process_time()
    answer = handler(calls.list_tasks(), Context())
    after = time.process_time()
    calls.page(answer)
    return after - before


def copies(count: int) -> list[float]:
    """Copies of the one task there is, not measured; a function that can copy has a way to."""
    app.copy(count)
    return []


COMMANDS: dict[str, Callable[[int], list[float]]] = {
    "sends": sends,
    "gets": gets,
    "cancels": cancels,
    "turns": turns,
    "lists": lists,
    "copies": copies,
}


def main() -> None:
    """Carry out commands until the input ends."""
    with os.fdopen(int(sys.argv[1]), "w", encoding="utf-8") as results:
        for line in sys.stdin:
            command = json.loads(line)
            gc.collect()
            results.write(json.dumps(COMMANDS[command["make"]](command["count"])) + "\n")
            results.flush()
    # As in cold.py.
    os._exit(0)


main()
