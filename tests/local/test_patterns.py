"""Which records a filter pattern takes."""

import json
from typing import Any

import pytest

from local.errors import TemplateError
from local.patterns import matches_any, read_pattern

RECORD = {
    "eventName": "MODIFY",
    "size": 7,
    "whole": True,
    "nothing": None,
    "tags": ["a", "b"],
    "dynamodb": {"NewImage": {"outbox": {"S": "{}"}, "state": {"S": "TASK_STATE_WORKING"}}},
}


def takes(pattern: Any) -> bool:
    return read_pattern(json.dumps(pattern)).matches(RECORD)


def at_state(rule: Any) -> Any:
    return {"dynamodb": {"NewImage": {"state": {"S": [rule]}}}}


@pytest.mark.parametrize(
    "pattern",
    [
        {"dynamodb": {"NewImage": {"outbox": {"S": [{"exists": True}]}}}},
        {"dynamodb": {"NewImage": {"inbox": {"S": [{"exists": False}]}}}},
        {"dynamodb": {"OldImage": {"inbox": {"S": [{"exists": False}]}}}},
        {"eventName": ["INSERT", "MODIFY"]},
        {"eventName": ["MODIFY"], "dynamodb": {"NewImage": {"outbox": {"S": [{"exists": True}]}}}},
        {"whole": [True]},
        {"nothing": [None]},
        {"nothing": [{"exists": True}]},
        {"tags": ["b"]},
        {"size": [7]},
        {"size": [7.0]},
        {"size": [{"numeric": ["=", 7]}]},
        {"size": [{"numeric": [">", 5, "<=", 7]}]},
        at_state({"prefix": "TASK_STATE_"}),
        at_state({"suffix": "WORKING"}),
        at_state({"equals-ignore-case": "task_state_working"}),
        at_state({"anything-but": "TASK_STATE_FAILED"}),
        at_state({"anything-but": ["TASK_STATE_FAILED", "TASK_STATE_CANCELED"]}),
    ],
)
def test_a_record_that_is_like_the_pattern_is_taken(pattern: Any) -> None:
    assert takes(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        {"dynamodb": {"NewImage": {"inbox": {"S": [{"exists": True}]}}}},
        {"dynamodb": {"NewImage": {"outbox": {"S": [{"exists": False}]}}}},
        {"dynamodb": {"NewImage": {"outbox": {"N": [{"exists": True}]}}}},
        {"dynamodb": {"OldImage": {"outbox": {"S": [{"exists": True}]}}}},
        {"eventName": ["INSERT"]},
        {"eventName": ["MODIFY"], "size": [8]},
        {"eventName": {"S": ["MODIFY"]}},
        {"whole": [1]},
        {"size": [True]},
        {"size": ["7"]},
        {"missing": [None]},
        {"tags": ["c"]},
        {"size": [{"numeric": [">", 7]}]},
        {"whole": [{"numeric": ["=", 1]}]},
        {"eventName": [{"numeric": ["=", 7]}]},
        {"size": [{"prefix": "7"}]},
        {"missing": [{"anything-but": "x"}]},
        at_state({"anything-but": ["TASK_STATE_WORKING"]}),
    ],
)
def test_any_other_record_is_not(pattern: Any) -> None:
    assert not takes(pattern)


def test_exists_works_on_leaves_only() -> None:
    assert not takes({"dynamodb": {"NewImage": {"outbox": [{"exists": True}]}}})


@pytest.mark.parametrize(
    "pattern",
    [
        "[]",
        "{}",
        "not JSON",
        '{"a": "b"}',
        '{"a": {}}',
        '{"a": []}',
        '{"a": [["b"]]}',
        '{"$or": [{"a": ["b"]}]}',
        '{"a": [{"wildcard": "*"}]}',
        '{"a": [{"cidr": "10.0.0.0/8"}]}',
        '{"a": [{"exists": "yes"}]}',
        '{"a": [{"prefix": {"equals-ignore-case": "b"}}]}',
        '{"a": [{"anything-but": {"prefix": "b"}}]}',
        '{"a": [{"numeric": [">"]}]}',
        '{"a": [{"numeric": ["!", 1]}]}',
        '{"a": [{"exists": true, "prefix": "b"}]}',
    ],
)
def test_a_pattern_that_cannot_be_imitated_is_refused(pattern: str) -> None:
    with pytest.raises(TemplateError, match="filter"):
        read_pattern(pattern)


def test_one_of_several_patterns_is_enough() -> None:
    inserted, modified = read_pattern('{"eventName":["INSERT"]}'), read_pattern('{"eventName":["MODIFY"]}')
    assert matches_any([inserted, modified], RECORD)
    assert not matches_any([inserted], RECORD)


def test_without_a_pattern_every_record_is_taken() -> None:
    assert matches_any([], RECORD)
