"""What callers of one task did at the same time, and what each was answered."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from a2a_lambda.errors import ProtocolError
from a2a_lambda.model import Task
from tests.unit.factories import texts

PATIENCE_SECONDS: Final = 0.1


@dataclass(frozen=True)
class Seen:
    """A task as an answer shows it."""

    state: str
    history: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refused:
    """An error, and the state that it says the task is in."""

    code: int
    state: str = ""


@dataclass(frozen=True)
class Worked:
    """What a worker made of a message of its queue, and the state that it left the task in."""

    outcome: str
    state: str = ""


Kind = Literal["send", "send immediately", "get", "list", "cancel", "work"]


@dataclass(frozen=True)
class Operation:
    """An operation, from before its call to after its answer."""

    kind: Kind
    start: int
    end: int
    answer: Seen | Refused | Worked
    said: str = ""
    """The message that is sent, or whose turn the worker is to take."""
    since: str = ""
    """The time of the state that is shown."""


@dataclass
class Recorder:
    """Writes down what callers do, each in a thread of its own."""

    operations: list[Operation] = field(default_factory=list)
    _answered: threading.Condition = field(default_factory=threading.Condition)

    def record(self, kind: Kind, action: Callable[[], Task | Worked | None], said: str = "") -> None:
        """Carry an operation out. None says that it showed nothing of the task."""
        since, start = "", time.perf_counter_ns()
        answer: Seen | Refused | Worked | None
        try:
            result = action()
        except ProtocolError as error:
            answer = Refused(error.code, error.metadata.get("state", ""))
        else:
            answer = seen(result) if isinstance(result, Task) else result
            since = result.status.timestamp if isinstance(result, Task) else ""
        end = time.perf_counter_ns()
        with self._answered:
            if answer:
                self.operations.append(Operation(kind, start, end, answer, said, since))
            self._answered.notify_all()

    def wait(self) -> None:
        """Wait until another operation is answered."""
        with self._answered:
            self._answered.wait(PATIENCE_SECONDS)


def seen(task: Task) -> Seen:
    history = tuple(texts(task.history)) if task.history else ()
    artifacts = tuple(each.artifact_id for each in task.artifacts) if task.artifacts else ()
    return Seen(task.status.state.value.removeprefix("TASK_STATE_"), history, artifacts)
