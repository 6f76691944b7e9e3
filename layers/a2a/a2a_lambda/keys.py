"""API keys in the callers' table. A key is shown once, when it is made; the table has its SHA-256 only.

    subject        entry       holds
    key#<sha256>   key         the caller: what a request's key is looked up by
    keys           <key id>    the same for people: whose keys there are, and which hash to delete

A key works from the moment its first item is written, and no longer once that is deleted; the second is written
before and deleted after, so that no key works unlisted.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from a2a_lambda.tables import Item, Table, number

PREFIX: Final = "a2a_"
KEY_BYTES: Final = 32
ID_LENGTH: Final = 12
DAY_SECONDS: Final = 24 * 3600


class ApiKey(Struct, frozen=True, kw_only=True):
    """What is known of a key. Times are seconds since the epoch."""

    key_id: str
    caller: str
    created_at: int
    expires_at: int | None
    key_hash: str


class TableKeys:
    """Keeps keys as `callers.KeyStore` says, and makes, lists and revokes them."""

    def __init__(self, table: Table, *, clock: Callable[[], int]) -> None:
        """Args: the clock gives milliseconds since the epoch."""
        self._table = table
        self._clock = clock

    def caller_of(self, key_hash: str) -> str | None:
        """Return the caller whose key has this SHA-256 (hexadecimal); None where no valid key has."""
        item = self._table.get(_lookup(key_hash))
        if item is None or self._is_expired(item):
            return None
        caller: str = item["caller"]["S"]
        return caller

    def make(self, caller: str, days: int | None = None) -> tuple[str, ApiKey]:
        """Make a key for a caller, and return it with what is kept of it. Without days it does not expire."""
        key = PREFIX + secrets.token_urlsafe(KEY_BYTES)
        key_hash = hashlib.sha256(key.encode()).hexdigest()
        now = self._clock() // 1000
        made = ApiKey(
            key_id=key_hash[:ID_LENGTH],
            caller=caller,
            created_at=now,
            expires_at=None if days is None else now + days * DAY_SECONDS,
            key_hash=key_hash,
        )
        kept: dict[str, Any] = {
            "caller": {"S": caller},
            "created_at": number(now),
            **({} if made.expires_at is None else {"expires_at": number(made.expires_at)}),
        }
        self._table.put({**_listed(made.key_id), "key_hash": {"S": key_hash}, **kept})
        self._table.put({**_lookup(key_hash), **kept})
        return key, made

    def all(self) -> Iterator[ApiKey]:
        """Yield the keys that there are, expired ones too until they are cleared away."""
        found = self._table.query(
            ConsistentRead=True,
            KeyConditionExpression="subject = :keys",
            ExpressionAttributeValues={":keys": {"S": "keys"}},
        )
        for item in found:
            yield ApiKey(
                key_id=item["entry"]["S"],
                caller=item["caller"]["S"],
                created_at=int(item["created_at"]["N"]),
                expires_at=int(item["expires_at"]["N"]) if "expires_at" in item else None,
                key_hash=item["key_hash"]["S"],
            )

    def revoke(self, key_id: str) -> ApiKey | None:
        """Revoke a key, and return what was known of it; None where there is none with this id."""
        for key in self.all():
            if key.key_id == key_id:
                self._table.delete(_lookup(key.key_hash))
                self._table.delete(_listed(key.key_id))
                return key
        return None

    def _is_expired(self, item: Item) -> bool:
        return "expires_at" in item and int(item["expires_at"]["N"]) <= self._clock() // 1000


def _lookup(key_hash: str) -> Item:
    return {"subject": {"S": f"key#{key_hash}"}, "entry": {"S": "key"}}


def _listed(key_id: str) -> Item:
    return {"subject": {"S": "keys"}, "entry": {"S": key_id}}
