"""What a command is asked to do."""

import re

import pytest

from admin import settings
from admin.errors import AdminError


@pytest.mark.parametrize("name", ["alice", "a", "Zoë O'Neil (sales)", "日本", "x" * 200, "a=b;$c"])
def test_a_caller_is_named_by_printable_characters(name: str) -> None:
    assert settings.caller({"CALLER": name}) == name


@pytest.mark.parametrize(
    "name", [" a", "a ", "\u00a0a", "a\nb", "a\tb", "\x00", "\x1b[1m", "\u202e", "\udcff", "x" * 201]
)
def test_a_name_that_cannot_be_used_is_said_to_be(name: str) -> None:
    with pytest.raises(AdminError, match=r"^CALLER must be 1 to 200 printable characters[^\n]*$") as refused:
        settings.caller({"CALLER": name})
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("environ", [{}, {"CALLER": ""}])
def test_a_name_that_is_missing_is_said_to_be(environ: dict[str, str]) -> None:
    with pytest.raises(AdminError, match="CALLER is missing"):
        settings.caller(environ)


@pytest.mark.parametrize(("text", "days"), [("1", 1), ("36500", 36_500), ("007", 7), ("", None)])
def test_a_key_is_valid_for_whole_days_or_for_ever(text: str, days: int | None) -> None:
    assert settings.days({"DAYS": text}) == days
    assert settings.days({}) is None


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many", "36501", "\u0661", " 1", "9" * 5000])
def test_days_that_are_none_are_said_to_be(text: str) -> None:
    with pytest.raises(AdminError, match="DAYS must be a whole number from 1 to 36500"):
        settings.days({"DAYS": text})


def test_a_key_is_named_by_its_id() -> None:
    assert settings.key_id({"KEY": "0123"}) == "0123"
    with pytest.raises(AdminError, match="KEY is missing"):
        settings.key_id({})


@pytest.mark.parametrize(
    "owner", ["key:alice", "jwt:https://issuer.example sub alice", "iam:arn:x", "anonymous", "jwt-sha256:0123"]
)
def test_an_owner_is_named_as_the_server_does(owner: str) -> None:
    assert settings.owner({"OWNER": owner}) == owner


@pytest.mark.parametrize("owner", ["alice", "keys", "key#0123", "key:", "127.0.0.1", "anonymous "])
def test_what_is_nobodys_is_not_an_owners(owner: str) -> None:
    with pytest.raises(AdminError, match=re.escape(repr(owner))):
        settings.owner({"OWNER": owner})


def test_caller_and_owner_are_one_too_many() -> None:
    with pytest.raises(AdminError, match="not both"):
        settings.owner({"OWNER": "anonymous", "CALLER": "alice"})


def test_without_an_owner_there_is_none() -> None:
    assert settings.owner({"CALLER": "alice"}) is None
