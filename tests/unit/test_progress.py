"""What a running turn comes to is kept while its agent goes on, in few writes."""

import functools
from collections.abc import Callable, Sequence
from typing import Final

import pytest
from msgspec import UNSET

from a2a_lambda.agent import Turn, Update, Updates, artifact, completed, input_required, working
from a2a_lambda.errors import UnavailableError
from a2a_lambda.model import Task, TaskState
from a2a_lambda.task import Head
from tests.unit.factories import OWNER, SECOND, Clock, Server, agent, server, texts
from tests.unit.memory_store import InMemoryTaskStore

Step = Update | Callable[[Server, str], object]
"""An update that the agent gives, or what happens between two of them."""


def walking(*steps: Step, store: InMemoryTaskStore | None = None, clock: Clock | None = None) -> Server:
    """Return a server whose acting agent goes through these steps."""
    served: list[Server] = []

    def respond(turn: Turn) -> Updates:
        for step in steps:
            if callable(step):
                step(served[0], turn.task_id)
            else:
                yield step

    served.append(server(agent(respond, read_only=False), store=store, clock=clock))
    return served[0]


def keep(running: Server, _task_id: str) -> None:
    """Let the time come for what waits to be written."""
    running.timers.fire()


def watch(running: Server, task_id: str) -> None:
    """Let a webhook want to be told of the task."""
    head = running.store.read(OWNER, task_id)
    assert head
    running.store.watch(head)


def writes(served: Server) -> int:
    assert isinstance(served.store, InMemoryTaskStore)
    return served.store.writes


def seen_while_running(*steps: Step) -> list[Task]:
    """Return how the task reads each time that its news has been written."""
    seen: list[Task] = []

    def look(running: Server, task_id: str) -> None:
        seen.append(running.get(task_id))

    walking(*[each for step in steps for each in ([step, look] if step is keep else [step])]).task()
    return seen


def said(task: Task) -> list[str]:
    return texts([task.status.message] if task.status.message else [])


def given(task: Task) -> list[str]:
    return ["".join(str(part.text) for part in each.parts) for each in task.artifacts or ()]


def test_progress_can_be_read_while_the_agent_goes_on() -> None:
    first, second = seen_while_running(working("Looking …"), keep, artifact("found"), working("Writing …"), keep)

    assert (first.status.state, said(first), given(first)) == (TaskState.WORKING, ["Looking …"], [])
    assert (second.status.state, said(second), given(second)) == (TaskState.WORKING, ["Writing …"], ["found"])


def test_chunks_of_an_artifact_can_be_read_as_they_come() -> None:
    first, second = seen_while_running(
        artifact("one ", artifact_id="a"), keep, artifact("two", artifact_id="a", append=True), keep
    )

    assert (given(first), given(second)) == (["one "], ["one two"])


def test_progress_is_not_in_the_history() -> None:
    (task,) = seen_while_running(working("Looking …"), keep)

    assert texts(task.history) == ["Hello"]


def test_the_first_news_waits_for_more_for_half_a_second() -> None:
    waits: list[float] = []
    walking(working("a"), lambda running, _: waits.extend(seconds for seconds, _ in running.timers.waiting)).task()

    assert waits == [0.5]


def test_news_is_written_together() -> None:
    served = walking(*[working(str(number)) for number in range(1000)], keep, working("last"), keep)
    served.task()

    assert writes(served) == 1 + 2 + 1


def test_an_agent_that_yields_ten_thousand_updates_at_once_is_two_writes() -> None:
    served = walking(*[artifact("x", artifact_id="a", append=True) for _ in range(10_000)])
    task = served.task()

    assert writes(served) == 2
    assert [len(each.parts) for each in task.artifacts or ()] == [10_000]


def test_writes_are_a_second_apart() -> None:
    waits: list[float] = []

    def note(running: Server, _task_id: str) -> None:
        waits.extend(seconds for seconds, _ in running.timers.waiting)

    walking(working("a"), keep, working("b"), note).task()

    assert waits == [1.0]


def test_what_is_large_is_written_more_seldom() -> None:
    waits: list[float] = []

    def note(running: Server, _task_id: str) -> None:
        waits.extend(seconds for seconds, _ in running.timers.waiting)

    walking(artifact("x" * 250_000), keep, working("b"), note).task()

    assert waits == [10.0]


def test_nothing_waits_once_the_turn_has_ended() -> None:
    served = walking(working("a"), completed("Done."))
    served.task()

    assert served.timers.waiting == []


def test_a_timer_that_comes_after_the_end_writes_nothing() -> None:
    late: list[Callable[[], None]] = []
    served = walking(working("a"), lambda running, _: late.extend(action for _, action in running.timers.waiting))
    task = served.task()
    before = writes(served)
    for action in late:
        action()

    assert late
    assert writes(served) == before
    assert served.get(task.id).status.state is TaskState.COMPLETED


def test_a_question_ends_the_turn_in_one_write() -> None:
    served = walking(working("a"), input_required("Which one?"))

    assert said(served.task()) == ["Which one?"]
    assert writes(served) == 2


def test_webhooks_that_come_meanwhile_do_not_end_the_turn() -> None:
    served = walking(working("a"), watch, keep, artifact("x"), watch, completed("Done."))
    task = served.task()
    assert isinstance(served.store, InMemoryTaskStore)
    told = [head.sequence for head in served.store.outboxes if head.outbox and head.outbox.events]

    assert (task.status.state, given(task)) == (TaskState.COMPLETED, ["x"])
    assert told == [1, 3]


def test_a_webhook_that_comes_just_before_the_end_is_told_of_it() -> None:
    served = walking(working("a"), watch)
    task = served.task()
    assert isinstance(served.store, InMemoryTaskStore)
    last = served.store.outboxes[-1]

    assert task.status.state is TaskState.COMPLETED
    assert (last.state, last.push) == (TaskState.COMPLETED, True)


def test_a_cancel_between_two_writes_wins() -> None:
    served = walking(working("a"), keep, lambda running, task_id: running.cancel(task_id), artifact("late"), keep)
    task = served.task()

    assert (task.status.state, given(task)) == (TaskState.CANCELED, [])
    assert served.get(task.id) == task


LOST: Final = ["before", "after"]


class Failing(InMemoryTaskStore):
    """A store that does not answer some of its writes: before they count, or after."""

    def __init__(self, clock: Clock, lost: Sequence[str]) -> None:
        super().__init__(clock)
        self.lost = list(lost)

    def commit(self, previous: Head | None, following: Head) -> None:
        how = self.lost.pop(0) if self.lost and previous else ""
        if how == "before":
            raise UnavailableError
        super().commit(previous, following)
        if how == "after":
            raise UnavailableError


@pytest.mark.parametrize("lost", [["before"], ["before"] * 2, ["after", "before"], ["after"] * 2])
def test_progress_that_could_not_be_written_is_written_later(lost: list[str]) -> None:
    clock = Clock()
    served = walking(working("a"), artifact("x"), keep, artifact("y"), keep, store=Failing(clock, lost), clock=clock)
    task = served.task()

    assert (task.status.state, given(task)) == (TaskState.COMPLETED, ["x", "y"])
    assert served.get(task.id) == task


@pytest.mark.parametrize(
    "lost", [["before"] * 2, ["after"] * 2, ["", "", "before", "before"], ["", "", "after", "after"]]
)
def test_what_was_told_by_a_write_of_which_nothing_was_heard_is_not_told_again(lost: list[str]) -> None:
    clock = Clock()

    chunk = functools.partial(artifact, artifact_id="x", append=True)
    served = walking(
        watch, chunk("a"), keep, chunk("b"), keep, chunk("c"), keep, store=Failing(clock, lost), clock=clock
    )
    task = served.task()
    assert isinstance(served.store, InMemoryTaskStore)
    outboxes = [head.outbox for head in served.store.outboxes if head.outbox]
    told = [
        str(part.text)
        for outbox in outboxes
        for event in outbox.events
        if event.artifact_update is not UNSET
        for part in event.artifact_update.artifact.parts
    ]

    assert "".join(told) == "abc"
    assert given(task) == ["abc"]


def test_what_could_not_be_written_is_tried_again_while_the_agent_is_silent() -> None:
    clock = Clock()
    seen: list[Task] = []
    served = walking(
        working("a"),
        keep,
        keep,
        lambda running, task_id: seen.append(running.get(task_id)),
        store=Failing(clock, ["before"] * 2),
        clock=clock,
    )
    served.task()

    assert [said(task) for task in seen] == [["a"]]


def test_the_time_of_the_state_is_that_of_what_was_said_last() -> None:
    def a_minute(running: Server, _task_id: str) -> None:
        running.clock.advance(SECOND)

    first, second, third = seen_while_running(
        working("a"), keep, a_minute, artifact("x"), keep, a_minute, working("b"), keep
    )

    assert first.status.timestamp == second.status.timestamp < third.status.timestamp
