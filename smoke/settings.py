"""What is walked, read from environment variables: `make` sets them from its command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from smoke.errors import SmokeError

if TYPE_CHECKING:
    from collections.abc import Mapping

URL: Final = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?", re.ASCII)
HEADER_VALUE: Final = re.compile(r"[\x21-\x7e]*")

CARD_PATH: Final = "/.well-known/agent-card.json"
ENDPOINT_PATH: Final = "/a2a"


@dataclass(frozen=True)
class Settings:
    """What is walked, and with what."""

    base: str
    """Where the card's path begins, without a slash at its end."""
    key: str
    text: str
    """What the agent is told."""
    webhook: str
    """An address for push notifications. It is registered, and deleted before anything is sent there."""


def read_settings(environ: Mapping[str, str]) -> Settings:
    """The settings of URL, KEY, TEXT and WEBHOOK. URL may be the card's own address, or the endpoint's.

    Raises SmokeError.
    """
    url = environ.get("URL") or "http://127.0.0.1:3000"
    if not URL.fullmatch(url):
        raise SmokeError(f"URL must be an http or https address without a query; it is {url!r}")
    key = environ.get("KEY", "")
    if not HEADER_VALUE.fullmatch(key):
        raise SmokeError("KEY has characters that no key has")
    base = url.removesuffix(CARD_PATH).rstrip("/").removesuffix(ENDPOINT_PATH)
    return Settings(
        base=base,
        key=key,
        text=environ.get("TEXT") or "Hello. This is a smoke test.",
        webhook=environ.get("WEBHOOK") or "https://example.com/a2a-smoke-test",
    )
