"""How a kept task is shown: the wire type that answers carry, no larger than an answer may be (§3.2.4)."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from a2a_lambda.model import Artifact, Message, Task, TaskStatus
from a2a_lambda.outcome import INTERRUPTED
from a2a_lambda.store import TaskStore
from a2a_lambda.task import Head
from a2a_lambda.timestamps import format_timestamp

DEFAULT_HISTORY_LENGTH: Final = 100
"""Messages in an answer whose request names no historyLength."""

MAX_SHOWN_BYTES: Final = 4_500_000
"""A task is shown with fewer messages rather than longer than this. As base64 it fits into Lambda's 6 MB."""


def present(store: TaskStore, head: Head, history_length: int | UnsetType) -> Task:
    """Return a task with its artifacts and its newest messages."""
    limit = DEFAULT_HISTORY_LENGTH if history_length is UNSET else history_length
    history = store.history(head, limit) if limit else []
    return show(store, head, history, store.artifacts(head) or UNSET)


def show(store: TaskStore, head: Head, history: Sequence[Message], artifacts: list[Artifact] | UnsetType) -> Task:
    """Return a task with these messages and artifacts. No messages: no `history` at all."""
    shown = Task(
        id=head.task_id,
        context_id=head.context_id,
        status=TaskStatus(head.state, _said(store, head, history) or UNSET, format_timestamp(head.status_at)),
        artifacts=artifacts,
        history=list(history) or UNSET,
    )
    return _shortened(shown)


def _said(store: TaskStore, head: Head, history: Sequence[Message]) -> Message | None:
    """Return what was said with the task's state: a question is the last message of the history."""
    if head.state not in INTERRUPTED:
        return store.status_message(head)
    return (history or store.history(head, 1))[-1]


def _shortened(shown: Task) -> Task:
    if shown.history is UNSET:
        return shown
    excess = len(msgspec.json.encode(shown)) - MAX_SHOWN_BYTES
    dropped = 0
    while excess > 0 and dropped < len(shown.history):
        excess -= len(msgspec.json.encode(shown.history[dropped])) + 1
        dropped += 1
    return replace(shown, history=shown.history[dropped:] or UNSET) if dropped else shown
