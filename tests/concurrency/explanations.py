"""One order of the writes that explains all that was seen, or none (Wing and Gong's test of linearizability).

Every operation takes effect at a moment between its call and its answer; an acting agent's turn at two, its claim and
its end. Rules say what a moment may do to the task as it then is. What only reads may be put as early as it fits: it
changes nothing for the others. So the search branches on writes alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from tests.concurrency.histories import Operation, Refused, Seen, Worked

TERMINAL: Final = frozenset({"COMPLETED", "FAILED", "CANCELED", "REJECTED"})
OPEN: Final = frozenset({"SUBMITTED", "WORKING"})


class Moment(NamedTuple):
    """The task between two writes."""

    shown: Seen
    is_queued: bool = False
    runner: int = -1
    """The operation that runs the newest turn."""


class Place(NamedTuple):
    """An operation's place in the order, and how many writes were before it."""

    operation: Operation
    version: int


Move = tuple[Moment, int]
"""What a moment does: the task after it, and the operation's next phase; DONE where it has none."""

DONE: Final = -1
BEGINNING: Final = 0
RUNNING: Final = 1
WAITING: Final = 2


@dataclass(frozen=True)
class Rules:
    """What an agent makes of the messages of a task: a question, or the end for one that begins so."""

    read_only: bool
    background: bool = False

    def claimed(self, shown: Seen, said: str) -> Seen:
        return replace(shown, state="WORKING", history=(*shown.history, said))

    def ended(self, shown: Seen, said: str) -> Seen:
        artifacts = (*shown.artifacts, said)
        if is_last(said):
            return replace(shown, state="COMPLETED", artifacts=artifacts)
        return Seen("INPUT_REQUIRED", (*shown.history, f"{said}?"), artifacts)

    def moves(self, now: Moment, number: int, operation: Operation, phase: int) -> Iterator[Move]:
        """Yield what may happen to the task in the next moment of an operation, if its answer is the right one."""
        match operation.kind:
            case "get" | "list":
                if now.shown == operation.answer:
                    yield now, DONE
            case "cancel":
                yield from self._cancel(now, operation)
            case "work":
                yield from self._work(now, number, operation, phase)
            case _:
                yield from self._send(now, number, operation, phase)

    def _cancel(self, now: Moment, operation: Operation) -> Iterator[Move]:
        is_over = now.shown.state in TERMINAL
        canceled = replace(now.shown, state="CANCELED")
        if operation.answer == (Refused(-32002, _named(now)) if is_over else canceled):
            yield (now if is_over else Moment(canceled)), DONE

    def _send(self, now: Moment, number: int, operation: Operation, phase: int) -> Iterator[Move]:
        said, answer, is_open = operation.said, operation.answer, now.shown.state in OPEN
        if phase == RUNNING and now.runner == number:
            ended = self.ended(now.shown, said)
            if answer == ended:
                yield Moment(ended), DONE
        elif phase in (RUNNING, WAITING):
            if answer == now.shown and not is_open:
                yield now, DONE
        elif said in now.shown.history:
            if answer == now.shown and not (is_open and operation.kind == "send"):
                yield now, DONE
        elif is_open or now.shown.state in TERMINAL:
            if answer == Refused(-32004, _named(now)):
                yield now, DONE
        elif isinstance(answer, Seen):
            yield from self._take(now, number, operation)

    def _take(self, now: Moment, number: int, operation: Operation) -> Iterator[Move]:
        claimed = self.claimed(now.shown, operation.said)
        if operation.kind == "send immediately":
            if operation.answer == claimed:
                yield Moment(claimed, is_queued=True), DONE
        elif self.background:
            yield Moment(claimed, is_queued=True), WAITING
        elif self.read_only:
            ended = self.ended(claimed, operation.said)
            if operation.answer == ended:
                yield Moment(ended), DONE
        else:
            yield Moment(claimed, runner=number), RUNNING

    def _work(self, now: Moment, number: int, operation: Operation, phase: int) -> Iterator[Move]:
        assert isinstance(operation.answer, Worked)
        outcome, state = operation.answer.outcome, operation.answer.state
        is_its = now.shown.history[-1] == operation.said and now.shown.state in OPEN
        if phase == RUNNING:
            is_running = now.runner == number
            after = Moment(self.ended(now.shown, operation.said)) if is_running else now
            if state == _named(after):
                yield after, DONE
        elif outcome == "ran" and is_its and now.is_queued:
            yield now._replace(is_queued=False, runner=number), RUNNING
        elif (outcome == "hidden" and is_its and not now.is_queued) or (outcome == "dropped" and not is_its):
            yield now, DONE


def is_last(said: str) -> bool:
    """Tell whether a message is one at which the agent completes the task."""
    return said.startswith("last")


def explain(operations: Sequence[Operation], beginning: Seen, rules: Rules) -> list[Place] | None:
    """Return an order of operations that explains every answer, each at its last moment; None where there is none."""
    return _Search(operations, rules).order(Moment(beginning))


class _Search:
    def __init__(self, operations: Sequence[Operation], rules: Rules) -> None:
        self._operations = operations
        self._rules = rules
        self._failed: set[tuple[Moment, tuple[int, ...]]] = set()

    def order(self, beginning: Moment) -> list[Place] | None:
        found = self._from(beginning, (BEGINNING,) * len(self._operations), 0)
        return None if found is None else [Place(self._operations[number], version) for number, version in found]

    def _from(self, now: Moment, phases: tuple[int, ...], version: int) -> list[tuple[int, int]] | None:
        read, phases = self._read(now, phases)
        placed = [(number, version) for number in read]
        if all(phase == DONE for phase in phases):
            return placed
        if (now, phases) in self._failed:
            return None
        for number in self._next(phases):
            for after, phase in self._rules.moves(now, number, self._operations[number], phases[number]):
                if after == now and phase == DONE:
                    continue
                is_seen = after.shown != now.shown
                done = [(number, version + is_seen)] if phase == DONE else []
                rest = self._from(after, _with(phases, number, phase), version + is_seen)
                if rest is not None:
                    return [*placed, *done, *rest]
        self._failed.add((now, phases))
        return None

    def _read(self, now: Moment, phases: tuple[int, ...]) -> tuple[list[int], tuple[int, ...]]:
        """Put all that can be put here and changes nothing."""
        read: list[int] = []
        while fitting := [number for number in self._next(phases) if self._is_read(now, number, phases[number])]:
            read += fitting
            for number in fitting:
                phases = _with(phases, number, DONE)
        return read, phases

    def _is_read(self, now: Moment, number: int, phase: int) -> bool:
        return (now, DONE) in self._rules.moves(now, number, self._operations[number], phase)

    def _next(self, phases: tuple[int, ...]) -> list[int]:
        """Return the operations that had been called before any other that is left was answered."""
        left = [number for number, phase in enumerate(phases) if phase != DONE]
        first_end = min((self._operations[number].end for number in left), default=0)
        return [number for number in left if self._operations[number].start <= first_end]


def _with(phases: tuple[int, ...], number: int, phase: int) -> tuple[int, ...]:
    return (*phases[:number], phase, *phases[number + 1 :])


def _named(moment: Moment) -> str:
    return f"TASK_STATE_{moment.shown.state}"
