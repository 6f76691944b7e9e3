"""Page tokens: what leads on through a list, and nothing else does."""

import base64
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_lambda.errors import InvalidParamsError
from a2a_lambda.pages import CLOCK_SKEW, TOKEN_LIFETIME, Place, make_token, read_token
from tests.unit.factories import NOON

PLACE: Final = Place("2026-09-26T20:37:31.121Z#00000000-0000-4000-8000-000000000001", 1234, NOON)
LIST: Final = '["anonymous",{}]'
TOKEN: Final = make_token(PLACE, LIST)


def refused(token: str, *, list_name: str = LIST, now: int = NOON) -> str:
    """Return what is wrong with a token."""
    with pytest.raises(InvalidParamsError) as error:
        read_token(token, list_name, now)
    ((field, description),) = [(each.field, each.description) for each in error.value.violations]
    assert field == "pageToken"
    return description


def test_a_token_leads_to_its_place() -> None:
    assert read_token(TOKEN, LIST, NOON) == PLACE


@given(st.text(), st.integers(0, 10**6), st.text())
def test_whatever_a_place_is_its_token_leads_there(cursor: str, total: int, list_name: str) -> None:
    place = Place(cursor, total, NOON)

    assert read_token(make_token(place, list_name), list_name, NOON) == place


def test_a_token_can_stand_in_a_url() -> None:
    assert TOKEN.isascii()
    assert not set(TOKEN) & set("+/ ?&#")


@pytest.mark.parametrize("length", range(len(TOKEN)))
def test_a_token_that_was_cut_short_is_refused(length: int) -> None:
    refused(TOKEN[:length])


@pytest.mark.parametrize("position", range(len(TOKEN)))
def test_a_token_with_a_bit_altered_anywhere_is_refused(position: int) -> None:
    for bit in range(8):
        altered = chr(ord(TOKEN[position]) ^ (1 << bit))
        refused(TOKEN[:position] + altered + TOKEN[position + 1 :])


@pytest.mark.parametrize("position", range(len(base64.urlsafe_b64decode(TOKEN))))
def test_a_token_with_a_bit_of_its_content_altered_is_refused(position: int) -> None:
    content = bytearray(base64.urlsafe_b64decode(TOKEN))
    for bit in range(8):
        altered = content.copy()
        altered[position] ^= 1 << bit
        refused(base64.urlsafe_b64encode(altered).decode())


@pytest.mark.parametrize(
    "other", ['["stranger",{}]', '["anonymous",{"state":"TASK_STATE_COMPLETED"}]', "", LIST + " ", LIST.upper()]
)
def test_a_token_of_another_list_is_refused(other: str) -> None:
    assert "this list" in refused(TOKEN, list_name=other)


def test_a_token_lasts_a_day() -> None:
    assert read_token(TOKEN, LIST, NOON + TOKEN_LIFETIME - 1) == PLACE
    assert "24 hours" in refused(TOKEN, now=NOON + TOKEN_LIFETIME)


@pytest.mark.parametrize("behind", [1, 20, 60_000, CLOCK_SKEW])
def test_a_token_is_taken_by_an_instance_whose_clock_is_behind(behind: int) -> None:
    assert read_token(TOKEN, LIST, NOON - behind) == PLACE


def test_a_token_from_far_in_the_future_is_refused() -> None:
    refused(TOKEN, now=NOON - CLOCK_SKEW - 1)


def rewritten(old: str, new: str) -> str:
    """Return the token with something else in its content."""
    content = base64.urlsafe_b64decode(TOKEN).decode()
    assert old in content
    return base64.urlsafe_b64encode(content.replace(old, new).encode()).decode()


@pytest.mark.parametrize(
    ("old", "new"),
    [("1234", "1235"), (str(NOON), str(NOON + 1)), ("#", "$"), ("1234", "1234.0"), ("1234", "null"), ("[[", "[ [")],
)
def test_a_token_that_was_rewritten_is_refused(old: str, new: str) -> None:
    refused(rewritten(old, new))


def test_only_the_one_way_to_write_a_token_is_taken() -> None:
    content = base64.urlsafe_b64decode(TOKEN)
    padded = make_token(Place("x", 1, NOON), LIST)
    for length in range(1, 4):
        padded = make_token(Place("x" * length, 1, NOON), LIST)
        if padded.endswith("="):
            refused(padded.rstrip("="))
    refused(TOKEN + "=")
    refused(TOKEN + "\n")
    refused(" " + TOKEN)
    refused(TOKEN[:10] + "\n" + TOKEN[10:])
    refused(base64.b64encode(content + b" ").decode())


@pytest.mark.parametrize(
    "token",
    ["x", "é", "\x00", "====", "e30=", "W10=", "bnVsbA==", "W1tdLCIiXQ==", "A" * 10_000, "😀", '["a"]', "\ud800"],
)
def test_what_is_no_token_is_refused(token: str) -> None:
    assert "not a page token" in refused(token)
