"""How the records of a stream reach a function: in order, again and again, and at last not at all.

https://docs.aws.amazon.com/lambda/latest/dg/services-dynamodb-errors.html
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from local.mappings import FOR_EVER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from local.batches import Record
    from local.mappings import StreamMapping

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0


@dataclass(frozen=True)
class Delivery:
    """What a batch of records is delivered with.

    `attempt` says how many of the records have succeeded before the first that failed;
    `give_up` is told of those that are not tried again, and how often they were tried.
    """

    attempt: Callable[[Sequence[Record]], int]
    give_up: Callable[[Sequence[Record], int], None]
    pause: Callable[[float], None]
    mapping: StreamMapping

    def deliver(self, records: Sequence[Record], attempts: int = 0) -> None:
        """Deliver the records, and return when each has succeeded or has been given up.

        A batch that is split is tried anew in halves, which is no retry.
        """
        while records:
            succeeded = self.attempt(records)
            attempts = 1 if succeeded else attempts + 1
            records = records[succeeded:]
            if not records:
                return
            if self.mapping.bisects and len(records) > 1:
                half = len(records) // 2
                self.deliver(records[:half], attempts - 1)
                records, attempts = records[half:], 0
            elif self.mapping.retries != FOR_EVER and attempts > self.mapping.retries:
                self.give_up(records, attempts)
                return
            else:
                self.pause(min(FIRST_PAUSE_SECONDS * 2 ** (attempts - 1), LONGEST_PAUSE_SECONDS))
