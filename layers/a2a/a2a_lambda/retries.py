"""Safe retries (§3.3.1): the same message from the same caller is one task, however often it is sent.

For a new task a marker says under which ids the first copy began it, and is written before the task is: who finds
a marker without a task finishes it under the marker's ids. For a task that exists the store remembers (`find`).
"""

import hashlib
from base64 import urlsafe_b64encode
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from a2a_lambda.model import Message

KEY_BYTES: Final = 16
"""How much of a SHA-256 tells the messages of one caller apart."""


class Marker(Struct, frozen=True):
    """The ids of the task that a message begins, and the direct reply to it, if there was one."""

    task_id: str
    context_id: str
    reply: Message | None = None


class Markers(Protocol):
    """Remembers markers for the length of the idempotency window."""

    def claim(self, owner: str, key: str, marker: Marker) -> Marker:
        """Keep the marker for the owner's message, and return it; or return the one that is there already."""

    def keep_reply(self, owner: str, key: str, reply: Message) -> Message:
        """Keep the direct reply to a message whose marker is there, and return it; or the one kept before."""


def message_key(message: Message) -> str:
    """Return what stands for a message as it was sent: a hash of all its content, its messageId included."""
    digest = hashlib.sha256(msgspec.json.encode(message)).digest()
    return urlsafe_b64encode(digest[:KEY_BYTES]).decode().rstrip("=")
