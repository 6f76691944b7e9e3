"""The measurements themselves: the stacks take turns, so that a slow moment of the machine is everybody's."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from bench import background, calls, lists
from bench.interpreters import Cold, Warm, cold_start, metered
from bench.staging import IDENTITY, deployment
from bench.webhook import Webhook
from local.database import DatabaseProcess
from local.queues import create_missing_queues
from local.server import listen
from local.tables import create_missing_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bench.staging import Stack, Stage
    from local.deployment import Deployment

COLD_RUNS = 10
ROUNDS = 15
CALLS_A_ROUND = 20
HISTORIES = (2, 10, 100, 400)
"""Messages that a follow-up turn finds."""
CONVERSATIONS = {6: 20, 52: 4, 205: 1}
"""How many conversations of how many turns are held for that."""
NEAR = 1.03
"""A turn counts for a history when it found that many messages, or up to this many times as many."""

QUESTION = calls.kilobyte("Which order do you mean?")


@dataclass(frozen=True)
class Results:
    """All that was measured: CPU and cold starts by stack."""

    cold: Mapping[str, list[Cold]]
    card: list[Cold]
    cpu: Mapping[str, Mapping[str, float]]
    """Milliseconds by stack and operation."""
    turns: Mapping[str, Mapping[int, float]]
    """Milliseconds of a follow-up turn by stack and history."""
    read_only: Mapping[str, Mapping[str, float]]
    """DynamoDB usage by operation."""
    acting: Mapping[str, Mapping[str, float]]
    lists: lists.Lists
    background: background.Background


@contextmanager
def aws() -> Iterator[tuple[Deployment, str]]:
    """What is deployed, on an AWS in a process of its own, and its endpoint. This process becomes one of its clients.

    Raises LocalError.
    """
    os.environ.update(IDENTITY)
    database = DatabaseProcess(listen(0))
    try:
        deployed = deployment(database.endpoint)
        create_missing_tables(database.endpoint, deployed.tables)
        create_missing_queues(database.endpoint, deployed.queues)
        yield deployed, database.endpoint
    finally:
        database.stop()


def measure(stage: Stage, deployed: Deployment, endpoint: str) -> Results:
    """Measure everything, on the AWS at the endpoint."""
    place = background.place_of(deployed, endpoint)
    (tasks_table,) = (table for table in deployed.tables if table.name == place.table)
    stacks = (stage.server, stage.sdk_memory, stage.sdk_sql)
    cold, card = cold_starts(stage, stacks)
    with Webhook() as webhook:
        behind = background.measure(stage, deployed, place, webhook)
    asking = [_asking(stack) for stack in stacks]
    return Results(
        cold=cold,
        card=card,
        cpu=operations(stage.python, stacks),
        turns=follow_ups(stage.python, asking),
        read_only=metered(stage.python, asking[0], "operations"),
        acting=metered(stage.python, asking[0].with_variables(A2A_AGENT="asking:ActingAgent"), "operations"),
        lists=lists.measure(stage, tasks_table, endpoint),
        background=behind,
    )


def cold_starts(stage: Stage, stacks: Sequence[Stack]) -> tuple[dict[str, list[Cold]], list[Cold]]:
    """Cold starts to the first SendMessage that completes, and to the first card. One each is not counted."""
    event = calls.send("cold-1", calls.kilobyte("Where is order A-1001?"))
    runs: dict[str, list[Cold]] = {stack.name: [] for stack in stacks}
    card: list[Cold] = []
    for _ in range(COLD_RUNS + 1):
        for stack in stacks:
            runs[stack.name].append(cold_start(stage.python, stack, event))
        card.append(cold_start(stage.python, stage.card, calls.card()))
    return {name: cold[1:] for name, cold in runs.items()}, card[1:]


def operations(python: str, stacks: Sequence[Stack]) -> dict[str, dict[str, float]]:
    """The CPU of one call of each operation: the mean of the best round. One round is not counted.

    The best, since what else the machine does can only ever add to a process's CPU time.
    """
    means: dict[str, dict[str, list[float]]] = {stack.name: {} for stack in stacks}
    with ExitStack() as running:
        warm = {stack.name: running.enter_context(Warm(python, stack)) for stack in stacks}
        for _ in range(ROUNDS + 1):
            for what in ("sends", "gets", "cancels"):
                for name, interpreter in warm.items():
                    times = interpreter.make(what, CALLS_A_ROUND)
                    means[name].setdefault(what, []).append(sum(times) / len(times))
    return {name: {what: min(rounds[1:]) for what, rounds in operations.items()} for name, operations in means.items()}


def follow_ups(python: str, stacks: Sequence[Stack]) -> dict[str, dict[int, float]]:
    """The CPU of a follow-up turn at each history: the median of the turns near it."""
    found: dict[str, list[list[float]]] = {stack.name: [] for stack in stacks}
    with ExitStack() as running:
        warm = {stack.name: running.enter_context(Warm(python, stack)) for stack in stacks}
        for interpreter in warm.values():
            interpreter.make("turns", 10)
        for turns, times in CONVERSATIONS.items():
            for _ in range(times):
                for name, interpreter in warm.items():
                    found[name].append(interpreter.make("turns", turns))
    return {
        name: {history: median(turns_near(history, conversations)) for history in HISTORIES}
        for name, conversations in found.items()
    }


def turns_near(history: int, conversations: Sequence[Sequence[float]]) -> list[float]:
    """The times of those turns that found about this many messages. A turn leaves two."""
    return [
        time
        for conversation in conversations
        for turn, time in enumerate(conversation)
        if history <= 2 * turn <= history * NEAR
    ]


def _asking(stack: Stack) -> Stack:
    return stack.with_variables(A2A_AGENT="asking:AskingAgent", QUESTION=QUESTION)
