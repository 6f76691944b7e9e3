"""Telling a webhook of an update (§4.3.3), and what is done when it does not take it.

    the webhook, its task or the update is gone, or it was told already   dropped
    the webhook takes it                                                  delivered; after the last state it is deleted
    it does not, for the first to the fifth time                          hidden for a while, and then tried again
    it does not, for the sixth time                                       switched off; a dead letter
    the webhook is switched off                                           a dead letter

An update is told of at least once, and in order: the queue gives a webhook's messages one after the other, and holds
those back that come behind a hidden one.
"""

from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from a2a_lambda.addresses import UnsafeUrlError
from a2a_lambda.model import TaskPushNotificationConfig
from a2a_lambda.notifications import (
    BACKOFF_SECONDS,
    Delivery,
    Notification,
    headers,
    is_taken,
    pause_after,
    status_update,
)
from a2a_lambda.push_configs import Subscription, TablePushConfigs
from a2a_lambda.queues import FifoMessage, Queue
from a2a_lambda.webhooks import DeliveryError


class Received(Struct, frozen=True):
    """A message as it was received from the push queue."""

    message: FifoMessage
    tries: int
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

    def deliver(self, notification: Notification, received: Received) -> Delivery:
        """Tell a webhook of an update, if there is anything to tell.

        Raises:
            UnavailableError: the table or the queue did not answer. The message is to be received again.
        """
        owner, task_id, config_id = notification.owner, notification.task_id, notification.config_id
        subscription = self._configs.read(owner, task_id, config_id, notification.key)
        if subscription is None:
            return Delivery(outcome="dropped", reason="the webhook, the task or the update is gone")
        host = urlsplit(subscription.config.url).hostname or ""
        if notification.sequence <= subscription.delivered:
            return Delivery(outcome="dropped", reason="the webhook was told already", host=host)
        if not subscription.is_enabled:
            self._dead_letters.send_fifo([received.message])
            return Delivery(outcome="dead", reason="the webhook is switched off", host=host)
        content = self._content(notification, subscription)
        if content is None:
            return Delivery(outcome="dropped", reason="the update is gone", host=host)
        if refusal := self._refusal(subscription.config, content):
            delivery = Delivery(outcome="retried", reason=refusal, host=host)
            return self._refused(notification, subscription.generation, received, delivery)
        self._remember(notification)
        return Delivery(outcome="delivered", host=host)

    def _content(self, notification: Notification, subscription: Subscription) -> bytes | None:
        """Return the update as JSON; None where it is gone."""
        if subscription.update is None:
            return status_update(notification, subscription.context_id)
        return self._configs.whole(notification.owner, notification.task_id, subscription.update)

    def _refusal(self, config: TaskPushNotificationConfig, content: bytes) -> str:
        """Post content to a webhook, and return why it did not take it, or nothing."""
        try:
            status = self._webhooks.post(config.url, content, headers(config))
        except UnsafeUrlError as error:
            return f"the URL {error}"
        except DeliveryError as error:
            return f"the webhook {error}"
        return "" if is_taken(status) else f"the webhook answered {status}"

    def _remember(self, notification: Notification) -> None:
        """Note that a webhook was told. After the task's last state it is told of nothing more, and goes."""
        owner, task_id, config_id = notification.owner, notification.task_id, notification.config_id
        if notification.is_last:
            self._configs.delete(owner, task_id, config_id)
        else:
            self._configs.delivered(owner, task_id, config_id, notification.sequence)

    def _refused(self, notification: Notification, generation: str, received: Received, delivery: Delivery) -> Delivery:
        """Put off a message that a webhook did not take, or put it aside after the last try."""
        if pause := pause_after(received.tries):
            return replace(delivery, hide_seconds=pause)
        owner, task_id, config_id = notification.owner, notification.task_id, notification.config_id
        if not self._configs.switch_off(owner, task_id, config_id, generation):
            # Deleted or replaced while it was tried: the next look tells.
            return replace(delivery, hide_seconds=BACKOFF_SECONDS[0])
        self._dead_letters.send_fifo([received.message])
        return replace(delivery, outcome="switched-off")
