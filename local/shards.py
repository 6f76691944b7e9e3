"""The embedded DynamoDB's streams: moto's, which hold what is yet to be read instead of everything that ever was.

moto keeps every record, and every position that a reader ever had, for as long as it runs.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moto.dynamodb.exceptions import ResourceNotFoundException
from moto.dynamodb.models import table
from moto.dynamodbstreams import models

if TYPE_CHECKING:
    from moto.dynamodb.models.dynamo_type import Item

# Records that are kept although all readers have passed them, and those that are kept at all.
KEPT = 1_000
MOST = 20_000
# After so long without a call a reader is gone.
GONE_SECONDS = 300.0


class Shard(table.StreamShard):
    """A shard that forgets records which every reader has passed, and the oldest where it holds too many."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._readers: dict[str, tuple[int, float]] = {}

    def add(self, old: Item | None, new: Item | None) -> None:
        """Hold a record of an item's change."""
        before = len(self.items)
        super().add(old, new)
        if before >= MOST:
            self._forget(before + 1 - MOST)

    def passed(self, reader: str, number: int, now: float) -> None:
        """A reader is done with what comes before the sequence number."""
        self._readers[reader] = number, now
        self._readers = {name: at for name, at in self._readers.items() if at[1] > now - GONE_SECONDS}
        done = min(number for number, _ in self._readers.values()) - self.starting_sequence_number
        self._forget(min(done, len(self.items) - KEPT))

    def _forget(self, count: int) -> None:
        if count > 0:
            del self.items[:count]
            self.starting_sequence_number += count

    def get(self, start: int, quantity: int) -> list[dict[str, Any]]:
        """The records from a sequence number on, or from the first one that is still held."""
        return super().get(max(start, self.starting_sequence_number), quantity)


@dataclass(frozen=True)
class Position:
    """A reader's place in a stream, all of which is in its name: nothing needs to be kept of it."""

    stream: str
    reader: str
    number: int

    @property
    def arn(self) -> str:
        """The shard iterator, by the name that moto asks it by."""
        return f"{self.stream}|{self.reader}|{self.number}"


def get_shard_iterator(
    backend: models.DynamoDBStreamsBackend, arn: str, shard_id: str, kind: str, number: int | None = None
) -> Position:
    """The first position of a new reader."""
    shard = _shard(backend, arn)
    if shard_id != shard.id:
        raise ResourceNotFoundException(f"{arn} has no shard {shard_id}")
    first = {
        "TRIM_HORIZON": shard.starting_sequence_number,
        "LATEST": shard.starting_sequence_number + len(shard.items),
        "AT_SEQUENCE_NUMBER": number or 0,
        "AFTER_SEQUENCE_NUMBER": (number or 0) + 1,
    }
    return Position(arn, secrets.token_hex(8), first[kind])


def get_records(backend: models.DynamoDBStreamsBackend, iterator_arn: str, limit: int) -> dict[str, Any]:
    """The records from a position on, and the position behind them."""
    arn, reader, number = iterator_arn.split("|")
    shard = _shard(backend, arn)
    shard.passed(reader, int(number), time.monotonic())
    records = shard.get(int(number), limit)
    following = int(records[-1]["dynamodb"]["SequenceNumber"]) + 1 if records else int(number)
    return {"NextShardIterator": Position(arn, reader, following).arn, "Records": records}


def _shard(backend: models.DynamoDBStreamsBackend, arn: str) -> Shard:
    shard = backend._get_table_from_arn(arn).stream_shard  # noqa: SLF001 - moto's own
    if not isinstance(shard, Shard):
        raise ResourceNotFoundException(f"{arn} is no stream")
    return shard


def correct() -> None:
    """Serve these streams in the place of moto's, from now on, in this process."""
    table.StreamShard = Shard  # type: ignore[misc]
    models.DynamoDBStreamsBackend.get_shard_iterator = get_shard_iterator  # type: ignore[method-assign, assignment]
    models.DynamoDBStreamsBackend.get_records = get_records  # type: ignore[method-assign, assignment]
