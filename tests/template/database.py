"""The local database as `make database` starts it, with the template's tables, on a free port."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from tests.template.sam import ROOT


@contextlib.contextmanager
def running_database() -> Iterator[str]:
    """Run a database of its own for the tests that ask; its address."""
    command = [sys.executable, "-m", "local", "database"]
    environment = {**os.environ, "DB_PORT": "0"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield endpoint(next(iter(process.stdout or ()), ""))
        finally:
            process.terminate()


def endpoint(first_line: str) -> str:
    """The address in what the database says once its tables are there."""
    assert first_line.startswith("DynamoDB"), first_line
    return first_line.split()[1].rstrip(",")
