"""`python -m smoke`: what `make smoke` starts. What it walks is in the environment."""

from __future__ import annotations

import os
import sys

from local.console import complain, say
from smoke.errors import SmokeError
from smoke.settings import read_settings
from smoke.visit import Visit
from smoke.walk import CHECKS, FAILED, OK, SKIPPED, walk
from smoke.wire import Wire


def main() -> int:
    """Walk the endpoint, and return the exit status."""
    try:
        settings = read_settings(os.environ)
        say(f"Walking {settings.base}")
        counts = walk(CHECKS, Visit(settings, Wire()), say)
    except SmokeError as error:
        complain(f"Error: {error}")
        return 2
    except KeyboardInterrupt:
        complain("Interrupted.")
        return 130
    say(f"{counts[OK]} ok, {counts[SKIPPED]} skipped, {counts[FAILED]} failed")
    return 1 if counts[FAILED] else 0


if __name__ == "__main__":
    sys.exit(main())
