"""The relay: from a task's outbox to messages for the worker and the webhooks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import pytest
from msgspec.structs import replace

from a2a_lambda.errors import UnavailableError
from a2a_lambda.items import KeptOutbox, Outgoing
from a2a_lambda.notifications import read_notification
from a2a_lambda.push_configs import Watcher
from a2a_lambda.queues import FifoMessage
from a2a_lambda.relaying import Relay
from a2a_lambda.task import Head
from tests.unit.factories import NOON, OWNER, SECOND, begun

TASK: Final = "00000000-0000-4000-8000-000000000001"
FIRST: Final = Watcher("one", "config#1111", "g1")
SECOND_ONE: Final = Watcher("two", "config#2222", "g2")

HEAD: Final = replace(
    begun(),
    task_id=TASK,
    turn=2,
    queued=True,
    deadline=NOON + 3600 * SECOND,
    push=True,
    sequence=5,
    write="w",
)
WAITING: Final = Outgoing(HEAD, KeptOutbox(attend=True))
TOLD: Final = Outgoing(HEAD, KeptOutbox(given=1, state="TASK_STATE_COMPLETED", at=NOON, said=True))


@dataclass
class Sent:
    """A queue that notes what is sent to it."""

    refuses: bool = False
    messages: list[tuple[Any, int]] = field(default_factory=list)
    """With their delays, in seconds."""
    groups: list[str] = field(default_factory=list)
    calls: int = 0

    def send(self, body: str, *, delay_seconds: int, group: str) -> None:
        assert body.isascii()
        self.messages.append((msgspec.json.decode(body), delay_seconds))
        self.groups.append(group)

    def send_fifo(self, messages: Sequence[FifoMessage]) -> None:
        if self.refuses:
            raise UnavailableError
        self.calls += 1
        self.messages += [(each, 0) for each in messages]

    @property
    def fifo(self) -> list[FifoMessage]:
        return [each for each, _ in self.messages]


@dataclass
class Watchers:
    """The webhooks of the one task."""

    found: list[Watcher]
    coming: list[Watcher] = field(default_factory=list)
    """Those that come with the change."""
    promoted: list[tuple[str, int]] = field(default_factory=list)
    """The writes whose webhooks were promoted, and what these are not told of."""

    def watchers(self, owner: str, task_id: str) -> list[Watcher]:
        return self.found if (owner, task_id) == (OWNER, TASK) else []

    def promote(self, head: Head, *, told: int) -> None:
        self.promoted.append((head.write, told))
        self.found += self.coming


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
    running = replace(HEAD, queued=False, deadline=NOON + round(seconds_left * SECOND))
    work, _ = relayed(replace(WAITING, head=running))

    assert [seconds for _, seconds in work.messages] == [delay]


def test_turns_of_one_owner_are_a_group_that_does_not_name_it() -> None:
    groups = [
        relayed(replace(WAITING, head=replace(HEAD, owner=owner)))[0].groups for owner in ("key:a", "key:a", "key:b")
    ]

    assert groups[0] == groups[1] != groups[2]
    assert "key:a" not in str(groups)


def test_a_change_is_one_message_for_every_webhook() -> None:
    work, pushed = relayed(TOLD, FIRST, SECOND_ONE)
    bodies = [msgspec.json.decode(each.body) for each in pushed.fifo]

    assert (work.messages, pushed.calls) == ([], 1)
    assert [each["config_id"] for each in bodies] == ["one", "two"]
    assert bodies[0] == {
        "owner": OWNER,
        "task_id": TASK,
        "config_id": "one",
        "write": "w",
        "sequence": 5,
        "given": 1,
        "state": "TASK_STATE_COMPLETED",
        "at": NOON,
        "said": True,
    }
    assert read_notification(pushed.fifo[0].body).first == 4


def test_a_message_has_no_character_that_sqs_refuses() -> None:
    odd = "é\x00\ufffe\U0001f600"
    head = replace(HEAD, owner=odd)
    watchers: Any = Watchers([])
    watchers.watchers = lambda _owner, _task_id: [Watcher(odd, "config#1111", "g1")]
    queues: list[Any] = [Sent(), Sent()]

    Relay(queues[0], queues[1], watchers).pass_on(replace(TOLD, head=head), NOON)

    (message,) = queues[1].fifo
    assert message.body.isascii()
    assert (read_notification(message.body).owner, read_notification(message.body).config_id) == (odd, odd)


def test_a_webhook_that_comes_with_a_change_is_told_of_it() -> None:
    watchers: Any = Watchers([], [FIRST])
    queues: list[Any] = [Sent(), Sent()]
    outbox = replace(TOLD.outbox, webhook=True)

    Relay(queues[0], queues[1], watchers).pass_on(replace(TOLD, outbox=outbox), NOON)

    assert watchers.promoted == [("w", 3)]
    assert len(queues[1].fifo) == 1


def test_without_push_notifications_no_webhook_is_promoted() -> None:
    watchers: Any = Watchers([], [FIRST])
    queues: list[Any] = [Sent(), None]

    Relay(queues[0], queues[1], watchers).pass_on(replace(TOLD, outbox=replace(TOLD.outbox, webhook=True)), NOON)

    assert watchers.promoted == []


def test_a_webhook_is_a_group_of_its_own() -> None:
    _, pushed = relayed(TOLD, FIRST, SECOND_ONE)

    assert {each.group for each in pushed.fifo} == {f"{TASK}#1111", f"{TASK}#2222"}


def test_what_is_passed_on_again_is_known_as_the_same() -> None:
    _, first = relayed(TOLD, FIRST, SECOND_ONE)
    _, again = relayed(TOLD, FIRST, SECOND_ONE)

    assert first.fifo == again.fifo
    assert len({each.deduplication_id for each in first.fifo}) == 2


def test_a_config_that_was_created_anew_gets_what_comes_as_new() -> None:
    _, first = relayed(TOLD, FIRST)
    _, anew = relayed(TOLD, Watcher("one", "config#1111", "g9"))

    assert not {each.deduplication_id for each in first.fifo} & {each.deduplication_id for each in anew.fifo}


def test_nothing_is_sent_where_nobody_is_to_be_told() -> None:
    assert relayed(TOLD)[1].messages == []
    assert relayed(TOLD, FIRST, push=False)[1].messages == []
    assert relayed(replace(TOLD, head=replace(HEAD, push=False)), FIRST)[1].messages == []


def test_what_a_queue_does_not_take_is_passed_on_again() -> None:
    configs: Any = Watchers([FIRST])
    queues: list[Any] = [Sent(), Sent(refuses=True)]

    with pytest.raises(UnavailableError):
        Relay(queues[0], queues[1], configs).pass_on(TOLD, NOON)
