"""The commands: what `make key`, `make keys`, `make revoke` and `make forget` do and say."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from a2a_lambda import timestamps
from a2a_lambda.callers import KEY_CACHE_MS, owner_of_caller
from a2a_lambda.keys import TableKeys
from admin import settings
from admin.errors import AdminError
from admin.forgetting import Forgetting, Forgotten, Tables
from local.console import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from a2a_lambda.keys import ApiKey
    from admin.database import Database

Command: TypeAlias = "Callable[[Database], None]"

CACHE_SECONDS = KEY_CACHE_MS // 1000


def command(name: str, environ: Mapping[str, str]) -> Command:
    """The command of a name, with its arguments from the environment.

    Raises AdminError where they cannot be used.
    """
    match name:
        case "key":
            return partial(make_key, caller=settings.caller(environ), days=settings.days(environ))
        case "revoke":
            return partial(revoke_key, key_id=settings.key_id(environ))
        case "forget":
            owner = settings.owner(environ) or owner_of_caller(settings.caller(environ))
            return partial(forget, owner=owner, pause=time.sleep)
        case _:
            return list_keys


def make_key(database: Database, *, caller: str, days: int | None) -> None:
    """Make a key, for some days or for ever, and print it: the last line, and nothing else on it."""
    key, made = _keys(database).make(caller, days)
    until = "does not expire" if made.expires_at is None else f"expires {_time(made.expires_at)}"
    say(f"The key {made.key_id} of {caller} {until}. It is shown this once:")
    say(key)


def list_keys(database: Database) -> None:
    """Print a table of all keys, by caller and age."""
    keys = sorted(_keys(database).all(), key=lambda key: (key.caller, key.created_at))
    if not keys:
        say("There are no keys. Make one with `make key CALLER=name`.")
        return
    for line in table(keys, timestamps.now() // 1000):
        say(line)


def revoke_key(database: Database, *, key_id: str) -> None:
    """Revoke a key.

    Raises AdminError where there is none with this id.
    """
    revoked = _keys(database).revoke(key_id)
    if revoked is None:
        raise AdminError(f"there is no key {key_id!r} in {database.place}; `make keys` shows their ids")
    say(f"The key {key_id} of {revoked.caller} is revoked. Who has just used it may go on for {CACHE_SECONDS} s.")


def forget(database: Database, *, owner: str, pause: Callable[[float], object]) -> None:
    """Delete all that an owner has, and say how much it was, when interrupted too."""
    tables = Tables(database.tasks, database.scan_tasks, database.callers, _keys(database))
    forgetting = Forgetting(owner, tables, pause)
    done = forgetting.forgotten
    try:
        forgetting.run()
    finally:
        say(f"Deleted of {owner}: {count(done)}.")
    if done != Forgotten():
        say("A request that was under way may leave something: run this again in two minutes to be sure.")


def count(done: Forgotten) -> str:
    """How much was deleted, in words."""
    counts = {"task": done.tasks, "key": done.keys, "marker": done.markers, "rate bucket": done.rate_buckets}
    return ", ".join(f"{number} {thing}{'' if number == 1 else 's'}" for thing, number in counts.items())


def table(keys: Iterable[ApiKey], now: int) -> list[str]:
    """The lines of a table of keys, at a time in seconds since the epoch."""
    rows = [("ID", "CALLER", "CREATED", "EXPIRES")]
    rows += [(key.key_id, key.caller, _time(key.created_at), _expiry(key, now)) for key in keys]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _expiry(key: ApiKey, now: int) -> str:
    if key.expires_at is None:
        return "never"
    return f"{_time(key.expires_at)}{' (expired)' if key.expires_at <= now else ''}"


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _keys(database: Database) -> TableKeys:
    return TableKeys(database.callers, clock=timestamps.now)
