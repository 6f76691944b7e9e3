"""A walk, and the lines that it says."""

import re
import time
from dataclasses import dataclass, field

from smoke.settings import read_settings
from smoke.visit import Visit
from smoke.walk import CHECKS, FAILED, OK, SKIPPED, Checks, walk
from smoke.wire import Wire

LINE = re.compile(
    rf"({OK}|{SKIPPED}|{FAILED}) +({'|'.join(map(re.escape, sorted(CHECKS, key=len, reverse=True)))})  +(.*)"
)


@dataclass
class Walked:
    """What a walk said of each check: by its name, how it ended and what it saw."""

    said: dict[str, tuple[str, str]] = field(default_factory=dict)

    def read(self, line: str) -> None:
        found = LINE.fullmatch(line)
        assert found, line
        self.said[found[2]] = (found[1], found[3])

    def ended(self, outcome: str) -> set[str]:
        return {name for name, (ended, _) in self.said.items() if ended == outcome}

    @property
    def failed(self) -> set[str]:
        return self.ended(FAILED)

    @property
    def skipped(self) -> set[str]:
        return self.ended(SKIPPED)

    @property
    def failures(self) -> dict[str, str]:
        """What was said of the checks that failed: what a test shows when it should have been nothing."""
        return {name: seen for name, (ended, seen) in self.said.items() if ended == FAILED}


def walked(url: str, checks: Checks = CHECKS, **settings: str) -> Walked:
    """Walk an address, with shorter pauses between two looks."""
    result = Walked()
    visit = Visit(read_settings({"URL": url, **settings}), Wire(), pause=lambda seconds: time.sleep(seconds / 10))
    counts = walk(checks, visit, result.read)
    assert counts.total() == len(checks)
    return result
