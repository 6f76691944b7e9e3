"""Safe retries (§3.3.1): the same message from the same caller is one task, however often it is sent.

The id of a new task is made from its caller and its first message. So the write that creates the task is also the
one that finds out whether a copy of the message was faster, and whoever carries on after a crash carries on with
the same id. A message that comes again after the window is a new one, though its id is taken: an item beside the
old task then says the new id (`store.TaskStore.begin_again`).

For a message to a task that exists the store remembers which it has (`store.TaskStore.find`).
"""

import hashlib
from base64 import urlsafe_b64encode
from typing import Final

import msgspec

from a2a_lambda.model import Message

KEY_BYTES: Final = 16
"""How much of a SHA-256 tells the messages of one caller apart."""


def message_key(message: Message) -> str:
    """Return what stands for a message as it was sent: a hash of all its content, its messageId included."""
    digest = hashlib.sha256(msgspec.json.encode(message)).digest()
    return urlsafe_b64encode(digest[:KEY_BYTES]).decode().rstrip("=")


def first_id(owner: str, key: str) -> str:
    """Return the id of the task that an owner's message begins: a UUID of version 8 (RFC 9562 §5.8)."""
    digest = hashlib.sha256(msgspec.json.encode([owner, key])).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
