"""The local commands as processes of their own, as a person at a terminal starts them."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).parents[2]
SMALL = Path(__file__).parent / "deployment" / "template.yaml"

GATEWAY = (sys.executable, "-m", "local", "gateway")
SMALL_GATEWAY = (sys.executable, "-m", "local", "--template", str(SMALL), "gateway")
DATABASE = (sys.executable, "-m", "local", "database")

DEADLINE = 60.0


class Command:
    """A running command: its lines as they come, and its end."""

    def __init__(self, words: Sequence[str], settings: Mapping[str, str] | None = None) -> None:
        # What make tells its own children, and the settings of whoever runs the tests, are not this command's.
        inherited = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
        self._process = subprocess.Popen(
            words,
            cwd=ROOT,
            env=inherited | {"PORT": "0", "DB_PORT": "0"} | dict(settings or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.output = ""
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def until(self, text: str) -> str:
        """The first line from here on that holds the text."""
        while line := self._lines.get(timeout=DEADLINE):
            self.output += line
            if text in line:
                return line
        raise AssertionError(f"no line with {text!r} in:\n{self.output}")

    def ready(self) -> Self:
        """Wait until the command says that it serves."""
        self.until("Ctrl-C stops it")
        return self

    @property
    def gateway(self) -> str:
        """The address of the gateway."""
        return self._told("Agent card").removesuffix("/.well-known/agent-card.json")

    @property
    def database(self) -> str:
        """The address of the DynamoDB that is used."""
        return self._told("DynamoDB").rstrip(",")

    def _told(self, about: str) -> str:
        (line,) = (line for line in self.output.splitlines() if line.startswith(about))
        return line.removeprefix(about).split()[0]

    def press_ctrl_c(self) -> int:
        """Send SIGINT to everything in the terminal's foreground; the exit status."""
        os.killpg(self._process.pid, signal.SIGINT)
        return self.end()

    def send(self, number: signal.Signals) -> int:
        """Send a signal to the command alone; the exit status."""
        self._process.send_signal(number)
        return self.end()

    def end(self) -> int:
        """Wait for the end of the command and of its output; the exit status."""
        status = self._process.wait(DEADLINE)
        self._reader.join()
        while line := self._lines.get(timeout=DEADLINE):
            self.output += line
        return status

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(DEADLINE)
        self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether the condition comes true before the deadline."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
