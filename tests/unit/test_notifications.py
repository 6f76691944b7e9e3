"""What the push queue carries, what a webhook is sent, and when it is tried again."""

from itertools import accumulate
from typing import Final

import msgspec
import pytest
from msgspec.structs import replace

from a2a_lambda.model import AuthenticationInfo, TaskPushNotificationConfig, TaskState
from a2a_lambda.notifications import (
    Delivery,
    Notification,
    headers,
    is_taken,
    pause_after,
    read_notification,
    status_update,
)
from a2a_lambda.outcome import TERMINAL
from tests.unit.factories import NOON

URL: Final = "https://hook.example/updates"
WORD: Final = "hill"
STATUS: Final = Notification("key:alice", "task-1", "config-1", "write-1", 3, state="TASK_STATE_WORKING", at=NOON)
ARTIFACTS: Final = Notification("key:alice", "task-1", "config-1", "write-2", 5, given=2)
BOTH: Final = replace(STATUS, sequence=9, given=3, said=True)


NAMES: Final = '"owner":"o","task_id":"t","config_id":"c","write":"w","sequence":1'


def body(notification: Notification) -> str:
    return msgspec.json.encode(notification).decode()


@pytest.mark.parametrize("notification", [STATUS, ARTIFACTS, BOTH])
def test_a_message_is_read_as_it_was_written(notification: Notification) -> None:
    assert read_notification(body(notification)) == notification


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "{",
        "null",
        "[]",
        "{}",
        '"text"',
        f"{{{NAMES}}}",
        f'{{{NAMES},"given":0}}',
        f'{{{NAMES},"given":-1}}',
        f'{{{NAMES},"given":-1,"state":"TASK_STATE_WORKING"}}',
        f'{{{NAMES},"said":true}}',
        f'{{{NAMES},"state":"DONE"}}',
        f'{{{NAMES},"given":"1"}}',
        '{"owner":"o","task_id":null,"config_id":"c","write":"w","sequence":1,"given":1}',
        '{"task_id":"t","config_id":"c","write":"w","sequence":1,"given":1}',
    ],
)
def test_a_message_that_says_nothing_is_refused(broken: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever is wrong with it
        read_notification(broken)


@pytest.mark.parametrize("state", TaskState)
def test_a_task_is_finished_with_its_terminal_states_alone(state: TaskState) -> None:
    assert replace(BOTH, state=state.value).is_last == (state in TERMINAL)


def test_artifacts_are_not_the_last_update() -> None:
    assert not ARTIFACTS.is_last


@pytest.mark.parametrize(
    ("notification", "first", "kept"),
    [(STATUS, 3, 0), (replace(STATUS, said=True), 3, 1), (ARTIFACTS, 4, 2), (BOTH, 6, 4)],
)
def test_events_are_numbered_and_kept_from_the_first_on(notification: Notification, first: int, kept: int) -> None:
    assert (notification.first, notification.kept) == (first, kept)


def test_a_state_alone_is_told_as_a_stream_response() -> None:
    assert msgspec.json.decode(status_update(STATUS, "context-1")) == {
        "statusUpdate": {
            "taskId": "task-1",
            "contextId": "context-1",
            "status": {"state": "TASK_STATE_WORKING", "timestamp": "2026-09-21T14:13:20.000Z"},
        }
    }


@pytest.mark.parametrize(
    ("config", "sent"),
    [
        (TaskPushNotificationConfig(URL), {}),
        (TaskPushNotificationConfig(URL, token=WORD), {"X-A2A-Notification-Token": WORD}),
        (
            TaskPushNotificationConfig(URL, authentication=AuthenticationInfo("Bearer", WORD)),
            {"Authorization": f"Bearer {WORD}"},
        ),
        (TaskPushNotificationConfig(URL, authentication=AuthenticationInfo("Bearer")), {}),
    ],
)
def test_what_is_given_goes_along(config: TaskPushNotificationConfig, sent: dict[str, str]) -> None:
    assert headers(config) == {"Content-Type": "application/a2a+json", **sent}


@pytest.mark.parametrize(("status", "taken"), [(199, False), (200, True), (204, True), (299, True), (302, False)])
def test_any_2xx_acknowledges(*, status: int, taken: bool) -> None:
    assert is_taken(status) == taken


def test_there_are_six_tries_within_about_an_hour() -> None:
    pauses = [pause_after(tries) for tries in range(1, 7)]

    assert list(accumulate(pause for pause in pauses if pause)) == [10, 70, 370, 1270, 3670]
    assert pauses[-1] is None
    assert pause_after(40) is None


@pytest.mark.parametrize(
    ("outcome", "done"),
    [
        ("delivered", True),
        ("dropped", True),
        ("continued", False),
        ("retried", False),
        ("switched-off", True),
        ("dead", True),
        ("unavailable", False),
        ("failed", False),
        ("broken", True),
    ],
)
def test_a_message_comes_again_only_where_it_is_to_be_tried_again(*, outcome: str, done: bool) -> None:
    assert msgspec.convert({"outcome": outcome}, Delivery).is_done == done
