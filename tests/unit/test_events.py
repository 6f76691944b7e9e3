"""What webhooks are told of: every committed change of a task that has any, numbered in order, and nothing else."""

from collections.abc import Sequence

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from a2a_lambda import task
from a2a_lambda.agent import Update, artifact, completed, input_required, working
from a2a_lambda.model import StreamResponse, TaskState
from a2a_lambda.outcome import Outcome
from a2a_lambda.task import Head, Request
from a2a_lambda.timestamps import format_timestamp
from tests.unit.factories import NOON, SECOND, begun, followed, message, new_outcome, texts
from tests.unit.memory_store import InMemoryTaskStore

S = TaskState


def watched(head: Head) -> Head:
    """Return a task that webhooks are told of from here on."""
    return replace(head, push=True, sequence=0, outbox=None)


def outcome_of(head: Head, *updates: Update) -> Outcome:
    outcome = new_outcome(message(task_id=head.task_id, context_id=head.context_id))
    for update in updates:
        outcome.apply(update)
    return outcome


def finished(head: Head, *updates: Update) -> Head:
    outcome = outcome_of(head, *updates)
    outcome.close()
    return task.finish(head, outcome, now=NOON + SECOND)


def events(head: Head) -> Sequence[StreamResponse]:
    return head.outbox.events if head.outbox else ()


def shown(event: StreamResponse) -> tuple[object, ...]:
    """Return an event in short: the state and what was said, or the artifact's parts and flags."""
    if event.status_update is not UNSET:
        status = event.status_update.status
        return (status.state, *texts([status.message] if status.message else []))
    assert event.artifact_update is not UNSET
    update = event.artifact_update
    return ("".join(str(part.text) for part in update.artifact.parts), update.append, update.last_chunk)


def told(head: Head) -> list[tuple[object, ...]]:
    return [shown(event) for event in events(head)]


def test_a_task_without_webhooks_tells_of_nothing() -> None:
    head = begun()
    progressed = task.progress(head, outcome_of(head, working("a"), artifact("b")), now=NOON)

    assert [each.outbox for each in (finished(head, artifact("x")), progressed)] == [None, None]
    assert finished(head).sequence == 0


def test_a_turn_that_is_claimed_is_looked_at_after_its_deadline() -> None:
    head = begun()

    assert head.outbox
    assert head.outbox.attend
    assert not finished(head).outbox


def test_a_final_update_is_told_with_what_was_said() -> None:
    assert told(finished(watched(begun()), completed("Done."))) == [(S.COMPLETED, "Done.")]


def test_a_question_is_told() -> None:
    assert told(finished(watched(begun()), input_required("Which?"))) == [(S.INPUT_REQUIRED, "Which?")]


def test_artifacts_are_told_before_the_state() -> None:
    head = finished(watched(begun()), artifact("a"), artifact("b"), completed())

    assert told(head) == [("a", False, False), ("b", False, False), (S.COMPLETED,)]
    assert head.sequence == 3


def test_events_name_their_task_and_context() -> None:
    head = finished(watched(begun()), artifact("a"))
    updates = [event.artifact_update or event.status_update for event in events(head)]

    assert [(each.task_id, each.context_id) for each in updates if each] == [(head.task_id, head.context_id)] * 2


def test_a_state_is_told_with_its_time() -> None:
    (event,) = events(finished(watched(begun())))
    assert event.status_update is not UNSET

    assert event.status_update.status.timestamp == format_timestamp(NOON + SECOND)


def test_progress_tells_what_is_new_only() -> None:
    head = watched(begun())
    outcome = outcome_of(head, working("a"), artifact("one ", artifact_id="x"))
    outcome.tell()
    first = task.progress(head, outcome, now=NOON)
    outcome.told()
    outcome.apply(artifact("two", artifact_id="x", append=True, last_chunk=True))
    outcome.tell()
    second = task.progress(first, outcome, now=NOON)
    outcome.told()
    outcome.close()
    last = task.finish(second, outcome, now=NOON)

    assert told(first) == [("one ", False, False), (S.WORKING, "a")]
    assert told(second) == [("two", True, True)]
    assert told(last) == [(S.COMPLETED,)]
    assert [first.sequence, second.sequence, last.sequence] == [2, 3, 4]


def test_news_of_an_artifact_comes_in_one_piece() -> None:
    head = watched(begun())
    outcome = outcome_of(
        head,
        artifact("one ", artifact_id="x"),
        artifact("two ", artifact_id="x", append=True),
        artifact("three", artifact_id="x", append=True, last_chunk=True),
    )

    assert told(task.progress(head, outcome, now=NOON)) == [("one two three", False, True)]


def test_an_artifact_that_is_given_anew_is_told_anew() -> None:
    head = watched(begun())
    outcome = outcome_of(head, artifact("one", artifact_id="x"), artifact("two", artifact_id="x"))

    assert told(task.progress(head, outcome, now=NOON)) == [("two", False, False)]


def test_what_is_told_of_an_artifact_is_not_added_to_what_is_kept() -> None:
    outcome = outcome_of(begun(), artifact("one ", artifact_id="x"), artifact("two", artifact_id="x", append=True))

    assert [len(delta.artifact.parts) for delta in outcome.deltas] == [2]
    assert [len(news.artifact.parts) for news in outcome.given] == [2]


def test_a_queued_task_is_told_as_submitted_and_then_as_working() -> None:
    waiting = task.enqueue(watched(begun()), Request(), now=NOON)
    claimed = task.claim(waiting, now=NOON, deadline=NOON + SECOND)

    assert told(waiting) == [(S.SUBMITTED,)]
    assert told(claimed) == [(S.WORKING,)]
    assert (waiting.outbox and waiting.outbox.attend, claimed.outbox and claimed.outbox.attend) == (True, False)


def test_the_next_turn_is_told_as_working() -> None:
    head, _ = followed(finished(watched(begun()), input_required("Which?")))

    assert told(head) == [(S.WORKING,)]


def test_a_queued_follow_up_is_told_once() -> None:
    head, _ = followed(finished(watched(begun()), input_required("Which?")))
    waiting = task.enqueue(head, Request(), now=NOON)
    claimed = task.claim(waiting, now=NOON, deadline=NOON + SECOND)

    assert (told(waiting), told(claimed)) == ([(S.WORKING,)], [])


@pytest.mark.parametrize("read_only", [True, False])
def test_a_turn_that_is_queued_again_has_not_changed_its_state(read_only: bool) -> None:  # noqa: FBT001
    waiting = task.enqueue(watched(begun()), Request(), now=NOON)
    again = task.settle(waiting, read_only=read_only, message_id="m", now=NOON)

    assert told(again) == []
    assert again.outbox
    assert again.outbox.attend


def test_a_turn_that_is_given_up_is_told() -> None:
    failed = task.settle(watched(begun()), read_only=False, message_id="m", now=NOON)

    assert told(failed) == [(S.FAILED, task.OUTCOME_UNKNOWN)]


def test_a_cancellation_is_told() -> None:
    store = InMemoryTaskStore(lambda: NOON)
    head = watched(begun())
    store.commit(None, head)
    store.cancel(head, NOON)

    assert told(store.outboxes[-1]) == [(S.CANCELED,)]


def test_numbers_grow_over_a_whole_task() -> None:
    store = InMemoryTaskStore(lambda: NOON)
    head = watched(begun())
    heads = [task.enqueue(head, Request(), now=NOON)]
    heads.append(task.claim(heads[-1], now=NOON, deadline=NOON + SECOND))
    heads.append(finished(heads[-1], artifact("a"), input_required("Which?")))
    later, _ = followed(heads[-1])
    heads += [later, finished(later, artifact("b"))]
    for previous, following in zip([None, *heads], heads, strict=False):
        store.commit(previous, following)
    numbers = [
        head.sequence - len(events(head)) + place + 1 for head in store.outboxes for place in range(len(events(head)))
    ]

    assert numbers == sorted(set(numbers))
    assert len(numbers) == 7
