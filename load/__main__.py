"""`python -m load`: what `make load` starts. How much of it is in the environment."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from load.callers import drive
from load.settings import LoadError, read_settings
from local.console import complain, say
from local.deployment import read_deployment
from local.errors import LocalError

if TYPE_CHECKING:
    from load.settings import Settings

TEMPLATE = Path(__file__).parent.parent / "template.yaml"

AGENTS = {"acting": "load.agents:Acting", "read-only": "load.agents:ReadOnly"}


def main() -> int:
    """Load each agent, and return the exit status."""
    try:
        settings = read_settings(os.environ)
        sys.path.extend(str(path) for path in read_deployment(TEMPLATE, {}).layers())
        results = [load(name, settings) for name in AGENTS]
    except (LoadError, LocalError) as error:
        complain(f"Error: {error}")
        return 2
    except KeyboardInterrupt:
        complain("Interrupted.")
        return 130
    return 0 if all(results) else 1


def load(name: str, settings: Settings) -> bool:
    """Load one agent, say how fast it was and what was wrong, and tell whether nothing was."""
    from load.checks import CHECKS, Evidence  # noqa: PLC0415 - the library is found from here on
    from load.report import errors, speed, verdicts  # noqa: PLC0415 - as above
    from load.services import served  # noqa: PLC0415 - as above

    with served(AGENTS[name]) as services:
        keys = services.make_keys(settings.callers)
        started = time.perf_counter()
        answers = drive(settings, services.ports, keys)
        seconds = time.perf_counter() - started
        say(f"{name} agent: {len(answers)} requests in {seconds:.1f} s, {len(answers) / seconds:.0f} a second")
        say(f"\n{speed(answers)}\n\nNo results:\n" + "\n".join(errors(answers)) + "\n")
        services.settle()
        evidence = Evidence(name == "acting", answers, services.tasks(), services.index(), services.runs())
    say(f"{len(evidence.tasks)} tasks, {evidence.runs.total()} runs")
    found = list(verdicts(CHECKS, evidence))
    say("\n".join(line for _, line in found) + "\n")
    return all(holds for holds, _ in found)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
