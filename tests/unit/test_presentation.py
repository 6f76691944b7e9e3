"""How a kept task is shown: no longer than an answer may be."""

import msgspec
from msgspec import UNSET

from a2a_lambda.model import Artifact, Message, Part, Task
from a2a_lambda.presentation import MAX_SHOWN_BYTES, show
from tests.unit.factories import Clock, begun, ended, message
from tests.unit.memory_store import InMemoryTaskStore


def shown(*lengths: int, artifact_length: int = 0) -> Task:
    """Return how a task with messages of these lengths is shown, and an artifact."""
    history = [message("x" * length, message_id=str(index)) for index, length in enumerate(lengths)]
    artifacts = [Artifact("a", [Part(text="x" * artifact_length)])]
    return show(InMemoryTaskStore(Clock()), ended(begun()), history, artifacts)


def ids(history: object) -> list[str]:
    assert isinstance(history, list)
    return [each.message_id for each in history if isinstance(each, Message)]


def test_a_short_answer_is_left_alone() -> None:
    assert ids(shown(1000, 1000).history) == ["0", "1"]


def test_a_task_that_is_too_long_drops_its_oldest_messages() -> None:
    task = shown(*[64_000] * 100)

    assert task.history is not UNSET
    assert len(msgspec.json.encode(task)) <= MAX_SHOWN_BYTES
    assert len(msgspec.json.encode(task)) > MAX_SHOWN_BYTES - 65_000
    assert ids(task.history) == [str(i) for i in range(100 - len(task.history), 100)]


def test_an_answer_whose_artifacts_are_long_has_no_history() -> None:
    assert shown(1000, artifact_length=5_000_000).history is UNSET
