"""The relay: from a task's outbox to messages for the worker and the webhooks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import pytest
from msgspec.structs import replace

from a2a_lambda.errors import UnavailableError
from a2a_lambda.items import Event, Outgoing
from a2a_lambda.push_configs import Watcher
from a2a_lambda.queues import FifoMessage
from a2a_lambda.relaying import Relay
from tests.unit.factories import NOON, OWNER, SECOND

TASK: Final = "00000000-0000-4000-8000-000000000001"
FIRST: Final = Watcher("one", "config#1111", "g1")
SECOND_ONE: Final = Watcher("two", "config#2222", "g2")

WAITING: Final = Outgoing(
    owner=OWNER,
    task_id=TASK,
    turn=2,
    run=1,
    attend=True,
    queued=True,
    deadline=NOON + 3600 * SECOND,
    events=[],
)
TOLD: Final = replace(
    WAITING,
    attend=False,
    events=[(4, Event(key="event#w#0")), (5, Event("TASK_STATE_COMPLETED", NOON, "event#w#1"))],
)


@dataclass
class Sent:
    """A queue that notes what is sent to it."""

    refuses: bool = False
    messages: list[tuple[Any, int]] = field(default_factory=list)
    """With their delays, in seconds."""

    def send(self, body: str | bytes, *, delay_seconds: int = 0) -> None:
        self.messages.append((msgspec.json.decode(body), delay_seconds))

    def send_fifo(self, messages: Sequence[FifoMessage]) -> None:
        if self.refuses:
            raise UnavailableError
        self.messages += [(each, 0) for each in messages]

    @property
    def fifo(self) -> list[FifoMessage]:
        return [each for each, _ in self.messages]


@dataclass
class Watchers:
    """The webhooks of the one task."""

    found: list[Watcher]

    def watchers(self, owner: str, task_id: str) -> list[Watcher]:
        return self.found if (owner, task_id) == (OWNER, TASK) else []


def relayed(outgoing: Outgoing, *watchers: Watcher, now: int = NOON, push: bool = True) -> tuple[Sent, Sent]:
    """Return the work queue and the push queue after an outbox was passed on."""
    work, pushed = Sent(), Sent()
    configs: Any = Watchers(list(watchers))
    queues: list[Any] = [work, pushed if push else None]
    Relay(queues[0], queues[1], configs).pass_on(outgoing, now)
    return work, pushed


def test_a_queued_turn_is_sent_to_the_worker_at_once() -> None:
    work, pushed = relayed(WAITING, FIRST)

    assert work.messages == [({"owner": OWNER, "task_id": TASK, "turn": 2, "run": 1}, 0)]
    assert pushed.messages == []


@pytest.mark.parametrize(
    ("seconds_left", "delay"), [(0, 1), (-5, 1), (0.5, 1), (29, 30), (898, 899), (899, 900), (5000, 900)]
)
def test_a_running_turn_is_looked_at_after_its_deadline_in_a_quarter_of_an_hour_at_most(
    seconds_left: float, delay: int
) -> None:
    running = replace(WAITING, queued=False, deadline=NOON + round(seconds_left * SECOND))
    work, _ = relayed(running)

    assert [seconds for _, seconds in work.messages] == [delay]


def test_every_event_is_sent_for_every_webhook_in_order() -> None:
    work, pushed = relayed(TOLD, FIRST, SECOND_ONE)
    bodies = [msgspec.json.decode(each.body) for each in pushed.fifo]

    assert work.messages == []
    assert [(each["config_id"], each["sequence"]) for each in bodies] == [
        ("one", 4),
        ("two", 4),
        ("one", 5),
        ("two", 5),
    ]
    assert bodies[0] == {
        "owner": OWNER,
        "task_id": TASK,
        "config_id": "one",
        "sequence": 4,
        "key": "event#w#0",
    }
    assert bodies[3] == {
        "owner": OWNER,
        "task_id": TASK,
        "config_id": "two",
        "sequence": 5,
        "state": "TASK_STATE_COMPLETED",
        "at": NOON,
        "key": "event#w#1",
    }


def test_a_webhook_is_a_group_of_its_own() -> None:
    _, pushed = relayed(TOLD, FIRST, SECOND_ONE)

    assert {each.group for each in pushed.fifo} == {f"{TASK}#1111", f"{TASK}#2222"}


def test_what_is_passed_on_again_is_known_as_the_same() -> None:
    _, first = relayed(TOLD, FIRST, SECOND_ONE)
    _, again = relayed(TOLD, FIRST, SECOND_ONE)

    assert first.fifo == again.fifo
    assert len({each.deduplication_id for each in first.fifo}) == 4


def test_a_config_that_was_created_anew_gets_what_comes_as_new() -> None:
    _, first = relayed(TOLD, FIRST)
    _, anew = relayed(TOLD, Watcher("one", "config#1111", "g9"))

    assert not {each.deduplication_id for each in first.fifo} & {each.deduplication_id for each in anew.fifo}


def test_nothing_is_sent_where_nobody_is_to_be_told() -> None:
    assert relayed(TOLD)[1].messages == []
    assert relayed(TOLD, FIRST, push=False)[1].messages == []


def test_what_a_queue_does_not_take_is_passed_on_again() -> None:
    configs: Any = Watchers([FIRST])
    queues: list[Any] = [Sent(), Sent(refuses=True)]

    with pytest.raises(UnavailableError):
        Relay(queues[0], queues[1], configs).pass_on(TOLD, NOON)
