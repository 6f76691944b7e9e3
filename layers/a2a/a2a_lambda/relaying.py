"""The relay: what a change of a task leaves in its outbox is passed on to the queues.

It comes from the table's stream, at least once and in the order of the task's changes. What is passed on twice is
harmless: a run of a turn is claimed once, and the events that a webhook is told of are numbered.

A change is one message for the worker, and one for each webhook, however much there is to be told of it.
"""

import hashlib
import json
from typing import Any, Final

import msgspec

from a2a_lambda.items import Outgoing
from a2a_lambda.notifications import Notification
from a2a_lambda.push_configs import TablePushConfigs, Watcher
from a2a_lambda.queues import MAX_DELAY_SECONDS, FifoMessage, Queue
from a2a_lambda.task import Head
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
        head = outgoing.head
        if outgoing.outbox.webhook and self._push:
            # Its writer has done so already, unless it died on the way.
            self._configs.promote(head, told=head.sequence - outgoing.count)
        if outgoing.outbox.attend:
            work = Work(head.owner, head.task_id, head.turn, head.run)
            self._work.send(_json(work), delay_seconds=_delay(head, now), group=_group(head.owner))
        if outgoing.count and self._push:
            watchers = self._configs.watchers(head.owner, head.task_id)
            self._push.send_fifo([_notification(outgoing, watcher) for watcher in watchers])


def _delay(head: Head, now: int) -> int:
    """Return how long nobody need look at a turn, in seconds: a running one until its deadline."""
    if head.queued or head.deadline is None:
        return 0
    return min(max(0, head.deadline - now) // 1000 + AFTER_DEADLINE_SECONDS, MAX_DELAY_SECONDS)


def _notification(outgoing: Outgoing, watcher: Watcher) -> FifoMessage:
    head, outbox = outgoing.head, outgoing.outbox
    notification = Notification(
        owner=head.owner,
        task_id=head.task_id,
        config_id=watcher.config_id,
        write=head.write,
        sequence=head.sequence,
        given=outbox.given,
        state=outbox.state,
        at=outbox.at,
        said=outbox.said,
    )
    group = f"{head.task_id}#{watcher.entry.partition('#')[2]}"
    identity = hashlib.sha256(f"{group}#{watcher.generation}#{head.sequence}".encode()).hexdigest()
    return FifoMessage(_json(notification), group, identity)


def _group(owner: str) -> str:
    """Return what tells an owner's turns from others', so that many of one's do not keep another's waiting."""
    return hashlib.sha256(owner.encode()).hexdigest()


def _json(message: Any) -> str:
    """Return a message as JSON in ASCII: SQS refuses a few of the characters that an id may have."""
    return json.dumps(msgspec.to_builtins(message), separators=(",", ":"))
