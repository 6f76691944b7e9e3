"""Rate limits over a table that instances share: how much passes, what it costs, and when the table is down."""

from typing import Final

import pytest

from a2a_lambda import tally
from a2a_lambda.errors import RateLimitedError
from a2a_lambda.rates import REMEMBERED, SMALLEST_OF_MANY, TableLimiter
from tests.unit.factories import SECOND, Clock
from tests.unit.fake_table import FakeTable

MINUTE: Final = 60 * SECOND

REQUESTS_A_WRITE: Final = 5
"""What a write of the table must be good for in steady use."""


class Instances:
    """Instances of the server that share a table and a clock."""

    def __init__(self, count: int = 1, *, per_second: float = 10, burst: int = 20) -> None:
        self.table = FakeTable()
        self.clock = Clock()
        self.limiters = [
            TableLimiter(self.table, per_second=per_second, burst=burst, clock=self.clock) for _ in range(count)
        ]

    def accepts(self, subject: str = "alice", *, instance: int = 0) -> bool:
        try:
            self.limiters[instance].take(subject)
        except RateLimitedError:
            return False
        return True

    def minute(self, per_second: int, subject: str = "alice") -> int:
        """Return how many of so many requests a second, spread over the instances in turn, pass in a minute."""
        end, number, passed = self.clock.now + MINUTE, 0, 0
        while self.clock.now < end:
            passed += self.accepts(subject, instance=number % len(self.limiters))
            number += 1
            self.clock.now = end - MINUTE + number * SECOND // per_second
        return passed

    def retry_after(self, subject: str = "alice", *, instance: int = 0) -> int:
        with pytest.raises(RateLimitedError) as refused:
            self.limiters[instance].take(subject)
        return refused.value.retry_after


def emptied(count: int = 1, *, per_second: float = 10, burst: int = 20) -> Instances:
    instances = Instances(count, per_second=per_second, burst=burst)
    while instances.accepts():
        pass
    return instances


# How much passes


@pytest.mark.parametrize("burst", [*range(1, 31), 200, 999])
def test_a_burst_passes_at_once(burst: int) -> None:
    instances = Instances(burst=burst)
    passed = sum(instances.accepts() for _ in range(burst * 2))

    assert burst - SMALLEST_OF_MANY < passed <= burst


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("rate", [10, 20, 50])
@pytest.mark.parametrize("factor", [2, 5])
def test_over_a_minute_the_rate_holds_within_a_tenth(count: int, rate: int, factor: int) -> None:
    allowed = rate * 60 + 20
    passed = Instances(count, per_second=rate).minute(rate * factor)

    assert allowed * 0.9 <= passed <= allowed * 1.1


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("rate", [10, 20])
def test_who_keeps_to_the_rate_is_never_refused(count: int, rate: int) -> None:
    assert Instances(count, per_second=rate, burst=100).minute(rate) == rate * 60


def test_a_caller_at_twice_the_rate_gets_half_through_in_the_long_run() -> None:
    instances = Instances(2, per_second=10, burst=20)
    instances.minute(20)
    passed = instances.minute(20)

    assert 540 <= passed <= 660


@pytest.mark.parametrize("count", [40, 100, 200])
def test_a_burst_that_meets_many_instances_passes(count: int) -> None:
    instances = Instances(count, per_second=20, burst=200)

    assert all(instances.accepts(instance=number) for number in range(count))


@pytest.mark.parametrize("count", [250, 400])
def test_a_burst_over_many_instances_is_no_larger_than_a_burst(count: int) -> None:
    instances = Instances(count, per_second=20, burst=200)

    assert sum(instances.accepts(instance=number) for number in range(count)) == 200


@pytest.mark.parametrize("count", [20, 40, 100, 400, 560])
def test_who_keeps_to_the_rate_passes_however_many_instances_a_slow_agent_needs(count: int) -> None:
    instances = Instances(count, per_second=20, burst=200)

    assert [instances.minute(20) for _ in range(3)] == [20 * 60] * 3


@pytest.mark.parametrize("count", [40, 100, 400])
@pytest.mark.parametrize("factor", [2, 5])
def test_over_many_instances_the_rate_holds(count: int, factor: int) -> None:
    instances = Instances(count, per_second=20, burst=200)
    passed = sum(instances.minute(20 * factor) for _ in range(3))
    allowed = 3 * 60 * 20 + 200

    assert allowed * 0.9 <= passed <= allowed * 1.1


@pytest.mark.parametrize("burst", [5, 10, 20])
def test_a_few_requests_on_as_many_instances_pass_whatever_the_burst(burst: int) -> None:
    instances = Instances(5, per_second=1, burst=burst)

    assert all(instances.accepts(instance=number) for number in range(5))


def test_another_subject_does_not_notice() -> None:
    instances = Instances(2)
    end = instances.clock.now + MINUTE
    bobs: list[bool] = []
    while instances.clock.now < end:
        for number in range(5):
            instances.accepts("alice", instance=number % 2)
        bobs.append(instances.accepts("bob", instance=len(bobs) % 2))
        instances.clock.advance(200)

    assert all(bobs)


def test_a_bucket_is_full_again_after_a_while() -> None:
    instances = emptied(burst=20)
    instances.clock.advance(MINUTE)

    assert sum(instances.accepts() for _ in range(40)) == 20


def test_a_rate_below_one_a_second_is_a_rate() -> None:
    instances = emptied(per_second=0.2, burst=20)
    instances.clock.advance(30 * SECOND)

    assert sum(instances.accepts() for _ in range(40)) == 6


# What is said


@pytest.mark.parametrize("count", [1, 2])
def test_a_refusal_says_when_to_come_again_and_then_one_passes(count: int) -> None:
    instances = emptied(count)
    seconds = instances.retry_after()
    assert seconds >= 1
    instances.clock.advance(seconds * SECOND)

    assert instances.accepts()


# What it costs


@pytest.mark.parametrize("rate", [10, 20])
@pytest.mark.parametrize("load", [5, 10, 20])
def test_in_steady_use_a_write_is_for_five_requests(rate: int, load: int) -> None:
    instances = Instances(per_second=rate, burst=100)
    passed = instances.minute(load)

    assert instances.table.writes <= passed / REQUESTS_A_WRITE + 1


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("load", [5, 10])
def test_several_instances_together_cost_no_more(count: int, load: int) -> None:
    instances = Instances(count, per_second=10, burst=100)
    requests = load * 60
    instances.minute(load)

    assert instances.table.writes <= requests / REQUESTS_A_WRITE + count


def test_a_refusal_costs_nothing_until_it_ends() -> None:
    instances = emptied()
    seconds = instances.retry_after()
    writes = instances.table.writes
    for _ in range(seconds * 10 - 5):
        instances.accepts()
        instances.clock.advance(100)

    assert instances.table.writes - writes <= seconds * 10 // REQUESTS_A_WRITE


@pytest.mark.parametrize(("per_second", "burst"), [(20, 200), (1, 10), (0.2, 20), (100, 1000)])
def test_until_the_time_that_a_refusal_says_nothing_passes_and_nothing_is_asked(per_second: float, burst: int) -> None:
    instances = emptied(per_second=per_second, burst=burst)
    end = instances.clock.now + instances.retry_after() * SECOND
    writes = instances.table.writes
    while instances.clock.now < end:
        assert not instances.accepts()
        instances.clock.advance(2)

    assert instances.table.writes == writes
    assert instances.accepts()


def test_a_refusal_at_the_same_moment_costs_nothing() -> None:
    instances = emptied()
    instances.retry_after()
    writes = instances.table.writes
    for _ in range(1000):
        instances.retry_after()

    assert instances.table.writes == writes


def test_a_refusal_by_the_table_is_remembered() -> None:
    instances = Instances(2)
    while instances.accepts(instance=0):
        pass
    instances.retry_after(instance=1)
    writes = instances.table.writes
    for _ in range(100):
        instances.retry_after(instance=1)

    assert instances.table.writes == writes


def test_a_refusal_is_remembered_by_who_had_tokens_left_over() -> None:
    instances = Instances(2, per_second=10, burst=20)
    assert instances.accepts(instance=1)
    instances.clock.advance(MINUTE)
    while instances.accepts(instance=0):
        pass
    instances.retry_after(instance=1)
    writes = instances.table.writes
    for _ in range(100):
        instances.retry_after(instance=1)

    assert instances.table.writes == writes


def test_looking_whether_a_subject_is_over_its_rate_costs_nothing() -> None:
    instances = emptied()
    writes = instances.table.writes
    instances.limiters[0].check("stranger")
    with pytest.raises(RateLimitedError):
        instances.limiters[0].check("alice")

    assert instances.table.writes == writes


# What is remembered


def test_a_lease_ends_after_a_minute() -> None:
    instances = Instances()
    assert instances.accepts()
    writes = instances.table.writes
    instances.clock.advance(MINUTE)
    assert instances.accepts()

    assert instances.table.writes == writes + 1


def test_an_instance_remembers_so_many_subjects_and_no_more() -> None:
    instances = Instances()
    for number in range(REMEMBERED + 10):
        instances.accepts(f"subject {number}")

    assert len(instances.limiters[0]._buckets) == REMEMBERED  # noqa: SLF001 - no other sign of it


def test_a_buckets_item_expires() -> None:
    instances = Instances()
    instances.accepts()

    item = instances.table.items["alice"]
    assert item["expires_at"] * 1_000_000 > item["full_at"]


# A table that does not answer


def test_a_caller_with_few_requests_leases_no_more_than_these() -> None:
    instances = Instances(40, per_second=20, burst=200)
    for number in range(40):
        instances.accepts(instance=number)

    item = instances.table.items["alice"]
    assert item["full_at"] - instances.clock.now * 1000 == 40 * 1_000_000 // 20


def test_requests_pass_and_are_counted_while_the_table_is_down(caplog: pytest.LogCaptureFixture) -> None:
    instances = Instances()
    instances.table.is_down = True
    counts = tally.begin()

    assert all(instances.accepts() for _ in range(100))
    assert counts.unlimited == 100
    assert "not applied" in caplog.text
    assert "alice" not in caplog.text


def test_the_limit_holds_again_when_the_table_is_back() -> None:
    instances = Instances(burst=20)
    instances.table.is_down = True
    for _ in range(100):
        instances.accepts()
    instances.table.is_down = False

    assert sum(instances.accepts() for _ in range(100)) == 20
