"""ListTasks, the first page of all tasks, where there are few and where there are many: copies of one task."""

from __future__ import annotations

import sqlite3
import uuid
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.session import get_session

from bench.interpreters import Warm, metered
from bench.staging import STAGE
from bench.units import item_size, query_calls, query_read_units

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from bench.staging import Stack, Stage
    from local.deployment import Table

FEW, MANY = 100, 10_000
ROUNDS = 6
CALLS_A_ROUND = 3
BATCH = 25

SERVER, MEMORY, SQL = "this server", "SDK, memory", "SDK, SQL"
COUNTING = "this server, counting"


@dataclass(frozen=True)
class Lists:
    """What was measured, by the number of tasks."""

    cpu: Mapping[int, Mapping[str, float]]
    """Milliseconds of a page by stack: this server's without its count, and at FEW tasks with it too."""
    pages: Mapping[int, Mapping[str, float]]
    """What a page without its count asks of DynamoDB."""
    counts: Mapping[int, Mapping[str, float]]
    """What the count asks for, by the size of the index's entries."""


def measure(stage: Stage, table: Table, endpoint: str) -> Lists:
    """Fill tables and databases, and measure.

    Args:
        stage: the stacks.
        table: the table of tasks, as deployed.
        endpoint: the DynamoDB.
    """
    client = get_session().create_client("dynamodb", endpoint_url=endpoint)
    stacks = {tasks: _stacks(stage, client, table, tasks) for tasks in (FEW, MANY)}
    with ExitStack() as running:
        warm = {
            (tasks, name): running.enter_context(Warm(stage.python, stack))
            for tasks, each in stacks.items()
            for name, stack in each.items()
        }
        for tasks, each in stacks.items():
            for name in (SERVER, MEMORY, SQL):
                warm[tasks, name].make("sends", 1)
            warm[tasks, MEMORY].make("copies", tasks - 1)
            copy_items(client, each[SERVER].variables["TASKS_TABLE"], tasks - 1)
            copy_rows(_database(tasks), tasks - 1)
        cpu = _rounds(warm)
    entry = _index_entry(client, stacks[FEW][SERVER].variables["TASKS_TABLE"])
    return Lists(
        cpu={tasks: {name: cpu[tasks, name] for name in each} for tasks, each in stacks.items()},
        pages={tasks: metered(stage.python, each[SERVER], "list")["page"] for tasks, each in stacks.items()},
        counts={tasks: count(entry, tasks) for tasks in stacks},
    )


def _stacks(stage: Stage, client: Any, table: Table, tasks: int) -> dict[str, Stack]:
    """The stacks by name, each with a table or a database of its own, which is empty yet."""
    name = f"{table.name}-{tasks}"
    client.create_table(**{**table.creation, "TableName": name})
    _database(tasks).unlink(missing_ok=True)
    counting = stage.server.with_variables(TASKS_TABLE=name)
    stacks = {
        SERVER: counting.with_variables(COUNT_ASIDE="yes"),
        MEMORY: stage.sdk_memory,
        SQL: stage.sdk_sql.with_variables(TASK_STORE=f"sqlite+aiosqlite:///{_database(tasks)}"),
    }
    return {**stacks, COUNTING: counting} if tasks == FEW else stacks


def _database(tasks: int) -> Path:
    return STAGE / f"sdk-{tasks}.sqlite"


def count(entry: dict[str, Any], tasks: int) -> dict[str, float]:
    """What it asks of DynamoDB to count so many entries of an index like this one."""
    size = item_size(entry)
    return {"calls": query_calls(size, tasks), "read_units": query_read_units(size, tasks, consistent=False)}


def _rounds(warm: Mapping[tuple[int, str], Warm]) -> dict[tuple[int, str], float]:
    """The CPU of the fastest call: there are too few of them for `measurements.operations`' means."""
    times: dict[tuple[int, str], list[float]] = {key: [] for key in warm}
    for _ in range(ROUNDS):
        for key, interpreter in warm.items():
            times[key] += interpreter.make("lists", CALLS_A_ROUND)
    return {key: min(each) for key, each in times.items()}


def copy_items(client: Any, table: str, copies: int) -> None:
    """Copy the one task of a table so many times, each under an id of its own."""
    (task,) = client.scan(TableName=table)["Items"]
    for first in range(0, copies, BATCH):
        batch = [{"PutRequest": {"Item": _copy(task)}} for _ in range(min(BATCH, copies - first))]
        client.batch_write_item(RequestItems={table: batch})


def _copy(task: Mapping[str, Any]) -> dict[str, Any]:
    task_id = str(uuid.uuid4())
    time, _, _ = task["status_order"]["S"].partition("#")
    return {**task, "task_id": {"S": task_id}, "status_order": {"S": f"{time}#{task_id}"}}


def _index_entry(client: Any, table: str) -> dict[str, Any]:
    (index,) = client.describe_table(TableName=table)["Table"]["GlobalSecondaryIndexes"]
    entry: dict[str, Any] = client.scan(TableName=table, IndexName=index["IndexName"], Limit=1)["Items"][0]
    return entry


def copy_rows(database: Path, copies: int) -> None:
    """Copy the one task of an SDK's database so many times."""
    with closing(sqlite3.connect(database)) as connection, connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(tasks)")]
        (task,) = connection.execute("SELECT * FROM tasks")
        places = ", ".join("?" for _ in columns)
        insert = f"INSERT INTO tasks VALUES ({places})"  # noqa: S608 - nothing but question marks
        connection.executemany(insert, _copied_rows(columns, task, copies))


def _copied_rows(columns: list[str], task: tuple[Any, ...], copies: int) -> Iterator[tuple[Any, ...]]:
    for _ in range(copies):
        yield tuple(str(uuid.uuid4()) if name == "id" else value for name, value in zip(columns, task, strict=True))
