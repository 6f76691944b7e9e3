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
    """A message of the push queue: which webhook is to be told of which update. No content, and no credentials."""

    owner: str
    task_id: str
    config_id: str
    sequence: int
    """The number of the update within its task."""
    state: str = ""
    at: int = 0
    """The state of a status, and its time in milliseconds since the epoch."""
    key: str = ""
    """The entry that holds the update, unless it is the state alone."""

    def __post_init__(self) -> None:
        """Refuse an update that is none."""
        if self.state:
            TaskState(self.state)
        elif not self.key:
            raise ValueError("a notification needs a state or a key")

    @property
    def is_last(self) -> bool:
        """Whether the task is finished with this."""
        return bool(self.state) and TaskState(self.state) in TERMINAL


class Delivery(Struct, frozen=True, kw_only=True):
    """What came of a message of the push queue.

    delivered: the webhook has taken the update. dropped: there was nothing to tell. retried: it did not take it, and
    the message is hidden until the next try. switched-off: it did not take it for the last time, and is told of
    nothing more. dead: it had been switched off before. unavailable: the table or the queue did not answer.
    """

    outcome: Literal["delivered", "dropped", "retried", "switched-off", "dead", "unavailable"]
    reason: str = ""
    host: str = ""
    """The webhook's host: of its URL nothing else is told."""
    hide_seconds: int | None = None
    """How long the message is hidden until it is received again; None where it is not."""

    @property
    def is_done(self) -> bool:
        """Whether the message has done its work."""
        return self.outcome not in {"retried", "unavailable"}


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
    return BACKOFF_SECONDS[max(tries, 1) - 1] if tries < MAX_TRIES else None
