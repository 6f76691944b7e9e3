"""Threads that race on one task, each with an instance of its own: one order of the writes explains what all were told.

What they do is drawn, the same in each run; how it interleaves is not. `RACES=100` runs so many of each kind.
"""

import itertools
import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

import pytest

from a2a_lambda.agent import Turn, Updates, artifact, completed, input_required
from a2a_lambda.calls import Call, World
from a2a_lambda.ledger import Ledger
from a2a_lambda.model import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
)
from a2a_lambda.operations import Operations
from a2a_lambda.running import Runner
from a2a_lambda.store import TaskStore
from a2a_lambda.working import Work, Worker
from tests.concurrency.explanations import Place, Rules, explain, is_last
from tests.concurrency.histories import Kind, Operation, Recorder, Seen, Worked, seen
from tests.integration.tables import WINDOW_SECONDS, Tasks, new_client
from tests.unit.factories import GENEROUS, NOON, OWNER, Ids, agent, call, message, texts

CALLERS: Final = 5
RACES: Final = int(os.environ.get("RACES", "2"))
STEPS: Final = 4
SECONDS: Final = 300.0
"""The time that a function has. It does not pass."""
MEETING_SECONDS: Final = 30

RULES: Final = {
    "read-only": Rules(read_only=True),
    "acting": Rules(read_only=False),
    "background": Rules(read_only=False, background=True),
    "read-only background": Rules(read_only=True, background=True),
}

Step = tuple[Kind, str]
Script = Callable[[Turn], Updates]


def respond(turn: Turn) -> Updates:
    """Give an artifact, and a question or the end."""
    yield artifact(turn.text, artifact_id=turn.text)
    yield completed() if is_last(turn.text) else input_required(f"{turn.text}?")


@dataclass(frozen=True)
class Instance:
    """The functions, with a client of their own."""

    operations: Operations
    worker: Worker
    store: TaskStore

    def send(self, said: str, *, task_id: str = "", immediately: bool = False) -> Task:
        """Send a message, the same one for the same text."""
        wishes = SendMessageConfiguration(return_immediately=immediately)
        sent = message(said, message_id=said, task_id=task_id)
        task = self.operations.send_message(SendMessageRequest(sent, configuration=wishes), _caller()).task
        assert isinstance(task, Task)
        return task

    def listed(self, task_id: str) -> Task | None:
        """Return the task as a list shows it; None where it has just moved there."""
        request = ListTasksRequest(history_length=1000, include_artifacts=True)
        tasks = self.operations.list_tasks(request, _caller()).tasks
        return next((task for task in tasks if task.id == task_id), None)

    def queued(self, task_id: str) -> tuple[Work, str] | None:
        """Return the work queue's message of an open turn, and what that is to answer; None where there is none."""
        head = self.store.read(OWNER, task_id)
        if head is None or head.deadline is None:
            return None
        return Work(OWNER, task_id, head.turn, head.run), texts(self.store.history(head, 1))[0]

    def attend(self, work: Work) -> Worked:
        attended = self.worker.attend(work, lambda: SECONDS)
        return Worked(attended.outcome, attended.state)


def _caller() -> Call:
    return call(seconds_left=SECONDS)


@dataclass
class Race:
    """A task and those who race on it."""

    tasks: Tasks
    rules: Rules
    script: Script = respond

    def __post_init__(self) -> None:
        self.recorder = Recorder()
        ticks = itertools.count(NOON)
        self._clock = lambda: next(ticks)
        self.instances = [self._instance() for _ in range(CALLERS)]
        self.first = self._begin()
        self.task_id = self.first.id

    def _begin(self) -> Task:
        instance = self.instances[0]
        task = instance.send("first", immediately=self.rules.background)
        if self.rules.background:
            instance.attend(Work(OWNER, task.id, 1, 1))
        return instance.operations.get_task(GetTaskRequest(task.id), _caller())

    def _instance(self) -> Instance:
        agent_ = agent(self._respond, read_only=self.rules.read_only, background=self.rules.background)
        store = self.tasks.store(new_client(self.tasks.endpoint))
        world = World(clock=self._clock, new_id=Ids(), pause=lambda _seconds: self.wait(instance), later=_never)
        operations = Operations(agent_, store, GENEROUS, world, window_seconds=WINDOW_SECONDS)
        ledger = Ledger(store, world, read_only=agent_.read_only)
        worker = Worker(store, ledger, Runner(agent_, store, ledger, GENEROUS, world), world)
        instance = Instance(operations, worker, store)
        return instance

    def _respond(self, turn: Turn) -> Updates:
        return self.script(turn)

    def wait(self, instance: Instance) -> None:
        """Let time pass for a client that waits: a worker comes meanwhile."""
        if self.rules.background:
            self.take(instance, "work")
        else:
            self.recorder.wait()

    def run(self, callers: Sequence[Sequence[Step]]) -> None:
        """Have each caller take its steps, all at the same time."""
        together = threading.Barrier(len(callers))

        def act(number: int) -> None:
            together.wait(MEETING_SECONDS)
            for kind, said in callers[number]:
                self.take(self.instances[number], kind, said)

        with ThreadPoolExecutor(len(callers)) as pool:
            list(pool.map(act, range(len(callers))))
        self.take(self.instances[0], "get")

    def take(self, instance: Instance, kind: Kind, said: str = "") -> None:
        """Take a step, and write it down."""
        task_id, operations = self.task_id, instance.operations
        match kind:
            case "get":
                request = GetTaskRequest(task_id, history_length=1000)
                self.recorder.record(kind, lambda: operations.get_task(request, _caller()))
            case "list":
                self.recorder.record(kind, lambda: instance.listed(task_id))
            case "cancel":
                self.recorder.record(kind, lambda: operations.cancel_task(CancelTaskRequest(task_id), _caller()))
            case "work":
                if queued := instance.queued(task_id):
                    work, asked = queued
                    self.recorder.record(kind, lambda: instance.attend(work), asked)
            case _:
                is_immediate = kind == "send immediately"
                send = partial(instance.send, said, task_id=task_id, immediately=is_immediate)
                self.recorder.record(kind, send, said)

    def explained(self) -> list[Place]:
        """Return an order of the writes that explains what was seen, in which time does not go back."""
        order = explain(self.recorder.operations, seen(self.first), self.rules)
        assert order is not None, "\n".join(map(str, self.recorder.operations))
        since = {(place.version, place.operation.since) for place in order if place.operation.since}
        assert len({version for version, _ in since}) == len(since)
        assert [time for _, time in sorted(since)] == sorted(time for _, time in since)
        return order


def _never(_seconds: float, _action: Callable[[], None]) -> Callable[[], None]:
    return lambda: None


@pytest.fixture
def tasks(dynamodb: str) -> Iterator[Tasks]:
    """Return a table of its own in the shared DynamoDB."""
    table = Tasks(new_client(dynamodb), endpoint=dynamodb)
    yield table
    table.client.delete_table(TableName=table.name)


def drawn(race: int, rules: Rules) -> list[list[Step]]:
    """Return what callers do: most of them talk; in some races one ends the task, or cancels it."""
    chance = random.Random(race)  # noqa: S311 - it need not be a secret
    kinds: list[Kind] = ["send", "send", "get", "get", "list"]
    if rules.background:
        kinds += ["send immediately", "work", "work"]
    callers = [
        [_said(chance.choice(kinds), chance.choice([f"{caller}.{step}", "all"])) for step in range(STEPS)]
        for caller in range(CALLERS)
    ]
    ending: list[Step] = [("cancel", ""), ("send", "last"), ("get", "")]
    callers[0].insert(chance.randrange(STEPS), ending[race % 3])
    callers[1].insert(chance.randrange(STEPS), ("cancel", "") if race % 2 else ("list", ""))
    return callers


def _said(kind: Kind, said: str) -> Step:
    return kind, said if kind.startswith("send") else ""


@pytest.mark.parametrize("number", range(RACES))
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_one_order_of_the_writes_explains_what_all_were_told(tasks: Tasks, rules: Rules, number: int) -> None:
    race = Race(tasks, rules)
    race.run(drawn(number, rules))

    assert len(race.explained()) == len(race.recorder.operations)


@pytest.mark.parametrize("_number", range(RACES))
@pytest.mark.parametrize("rules", list(RULES.values())[:2], ids=list(RULES)[:2])
def test_of_cancellations_and_a_completion_one_wins_and_all_are_told_which(
    tasks: Tasks, rules: Rules, _number: int
) -> None:
    race, meeting = Race(tasks, rules), threading.Barrier(3)
    race.script = partial(_met, meeting)

    def complete() -> None:
        race.take(race.instances[0], "send", "last")

    def cancel() -> None:
        meeting.wait(MEETING_SECONDS)
        race.take(race.instances[1], "cancel")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda act: act(), [complete, cancel, cancel]))
    race.take(race.instances[0], "get")

    assert sum(map(_has_won, race.recorder.operations)) == 1
    assert race.explained()


def _met(meeting: threading.Barrier, turn: Turn) -> Updates:
    """Answer once all are there."""
    if is_last(turn.text):
        meeting.wait(MEETING_SECONDS)
    return respond(turn)


def _has_won(operation: Operation) -> bool:
    """Tell whether an operation has ended its task."""
    ends = {"cancel": "CANCELED", "send": "COMPLETED"}
    return isinstance(operation.answer, Seen) and operation.answer.state == ends.get(operation.kind)
