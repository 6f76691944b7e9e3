"""How a stream's records reach a function that may fail."""

from collections.abc import Sequence
from typing import Any

from local.delivery import Delivery
from local.mappings import FOR_EVER, StreamMapping


class Function:
    """A function that fails with records as often as it is told, and remembers what it was given."""

    def __init__(self, failures: dict[str, int], *, stops: bool = False) -> None:
        self._failures = failures
        self._stops = stops
        self.given: list[str] = []
        self.pauses: list[float] = []
        self.lost: list[tuple[str, int]] = []

    def attempt(self, records: Sequence[Any]) -> int:
        self.given.append(names(records))
        for index, record in enumerate(records):
            name = record["name"]
            if self._failures.get(name, 0):
                self._failures[name] -= 1
                return index if self._stops else 0
        return len(records)

    def give_up(self, records: Sequence[Any], attempts: int) -> None:
        self.lost.append((names(records), attempts))

    def deliver(self, records: str, *, retries: int = 2, bisects: bool = False) -> None:
        mapping = StreamMapping("F", "T", "TRIM_HORIZON", 100, (), retries, bisects, reports=True, on_failure=None)
        Delivery(self.attempt, self.give_up, self.pauses.append, mapping).deliver([{"name": name} for name in records])


def names(records: Sequence[Any]) -> str:
    return "".join(record["name"] for record in records)


def test_records_that_succeed_are_given_once() -> None:
    function = Function({})
    function.deliver("abc")
    assert function.given == ["abc"]
    assert function.pauses == []


def test_a_batch_that_fails_is_given_again() -> None:
    function = Function({"b": 2})
    function.deliver("abc")
    assert function.given == ["abc", "abc", "abc"]
    assert function.lost == []


def test_a_batch_goes_on_with_the_first_record_that_failed() -> None:
    function = Function({"b": 1}, stops=True)
    function.deliver("abc")
    assert function.given == ["abc", "bc"]


def test_retries_are_counted_anew_behind_what_has_succeeded() -> None:
    function = Function({"b": 2, "c": 2}, stops=True)
    function.deliver("abc")
    assert function.given == ["abc", "bc", "bc", "c", "c"]
    assert function.lost == []


def test_pauses_between_retries_become_longer_up_to_a_limit() -> None:
    function = Function({"a": 10})
    function.deliver("a", retries=10)
    assert function.pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10, 10]


def test_after_its_retries_what_is_left_of_a_batch_is_given_up() -> None:
    function = Function({"b": 100}, stops=True)
    function.deliver("abc")
    assert function.given == ["abc", "bc", "bc"]
    assert function.lost == [("bc", 3)]


def test_a_batch_may_be_given_again_for_ever() -> None:
    function = Function({"a": 50})
    function.deliver("a", retries=FOR_EVER)
    assert len(function.given) == 51


def test_a_batch_that_is_split_finds_the_record_that_fails() -> None:
    function = Function({"c": 100})
    function.deliver("abcd", bisects=True)
    assert function.given == ["abcd", "ab", "cd", "c", "c", "c", "d"]
    assert function.lost == [("c", 3)]


def test_to_split_a_batch_is_no_retry() -> None:
    function = Function({"d": 3})
    function.deliver("abcd", bisects=True)
    assert function.lost == []


def test_a_batch_without_retries_is_given_up_at_once() -> None:
    function = Function({"a": 1})
    function.deliver("ab", retries=0)
    assert function.lost == [("ab", 1)]
