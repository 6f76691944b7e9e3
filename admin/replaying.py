"""Passing on again what the relay has given up.

Lambda tells of it in a queue: where in the table's stream the changes are, and not what they
are. The stream holds them for 24 hours. What is read from it goes through the relay's own code.

A change that is passed on late is harmless: a run of a turn is claimed once, and a webhook that
was told of a later change is not told of this one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from a2a_lambda import items
from local.console import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mypy_boto3_sqs import SQSClient

    from a2a_lambda.relaying import Relay

HIDDEN_SECONDS = 300
WAIT_SECONDS = 1
# Answers of a stream without a record, one after the other. It may give some before the next record.
MOST_EMPTY = 100

GONE = {"TrimmedDataAccessException", "ResourceNotFoundException"}
"""What a stream says of a place that it no longer has."""

Record = Any


class GoneError(Exception):
    """The stream no longer has changes."""


@dataclass(frozen=True)
class Failures:
    """The queue that tells what the relay has given up, the streams that still have it, and a relay."""

    sqs: SQSClient
    url: str
    streams: Any
    relay: Relay


@dataclass(frozen=True)
class Place:
    """Where changes are in a stream: in one shard, from one sequence number to another."""

    receipt_handle: str
    stream: str
    shard: str
    first: str
    last: str

    def __str__(self) -> str:
        """In words, for a person."""
        return f"{self.stream}, {self.shard}, {self.first} to {self.last}"


def replay(failures: Failures, *, clock: Callable[[], int]) -> None:
    """Pass on again what the relay has given up, in order, and say how much that was and what is lost."""
    places, broken = _places(failures)
    passed_on = 0
    for place in sorted(places, key=lambda place: int(place.first)):
        try:
            passed_on += _pass_on(failures, place, clock)
        except GoneError:
            say(f"Changes that the stream no longer has, which cannot be passed on: {place}.")
        failures.sqs.delete_message(QueueUrl=failures.url, ReceiptHandle=place.receipt_handle)
    say(f"Passed on again: {passed_on} change{'' if passed_on == 1 else 's'} that the relay had given up.")
    if broken:
        say(f"Messages in {failures.url} that cannot be understood, and stay there: {broken}.")


def _places(failures: Failures) -> tuple[list[Place], int]:
    """All places that the queue tells of at this moment, and how many of its messages tell of none."""
    places, broken = [], 0
    while messages := _receive(failures):
        for message in messages:
            try:
                info = json.loads(message["Body"])["DDBStreamBatchInfo"]
                places.append(_place(message["ReceiptHandle"], info))
            except (KeyError, TypeError, ValueError):
                broken += 1
    return places, broken


def _place(receipt_handle: str, info: Any) -> Place:
    first, last = info["startSequenceNumber"], info["endSequenceNumber"]
    if int(first) > int(last):
        raise ValueError("the last change is before the first")
    return Place(receipt_handle, info["streamArn"], info["shardId"], first, last)


def _receive(failures: Failures) -> list[Any]:
    answer: Any = failures.sqs.receive_message(
        QueueUrl=failures.url,
        MaxNumberOfMessages=10,
        VisibilityTimeout=HIDDEN_SECONDS,
        WaitTimeSeconds=WAIT_SECONDS,
    )
    messages: list[Any] = answer.get("Messages", [])
    return messages


def _pass_on(failures: Failures, place: Place, clock: Callable[[], int]) -> int:
    """Pass on the changes of a place, and tell how many had something to be passed on.

    Raises GoneError where the stream no longer has them all.
    """
    count = 0
    for record in _records(failures.streams, place):
        image = record["dynamodb"].get("NewImage", {})
        if "S" not in image.get("outbox", {}):
            continue
        try:
            failures.relay.pass_on(items.read_outbox(image), clock())
        except (LookupError, TypeError, ValueError) as error:
            say(f"A change cannot be understood: {_number(record)} ({type(error).__name__}).")
        else:
            count += 1
    return count


def _records(streams: Any, place: Place) -> Iterator[Record]:
    empty, expected, last = 0, int(place.first), int(place.last)
    for records in _answers(streams, place):
        empty = 0 if records else empty + 1
        if empty > MOST_EMPTY:
            raise GoneError
        for record in records:
            # The one that was asked for, or one behind it where that is gone.
            if expected and _number(record) != expected:
                raise GoneError
            expected = 0
            if _number(record) > last:
                return
            yield record
            if _number(record) == last:
                return
    raise GoneError


def _answers(streams: Any, place: Place) -> Iterator[list[Record]]:
    """The records of a shard from the place on, as many at a time as the stream gives."""
    try:
        iterator = streams.get_shard_iterator(
            StreamArn=place.stream,
            ShardId=place.shard,
            ShardIteratorType="AT_SEQUENCE_NUMBER",
            SequenceNumber=place.first,
        )["ShardIterator"]
        while iterator:
            answer = streams.get_records(ShardIterator=iterator)
            yield answer["Records"]
            iterator = answer.get("NextShardIterator")
    except ClientError as error:
        if error.response["Error"]["Code"] in GONE:
            raise GoneError from error
        raise


def _number(record: Record) -> int:
    return int(record["dynamodb"]["SequenceNumber"])
