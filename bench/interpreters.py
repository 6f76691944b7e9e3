"""Interpreters that measure: fresh ones for a cold start, ones kept warm, and one with a meter.

They are started without `site`, so that nothing of this machine's installed packages is found, and with as little
environment as a function has.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from bench import calls
from bench.staging import Stack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Done: TypeAlias = dict[str, dict[str, float]]
"""What was done by each function, by the function's name and the names of `chained.Done`."""

HERE = Path(__file__).parent
DEADLINE_SECONDS = 300
NO_SITE = ("-S", "-P")


class InterpreterError(Exception):
    """An interpreter did not come to its end. What it said about that stands before this."""


@dataclass(frozen=True)
class Cold:
    """One cold start, in milliseconds and MiB."""

    interpreter: float
    importing: float
    first_call: float
    cpu: float
    peak: float
    log_bytes: int
    log_lines: int
    answer: dict[str, Any]
    aws_client: bool

    @property
    def total(self) -> float:
        """From the interpreter's start to the answer."""
        return self.interpreter + self.importing + self.first_call


def run(command: list[str], stack: Stack) -> bytes:
    """Run a measuring script with a stack's environment, and return what it writes to its standard output.

    Raises InterpreterError.
    """
    try:
        done = subprocess.run(
            command, env=stack.environment(), stdout=subprocess.PIPE, timeout=DEADLINE_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InterpreterError(f"{stack.name}: {' '.join(command)} failed: {error}") from error
    return done.stdout


def cold_start(python: str, stack: Stack, event: calls.Event) -> Cold:
    """Start a fresh interpreter that answers one event."""
    with TemporaryDirectory() as folder:
        event_path, result_path = Path(folder) / "event.json", Path(folder) / "result.json"
        event_path.write_text(json.dumps(event))
        command = [python, *NO_SITE, str(HERE / "cold.py"), str(event_path), str(result_path)]
        started = time.monotonic_ns()
        log = run(command, stack)
        result: dict[str, Any] = json.loads(result_path.read_text())
    calls.check(event, result["answer"])
    return Cold(
        interpreter=(result["ready"] - started) / 1e6,
        importing=(result["imported"] - result["ready"]) / 1e6,
        first_call=(result["answered"] - result["imported"]) / 1e6,
        cpu=result["cpu"] * 1000,
        peak=result["peak"] / 1024,
        log_bytes=len(log),
        log_lines=log.count(b"\n"),
        answer=result["answer"],
        aws_client=result["aws_client"],
    )


def chained(python: str, functions: Mapping[str, Stack], how: str, tasks: int, job: dict[str, Any]) -> tuple[Done, int]:
    """What each function does of a task that passes through all of them, and the bytes that are stored of it then.

    chained.py knows how, and what the job is.
    """
    stacks = functions.values()
    folders = {name: str(stack.path[0]) for name, stack in functions.items()}
    variables = {name: value for stack in stacks for name, value in stack.variables.items()}
    # Without the function's own folder: a module `app` is in each of them.
    together = Stack("this server", next(iter(stacks)).path[1:], variables)
    with TemporaryDirectory() as folder:
        job_path, result = Path(folder) / "job.json", Path(folder) / "result.json"
        job_path.write_text(json.dumps({"functions": folders, **job}))
        command = [python, *NO_SITE, str(HERE / "chained.py"), how, str(tasks), str(job_path), str(result)]
        run(command, together)
        found: dict[str, Any] = json.loads(result.read_text())
    return found["functions"], found["stored_bytes"]


def middle(cold: Sequence[Cold], field: str) -> float:
    """The median of a field."""
    value: float = median(getattr(each, field) for each in cold)
    return value


class Warm:
    """An interpreter that has imported a function and measures calls of it on command."""

    def __init__(self, python: str, stack: Stack) -> None:
        """Args: the stack is the function; its logs go nowhere."""
        self._name = stack.name
        reading, writing = os.pipe()
        self._process = subprocess.Popen(
            [python, *NO_SITE, str(HERE / "warm.py"), str(writing)],
            env=stack.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[writing],
        )
        os.close(writing)
        self._results = os.fdopen(reading, encoding="utf-8")

    def __enter__(self) -> Self:
        """Return the interpreter, which is ready once it has answered for the first time."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the interpreter."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._results.close()

    def make(self, what: str, count: int) -> list[float]:
        """CPU milliseconds of `count` calls of a kind that warm.py knows."""
        if self._process.stdin is None:
            raise RuntimeError("the interpreter has no input")
        self._process.stdin.write(json.dumps({"make": what, "count": count}).encode() + b"\n")
        self._process.stdin.flush()
        line = self._results.readline()
        if not line:
            raise InterpreterError(f"{self._name}: the interpreter ended while it made {what}")
        return [seconds * 1000 for seconds in json.loads(line)]


def metered(python: str, stack: Stack, what: str) -> dict[str, dict[str, float]]:
    """What each operation asks of DynamoDB, by the operation's name; metered.py knows what."""
    with TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [python, *NO_SITE, str(HERE / "metered.py"), what, str(result)]
        run(command, stack)
        usage: dict[str, dict[str, float]] = json.loads(result.read_text())
    return usage
