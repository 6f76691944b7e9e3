"""The parameters of ListTasks, and the limits of a message: each field that breaks a rule is named."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from a2a_lambda import validation
from a2a_lambda.errors import InvalidParamsError
from a2a_lambda.model import ListTasksRequest, SendMessageRequest, TaskState
from a2a_lambda.timestamps import format_timestamp, to_milliseconds
from a2a_lambda.validation import Validator
from tests.unit.factories import VALIDATOR, Json, send_params

WHOLE: Final = "must be a whole number of 32 bits"
A_TIME: Final = "must be a time like 2026-09-26T20:37:31.121Z, with a zone"


def listing(**fields: Json) -> ListTasksRequest:
    return VALIDATOR.read(ListTasksRequest, fields)


def violations(**fields: Json) -> dict[str, str]:
    with pytest.raises(InvalidParamsError) as refused:
        listing(**fields)
    return {each.field: each.description for each in refused.value.violations}


def test_nothing_is_needed() -> None:
    assert VALIDATOR.read(ListTasksRequest, None) == listing() == ListTasksRequest()


# Page sizes


@pytest.mark.parametrize(("value", "size"), [(1, 1), (100, 100), (2.0, 2), ("50", 50), (None, UNSET)])
def test_a_page_has_one_to_a_hundred_tasks(value: Json, size: Json) -> None:
    assert listing(pageSize=value).page_size == size


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (0, "must be 1 or more"),
        (-1, "must be 1 or more"),
        ("0", "must be 1 or more"),
        (101, "must be 100 or less"),
        (2**31 - 1, "must be 100 or less"),
        (2**31, WHOLE),
        (2.5, WHOLE),
        ("2.5", WHOLE),
        ("many", WHOLE),
        ("", WHOLE),
        (True, WHOLE),
        ([5], WHOLE),
    ],
)
def test_any_other_page_size_is_refused(value: Json, rule: str) -> None:
    assert violations(pageSize=value) == {"pageSize": rule}


# The other filters


@pytest.mark.parametrize("value", ["TASK_STATE_WORKING", 2, 2.0])
def test_a_status_is_read_by_name_and_number(value: Json) -> None:
    assert listing(status=value).status is TaskState.WORKING


@pytest.mark.parametrize("value", ["TASK_STATE_UNSPECIFIED", 0, None])
def test_a_status_of_zero_is_no_filter(value: Json) -> None:
    assert listing(status=value).status is UNSET


@pytest.mark.parametrize("value", ["working", "completed", "", 9, -1, True, []])
def test_any_other_status_is_refused(value: Json) -> None:
    assert list(violations(status=value)) == ["status"]


@pytest.mark.parametrize("length", [1, 512, 10_000])
def test_a_context_that_no_task_can_have_is_a_filter_too(length: int) -> None:
    assert listing(contextId="c" * length).context_id == "c" * length


def test_the_names_of_the_proto_are_read_too() -> None:
    fields: Json = {
        "page_size": 3, "page_token": "t", "include_artifacts": True, "history_length": 0, "context_id": "c",
    }  # fmt: skip

    assert listing(**fields) == ListTasksRequest(**fields)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"historyLength": -1}, "historyLength"),
        ({"historyLength": 1.5}, "historyLength"),
        ({"includeArtifacts": "true"}, "includeArtifacts"),
        ({"includeArtifacts": 1}, "includeArtifacts"),
        ({"pageToken": 5}, "pageToken"),
        ({"contextId": []}, "contextId"),
    ],
)
def test_a_value_of_a_wrong_kind_is_refused(fields: Json, name: str) -> None:
    assert list(violations(**fields)) == [name]


def test_all_violated_fields_are_named_at_once() -> None:
    found = violations(
        pageSize=0, status="x", statusTimestampAfter="x", historyLength=-1, includeArtifacts=0, contextId=1, pageToken=1
    )
    assert set(found) == {
        "contextId",
        "status",
        "pageSize",
        "pageToken",
        "historyLength",
        "statusTimestampAfter",
        "includeArtifacts",
    }


# Times


def milliseconds(value: str) -> int:
    moment = listing(statusTimestampAfter=value).status_timestamp_after
    assert moment is not UNSET
    return to_milliseconds(moment)


NOON: Final = 1_790_455_051_000


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-09-26T20:37:31Z", NOON),
        ("2026-09-26t20:37:31z", NOON),
        ("2026-09-26T20:37:31.0Z", NOON),
        ("2026-09-26T20:37:31.1Z", NOON + 100),
        ("2026-09-26T20:37:31.121Z", NOON + 121),
        ("2026-09-26T20:37:31.121000000Z", NOON + 121),
        ("2026-09-26T22:37:31.121+02:00", NOON + 121),
        ("2026-09-26T15:07:31.121-05:30", NOON + 121),
        ("2026-09-26T20:37:31.121-00:00", NOON + 121),
        ("1970-01-01T00:00:00Z", 0),
        ("1969-12-31T23:59:59.999Z", -1),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000),
    ],
)
def test_a_time_is_read_in_any_zone_and_precision(value: str, expected: int) -> None:
    assert milliseconds(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-09-26T20:37:31.120000001Z", NOON + 121),
        ("2026-09-26T20:37:31.120999999Z", NOON + 121),
        ("2026-09-26T20:37:31.121000001Z", NOON + 122),
        ("2026-09-26T20:37:31.999999999Z", NOON + 1000),
        ("1969-12-31T23:59:59.9990001Z", 0),
    ],
)
def test_a_time_is_never_read_as_an_earlier_one(value: str, expected: int) -> None:
    assert milliseconds(value) == expected


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)), st.integers(-1439, 1439))  # noqa: DTZ001
def test_whatever_the_zone_it_is_the_same_moment(moment: datetime, offset: int) -> None:
    shown = (moment.replace(tzinfo=UTC) + timedelta(minutes=offset)).replace(tzinfo=None).isoformat("T")
    sign = "-" if offset < 0 else "+"
    zone = f"{sign}{abs(offset) // 60:02}:{abs(offset) % 60:02}"

    assert listing(statusTimestampAfter=shown + zone).status_timestamp_after == moment.replace(tzinfo=UTC)


@pytest.mark.parametrize("value", ["9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.9999999Z"])
def test_the_end_of_time_is_a_time(value: str) -> None:
    moment = listing(statusTimestampAfter=value).status_timestamp_after

    assert moment is not UNSET
    assert moment >= datetime(9999, 12, 31, tzinfo=UTC)
    assert format_timestamp(to_milliseconds(moment)) == "9999-12-31T23:59:59.999Z"


@pytest.mark.parametrize(
    "value",
    [
        "2026-09-26T20:37:31",
        "2026-09-26T20:37:31.121",
        "2026-09-26",
        "2026-09-26 20:37:31Z",
        "2026-09-26T20:37Z",
        "2026-09-26T20:37:31.Z",
        "2026-09-26T20:37:31.1234567890Z",
        "2026-09-26T20:37:31+0200",
        "2026-09-26T20:37:31+02",
        "20260926T203731Z",
        "2026-W39-6T20:37:31Z",
        "٢٠٢٦-09-26T20:37:31Z",
        "2026-09-26T20:37:31Z\n",
        " 2026-09-26T20:37:31Z",
        "-2026-09-26T20:37:31Z",
        "12026-09-26T20:37:31Z",
        "now",
        "",
        1_790_455_051,
        True,
        {},
        [],
    ],
)
def test_what_is_no_time_with_a_zone_is_refused(value: Json) -> None:
    assert violations(statusTimestampAfter=value) == {"statusTimestampAfter": A_TIME}


@pytest.mark.parametrize(
    "value",
    [
        "0000-01-01T00:00:00Z",
        "0000-12-31T23:59:59Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-09-26T25:00:00Z",
        "2026-09-26T20:60:00Z",
        "2026-09-26T20:37:31+24:00",
        "2026-09-26T20:37:31+99:99",
    ],
)
def test_a_time_that_there_is_not_is_refused(value: str) -> None:
    assert list(violations(statusTimestampAfter=value)) == ["statusTimestampAfter"]


# Limits of a message

NARROW: Final = Validator(validation.Limits(max_parts=2, max_text_chars=5))


def limited(*parts: Json) -> dict[str, str]:
    with pytest.raises(InvalidParamsError) as refused:
        NARROW.read(SendMessageRequest, send_params(parts=list(parts)))
    return {each.field: each.description for each in refused.value.violations}


def test_a_message_at_its_limits_is_read() -> None:
    request = NARROW.read(SendMessageRequest, send_params(parts=[{"text": "é" * 5}, {"text": "😀" * 5}]))

    assert len(request.message.parts) == 2


def test_a_message_of_too_many_parts_is_refused_by_name() -> None:
    assert limited({"text": "1"}, {"text": "2"}, {"data": 3}) == {"message.parts": "must have at most 2 parts"}


def test_a_text_that_is_too_long_is_refused_by_name() -> None:
    assert limited({"text": "1"}, {"text": "123456"}) == {"message.parts[1].text": "must have at most 5 characters"}


def test_all_limits_are_named_at_once() -> None:
    assert set(limited({"text": "123456"}, {"text": "2"}, {"text": "é" * 6})) == {
        "message.parts",
        "message.parts[0].text",
        "message.parts[2].text",
    }


def test_the_limit_of_texts_is_no_limit_of_data() -> None:
    params = send_params(parts=[{"data": "x" * 100}, {"url": "x:" + "y" * 100}])

    assert len(NARROW.read(SendMessageRequest, params).message.parts) == 2
