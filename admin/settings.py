"""What a command is asked to do, read from environment variables: `make` sets them from its command line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from admin.errors import AdminError

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_CALLER_LENGTH = 200
MAX_DAYS = 36_500
DAYS_DIGITS = len(str(MAX_DAYS))

OWNER = re.compile(r"anonymous|(key|jwt|iam)(-sha256)?:.+", re.DOTALL)
"""What `a2a_lambda.callers` makes of callers. Nothing else in the callers' table is anybody's."""


def caller(environ: Mapping[str, str]) -> str:
    """The name of a caller, CALLER.

    Raises AdminError.
    """
    name = _given(environ, "CALLER", "the caller's name")
    if not name.isprintable() or name != name.strip() or len(name) > MAX_CALLER_LENGTH:
        raise AdminError(
            f"CALLER must be 1 to {MAX_CALLER_LENGTH} printable characters, without blanks at its ends; it is {name!r}"
        )
    return name


def days(environ: Mapping[str, str]) -> int | None:
    """For how many days a key is to be valid, DAYS; None for ever.

    Raises AdminError.
    """
    text = environ.get("DAYS", "")
    if not text:
        return None
    if text.isascii() and text.isdecimal() and len(text) <= DAYS_DIGITS and 1 <= int(text) <= MAX_DAYS:
        return int(text)
    raise AdminError(f"DAYS must be a whole number from 1 to {MAX_DAYS}; it is {text!r}")


def key_id(environ: Mapping[str, str]) -> str:
    """The id of a key, KEY, as the list of keys shows it.

    Raises AdminError.
    """
    return _given(environ, "KEY", "the key's id, which `make keys` shows")


def owner(environ: Mapping[str, str]) -> str | None:
    """An owner as the server names it, OWNER; None where it is not given.

    Raises AdminError.
    """
    name = environ.get("OWNER", "")
    if not name:
        return None
    if environ.get("CALLER"):
        raise AdminError("give CALLER or OWNER, not both")
    if not OWNER.fullmatch(name):
        raise AdminError(f"OWNER must begin with key:, jwt: or iam:, or be anonymous; it is {name!r}")
    return name


def _given(environ: Mapping[str, str], variable: str, meaning: str) -> str:
    value = environ.get(variable, "")
    if not value:
        raise AdminError(f"{variable} is missing: {meaning}")
    return value
