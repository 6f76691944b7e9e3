"""The tables of RESULTS.md, made from what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench import costs, measurements
from bench.background import ONE_SHOT
from bench.chain import PUSH, RELAY, WORKER
from bench.interpreters import middle
from bench.lists import COUNTING, FEW, MANY
from bench.report import HEADINGS, Row, number, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from bench.interpreters import Cold
    from bench.lists import Lists
    from bench.measurements import Results
    from bench.staging import Stage

SERVER, MEMORY, SQL = "this server", "SDK, memory", "SDK, SQL"
MEGABYTE = 10**6


def budgets(stage: Stage, results: Results) -> str:
    """The main table."""
    rows = [
        *cold_rows(results),
        *cpu_rows(results),
        *unit_rows(results),
        *list_rows(results.lists),
        Row(
            "deployed code and dependencies, unzipped",
            stage.deployed_bytes / MEGABYTE,
            stage.sdk_bytes / MEGABYTE,
            stage.sdk_sql_bytes / MEGABYTE,
            limit=12,
            unit="MB",
        ),
        *(
            Row(f"a million tasks, {kind}", sum(parts.values()), limit=BUDGETED_COSTS.get(kind), unit="USD")
            for kind, parts in costs.by_kind(stage, results).items()
        ),
    ]
    return table(HEADINGS, [row.cells() for row in rows])


BUDGETED_COSTS = {ONE_SHOT: 5.5}


def cold_rows(results: Results) -> list[Row]:
    """Cold starts and memory."""
    cold, card = results.cold, results.card
    sql = middle(cold[SQL], "total")

    def row(what: str, field: str, unit: str = "ms", share: float | None = None) -> Row:
        limit = share * sql if share is not None else None
        text = f"{share} × SDK, SQL" if share is not None else ""
        values = [middle(cold[name], field) for name in (SERVER, MEMORY, SQL)]
        return Row(what, values[0], values[1], values[2], limit, text, unit)

    def extreme(what: str, pick: Callable[[Iterable[float]], float]) -> Row:
        server, memory, sql = (pick(each.total for each in cold[name]) for name in (SERVER, MEMORY, SQL))
        return Row(f"– {what} of {len(card)}", server, memory, sql, unit="ms")

    return [
        row("cold start, to the first SendMessage answer", "total", share=0.6),
        extreme("fastest", min),
        extreme("slowest", max),
        row("– the interpreter", "interpreter"),
        row("– importing the function", "importing"),
        row("– the first call", "first_call"),
        row("– CPU of all this", "cpu"),
        row("peak memory of a cold start", "peak", "MiB"),
        Row("card function, cold", middle(card, "total"), limit=0.25 * sql, limit_text="0.25 × SDK, SQL", unit="ms"),
        Row("– fastest", min(each.total for each in card), unit="ms"),
        Row("– slowest", max(each.total for each in card), unit="ms"),
        Row("– AWS clients that it imports", sum(each.aws_client for each in card[:1]), limit=0),
        *(row for function, what in BEHIND for row in _behind(what, results.background.cold[function])),
    ]


BEHIND = (
    (RELAY, "relay function, cold, to the end of its first outbox"),
    (WORKER, "worker function, cold, to the end of its first turn"),
    (PUSH, "push function, cold, to the end of its first delivery"),
)


def _behind(what: str, cold: Sequence[Cold]) -> list[Row]:
    """The cold start of a function that no caller waits for, and that has no budget."""
    return [
        Row(what, middle(cold, "total"), unit="ms"),
        Row(f"– fastest of {len(cold)}", min(each.total for each in cold), unit="ms"),
        Row("– CPU of all this", middle(cold, "cpu"), unit="ms"),
        Row("– peak memory", middle(cold, "peak"), unit="MiB"),
    ]


def cpu_rows(results: Results) -> list[Row]:
    """CPU of a warm function."""

    def row(what: str, times: Mapping[str, float], share: float | None = None) -> Row:
        limit = share * times[SQL] if share is not None else None
        text = f"{share} × SDK, SQL" if share is not None else ""
        return Row(what, times[SERVER], times[MEMORY], times[SQL], limit, text, "ms")

    def of(operation: str) -> dict[str, float]:
        return {name: times[operation] for name, times in results.cpu.items()}

    return [
        row("SendMessage that completes, CPU", of("sends"), 0.25),
        row("GetTask, CPU", of("gets"), 1.0),
        row("CancelTask, CPU", of("cancels")),
        *(
            row(f"follow-up turn at history {history}, CPU", {name: at[history] for name, at in results.turns.items()})
            for history in measurements.HISTORIES
        ),
    ]


BUDGETED = (
    ("one-shot SendMessage, read-only agent", "read_only", "one-shot", 2, 6),
    ("one-shot SendMessage, acting agent", "acting", "one-shot", 3, 9),
    ("follow-up turn 400, read-only agent", "read_only", "turn 400", 3, 10),
    ("follow-up turn 400, acting agent", "acting", "turn 400", 4, 14),
)


def unit_rows(results: Results) -> list[Row]:
    """DynamoDB calls and units that have a budget."""
    rows = []
    for what, agent, operation, most_calls, most_units in BUDGETED:
        usage = getattr(results, agent)
        rows += [
            Row(f"{what}, calls", usage[operation]["calls"], limit=most_calls),
            Row(f"{what}, write units", usage[operation]["write_units"], limit=most_units),
        ]
        if operation == "turn 400":
            rows += [
                Row(
                    f"– {kind.replace('_', ' ')}, of those at turn 2",
                    usage[operation][kind] / usage["turn 2"][kind],
                    limit=1.3,
                    unit="×",
                )
                for kind in ("calls", "write_units", "read_units")
            ]
    get = results.read_only["get at turn 400"]
    return [
        *rows,
        Row("GetTask with historyLength 2 at turn 400, calls", get["calls"], limit=2),
        Row("GetTask with historyLength 2 at turn 400, read units", get["read_units"], limit=2),
    ]


def list_rows(lists: Lists) -> list[Row]:
    """ListTasks at few and at many tasks. The SDK's numbers have its count in them."""
    rows = []
    for tasks in (FEW, MANY):
        cpu, page, count = lists.cpu[tasks], lists.pages[tasks], lists.counts[tasks]
        rows.append(
            Row(f"ListTasks, page of 50 at {tasks:,} tasks, CPU", cpu[SERVER], cpu[MEMORY], cpu[SQL], unit="ms")
        )
        if COUNTING in cpu:
            rows.append(Row("– with its count, CPU", cpu[COUNTING], unit="ms"))
        rows += [
            Row("– calls", page["calls"]),
            Row("– read units", page["read_units"]),
            Row("– calls of its count", count["calls"]),
            Row("– read units of its count", count["read_units"]),
        ]
    few, many = lists.pages[FEW], lists.pages[MANY]
    ratios = {kind.replace("_", " "): many[kind] / few[kind] for kind in ("calls", "read_units")}
    ratios["CPU"] = lists.cpu[MANY][SERVER] / lists.cpu[FEW][SERVER]
    rows += [Row(f"– {kind}, of those at {FEW} tasks", ratio, limit=1.3, unit="×") for kind, ratio in ratios.items()]
    return rows


COUNTED = {
    "invocations": ("invocations",),
    "calls": ("calls",),
    "write units": ("write_units",),
    "read units": ("read_units",),
    "SQS requests": ("standard_requests", "fair_requests", "fifo_requests"),
    "bytes logged": ("log_bytes",),
}

PASSING = """\
## What each function does of a task

A one-shot task of an acting agent has a check put on the queue, delayed past its deadline, which finds it finished. In
the background the request is answered at once (`returnImmediately`), and the worker runs the turn. With a webhook, the
request names one, which is told of SUBMITTED, WORKING, the artifact and COMPLETED; the relay is invoked for each change
of the task by itself. SQS requests are those of the function and the two with which Lambda receives and deletes
each message."""


def passing(results: Results) -> str:
    """The table of what each function does of a task."""
    rows: list[tuple[str, ...]] = []
    for kind, passed in results.background.passed.items():
        counted = [[sum(done[name] for name in names) for names in COUNTED.values()] for done in passed.done.values()]
        rows += [(kind, function, *map(number, each)) for function, each in zip(passed.done, counted, strict=True)]
        if len(counted) > 1:
            rows.append((kind, "all", *(number(sum(column)) for column in zip(*counted, strict=True))))
    return "\n".join([PASSING, "", table(("task", "function", *COUNTED), rows)])


def usage(results: Results) -> str:
    """The table of all DynamoDB usage."""
    kinds = ("calls", "write_units", "read_units", "written_bytes")
    rows = [
        (f"{operation}, {agent}", *(number(used[kind]) for kind in kinds))
        for agent, usage in (("read-only", results.read_only), ("acting", results.acting))
        for operation, used in usage.items()
    ]
    headings = ("operation, agent", "calls", "write units", "read units", "bytes written")
    return "## DynamoDB\n\nBy its published rules, from the sizes of the real items.\n\n" + table(headings, rows)
