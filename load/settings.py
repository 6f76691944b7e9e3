"""How much load there is, read from environment variables: `make` sets them from its command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class LoadError(Exception):
    """There is no load to be made; the message is for the console."""


@dataclass(frozen=True)
class Settings:
    """How much load there is. Seconds and requests are those of one agent; there are two."""

    callers: int
    seconds: int
    requests: int
    rate: int
    """Requests a second of all callers together. 0: each asks again as soon as it is answered."""


LIMITS: Final[Mapping[str, tuple[int, int, int]]] = {
    "CALLERS": (200, 1, 400),
    "SECONDS": (12, 1, 120),
    "REQUESTS": (20_000, 1, 200_000),
    "RATE": (0, 0, 10_000),
}
"""Each variable's default, least and most."""


def read_settings(environ: Mapping[str, str]) -> Settings:
    """The settings of CALLERS, SECONDS, REQUESTS and RATE.

    Raises LoadError.
    """
    return Settings(**{name.lower(): _number(environ, name) for name in LIMITS})


def _number(environ: Mapping[str, str], name: str) -> int:
    default, least, most = LIMITS[name]
    text = environ.get(name) or str(default)
    if text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and least <= int(text) <= most:
        return int(text)
    raise LoadError(f"{name} must be a whole number from {least} to {most}; it is {text!r}")
