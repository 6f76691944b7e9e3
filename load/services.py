"""What is loaded: a database of its own, and gateways that serve one agent from it, each a process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from a2a_lambda import timestamps
from a2a_lambda.bootstrap import dynamodb_client
from a2a_lambda.callers import owner_of_caller
from a2a_lambda.dynamodb import INDEX
from a2a_lambda.keys import TableKeys
from admin.database import Database
from load.agents import RUNS
from load.settings import LoadError
from load.stored import read_entry, read_tasks
from local.database import ROOT, DatabaseProcess
from local.deployment import read_deployment
from local.endpoints import identify_to
from local.queues import create_missing_queues
from local.server import listen
from local.tables import create_missing_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from load.stored import Entry, Stored

TEMPLATE = ROOT / "template.yaml"
GATEWAYS = 2
CALLERS_OF_AN_OWNER = 4
SETTLING_LOOKS = 120
SETTLING_SECONDS = 0.5
"""How often, and after what pause, it is looked whether the last turns are over."""
ENDING_SECONDS = 10
"""How long a gateway is given to end by itself."""


@dataclass(frozen=True)
class Served:
    """Gateways that serve an agent, and the database behind them."""

    ports: tuple[int, ...]
    database: Database
    file: Path
    """Where the agent notes its runs."""

    def make_keys(self, callers: int) -> dict[str, str]:
        """A key for each owner, as many owners as those callers are to be of."""
        keys = TableKeys(self.database.callers, clock=timestamps.now)
        names = [f"load-{number}" for number in range(max(2, callers // CALLERS_OF_AN_OWNER))]
        return {owner_of_caller(name): keys.make(name)[0] for name in names}

    def settle(self) -> None:
        """Wait for the turns that are queued or running, within reason."""
        waiting: dict[str, Any] = {
            "FilterExpression": "attribute_exists(deadline)",
            "ProjectionExpression": "task_id",
        }
        for _ in range(SETTLING_LOOKS):
            if not any(True for _ in self.database.scan_tasks(waiting)):
                return
            time.sleep(SETTLING_SECONDS)

    def tasks(self) -> dict[str, Stored]:
        """All tasks, by id."""
        return read_tasks(self.database.scan_tasks({}))

    def index(self) -> list[Entry]:
        """All of the index."""
        scan = self.database.client.get_paginator("scan")
        pages = scan.paginate(TableName=self.database.tasks_table, IndexName=INDEX)
        return [read_entry(item) for page in pages for item in page["Items"]]

    def runs(self) -> Counter[tuple[str, str]]:
        """How often the agent ran, by task and message."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return Counter((task_id, message_id) for task_id, _, message_id in (line.partition(" ") for line in lines))


@contextmanager
def served(agent: str) -> Iterator[Served]:
    """The gateways, as they answer. They and the database end with the block.

    Raises LoadError.
    """
    with ExitStack() as at_exit:
        file = Path(at_exit.enter_context(TemporaryDirectory()), "runs")
        process = DatabaseProcess(listen(0))
        at_exit.callback(process.stop)
        endpoint = process.endpoint
        identify_to(endpoint)
        deployment = read_deployment(TEMPLATE, {"AUTH": "api-key", "SQS_ENDPOINT": endpoint})
        create_missing_tables(endpoint, deployment.tables)
        create_missing_queues(endpoint, deployment.queues)
        settings = {"A2A_AGENT": agent, "AUTH": "api-key", "DYNAMODB_ENDPOINT": endpoint, RUNS: str(file)}
        gateways = [at_exit.enter_context(_gateway(settings)) for _ in range(GATEWAYS)]
        ports = tuple(_port(gateway) for gateway in gateways)
        names = deployment.variables()
        database = Database(endpoint, dynamodb_client(endpoint), names["TASKS_TABLE"], names["CALLERS_TABLE"])
        yield Served(ports, database, file)


@contextmanager
def _gateway(settings: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A gateway at a free port. The settings of whoever makes the load are not its own."""
    inherited = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    process = subprocess.Popen(
        [sys.executable, "-m", "local", "gateway"],
        cwd=ROOT,
        env=inherited | {"PORT": "0"} | settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _port(gateway: subprocess.Popen[str]) -> int:
    """The port of a gateway that is starting, once it answers. What it says from then on is read by nobody.

    Raises LoadError.
    """
    lines = iter(gateway.stdout or ())
    port = 0
    for line in lines:
        if line.startswith("Agent card"):
            port = int(line.rpartition(":")[2].partition("/")[0])
        if line.startswith("Ctrl-C"):
            threading.Thread(target=lambda: [None for _ in lines], daemon=True).start()
            return port
    raise LoadError("the gateway did not start")
