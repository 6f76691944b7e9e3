"""How a task lies in its table: one item a head, and items beside it for what grows.

    entry                     holds
    head                      the task's state and its newest turn; or the direct reply instead of a task
    again                     under which id the first message has begun a later task
    turn#000001 …             the messages of each earlier turn
    artifacts#000001 …        what each earlier turn that left artifacts did to them
    message#<key>             at which turn a message was taken, while a copy of it may still come
    event#<write>#0 …         what webhooks are told of a change, where it is more than a state
    webhook#<write>           a webhook that came with a message, until it is one of its task's
    config#<key>              a webhook (`push_configs`)
    configs                   how many webhooks there are (`places`)
    content#<write>#<what>#0… content too large for the item that it belongs to, in pieces

Content is kept as JSON bytes, not as DynamoDB's own types: numbers come back as they were. No key but the head's,
a message's and a webhook's ever has other content than it had first, whoever writes it.

The head's `outbox` is what the relay passes on (`read_outbox`). It is there exactly when there is something to pass on.
"""

import re
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from a2a_lambda.model import TaskState
from a2a_lambda.tables import Item, number
from a2a_lambda.task import MESSAGE_WINDOW, Beside, Content, DirectReply, Head, Outbox
from a2a_lambda.timestamps import format_timestamp

HEAD: Final = "head"
AGAIN: Final = "again"

PLACE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z#[0-9a-f-]{36}")
"""A place in the index: the time of the state, and the task."""

RIDE_BYTES: Final = 8 * 1024
"""Content up to this size rides in the item that it belongs to."""

PIECE_BYTES: Final = 300_000
"""The size of a piece of larger content. An item holds 400 KB."""

WEBHOOK_SECONDS: Final = 24 * 3600
"""How long a webhook waits for the write that it came with to be passed on: as long as the table's stream does."""

CONTENT_OF_A_HEAD: Final = ("messages", "artifacts", "status_message", "request")


class KeptOutbox(Struct, frozen=True, omit_defaults=True):
    """An outbox as it is kept: as small as it can be, however much there is to be told."""

    attend: bool = False
    given: int = 0
    """How many artifacts webhooks are told of, each a StreamResponse at `event_entry`."""
    state: str = ""
    at: int = 0
    """The state that they are told of then, and its time in milliseconds since the epoch."""
    said: bool = False
    """Whether that is a StreamResponse behind the artifacts'. Otherwise it is the state alone."""
    webhook: bool = False
    """Whether a webhook came with the change, which is at `webhook_entry`."""


class Outgoing(Struct, frozen=True):
    """What a change of a task leaves to be passed on."""

    head: Head
    """The task after it, without its content."""
    outbox: KeptOutbox

    @property
    def count(self) -> int:
        """How many events webhooks are told of. The last has the head's sequence number."""
        return self.outbox.given + bool(self.outbox.state) if self.head.push else 0


_outboxes: Final = msgspec.json.Decoder(KeptOutbox)


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
            **_flags(head),
        }
        if head.outbox is not None:
            item["outbox"] = {"S": self._outbox(head.outbox)}
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

    def _outbox(self, outbox: Outbox) -> str:
        """Return an outbox as it is kept. What is said in its events is left beside, and the webhook that comes."""
        events = outbox.events
        status = events[-1].status_update if events else UNSET
        kept = KeptOutbox(attend=outbox.attend, given=len(events), webhook=outbox.config is not None)
        if status is not UNSET:
            kept = replace(
                kept,
                given=len(events) - 1,
                state=status.status.state.value,
                at=self._head.status_at,
                said=status.status.message is not UNSET,
            )
        for index, event in enumerate(events[: kept.given + kept.said]):
            self._keep(event_entry(self._write, index), msgspec.json.encode(event))
        if outbox.config is not None:
            self._leave(
                webhook_entry(self._write),
                content={"B": msgspec.json.encode(outbox.config)},
                expires_at=number(self._head.status_at // 1000 + WEBHOOK_SECONDS),
            )
        return msgspec.json.encode(kept).decode()

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
            return {"L": [{"S": content.key}, number(content.size)]}
        if len(content) <= RIDE_BYTES:
            return {"B": content}
        beside = Beside(f"content#{self._write}#{what}", len(content))
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
    return _head(item, {name: read_content(item[name]) for name in CONTENT_OF_A_HEAD if name in item})


def _head(item: Item, contents: dict[str, Any]) -> Head:
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
        deadline=_number(item, "deadline"),
        queued="queued" in item,
        run=_number(item, "run") or 1,
        waits=_number(item, "waits") or 1,
        push="push" in item,
        sequence=_number(item, "sequence") or 0,
        retention=int(item["retention"]["N"]),
        write=item["write"]["S"],
        **contents,
    )


def read_content(attribute: Item) -> Content:
    """Return an attribute as the content that it holds, or as where it lies."""
    if "B" in attribute:
        inline: bytes = attribute["B"]
        return inline
    name, size = attribute["L"]
    return Beside(name["S"], int(size["N"]))


def canceled_outbox(canceled_at: int) -> str:
    """Return the outbox of a cancellation: whether anybody is to be told is for the relay to see."""
    return msgspec.json.encode(KeptOutbox(state=TaskState.CANCELED.value, at=canceled_at)).decode()


def read_outbox(item: Item) -> Outgoing:
    """Return what the item of a head leaves to be passed on. Its content is not looked at.

    Raises:
        KeyError, TypeError, ValueError: it is no head with an outbox.
    """
    return Outgoing(_head(item, {"messages": b""}), _outboxes.decode(item["outbox"]["S"]))


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


def event_entry(write: str, index: int) -> str:
    """Return where an event lies, by its place among those of a write."""
    return f"event#{write}#{index}"


def webhook_entry(write: str) -> str:
    """Return where a webhook lies that came with a write, until it is one of its task's."""
    return f"webhook#{write}"


def piece_entries(beside: Beside) -> list[str]:
    """Return where the pieces of content lie, in their order."""
    return [f"{beside.key}#{index}" for index in range(-(-beside.size // PIECE_BYTES))]


def head_expiry(head: Head, status_at: int) -> int:
    """Return when a head expires that has this time of its state: never later than what lies beside it."""
    return min(status_at, head.created_at + MESSAGE_WINDOW) // 1000 + head.retention


def beside_expiry(head: Head) -> int:
    """Return when what lies beside a head expires, in seconds since the epoch."""
    return (head.created_at + MESSAGE_WINDOW) // 1000 + head.retention


def _flags(head: Head) -> dict[str, Item]:
    """Return the attributes that most heads do not need."""
    flags: dict[str, Item] = {}
    if head.deadline is not None:
        flags["deadline"] = number(head.deadline)
    if head.queued:
        flags["queued"] = {"BOOL": True}
    if head.run > 1:
        flags["run"] = number(head.run)
    if head.waits > 1:
        flags["waits"] = number(head.waits)
    if head.push:
        flags["push"] = {"BOOL": True}
        flags["sequence"] = number(head.sequence)
    return flags


def _number(item: Item, name: str) -> int | None:
    return int(item[name]["N"]) if name in item else None
