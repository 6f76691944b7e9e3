"""Filter patterns of event source mappings: which records of a stream a function is invoked with.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
The operators that `OPERATORS` lists are imitated; `exists` works on leaves only, as in AWS.
"""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from local.errors import TemplateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

# Whether a leaf has a value, and which.
Test: TypeAlias = "Callable[[bool, Any], bool]"

NUMERIC = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Pattern:
    """What a record must be like: a test for each leaf that the pattern names."""

    leaves: tuple[tuple[tuple[str, ...], tuple[Test, ...]], ...]

    def matches(self, record: Mapping[str, Any]) -> bool:
        """Whether each leaf passes one of its tests."""
        return all(_passes(record, path, tests) for path, tests in self.leaves)


def matches_any(patterns: Iterable[Pattern], record: Mapping[str, Any]) -> bool:
    """Whether one of the patterns takes the record; without patterns every record is taken."""
    patterns = tuple(patterns)
    return not patterns or any(pattern.matches(record) for pattern in patterns)


def read_pattern(text: str) -> Pattern:
    """The pattern of a filter, given as JSON. Raises TemplateError for what is none, or is not imitated."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise TemplateError(f"the filter pattern {text} is not JSON") from error
    if not isinstance(value, dict) or not value:
        raise TemplateError(f"the filter pattern {text} is not an object with members")
    return Pattern(tuple(_leaves(value, ())))


def _leaves(value: Mapping[str, Any], path: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], tuple[Test, ...]]]:
    for name, below in value.items():
        here = (*path, name)
        if isinstance(below, dict) and below and not name.startswith("$"):
            yield from _leaves(below, here)
        elif isinstance(below, list) and below and not name.startswith("$"):
            yield here, tuple(_test(rule, here) for rule in below)
        else:
            raise TemplateError(f"the filter pattern at {'.'.join(here)} cannot be imitated here")


def _test(rule: Any, path: tuple[str, ...]) -> Test:
    if not isinstance(rule, (dict, list)):
        return lambda there, value: there and _equals(value, rule)
    if isinstance(rule, dict) and len(rule) == 1:
        ((name, argument),) = rule.items()
        test = OPERATORS.get(name)
        if test is not None and (made := test(argument)) is not None:
            return made
    raise TemplateError(f"the filter rule {json.dumps(rule)} at {'.'.join(path)} cannot be imitated here")


def _exists(argument: Any) -> Test | None:
    return (lambda there, _: there is argument) if isinstance(argument, bool) else None


def _prefix(argument: Any) -> Test | None:
    if not isinstance(argument, str):
        return None
    return lambda _, value: isinstance(value, str) and value.startswith(argument)


def _suffix(argument: Any) -> Test | None:
    if not isinstance(argument, str):
        return None
    return lambda _, value: isinstance(value, str) and value.endswith(argument)


def _ignoring_case(argument: Any) -> Test | None:
    if not isinstance(argument, str):
        return None
    return lambda _, value: isinstance(value, str) and value.casefold() == argument.casefold()


def _anything_but(argument: Any) -> Test | None:
    unwanted = argument if isinstance(argument, list) else [argument]
    if not unwanted or any(isinstance(value, (dict, list)) for value in unwanted):
        return None
    return lambda there, value: there and not any(_equals(value, each) for each in unwanted)


def _numeric(argument: Any) -> Test | None:
    if not isinstance(argument, list) or not argument or len(argument) % 2:
        return None
    pairs = list(zip(argument[::2], argument[1::2], strict=True))
    if not all(sign in NUMERIC and _is_number(bound) for sign, bound in pairs):
        return None
    return lambda _, value: _is_number(value) and all(NUMERIC[sign](value, bound) for sign, bound in pairs)


OPERATORS: dict[str, Callable[[Any], Test | None]] = {
    "exists": _exists,
    "prefix": _prefix,
    "suffix": _suffix,
    "equals-ignore-case": _ignoring_case,
    "anything-but": _anything_but,
    "numeric": _numeric,
}


def _passes(record: Mapping[str, Any], path: tuple[str, ...], tests: Iterable[Test]) -> bool:
    value: Any = record
    there = True
    for name in path:
        there = isinstance(value, dict) and name in value
        value = value[name] if there else None
    if isinstance(value, dict):
        # A branch, not a leaf: it has no value, and is not missing for that.
        there, value = False, None
    values = value if isinstance(value, list) else [value]
    return any(test(there, each) for test in tests for each in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _equals(value: Any, wanted: Any) -> bool:
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
