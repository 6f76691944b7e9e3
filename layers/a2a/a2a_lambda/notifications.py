"""What the push queue carries, what a webhook is sent of it, and what may come of that (§4.3.3). Pure: no I/O."""

from typing import Final, Literal

import msgspec
from msgspec import UNSET, Struct

from a2a_lambda.model import StreamResponse, TaskPushNotificationConfig, TaskState, TaskStatus, TaskStatusUpdateEvent
from a2a_lambda.outcome import TERMINAL
from a2a_lambda.timestamps import format_timestamp

CONTENT_TYPE: Final = "application/a2a+json"
TOKEN_HEADER: Final = "X-A2A-Notification-Token"  # noqa: S105 - a header's name

BACKOFF_SECONDS: Final = (10, 60, 300, 900, 2400)
"""The pauses between the tries, which so spread over an hour."""

MAX_TRIES: Final = len(BACKOFF_SECONDS) + 1

FIRST_SUCCESS: Final = 200
LAST_SUCCESS: Final = 299


class Notification(Struct, frozen=True, omit_defaults=True):
    """A message of the push queue: which webhook is to be told of which change. No content, and no credentials.

    A change is some artifacts, a state, or a state after artifacts. Each is an event with a number of its own.
    """

    owner: str
    task_id: str
    config_id: str
    write: str
    """The write that made the change, which names where its events lie."""
    sequence: int
    """The number of its last event."""
    given: int = 0
    """How many artifacts there are."""
    state: str = ""
    at: int = 0
    """The state, and its time in milliseconds since the epoch."""
    said: bool = False
    """Whether the event of the state is kept behind the artifacts'. Otherwise it is the state alone."""

    def __post_init__(self) -> None:
        """Refuse a change that is none."""
        if self.state:
            TaskState(self.state)
        if self.given < 0 or self.given + bool(self.state) == 0:
            raise ValueError("a notification needs artifacts or a state")

    @property
    def first(self) -> int:
        """The number of its first event."""
        return self.sequence - self.given - bool(self.state) + 1

    @property
    def kept(self) -> int:
        """How many of its events, from the first on, are kept."""
        return self.given + (self.said and bool(self.state))

    @property
    def is_last(self) -> bool:
        """Whether the task is finished with this."""
        return bool(self.state) and TaskState(self.state) in TERMINAL


class Delivery(Struct, frozen=True, kw_only=True):
    """What came of a message of the push queue.

    delivered: the webhook has taken all of the change. dropped: there was nothing to tell. continued: it has taken a
    part, and there is no time for more; the message comes again at once. retried: it did not take an event, and the
    message is hidden until the next try. switched-off: it did not take one for the last time, and is told of nothing
    more. dead: it had been switched off before. unavailable: the table or the queue did not answer. failed: there was
    a fault. broken: the message cannot be understood.
    """

    outcome: Literal[
        "delivered", "dropped", "continued", "retried", "switched-off", "dead", "unavailable", "failed", "broken"
    ]
    reason: str = ""
    host: str = ""
    """The webhook's host: of its URL nothing else is told."""
    told: int = 0
    """How many events it has taken this time."""
    tries: int = 0
    """How often it has been asked to take the event that it was told of last, this time included."""
    hide_seconds: int | None = None
    """How long the message is hidden until it is received again; None where that is as long as the queue says."""

    @property
    def is_done(self) -> bool:
        """Whether the message has done its work."""
        return self.outcome in {"delivered", "dropped", "switched-off", "dead", "broken"}


def read_notification(body: str) -> Notification:
    """Return what a message says.

    Raises:
        ValueError: it says nothing that can be understood.
    """
    return msgspec.json.decode(body, type=Notification)


def status_update(notification: Notification, context_id: str) -> bytes:
    """Return the StreamResponse, as JSON, of a state that nothing was said with."""
    status = TaskStatus(TaskState(notification.state), timestamp=format_timestamp(notification.at))
    update = TaskStatusUpdateEvent(notification.task_id, context_id, status)
    return msgspec.json.encode(StreamResponse(status_update=update))


def headers(config: TaskPushNotificationConfig) -> dict[str, str]:
    """Return what goes with an update to a webhook. A scheme without credentials says nothing."""
    sent = {"Content-Type": CONTENT_TYPE}
    if config.token:
        sent[TOKEN_HEADER] = config.token
    if config.authentication is not UNSET and config.authentication.credentials:
        sent["Authorization"] = f"{config.authentication.scheme} {config.authentication.credentials}"
    return sent


def is_taken(status: int) -> bool:
    """Tell whether a webhook's answer says that it has taken an update."""
    return FIRST_SUCCESS <= status <= LAST_SUCCESS


def pause_after(tries: int) -> int | None:
    """Return the seconds until the next try, after so many; None where it was the last."""
    return BACKOFF_SECONDS[tries - 1] if tries < MAX_TRIES else None
