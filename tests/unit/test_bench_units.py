"""DynamoDB's units, computed as its Developer Guide says."""

from __future__ import annotations

import pytest

from bench.units import (
    Index,
    indexes,
    item_size,
    number_size,
    query_calls,
    query_read_units,
    read_units,
    refused_write_units,
    value_size,
    write_units,
)

BY_OWNER = Index(("owner", "order"), frozenset({"id", "owner", "order", "state"}))


def item(**attributes: str) -> dict[str, dict[str, str]]:
    return {"id": {"S": "1"}, **{name: {"S": value} for name, value in attributes.items()}}


def test_an_items_size_is_that_of_its_names_and_values_in_utf8() -> None:
    assert item_size({"na\u00efve": {"S": "\u00e9"}, "b": {"B": b"123"}}) == 6 + 2 + 1 + 3


@pytest.mark.parametrize(
    ("number", "size"),
    [
        ("0", 1),
        ("7", 2),
        ("42", 2),
        ("123", 3),
        ("-123", 4),
        ("1000", 2),
        ("0.05", 2),
        ("1.50", 2),
        ("1790455051121", 8),
    ],
)
def test_a_number_takes_a_byte_for_two_significant_digits_and_one_more(number: str, size: int) -> None:
    assert number_size(number) == size


def test_lists_and_maps_take_three_bytes_and_one_for_each_element() -> None:
    assert value_size({"L": []}) == 3
    assert value_size({"L": [{"S": "ab"}, {"BOOL": True}]}) == 3 + 1 + 2 + 1 + 1
    assert value_size({"M": {"k": {"NULL": True}}}) == 3 + 1 + 1 + 1


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="no type X"):
        value_size({"X": "?"})


def test_a_write_is_charged_by_the_larger_of_the_old_and_the_new_item() -> None:
    large, small = item(text="x" * 2048), item(text="x")
    assert write_units(large, small, []) == write_units(small, large, []) == write_units(None, large, []) == 3


def test_exactly_a_kilobyte_is_one_unit() -> None:
    assert write_units(None, item(text="x" * (1024 - 7)), []) == 1
    assert write_units(None, item(text="x" * (1024 - 6)), []) == 2


def test_a_new_index_entry_costs_its_own_size_and_not_the_items() -> None:
    assert write_units(None, item(owner="o", order="1", text="x" * 5000), [BY_OWNER]) == 5 + 1


def test_an_item_without_the_indexs_key_has_no_entry() -> None:
    assert write_units(None, item(owner="o"), [BY_OWNER]) == 1


def test_an_index_entry_that_moves_is_deleted_and_put() -> None:
    assert write_units(item(owner="o", order="1"), item(owner="o", order="2"), [BY_OWNER]) == 1 + 2


def test_an_index_entry_that_stays_in_its_place_is_written_once() -> None:
    assert write_units(item(owner="o", order="1", state="a"), item(owner="o", order="1", state="b"), [BY_OWNER]) == 2


def test_a_change_that_the_index_does_not_project_costs_nothing_there() -> None:
    assert write_units(item(owner="o", order="1", text="a"), item(owner="o", order="1", text="b"), [BY_OWNER]) == 1


def test_a_refused_write_is_charged_by_the_item_in_its_way() -> None:
    assert refused_write_units(None) == 1
    assert refused_write_units(item(text="x" * 2048)) == 3


def test_reads_go_by_four_kilobytes_and_cost_half_when_they_may_be_stale() -> None:
    assert read_units(0, consistent=True) == read_units(4096, consistent=True) == 1
    assert read_units(4097, consistent=True) == 2
    assert read_units(4097, consistent=False) == 1


def test_a_query_ends_its_page_after_a_megabyte() -> None:
    assert query_calls(0, 0) == query_calls(1024, 1024) == 1
    assert query_calls(1024, 1025) == 2


def test_a_query_is_charged_for_each_of_its_pages() -> None:
    assert query_read_units(1024, 0, consistent=False) == 0.5
    assert query_read_units(1024, 5, consistent=False) == 1
    assert query_read_units(1024, 1024, consistent=False) == 128
    assert query_read_units(1024, 1025, consistent=False) == 128.5


def test_an_index_is_read_from_the_tables_description() -> None:
    description = {
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "GlobalSecondaryIndexes": [
            {
                "KeySchema": [
                    {"AttributeName": "owner", "KeyType": "HASH"},
                    {"AttributeName": "order", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["state"]},
            }
        ],
    }
    assert indexes(description) == [BY_OWNER]
