"""The markers of `retries` in the callers' table: one item a message that began a task, for the window's length."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from a2a_lambda.model import Message
from a2a_lambda.retries import Marker
from a2a_lambda.tables import Item, RefusedError, Table, number

MAX_REPLY_BYTES: Final = 300_000
"""A longer direct reply is not kept: a copy of its request is answered by running the agent again."""

_reply: Final = msgspec.json.Decoder(Message)


class TableMarkers:
    """Keeps markers as `retries.Markers` says."""

    def __init__(self, table: Table, *, window_seconds: int, clock: Callable[[], int]) -> None:
        """Args: the clock gives milliseconds since the epoch."""
        self._table = table
        self._window = window_seconds
        self._clock = clock

    def claim(self, owner: str, key: str, marker: Marker) -> Marker:
        """Keep the marker for the owner's message, and return it; or return the one that is there already."""
        now = self._clock() // 1000
        item = {
            **_key(owner, key),
            "task_id": {"S": marker.task_id},
            "context_id": {"S": marker.context_id},
            "expires_at": number(now + self._window),
        }
        missing, expired = "attribute_not_exists(subject)", "expires_at <= :now"
        try:
            self._table.put(
                item,
                ConditionExpression=f"{missing} OR {expired}",
                ExpressionAttributeValues={":now": number(now)},
            )
        except RefusedError as refused:
            return _read(refused.current)
        return marker

    def keep_reply(self, owner: str, key: str, reply: Message) -> Message:
        """Keep the direct reply to a message whose marker is there, and return it; or the one kept before."""
        content = msgspec.json.encode(reply)
        if len(content) > MAX_REPLY_BYTES:
            return reply
        try:
            kept = self._table.update(
                _key(owner, key),
                UpdateExpression="SET reply = if_not_exists(reply, :reply)",
                ConditionExpression="attribute_exists(subject)",
                ExpressionAttributeValues={":reply": {"B": content}},
                ReturnValues="ALL_NEW",
            )
        except RefusedError:
            return reply
        return _read(kept).reply or reply


def _key(owner: str, key: str) -> Item:
    return {"subject": {"S": owner}, "entry": {"S": f"message#{key}"}}


def _read(item: Item) -> Marker:
    reply: Any = item.get("reply")
    return Marker(item["task_id"]["S"], item["context_id"]["S"], _reply.decode(reply["B"]) if reply else None)
