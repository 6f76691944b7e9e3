"""The relay: what a change of a task leaves in its outbox is passed on to the queues.

It comes from the table's stream, at least once and in the order of the task's changes. What is passed on twice is
harmless: a run of a turn is claimed once, and a webhook's messages are numbered.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from a2a_lambda.items import Event, Outgoing
from a2a_lambda.push_configs import TablePushConfigs, Watcher
from a2a_lambda.queues import MAX_DELAY_SECONDS, FifoMessage, Queue
from a2a_lambda.working import Work

AFTER_DEADLINE_SECONDS: Final = 1


class Relay:
    """Passes outboxes on."""

    def __init__(self, work: Queue, push: Queue | None, configs: TablePushConfigs) -> None:
        """Args: the work queue; the push queue, None where there are no push notifications; who is to be told."""
        self._work = work
        self._push = push
        self._configs = configs

    def pass_on(self, outgoing: Outgoing, now: int) -> None:
        """Pass on what one change of a task leaves, at a time in milliseconds since the epoch.

        Raises:
            UnavailableError: something was not taken. All of it is to be passed on again.
        """
        if outgoing.attend:
            work = Work(outgoing.owner, outgoing.task_id, outgoing.turn, outgoing.run)
            self._work.send(msgspec.json.encode(work), delay_seconds=_delay(outgoing, now))
        if outgoing.events and self._push:
            self._push.send_fifo(_notifications(outgoing, self._configs.watchers(outgoing.owner, outgoing.task_id)))


def _delay(outgoing: Outgoing, now: int) -> int:
    """Return how long nobody need look at a turn, in seconds: a running one until its deadline."""
    if outgoing.queued or outgoing.deadline is None:
        return 0
    return min(max(0, outgoing.deadline - now) // 1000 + AFTER_DEADLINE_SECONDS, MAX_DELAY_SECONDS)


def _notifications(outgoing: Outgoing, watchers: Sequence[Watcher]) -> list[FifoMessage]:
    return [
        _notification(outgoing, sequence, event, watcher) for sequence, event in outgoing.events for watcher in watchers
    ]


def _notification(outgoing: Outgoing, sequence: int, event: Event, watcher: Watcher) -> FifoMessage:
    body: dict[str, Any] = {
        "owner": outgoing.owner,
        "task_id": outgoing.task_id,
        "config_id": watcher.config_id,
        "sequence": sequence,
        **msgspec.to_builtins(event),
    }
    group = f"{outgoing.task_id}#{watcher.entry.partition('#')[2]}"
    identity = hashlib.sha256(f"{group}#{watcher.generation}#{sequence}".encode()).hexdigest()
    return FifoMessage(msgspec.json.encode(body).decode(), group, identity)
