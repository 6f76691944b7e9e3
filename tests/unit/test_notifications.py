"""What the push queue carries, what a webhook is sent, and when it is tried again."""

from itertools import accumulate
from typing import Final

import msgspec
import pytest

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
STATUS: Final = Notification("key:alice", "task-1", "config-1", 3, state="TASK_STATE_WORKING", at=NOON)
ARTIFACT: Final = Notification("key:alice", "task-1", "config-1", 4, key="event#1#0")


def body(notification: Notification) -> str:
    return msgspec.json.encode(notification).decode()


@pytest.mark.parametrize("notification", [STATUS, ARTIFACT])
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
        '{"owner":"o","task_id":"t","config_id":"c","sequence":1}',
        '{"owner":"o","task_id":"t","config_id":"c","sequence":1,"state":"DONE"}',
        '{"owner":"o","task_id":"t","config_id":"c","sequence":"1","key":"k"}',
        '{"owner":"o","task_id":null,"config_id":"c","sequence":1,"key":"k"}',
        '{"task_id":"t","config_id":"c","sequence":1,"key":"k"}',
    ],
)
def test_a_message_that_says_nothing_is_refused(broken: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever is wrong with it
        read_notification(broken)


@pytest.mark.parametrize("state", TaskState)
def test_a_task_is_finished_with_its_terminal_states_alone(state: TaskState) -> None:
    assert Notification("o", "t", "c", 1, state=state.value).is_last == (state in TERMINAL)


def test_an_artifact_is_not_the_last_update() -> None:
    assert not ARTIFACT.is_last


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
        ("retried", False),
        ("switched-off", True),
        ("dead", True),
        ("unavailable", False),
    ],
)
def test_a_message_comes_again_only_where_it_is_to_be_tried_again(*, outcome: str, done: bool) -> None:
    assert msgspec.convert({"outcome": outcome}, Delivery).is_done == done
