"""What the database holds in the end, read whole and without the store: the tasks, and the index of them."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a_lambda.items import HEAD, status_order, turn_entry
from a2a_lambda.timestamps import format_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from a2a_lambda.tables import Item

USER = "ROLE_USER"


@dataclass(frozen=True)
class Entry:
    """A task as the index has it."""

    task_id: str
    owner: str
    context_id: str
    state: str
    place: str


@dataclass(frozen=True)
class Stored:
    """A task as the table has it."""

    entry: Entry
    """How the index must have it."""
    time: str
    """Of the state, as it is written."""
    place: str
    """Where its head says that it is in the index."""
    owners: frozenset[str]
    """Of all its items."""
    message_count: int
    messages: tuple[tuple[str, str], ...]
    """Id and role of each message, in their order."""
    is_running: bool = False
    """Whether a turn is queued or running."""

    def sent(self) -> list[str]:
        """The ids of the caller's messages."""
        return [message_id for message_id, role in self.messages if role == USER]


def read_tasks(items: Iterable[Item]) -> dict[str, Stored]:
    """The tasks that the items of the table make."""
    grouped: dict[str, dict[str, Item]] = defaultdict(dict)
    for item in items:
        grouped[item["task_id"]["S"]][item["entry"]["S"]] = item
    return {task_id: _read_task(task_id, entries) for task_id, entries in grouped.items() if HEAD in entries}


def read_entry(item: Item) -> Entry:
    """An item of the index."""
    return Entry(
        task_id=item["task_id"]["S"],
        owner=item["owner"]["S"],
        context_id=item["context_id"]["S"],
        state=item["state"]["S"],
        place=item["status_order"]["S"],
    )


def _read_task(task_id: str, entries: Mapping[str, Item]) -> Stored:
    head = entries[HEAD]
    status_at = int(head["status_at"]["N"])
    # What a writer that lost a race left beside a later turn is no part of the task.
    turns = [entries[name] for number in range(1, int(head["turn"]["N"])) if (name := turn_entry(number)) in entries]
    contents = [*(turn["content"]["B"] for turn in turns), head["messages"]["B"]]
    return Stored(
        entry=Entry(
            task_id=task_id,
            owner=head["owner"]["S"],
            context_id=head["context_id"]["S"],
            state=head["state"]["S"],
            place=status_order(task_id, status_at),
        ),
        time=format_timestamp(status_at),
        place=head["status_order"]["S"],
        owners=frozenset(item["owner"]["S"] for item in entries.values()),
        message_count=int(head["message_count"]["N"]),
        messages=tuple(
            (message["messageId"], message["role"]) for content in contents for message in json.loads(content)
        ),
        is_running="deadline" in head,
    )
