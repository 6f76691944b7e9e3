"""Telling a webhook of a change (§4.3.3), and what is done when it does not take it.

    the webhook, its task or the change is gone, or it was told already   dropped
    the webhook takes it                                                  delivered; after the last state it is deleted
    it takes a part, and there is no time for more                        continued: the message comes again at once
    it does not take an event, for the first to the fifth time            hidden for a while, and then tried again
    it does not, for the sixth time                                       switched off; a dead letter
    the webhook is switched off                                           a dead letter

A message is a change of a task, which is one event or thousands of them. They are posted one after the other, and after
each that was taken the config remembers its number: a message that comes again goes on from there. An event is told at
least once, and in order: the queue gives a webhook's messages one after the other, and holds those back that come
behind a hidden one.

Whatever is written to a config is written to the generation that was read. Where that has been deleted or replaced
meanwhile, the webhook is looked at again: a new one is told what the old one may have taken already.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from a2a_lambda import items
from a2a_lambda.addresses import UnsafeUrlError
from a2a_lambda.notifications import Delivery, Notification, headers, is_taken, pause_after, status_update
from a2a_lambda.outcome import TERMINAL
from a2a_lambda.push_configs import Subscription, TablePushConfigs
from a2a_lambda.queues import FifoMessage, Queue
from a2a_lambda.tables import batches
from a2a_lambda.task import Content
from a2a_lambda.webhooks import DeliveryError

POST_SECONDS: Final = 12.0
"""What telling of one event may take: ten seconds for the webhook, and what is written of it."""

READ_TOGETHER: Final = 25
"""How many events are read at once."""

MOST_RECEIPTS: Final = 990
"""After so many receipts of a message the webhook is switched off. After 1,000, the most that SQS counts to, the queue
would put the message aside itself, and go on with those behind it."""


class Received(Struct, frozen=True):
    """A message as it was received from the push queue."""

    message: FifoMessage
    receipts: int
    """How often it has been received, this time included."""


class Poster(Protocol):
    """What posts to webhooks."""

    def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> int:
        """Post content, and return the status of the answer.

        Raises:
            UnsafeUrlError: nothing is sent there.
            DeliveryError: there was no answer.
        """


class Deliverer:
    """Sends what the push queue's messages say."""

    def __init__(self, configs: TablePushConfigs, webhooks: Poster, dead_letters: Queue) -> None:
        """Args: where the webhooks are kept; what posts to them; where messages go that they do not take."""
        self._configs = configs
        self._webhooks = webhooks
        self._dead_letters = dead_letters

    def deliver(self, notification: Notification, received: Received, seconds_left: Callable[[], float]) -> Delivery:
        """Tell a webhook of a change, if there is anything to tell.

        Args:
            notification: what the message says.
            received: the message.
            seconds_left: the time until the function is stopped.

        Raises:
            UnavailableError: the table or the queue did not answer. The message is to be received again.
        """
        owner, task_id, config_id = notification.owner, notification.task_id, notification.config_id
        entries = _entries(notification, range(notification.first, notification.sequence + 1))
        told = 0
        while True:
            found = self._configs.read(owner, task_id, config_id, entries if len(entries) <= READ_TOGETHER else ())
            if found is None:
                return Delivery(outcome="dropped", reason="the webhook or the task is gone", told=told)
            telling = _Telling(self._configs, self._webhooks, notification, *found)
            delivery = telling.tell(seconds_left, received.receipts)
            told += telling.told
            if delivery and delivery.outcome in {"switched-off", "dead"}:
                self.put_aside(received)
            if delivery:
                host = urlsplit(telling.subscription.config.url).hostname or ""
                return replace(delivery, host=host, told=told, tries=telling.tries)

    def put_aside(self, received: Received) -> None:
        """Make a message a dead letter.

        Raises:
            UnavailableError: the queue did not answer.
        """
        self._dead_letters.send_fifo([received.message])


class _Telling:
    """A generation of a webhook while it is told of a change."""

    def __init__(
        self,
        configs: TablePushConfigs,
        webhooks: Poster,
        notification: Notification,
        subscription: Subscription,
        contents: Mapping[str, Content],
    ) -> None:
        """Args: what was read of the events' contents with the webhook."""
        self._configs = configs
        self._webhooks = webhooks
        self._notification = notification
        self._contents = contents
        self.subscription = subscription
        self.told = 0
        self.tries = 0

    def tell(self, seconds_left: Callable[[], float], receipts: int) -> Delivery | None:
        """Return what came of it; None where the webhook has been deleted or replaced meanwhile."""
        if self._notification.sequence <= self.subscription.delivered:
            return Delivery(outcome="dropped", reason="the webhook was told already")
        if not self.subscription.is_enabled:
            self._let_expire()
            return Delivery(outcome="dead", reason="the webhook is switched off")
        return self._tell_rest(seconds_left, receipts)

    def _tell_rest(self, seconds_left: Callable[[], float], receipts: int) -> Delivery | None:
        for number, event in self._events():
            if event is None:
                return Delivery(outcome="dropped", reason="the change is gone")
            if seconds_left() < POST_SECONDS:
                return self._later(Delivery(outcome="continued", hide_seconds=0), receipts)
            self.tries = self.subscription.tries_of(number) + 1
            if refusal := self._refusal(event):
                return self._refused(number, refusal, receipts)
            if not self._remember(number):
                return None
            self.told += 1
        return Delivery(outcome="delivered")

    def _events(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield the numbers of the events that the webhook was not told of, each with it as JSON, or None."""
        notification = self._notification
        first = max(notification.first, self.subscription.delivered + 1)
        for batch in batches(range(first, notification.sequence + 1), READ_TOGETHER):
            entries = _entries(notification, batch)
            if not self._contents.keys() >= set(entries):
                self._contents = self._configs.contents(notification.owner, notification.task_id, entries)
            for number in batch:
                yield number, self._event(number)

    def _event(self, number: int) -> bytes | None:
        notification = self._notification
        index = number - notification.first
        if index >= notification.kept:
            return status_update(notification, self.subscription.head.context_id)
        content = self._contents.get(items.event_entry(notification.write, index))
        return None if content is None else self._configs.whole(notification.owner, notification.task_id, content)

    def _refusal(self, event: bytes) -> str:
        """Post an event to the webhook, and return why it did not take it, or nothing."""
        config = self.subscription.config
        try:
            status = self._webhooks.post(config.url, event, headers(config))
        except UnsafeUrlError as error:
            return f"the URL {error}"
        except DeliveryError as error:
            return f"the webhook {error}"
        return "" if is_taken(status) else f"the webhook answered {status}"

    def _remember(self, number: int) -> bool:
        """Note that the webhook was told of an event. After the task's last state it goes."""
        if self._notification.is_last and number == self._notification.sequence:
            return self._configs.remove(self.subscription)
        return self._configs.delivered(self.subscription, number)

    def _refused(self, number: int, reason: str, receipts: int) -> Delivery | None:
        """Put off a message of which an event was not taken, or switch the webhook off after the last try."""
        pause = pause_after(self.tries)
        if pause is None:
            return self._switched_off(reason)
        if not self._configs.tried(self.subscription, number, self.tries):
            return None
        return self._later(Delivery(outcome="retried", reason=reason, hide_seconds=pause), receipts)

    def _later(self, delivery: Delivery, receipts: int) -> Delivery | None:
        """Let the message be received again, unless it has been too often."""
        if receipts < MOST_RECEIPTS:
            return delivery
        return self._switched_off(delivery.reason or "the webhook took too long")

    def _switched_off(self, reason: str) -> Delivery | None:
        if not self._configs.switch_off(self.subscription):
            return None
        self._let_expire()
        return Delivery(outcome="switched-off", reason=reason)

    def _let_expire(self) -> None:
        """Have a webhook that is switched off expire with its task, once that is finished."""
        if self._notification.is_last and self.subscription.head.state in TERMINAL:
            self._configs.keep_as_long_as_its_task(self.subscription)


def _entries(notification: Notification, numbers: Sequence[int]) -> list[str]:
    """Return where events of a change lie, by their numbers; those that are a state alone lie nowhere."""
    indexes = (number - notification.first for number in numbers)
    return [items.event_entry(notification.write, index) for index in indexes if index < notification.kept]
