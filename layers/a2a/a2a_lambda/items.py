"""How a task lies in its table: one item a head, and items beside it for what grows.

    entry                     holds
    head                      the task's state and its newest turn; or the direct reply instead of a task
    again                     under which id the first message has begun a later task
    turn#000001 …             the messages of each earlier turn
    artifacts#000001 …        what each earlier turn that left artifacts did to them
    message#<key>             at which turn a message was taken, while a copy of it may still come
    content#<write>#<what>#0… content too large for the item that it belongs to, in pieces

Content is kept as JSON bytes, not as DynamoDB's own types: numbers come back as they were. No key but the head's
and a message's ever has other content than it had first, whoever writes it.
"""

import re
from typing import Any, Final

from a2a_lambda.model import TaskState
from a2a_lambda.tables import Item, number
from a2a_lambda.task import MESSAGE_WINDOW, Beside, Content, DirectReply, Head
from a2a_lambda.timestamps import format_timestamp

HEAD: Final = "head"
AGAIN: Final = "again"

PLACE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z#[0-9a-f-]{36}")
"""A place in the index: the time of the state, and the task."""

RIDE_BYTES: Final = 8 * 1024
"""Content up to this size rides in the item that it belongs to."""

PIECE_BYTES: Final = 300_000
"""The size of a piece of larger content. An item holds 400 KB."""

CONTENT_OF_A_HEAD: Final = ("messages", "artifacts", "status_message")


class Writer:
    """Makes the items of one write of a task. What does not fit into an item is left in `beside`."""

    def __init__(self, head: Head, write: str) -> None:
        """Args: the head that is written; the write's own id."""
        self._head = head
        self._write = write
        self.beside: list[Item] = []

    def head(self) -> Item:
        """Return the item of the head."""
        head = self._head
        item: dict[str, Any] = {
            **key(head.task_id, HEAD),
            "owner": {"S": head.owner},
            "context_id": {"S": head.context_id},
            "state": {"S": head.state.value},
            "status_at": number(head.status_at),
            "status_order": {"S": status_order(head.task_id, head.status_at)},
            "created_at": number(head.created_at),
            "expires_at": number(head_expiry(head, head.status_at)),
            "retention": number(head.retention),
            "revision": number(head.revision),
            "turn": number(head.turn),
            "artifact_turns": number(head.artifact_turns),
            "artifact_bytes": number(head.artifact_bytes),
            "message_count": number(head.message_count),
            "message_key": {"S": head.message_key},
            "write": {"S": self._write},
        }
        if head.deadline is not None:
            item["deadline"] = number(head.deadline)
        for name in CONTENT_OF_A_HEAD:
            content: Content | None = getattr(head, name)
            if content is not None:
                item[name] = self._place(content, name)
        return item

    def move(self, earlier: Head) -> None:
        """Leave beside what was the newest turn of the task, now that another takes its place in the head."""
        marks = {"message_key": {"S": earlier.message_key}, "write": {"S": earlier.write}}
        self._keep(turn_entry(earlier.turn), earlier.messages, **marks)
        if earlier.artifacts is not None:
            self._keep(artifacts_entry(earlier.artifact_turns + 1), earlier.artifacts)

    def note(self, expires_at: int) -> None:
        """Leave beside, until a time in seconds, at which turn the newest turn's message was taken."""
        entry = note_entry(self._head.message_key)
        self._leave(entry, turn=number(self._head.turn), expires_at=number(expires_at))

    def _keep(self, entry: str, content: Content, **more: Item) -> None:
        self._leave(entry, content=self._place(content, entry), **more)

    def _leave(self, entry: str, **attributes: Item) -> None:
        self.beside.append(
            {
                **key(self._head.task_id, entry),
                "owner": {"S": self._head.owner},
                "expires_at": number(beside_expiry(self._head)),
                **attributes,
            }
        )

    def _place(self, content: Content, what: str) -> Item:
        """Return content as an attribute: itself while it is small, or where it lies."""
        if isinstance(content, Beside):
            return {"L": [{"S": content.key}, number(content.items)]}
        if len(content) <= RIDE_BYTES:
            return {"B": content}
        beside = Beside(f"content#{self._write}#{what}", -(-len(content) // PIECE_BYTES))
        for index, entry in enumerate(piece_entries(beside)):
            piece = content[index * PIECE_BYTES : (index + 1) * PIECE_BYTES]
            self._leave(entry, content={"B": piece})
        return self._place(beside, what)


def reply_item(reply: DirectReply, expires_at: int, write: str) -> Item:
    """Return the item of a direct reply, which no index has."""
    return {
        **key(reply.task_id, HEAD),
        "owner": {"S": reply.owner},
        "created_at": number(reply.created_at),
        "expires_at": number(expires_at),
        "reply": {"B": reply.content},
        "write": {"S": write},
    }


def read_begun(item: Item) -> Head | DirectReply:
    """Return an item as the head or the direct reply that it holds."""
    if "reply" not in item:
        return read_head(item)
    return DirectReply(
        task_id=item["task_id"]["S"],
        owner=item["owner"]["S"],
        created_at=int(item["created_at"]["N"]),
        content=item["reply"]["B"],
    )


def read_head(item: Item) -> Head:
    """Return an item as the head that it holds."""
    contents: dict[str, Any] = {name: read_content(item[name]) for name in CONTENT_OF_A_HEAD if name in item}
    return Head(
        task_id=item["task_id"]["S"],
        owner=item["owner"]["S"],
        context_id=item["context_id"]["S"],
        state=TaskState(item["state"]["S"]),
        status_at=int(item["status_at"]["N"]),
        created_at=int(item["created_at"]["N"]),
        revision=int(item["revision"]["N"]),
        turn=int(item["turn"]["N"]),
        message_key=item["message_key"]["S"],
        artifact_turns=int(item["artifact_turns"]["N"]),
        artifact_bytes=int(item["artifact_bytes"]["N"]),
        message_count=int(item["message_count"]["N"]),
        deadline=int(item["deadline"]["N"]) if "deadline" in item else None,
        retention=int(item["retention"]["N"]),
        write=item["write"]["S"],
        **contents,
    )


def read_content(attribute: Item) -> Content:
    """Return an attribute as the content that it holds, or as where it lies."""
    if "B" in attribute:
        inline: bytes = attribute["B"]
        return inline
    name, items = attribute["L"]
    return Beside(name["S"], int(items["N"]))


def key(task_id: str, entry: str) -> Item:
    """Return an item's key."""
    return {"task_id": {"S": task_id}, "entry": {"S": entry}}


def index_key(owner: str, place: str) -> Item:
    """Return the key of a place in the index of an owner's tasks."""
    return {**key(task_of(place), HEAD), "owner": {"S": owner}, "status_order": {"S": place}}


def status_order(task_id: str, status_at: int) -> str:
    """Return a place in the index: by the time of the state, then by id, so that no two tasks are equal."""
    return f"{format_timestamp(status_at)}#{task_id}"


def task_of(place: str) -> str:
    """Return the id of the task at a place in the index."""
    return place.rpartition("#")[2]


def turn_entry(turn: int) -> str:
    """Return where an earlier turn's messages lie."""
    return f"turn#{turn:06}"


def artifacts_entry(number_of_turn: int) -> str:
    """Return where the artifacts lie that the n-th turn with artifacts left."""
    return f"artifacts#{number_of_turn:06}"


def note_entry(message_key: str) -> str:
    """Return where it is noted at which turn a message was taken."""
    return f"message#{message_key}"


def piece_entries(beside: Beside) -> list[str]:
    """Return where the pieces of content lie, in their order."""
    return [f"{beside.key}#{index}" for index in range(beside.items)]


def head_expiry(head: Head, status_at: int) -> int:
    """Return when a head expires that has this time of its state: never later than what lies beside it."""
    return min(status_at, head.created_at + MESSAGE_WINDOW) // 1000 + head.retention


def beside_expiry(head: Head) -> int:
    """Return when what lies beside a head expires, in seconds since the epoch."""
    return (head.created_at + MESSAGE_WINDOW) // 1000 + head.retention
