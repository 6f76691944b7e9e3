"""What the commands do and say."""

import hashlib

import pytest

from a2a_lambda.callers import Credentials
from a2a_lambda.errors import UnauthenticatedError
from a2a_lambda.keys import ApiKey
from admin.commands import command, count, table
from admin.errors import AdminError
from admin.forgetting import Forgotten
from tests.admin.deployment import Deployed

NOON = 1_790_424_000


def said(deployed: Deployed, capsys: pytest.CaptureFixture[str], name: str, **settings: str) -> list[str]:
    command(name, settings)(deployed.database)
    return capsys.readouterr().out.splitlines()


def owner(deployed: Deployed, key: str) -> str:
    return deployed.server.admit(Credentials(api_key=key, source_address="127.0.0.1"))


def ids(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines[1:]]


def test_a_new_key_is_the_last_line_alone_and_lets_its_caller_in(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    *_, key = said(deployed, capsys, "key", CALLER="Zoë (sales)")
    assert owner(deployed, key) == "key:Zoë (sales)"


def test_a_key_is_kept_as_its_hash_only(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    *_, key = said(deployed, capsys, "key", CALLER="alice")
    kept = str(deployed.items_of("key:alice"))
    assert hashlib.sha256(key.encode()).hexdigest() in kept
    assert key not in kept


def test_keys_are_listed_by_caller_and_not_shown_again(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    shown = [said(deployed, capsys, "key", CALLER=caller)[-1] for caller in ("bob", "alice", "bob")]
    lines = said(deployed, capsys, "keys")
    assert lines[0].split() == ["ID", "CALLER", "CREATED", "EXPIRES"]
    assert [line.split()[1] for line in lines[1:]] == ["alice", "bob", "bob"]
    assert not any(key in "\n".join(lines) for key in shown)


def test_where_there_are_no_keys_it_says_how_to_make_one(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = said(deployed, capsys, "keys")
    assert "make key CALLER=name" in line


def test_a_revoked_key_lets_nobody_in_and_is_not_listed(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    *_, revoked = said(deployed, capsys, "key", CALLER="alice")
    *_, kept = said(deployed, capsys, "key", CALLER="alice")
    key_id = hashlib.sha256(revoked.encode()).hexdigest()[:12]
    (line,) = said(deployed, capsys, "revoke", KEY=key_id)
    assert "alice" in line
    assert "60 s" in line
    assert len(ids(said(deployed, capsys, "keys"))) == 1
    assert owner(deployed, kept) == "key:alice"
    with pytest.raises(UnauthenticatedError):
        owner(deployed, revoked)


def test_a_key_that_there_is_not_is_not_revoked(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    said(deployed, capsys, "key", CALLER="alice")
    with pytest.raises(AdminError, match="there is no key 'x'"):
        said(deployed, capsys, "revoke", KEY="x")
    assert len(ids(said(deployed, capsys, "keys"))) == 1


def test_forgetting_says_how_much_was_deleted(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.caller("alice").send("small")
    first, second = said(deployed, capsys, "forget", CALLER="alice")
    assert first == "Deleted of key:alice: 1 task, 1 key, 0 markers, 1 rate bucket."
    assert "run this again" in second


def test_forgetting_nothing_says_so(deployed: Deployed, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(deployed, capsys, "forget", OWNER="jwt:https://issuer.example sub alice") == [
        "Deleted of jwt:https://issuer.example sub alice: 0 tasks, 0 keys, 0 markers, 0 rate buckets."
    ]


def test_forgetting_that_is_interrupted_says_how_far_it_came(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.caller("alice").send("small")

    def interrupt() -> None:
        raise KeyboardInterrupt

    deployed.before_call(6, interrupt)
    with pytest.raises(KeyboardInterrupt):
        said(deployed, capsys, "forget", CALLER="alice")
    assert capsys.readouterr().out == "Deleted of key:alice: 0 tasks, 1 key, 0 markers, 0 rate buckets.\n"


@pytest.mark.parametrize(("name", "missing"), [("key", "CALLER"), ("revoke", "KEY"), ("forget", "CALLER")])
def test_what_a_command_needs_is_asked_for(name: str, missing: str) -> None:
    with pytest.raises(AdminError, match=f"{missing} is missing"):
        command(name, {})


def test_the_table_says_when_keys_end() -> None:
    def key(caller: str, expires_at: int | None) -> ApiKey:
        return ApiKey(key_id="0123456789ab", caller=caller, created_at=NOON, expires_at=expires_at, key_hash="")

    assert table([key("alice", None), key("Zoë (sales)", NOON + 60), key("c", NOON)], NOON) == [
        "ID            CALLER       CREATED               EXPIRES",
        "0123456789ab  alice        2026-09-26 12:00 UTC  never",
        "0123456789ab  Zoë (sales)  2026-09-26 12:00 UTC  2026-09-26 12:01 UTC",
        "0123456789ab  c            2026-09-26 12:00 UTC  2026-09-26 12:00 UTC (expired)",
    ]


def test_counts_are_in_words() -> None:
    assert count(Forgotten(tasks=1, keys=2, markers=0)) == "1 task, 2 keys, 0 markers, 0 rate buckets"
