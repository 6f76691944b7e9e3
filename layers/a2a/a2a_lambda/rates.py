"""Rate limits across instances: a token bucket a subject, in the callers' table.

A bucket is one number: the time at which it is full again (the generic cell rate algorithm). An instance leases
several tokens with one write and hands them out itself, so that a busy caller costs few writes; what a lease says of
the bucket tells the instance how long to refuse without asking.

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

LEASES: Final = range(5, 11)
"""Tokens a write: a tenth of the burst within these bounds, so that instances do not keep it from one another."""

LEASE_MICROSECONDS: Final = 60_000_000
"""How long an instance may hand out what it has leased."""

REMEMBERED: Final = 10_000
"""Subjects that an instance remembers."""

CHARGE_ATTEMPTS: Final = 3
EXPIRY_SECONDS: Final = 24 * 3600
ENTRY: Final = "rate"


class _Bucket(Struct):
    """What an instance knows of a subject, in microseconds since the epoch."""

    tokens: int = 0
    leased_until: int = 0
    refused_until: int = 0
    full_at: int = 0


class TableLimiter:
    """Limits subjects to a rate, with a burst, together with all other instances."""

    def __init__(self, table: Table, *, per_second: float, burst: int, clock: Callable[[], int]) -> None:
        """Args: the clock gives milliseconds since the epoch."""
        self._table = table
        self._interval = round(1_000_000 / per_second)
        self._burst = burst
        self._lease = min(burst, LEASES[-1], max(LEASES[0], burst // 10))
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
            raise _limited(bucket.refused_until - now)

    def take(self, subject: str) -> None:
        """Count one more.

        Raises:
            RateLimitedError: the subject is over its rate.
        """
        with self._lock:
            bucket = self._bucket(subject)
            now = self._now()
            if now >= bucket.leased_until:
                bucket.tokens = 0
            if not bucket.tokens:
                self.check(subject)
                try:
                    self._lease_tokens(subject, bucket, now)
                except UnavailableError:
                    log.warning("rate limit not applied: its table does not answer")
                    tally.current().unlimited += 1
                    return
            bucket.tokens -= 1

    def _lease_tokens(self, subject: str, bucket: _Bucket, now: int) -> None:
        """Lease tokens from the bucket in the table, or learn how long it stays too empty for that."""
        price, room = self._lease * self._interval, self._burst * self._interval
        try:
            bucket.full_at = self._charge(subject, price, now, now + room - price, is_idle=bucket.full_at <= now)
        except RefusedError as refused:
            bucket.full_at = int(refused.current["full_at"]["N"])
            bucket.refused_until = bucket.full_at + price - room
            raise _limited(bucket.refused_until - now) from refused
        bucket.tokens, bucket.leased_until = self._lease, now + LEASE_MICROSECONDS
        bucket.refused_until = bucket.full_at + price - room

    def _charge(self, subject: str, price: int, now: int, latest: int, *, is_idle: bool) -> int:
        """Move the time at which the bucket is full by a price, from now on if it is full already.

        Whether it is full is guessed first, and known when the guess was wrong.

        Raises:
            RefusedError: the bucket is full only after `latest`.
            UnavailableError: others kept changing it.
        """
        for _ in range(CHARGE_ATTEMPTS):
            values = {":now": number(now)}
            if is_idle:
                new, condition = ":new", "attribute_not_exists(full_at) OR full_at <= :now"
                values[":new"] = number(now + price)
            else:
                new, condition = "full_at + :price", "full_at > :now AND full_at <= :latest"
                values |= {":price": number(price), ":latest": number(latest)}
            try:
                charged = self._table.update(
                    {"subject": {"S": subject}, "entry": {"S": ENTRY}},
                    UpdateExpression=f"SET full_at = {new}, expires_at = :expires_at",
                    ConditionExpression=condition,
                    ExpressionAttributeValues={**values, ":expires_at": number(latest // 1_000_000 + EXPIRY_SECONDS)},
                    ReturnValues="UPDATED_NEW",
                )
            except RefusedError as refused:
                full_at = int(refused.current.get("full_at", number(0))["N"])
                if full_at > latest:
                    raise
                is_idle = full_at <= now
            else:
                return int(charged["full_at"]["N"])
        raise UnavailableError

    def _bucket(self, subject: str) -> _Bucket:
        if subject not in self._buckets:
            if len(self._buckets) >= REMEMBERED:
                del self._buckets[next(iter(self._buckets))]
            self._buckets[subject] = _Bucket()
        return self._buckets[subject]

    def _now(self) -> int:
        return self._clock() * 1000


def _limited(microseconds: int) -> RateLimitedError:
    return RateLimitedError(max(1, -(-microseconds // 1_000_000)))
