"""Rate limits across instances: a token bucket a subject, in the callers' table.

A bucket is one number: the time at which it is full again (the generic cell rate algorithm). An instance leases
tokens with one write and hands them out itself. It begins with one at a time, since on Lambda a caller's requests
may each meet another instance; the more it hands out, the more it leases, so that a busy caller costs few writes.
What a lease says of the bucket tells the instance how long to refuse without asking.

When the table does not answer, requests pass: a limit is no reason to be down. The log says so.
"""

import logging
from collections.abc import Callable
from threading import Lock
from typing import Final

from msgspec import Struct

from a2a_lambda import tally
from a2a_lambda.errors import RateLimitedError, UnavailableError
from a2a_lambda.tables import RefusedError, Table, number

log: Final = logging.getLogger("a2a.rates")

LARGEST_LEASE: Final = 10
"""Tokens a write, at most."""

SMALLEST_OF_MANY: Final = 5
"""Tokens that a write must bring to an instance that hands out many, and had to refuse some a moment ago."""

GROWTH_MICROSECONDS: Final = 10_000_000
"""A lease that is handed out within this time is followed by one of twice its size."""

LEASE_MICROSECONDS: Final = 60_000_000
"""How long an instance may hand out what it has leased."""

REMEMBERED: Final = 10_000
"""Subjects that an instance remembers."""

CHARGE_ATTEMPTS: Final = 5
EXPIRY_SECONDS: Final = 24 * 3600
ENTRY: Final = "rate"


class _Bucket(Struct):
    """What an instance knows of a subject. Times are microseconds since the epoch."""

    tokens: int = 0
    lease: int = 0
    """How many tokens the last lease had."""
    leased_at: int = 0
    full_at: int = 0
    """When the bucket in the table is full again, as far as is known."""
    empty_until: int = 0
    """When the bucket in the table has a token again, as far as is known."""
    refused_until: int = 0
    """How long the subject has been told to wait."""


class TableLimiter:
    """Limits subjects to a rate, with a burst, together with all other instances."""

    def __init__(self, table: Table, *, per_second: float, burst: int, clock: Callable[[], int]) -> None:
        """Args: the clock gives milliseconds since the epoch."""
        self._table = table
        self._interval = round(1_000_000 / per_second)
        self._room = burst * self._interval
        self._largest_lease = max(1, min(LARGEST_LEASE, burst // 2))
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}
        self._lock = Lock()

    def check(self, subject: str) -> None:
        """Refuse a subject that is known to be over its rate. Costs no call.

        Raises:
            RateLimitedError: saying when to try again.
        """
        bucket = self._buckets.get(subject)
        now = self._now()
        if bucket and not bucket.tokens and now < bucket.refused_until:
            raise RateLimitedError(_seconds(bucket.refused_until - now))

    def take(self, subject: str) -> None:
        """Count one more.

        Raises:
            RateLimitedError: the subject is over its rate.
        """
        with self._lock:
            bucket = self._bucket(subject)
            now = self._now()
            if now >= bucket.leased_at + LEASE_MICROSECONDS:
                bucket.tokens = 0
            if not bucket.tokens:
                self.check(subject)
                try:
                    self._lease(subject, bucket, now)
                except UnavailableError:
                    log.warning("rate limit not applied: its table does not answer")
                    tally.current().unlimited += 1
                    return
            bucket.tokens -= 1

    def _lease(self, subject: str, bucket: _Bucket, now: int) -> None:
        """Lease tokens from the bucket in the table, or learn how long it stays empty.

        Raises:
            RateLimitedError: it is empty.
        """
        if now < bucket.empty_until:
            raise self._refusal(bucket, now)
        grows = now < bucket.leased_at + GROWTH_MICROSECONDS
        wanted = max(1, min(self._largest_lease, 2 * bucket.lease)) if grows else 1
        worthwhile = SMALLEST_OF_MANY if grows and bucket.lease >= SMALLEST_OF_MANY else 1
        has_refused = now < bucket.refused_until + GROWTH_MICROSECONDS
        least = worthwhile if has_refused else 1
        leased, bucket.full_at = self._charge(subject, range(least, wanted + 1), now, bucket.full_at)
        bucket.empty_until = bucket.full_at + worthwhile * self._interval - self._room
        if not leased:
            raise self._refusal(bucket, now)
        bucket.tokens = bucket.lease = leased
        bucket.leased_at = now

    def _refusal(self, bucket: _Bucket, now: int) -> RateLimitedError:
        """Return the refusal of a subject whose bucket is empty, and remember it for as long as it says.

        That is whole seconds, unless the bucket would be half full before they are over: tokens must not go to waste.
        """
        told = min(_seconds(bucket.empty_until - now) * 1_000_000, self._room // 2)
        bucket.refused_until = max(bucket.empty_until, now + told)
        return RateLimitedError(_seconds(bucket.refused_until - now))

    def _charge(self, subject: str, wanted: range, now: int, full_at: int) -> tuple[int, int]:
        """Take tokens out of the bucket: as many as there are within the range that is wanted.

        How full it is is guessed first, from what is known, and looked at when the guess was wrong.

        Returns:
            How many tokens were taken, 0 where there are too few, and when the bucket is full again.

        Raises:
            UnavailableError: others kept changing it.
        """
        for _ in range(CHARGE_ATTEMPTS):
            is_full = full_at <= now
            there = (now + self._room - max(full_at, now)) // self._interval
            tokens = min(wanted[-1], there)
            if tokens not in wanted:
                return 0, full_at
            try:
                return tokens, self._update(subject, tokens * self._interval, now, is_full=is_full)
            except RefusedError as refused:
                full_at = int(refused.current.get("full_at", number(0))["N"])
        raise UnavailableError

    def _update(self, subject: str, price: int, now: int, *, is_full: bool) -> int:
        """Put off the time at which the bucket is full by a price, and return it.

        Raises:
            RefusedError: the bucket is not full, or it is, or there is too little in it.
        """
        latest = now + self._room - price
        values = {":now": number(now), ":expires_at": number(latest // 1_000_000 + EXPIRY_SECONDS)}
        if is_full:
            new, condition = ":new", "attribute_not_exists(full_at) OR full_at <= :now"
            values[":new"] = number(now + price)
        else:
            new, condition = "full_at + :price", "full_at > :now AND full_at <= :latest"
            values |= {":price": number(price), ":latest": number(latest)}
        charged = self._table.update(
            {"subject": {"S": subject}, "entry": {"S": ENTRY}},
            UpdateExpression=f"SET full_at = {new}, expires_at = :expires_at",
            ConditionExpression=condition,
            ExpressionAttributeValues=values,
            ReturnValues="UPDATED_NEW",
        )
        return int(charged["full_at"]["N"])

    def _bucket(self, subject: str) -> _Bucket:
        if subject not in self._buckets:
            if len(self._buckets) >= REMEMBERED:
                del self._buckets[next(iter(self._buckets))]
            self._buckets[subject] = _Bucket()
        return self._buckets[subject]

    def _now(self) -> int:
        return self._clock() * 1000


def _seconds(microseconds: int) -> int:
    """Return a time in whole seconds, rounded up, at least one."""
    return max(1, -(-microseconds // 1_000_000))
