"""What the meter makes of a call's arguments."""

from __future__ import annotations

import pytest

from bench.meter import without_filter, written

KEY = {"id": {"S": "1"}}


def test_each_request_of_a_batch_is_a_write() -> None:
    batch = {
        "RequestItems": {"T": [{"PutRequest": {"Item": KEY | {"a": {"S": "x"}}}}, {"DeleteRequest": {"Key": KEY}}]}
    }
    assert written("BatchWriteItem", batch) == [("T", KEY | {"a": {"S": "x"}}), ("T", KEY)]


def test_each_part_of_a_transaction_is_a_write() -> None:
    put, delete = {"TableName": "T", "Item": KEY | {"a": {"S": "x"}}}, {"TableName": "U", "Key": KEY}

    assert written("TransactWriteItems", {"TransactItems": [{"Put": put}, {"Delete": delete}]}) == [
        ("T", put["Item"]),
        ("U", KEY),
    ]


def test_a_read_writes_nothing() -> None:
    assert written("Query", {"TableName": "T"}) == []


def test_an_operation_that_it_cannot_count_is_refused() -> None:
    with pytest.raises(ValueError, match="ExecuteStatement"):
        written("ExecuteStatement", {})


def test_a_query_is_charged_for_what_its_filter_drops() -> None:
    query = {
        "TableName": "T",
        "KeyConditionExpression": "id = :id",
        "FilterExpression": "#owner = :owner",
        "ExpressionAttributeNames": {"#owner": "owner"},
        "ExpressionAttributeValues": {":id": {"S": "1"}, ":owner": {"S": "o"}},
    }
    assert without_filter(query) == {
        "TableName": "T",
        "KeyConditionExpression": "id = :id",
        "ExpressionAttributeValues": {":id": {"S": "1"}},
    }
