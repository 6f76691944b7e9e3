"""What a change leaves to be passed on, as it lies in DynamoDB: no content in the head, and only where there is any."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from a2a_lambda import items, task
from a2a_lambda.agent import Update, artifact, completed, input_required, working
from a2a_lambda.items import KeptOutbox, Outgoing
from a2a_lambda.model import StreamResponse, TaskPushNotificationConfig, TaskState
from a2a_lambda.pushing import accompanied
from a2a_lambda.task import Head, Request
from tests.integration.tables import Tasks
from tests.integration.webhooks import WORD
from tests.unit.factories import NOON, OWNER, SECOND, begun, ended, message, new_outcome


def kept(tasks: Tasks, *heads: Head) -> dict[str, Any]:
    """Return the item of a task's head after these changes."""
    store, previous = tasks.store(), None
    for head in heads:
        store.prepare(previous, head)()
        previous = store.read(OWNER, head.task_id)
    return tasks.items(heads[-1].task_id)["head"]


def watched() -> Head:
    """Return a new task that webhooks are told of, and whose first turn runs."""
    first = begun()
    sent = message(task_id=first.task_id, context_id=first.context_id)
    return task.begin(
        owner=OWNER, message=sent, key=first.message_key, now=NOON, deadline=NOON + 25 * SECOND, push=True
    )


def outgoing(tasks: Tasks, *heads: Head) -> Outgoing:
    return items.read_outbox(kept(tasks, *heads))


def event_at(tasks: Tasks, left: Outgoing, index: int) -> StreamResponse:
    """Return what lies where an event of a change is."""
    found = tasks.items(left.head.task_id)
    content = items.read_content(found[items.event_entry(left.head.write, index)]["content"])
    if not isinstance(content, bytes):
        content = b"".join(found[entry]["content"]["B"] for entry in items.piece_entries(content))
    return msgspec.json.decode(content, type=StreamResponse)


def events_at(tasks: Tasks, left: Outgoing) -> list[StreamResponse]:
    """Return what is kept of the events of a change."""
    return [event_at(tasks, left, index) for index in range(left.outbox.given + left.outbox.said)]


def test_a_task_that_is_done_in_its_request_leaves_nothing(tasks: Tasks) -> None:
    assert "outbox" not in kept(tasks, ended(begun(), artifact("x")))


def test_a_claim_leaves_a_look_at_its_deadline(tasks: Tasks) -> None:
    head = begun()
    left = outgoing(tasks, head)

    assert left.outbox == KeptOutbox(attend=True)
    assert (left.head.queued, left.head.deadline, left.count) == (False, head.deadline, 0)
    assert (left.head.owner, left.head.task_id, left.head.turn, left.head.run) == (OWNER, head.task_id, 1, 1)


def test_the_end_of_a_turn_takes_the_outbox_away(tasks: Tasks) -> None:
    head = begun()

    assert "outbox" not in kept(tasks, head, ended(head))


def test_a_queued_turn_says_so(tasks: Tasks) -> None:
    waiting = task.enqueue(begun(), Request(metadata={"a": 1}), now=NOON)
    left = outgoing(tasks, waiting)

    assert (left.outbox.attend, left.head.queued, left.head.run) == (True, True, 1)


def test_a_queued_turn_is_read_as_it_was_kept(tasks: Tasks) -> None:
    waiting = task.enqueue(watched(), Request(metadata={"a": 1}, accepted_output_modes=["x/y"]), now=NOON)
    again = task.settle(waiting, read_only=True, message_id="m", now=NOON)
    kept(tasks, waiting, again)
    read = tasks.store().read(OWNER, waiting.task_id)
    assert read

    assert replace(read, write="", retention=0) == replace(again, outbox=None)
    assert tasks.store().request(read) == Request(metadata={"a": 1}, accepted_output_modes=["x/y"])


def test_a_large_request_lies_beside_the_head(tasks: Tasks) -> None:
    request = Request(metadata={"long": "x" * 400_000})
    waiting = task.enqueue(begun(), request, now=NOON)
    kept(tasks, waiting)
    read = tasks.store().read(OWNER, waiting.task_id)
    assert read

    assert tasks.store().request(read) == request


def changed(head: Head, *updates: Update) -> Head:
    """Return a task after updates of its running turn, the last of which may end it."""
    outcome = new_outcome(message(task_id=head.task_id, context_id=head.context_id))
    for update in updates:
        outcome.apply(update)
    return (task.finish if outcome.is_closed else task.progress)(head, outcome, now=NOON)


def test_an_outbox_says_how_much_there_is_and_what_the_state_is(tasks: Tasks) -> None:
    head = watched()
    last = changed(head, artifact("x"), artifact("y"), completed("Done."))
    left = outgoing(tasks, head, last)

    assert left.outbox == KeptOutbox(given=2, state="TASK_STATE_COMPLETED", at=NOON, said=True)
    assert (left.head.sequence, left.count) == (4, 3)
    assert last.outbox
    assert events_at(tasks, left) == list(last.outbox.events)


def test_artifacts_may_come_without_a_state(tasks: Tasks) -> None:
    head = watched()
    left = outgoing(tasks, head, changed(head, artifact("x")))

    assert (left.outbox, left.count) == (KeptOutbox(given=1), 1)


def test_a_state_without_a_word_lies_nowhere(tasks: Tasks) -> None:
    left = outgoing(tasks, watched())

    assert left.outbox == KeptOutbox(attend=True, state="TASK_STATE_WORKING", at=NOON)
    assert list(tasks.items(left.head.task_id)) == ["head"]


def test_what_is_said_and_given_is_not_in_the_outbox(tasks: Tasks) -> None:
    head = watched()
    item = kept(tasks, head, changed(head, artifact("secret-artifact"), working("secret-word")))

    assert "secret" not in item["outbox"]["S"]


def test_an_outbox_is_small_however_much_there_is_to_tell(tasks: Tasks) -> None:
    head = watched()
    item = kept(tasks, head, changed(head, *[artifact(f"{number}") for number in range(1000)]))

    assert len(item["outbox"]["S"]) < 100
    assert items.read_outbox(item).count == 1000


def test_content_is_not_looked_at(tasks: Tasks) -> None:
    item = kept(tasks, task.enqueue(watched(), Request(metadata={"a": 1}), now=NOON))

    assert items.read_outbox({**item, "messages": {"B": "as the stream has it"}, "request": {"?": 0}}).outbox.attend


@pytest.mark.parametrize("length", [7000, 9000, 350_000])
def test_an_event_of_any_size_is_kept(tasks: Tasks, length: int) -> None:
    head = watched()
    last = changed(head, artifact("x" * length))
    left = outgoing(tasks, head, last)
    assert last.outbox

    assert events_at(tasks, left) == list(last.outbox.events)


def test_events_of_a_lost_write_are_nobodys(tasks: Tasks) -> None:
    head = watched()
    store = tasks.store()
    store.prepare(None, head)()
    store.prepare(head, changed(head, input_required("mine?")))
    last = changed(head, completed("theirs"))
    store.prepare(head, last)()
    left = items.read_outbox(tasks.items(head.task_id)["head"])
    assert last.outbox

    assert events_at(tasks, left) == [last.outbox.events[0]]


def test_a_webhook_that_comes_with_a_change_lies_beside_it(tasks: Tasks) -> None:
    head = watched()
    brought = TaskPushNotificationConfig("https://hook.example", token=WORD)
    left = outgoing(tasks, accompanied(head, brought, "write-1"))
    beside = tasks.items(head.task_id)[items.webhook_entry("write-1")]

    assert left.outbox.webhook
    assert left.head.write == "write-1"
    assert msgspec.json.decode(beside["content"]["B"], type=TaskPushNotificationConfig) == brought
    assert WORD not in str(tasks.items(head.task_id)["head"])


def test_a_cancellation_leaves_its_state(tasks: Tasks) -> None:
    head = watched()
    kept(tasks, head)
    tasks.store().cancel(head, NOON + 5)
    left = items.read_outbox(tasks.items(head.task_id)["head"])

    assert left.outbox == KeptOutbox(state="TASK_STATE_CANCELED", at=NOON + 5)
    assert (left.head.sequence, left.count) == (2, 1)


def test_a_cancellation_that_nobody_watches_tells_nobody(tasks: Tasks) -> None:
    head = begun()
    kept(tasks, head)
    tasks.store().cancel(head, NOON + 5)

    assert items.read_outbox(tasks.items(head.task_id)["head"]).count == 0


def test_a_canceled_task_is_no_longer_queued(tasks: Tasks) -> None:
    waiting = task.enqueue(begun(), Request(metadata={"a": 1}), now=NOON)
    kept(tasks, waiting)
    canceled = tasks.store().cancel(waiting, NOON)

    assert (canceled.queued, canceled.request, canceled.deadline) == (False, None, None)


def test_watching_begins_with_the_next_change(tasks: Tasks) -> None:
    store, head = tasks.store(), begun()
    store.prepare(None, head)()
    store.watch(head)
    read = store.read(OWNER, head.task_id)
    assert read
    item = tasks.items(head.task_id)["head"]

    assert (read.push, read.sequence, read.revision) == (True, 0, head.revision + 1)
    assert "outbox" not in item
    store.prepare(read, changed(read, completed()))()
    left = items.read_outbox(tasks.items(head.task_id)["head"])
    assert left.outbox == KeptOutbox(state="TASK_STATE_COMPLETED", at=NOON)
    assert left.head.sequence == 1


def test_a_task_is_watched_once(tasks: Tasks) -> None:
    store, head = tasks.store(), begun()
    store.prepare(None, head)()
    store.watch(head)
    first = store.read(OWNER, head.task_id)
    store.watch(head)

    assert store.read(OWNER, head.task_id) == first


@pytest.mark.parametrize("owner", [OWNER, "stranger"])
def test_a_finished_or_a_strangers_task_is_not_watched(tasks: Tasks, owner: str) -> None:
    store = tasks.store()
    head = ended(begun()) if owner == OWNER else begun()
    store.prepare(None, head)()
    before = tasks.items(head.task_id)
    store.watch(replace(head, owner=owner))

    assert tasks.items(head.task_id) == before


def test_a_task_that_is_gone_is_not_watched(tasks: Tasks) -> None:
    head = begun()
    tasks.store().watch(head)

    assert tasks.items(head.task_id) == {}


def test_events_expire_with_the_task(tasks: Tasks) -> None:
    head = watched()
    kept(tasks, head, changed(head, artifact("x" * 9000)))
    found = tasks.items(head.task_id)
    beside = {entry: item["expires_at"] for entry, item in found.items() if entry != "head"}

    assert len(beside) >= 2
    assert len({each["N"] for each in beside.values()}) == 1
    assert TaskState(found["head"]["state"]["S"]) is TaskState.WORKING
