"""When to look for work again: at once where there may be some, seldom where there is none."""

from __future__ import annotations

import threading

SHORTEST_SECONDS = 0.02
LONGEST_SECONDS = 0.5


class Rhythm:
    """The pauses of one thread that looks for work. They double while nothing wakes it."""

    def __init__(self) -> None:
        self._awake = threading.Event()
        self._seconds = SHORTEST_SECONDS

    def wake(self) -> None:
        """End the pause, or the next one, at once; the ones after it are short."""
        self._awake.set()

    def pause(self) -> None:
        """Wait until it is time to look again."""
        if self._awake.wait(self._seconds):
            self._awake.clear()
            self._seconds = SHORTEST_SECONDS
        else:
            self._seconds = min(self._seconds * 2, LONGEST_SECONDS)
