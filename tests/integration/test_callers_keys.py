"""API keys in the callers' table: made, taken, listed, revoked, expired; and rates beside them."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from moto import mock_aws

from a2a_lambda import tally
from a2a_lambda.callers import KEY, ApiKeyAuthentication, Credentials
from a2a_lambda.errors import ProtocolError, RateLimitedError, UnauthenticatedError
from a2a_lambda.keys import TableKeys
from a2a_lambda.rates import TableLimiter
from tests.integration.callers_fixtures import Callers
from tests.integration.tables import new_client
from tests.unit.factories import DAY, NOON, SECOND, Clock


@dataclass
class Door:
    """A callers' table, its keys, and who is let in by them."""

    table: Callers
    clock: Clock = field(default_factory=Clock)

    @property
    def keys(self) -> TableKeys:
        return TableKeys(self.table, clock=self.clock)

    def instance(self) -> ApiKeyAuthentication:
        """Return what a new instance of the function asks who calls."""
        failures = TableLimiter(self.table, per_second=0.2, burst=20, clock=self.clock)
        return ApiKeyAuthentication(self.keys, failures, self.clock)

    def owner(self, key: str) -> str:
        return self.instance().owner(Credentials(api_key=key, source_address="192.0.2.1"))

    def refusal(self, key: str) -> tuple[str, str, object, object]:
        with pytest.raises(ProtocolError) as error:
            self.owner(key)
        return type(error.value).__name__, error.value.message, error.value.details(), error.value.headers()


@pytest.fixture
def door() -> Iterator[Door]:
    with mock_aws():
        yield Door(Callers(new_client()))


def test_a_key_is_its_callers(door: Door) -> None:
    key, made = door.keys.make("alice")

    assert door.owner(key) == "key:alice"
    assert KEY.fullmatch(key)
    assert (made.caller, made.created_at, made.expires_at) == ("alice", NOON // 1000, None)


def test_only_the_hash_of_a_key_is_kept(door: Door) -> None:
    key, _ = door.keys.make("alice")
    kept = str(door.table.items())

    assert key not in kept
    assert key.removeprefix("a2a_") not in kept
    assert hashlib.sha256(key.encode()).hexdigest() in kept


def test_no_two_keys_are_alike(door: Door) -> None:
    assert len({door.keys.make("alice")[0] for _ in range(20)}) == 20


def test_two_keys_of_a_caller_are_one_owner_so_that_keys_can_be_rotated(door: Door) -> None:
    old, listed = door.keys.make("alice")
    new, _ = door.keys.make("alice")
    assert door.owner(old) == door.owner(new)
    door.keys.revoke(listed.key_id)

    assert door.owner(new) == "key:alice"
    assert door.refusal(old)[0] == UnauthenticatedError.__name__


def test_a_revoked_key_is_as_one_that_never_was(door: Door) -> None:
    key, made = door.keys.make("alice")
    assert door.keys.revoke(made.key_id) == made

    assert door.refusal(key) == door.refusal("a2a_" + "x" * 43)
    assert [item for item in door.table.items() if item["entry"]["S"] != "rate"] == []


def test_a_key_that_is_not_there_is_not_revoked(door: Door) -> None:
    key, made = door.keys.make("alice")
    assert door.keys.revoke("no such key") is None
    door.keys.revoke(made.key_id)

    assert door.keys.revoke(made.key_id) is None
    assert door.refusal(key)


def test_a_key_expires(door: Door) -> None:
    key, made = door.keys.make("alice", days=7)
    door.clock.advance(7 * DAY - SECOND)
    assert door.owner(key) == "key:alice"
    door.clock.advance(SECOND)

    assert made.expires_at == (NOON + 7 * DAY) // 1000
    assert door.refusal(key) == door.refusal("a2a_" + "x" * 43)


def test_an_instance_that_knows_a_key_forgets_it_in_a_minute(door: Door) -> None:
    key, made = door.keys.make("alice", days=1)
    instance = door.instance()
    instance.owner(Credentials(api_key=key))
    door.keys.revoke(made.key_id)
    door.clock.advance(60 * SECOND)
    with pytest.raises(UnauthenticatedError):
        instance.owner(Credentials(api_key=key, source_address="192.0.2.1"))


def test_keys_are_listed_without_what_they_open(door: Door) -> None:
    made = [door.keys.make(caller, days)[1] for caller, days in (("alice", None), ("bob", 3), ("alice", 1))]

    assert sorted(door.keys.all(), key=lambda key: key.key_id) == sorted(made, key=lambda key: key.key_id)


def test_the_hash_of_a_key_and_its_id_open_nothing(door: Door) -> None:
    _, made = door.keys.make("alice")

    for shown in (made.key_hash, made.key_id, f"a2a_{made.key_hash}"[:47], "keys"):
        assert door.refusal(shown)[0] == UnauthenticatedError.__name__


def test_a_known_key_costs_no_call(door: Door) -> None:
    key, _ = door.keys.make("alice")
    instance = door.instance()
    instance.owner(Credentials(api_key=key))
    counts = tally.begin()
    for _ in range(100):
        instance.owner(Credentials(api_key=key))

    assert counts.calls == 0


def test_an_address_that_fails_too_often_is_told_to_wait_and_costs_nothing(door: Door) -> None:
    instance = door.instance()
    wrong = Credentials(api_key="a2a_" + "x" * 43, source_address="192.0.2.1")
    errors = []
    for _ in range(25):
        with pytest.raises(ProtocolError) as error:
            instance.owner(wrong)
        errors.append(type(error.value))
    assert errors == [UnauthenticatedError] * 20 + [RateLimitedError] * 5

    counts = tally.begin()
    with pytest.raises(RateLimitedError):
        instance.owner(wrong)
    assert counts.calls == 0


def test_a_keys_caller_may_be_called_anything(door: Door) -> None:
    for caller in ("keys", "key#x", "é😀", "anonymous", "a b", "x" * 1000):
        key, _ = door.keys.make(caller)
        assert door.owner(key).startswith("key")
        assert door.owner(key) not in {"keys", "anonymous"}


# Rates, in the table as it is


def test_instances_share_a_rate(door: Door) -> None:
    limiters = [TableLimiter(door.table, per_second=10, burst=20, clock=door.clock) for _ in range(3)]
    passed = 0
    for number in range(20 * 60):
        try:
            limiters[number % 3].take("key:alice")
        except RateLimitedError:
            pass
        else:
            passed += 1
        door.clock.now = NOON + (number + 1) * SECOND // 20

    assert 0.9 * (10 * 60 + 20) <= passed <= 1.1 * (10 * 60 + 20)


def test_a_refused_lease_is_told_by_the_table(door: Door) -> None:
    limiters = [TableLimiter(door.table, per_second=1, burst=10, clock=door.clock) for _ in range(2)]
    for _ in range(10):
        limiters[0].take("key:alice")
    with pytest.raises(RateLimitedError) as refused:
        limiters[1].take("key:alice")

    assert refused.value.retry_after == 1
    limiters[1].take("key:bob")
