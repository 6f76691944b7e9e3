"""What every task store promises: the same statements for the one in memory and the one in DynamoDB."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
from moto import mock_aws
from msgspec.structs import replace

from a2a_lambda import agent as api
from a2a_lambda import task
from a2a_lambda.errors import TaskNotCancelableError, TaskNotFoundError
from a2a_lambda.model import Artifact, Message, Part, TaskState
from a2a_lambda.store import ConflictError, TaskStore
from a2a_lambda.task import DirectReply, Head
from tests.integration.tables import Tasks, new_client
from tests.unit.factories import DAY, NOON, OWNER, Clock, Ids, begun, ended, followed, in_state, message, texts
from tests.unit.memory_store import InMemoryTaskStore

SAMPLES: Final = {
    "unicode": "é😀\u2028\x00\x7f",
    "a long text": "x" * 20_000,
    "a very long text": "é" * 400_000,
}


@dataclass(frozen=True)
class Kept:
    """A store and the clock by which its tasks expire."""

    store: TaskStore
    clock: Clock

    def add(self, head: Head) -> Head:
        """Store a new task in whatever state."""
        self.store.prepare(None, head)()
        return self.read(head)

    def read(self, head: Head) -> Head:
        """Read a task that must be there."""
        current = self.store.read(head.owner, head.task_id)
        assert current is not None
        return current


@pytest.fixture(params=["memory", "dynamodb"])
def kept(request: pytest.FixtureRequest) -> Iterator[Kept]:
    if request.param == "memory":
        clock = Clock()
        yield Kept(InMemoryTaskStore(clock), clock)
        return
    with mock_aws():
        tasks = Tasks(new_client())
        yield Kept(tasks.store(), tasks.clock)


def conversation(kept: Kept, turns: int, *updates: api.Update) -> Head:
    """Return a stored task of several turns, each of which asks in the end."""
    head = kept.add(ended(begun(), *updates, api.input_required("1?")))
    for turn in range(2, turns + 1):
        head = take_turn(kept, head, f"said {turn}", *updates, api.input_required(f"{turn}?"))
    return head


def bare(head: Head | DirectReply | None) -> Head:
    """Return what a task says, without what a store adds: its retention, and the id of the write that kept it.

    Nor what a store does not give back: the outbox, which is the relay's.
    """
    assert isinstance(head, Head)
    return replace(head, write="", retention=0, outbox=None)


def take_turn(kept: Kept, head: Head, said: str, *updates: api.Update) -> Head:
    running, sent = followed(head, said)
    kept.store.prepare(head, ended(running, *updates, message_=sent))()
    return kept.read(head)


def test_a_task_that_was_never_stored_does_not_exist(kept: Kept) -> None:
    assert kept.store.read(OWNER, Ids()()) is None


@pytest.mark.parametrize("state", TaskState)
def test_a_task_is_read_as_it_was_stored(kept: Kept, state: TaskState) -> None:
    head = in_state(state)

    assert bare(kept.add(head)) == bare(head)


def test_a_task_exists_for_its_owner_alone(kept: Kept) -> None:
    head = kept.add(in_state(TaskState.INPUT_REQUIRED))

    assert kept.store.read("stranger", head.task_id) is None


def test_a_task_is_not_stored_twice(kept: Kept) -> None:
    head = kept.add(begun())
    with pytest.raises(ConflictError) as conflict:
        kept.store.prepare(None, replace(head, context_id="another", write=""))()

    assert conflict.value.current == head
    assert kept.read(head) == head


def test_who_writes_after_another_writer_is_told_how_the_task_stands(kept: Kept) -> None:
    asked = kept.add(in_state(TaskState.INPUT_REQUIRED))
    first, _ = followed(asked, "first")
    second, _ = followed(asked, "second")
    kept.store.prepare(asked, first)()
    with pytest.raises(ConflictError) as conflict:
        kept.store.prepare(asked, second)()

    assert bare(conflict.value.current) == bare(first)
    assert bare(kept.read(asked)) == bare(first)


@pytest.mark.parametrize("state", [TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED])
def test_a_finished_task_is_never_written_again(kept: Kept, state: TaskState) -> None:
    head = kept.add(in_state(state))
    following, _ = followed(head)
    with pytest.raises(ConflictError) as conflict:
        kept.store.prepare(head, following)()

    assert conflict.value.current == head
    assert kept.read(head) == head


def test_a_write_for_another_owner_changes_nothing(kept: Kept) -> None:
    head = kept.add(in_state(TaskState.INPUT_REQUIRED))
    stranger = replace(head, owner="stranger")
    with pytest.raises(ConflictError) as conflict:
        kept.store.prepare(stranger, followed(stranger)[0])()

    assert conflict.value.current is None
    assert kept.read(head) == head


def test_a_call_that_makes_a_write_count_may_be_made_again(kept: Kept) -> None:
    head = begun()
    create = kept.store.prepare(None, head)
    create()
    create()
    asked = ended(head, api.input_required("?"))
    end = kept.store.prepare(kept.read(head), asked)
    end()
    end()
    current = kept.read(head)
    kept.store.prepare(current, followed(current)[0])()
    end()

    assert kept.read(head).turn == 2
    assert kept.read(head).revision == 3


def test_a_write_to_a_task_that_does_not_exist_is_a_conflict(kept: Kept) -> None:
    head = in_state(TaskState.INPUT_REQUIRED)
    with pytest.raises(ConflictError) as conflict:
        kept.store.prepare(head, followed(head)[0])()

    assert conflict.value.current is None
    assert kept.store.read(head.owner, head.task_id) is None


# Cancel


@pytest.mark.parametrize("state", [TaskState.WORKING, TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED])
def test_an_unfinished_task_is_canceled(kept: Kept, state: TaskState) -> None:
    head = kept.add(in_state(state))
    canceled = kept.store.cancel(head, NOON + 7)

    assert bare(canceled) == replace(
        bare(head),
        state=TaskState.CANCELED,
        status_at=NOON + 7,
        revision=head.revision + 1,
        deadline=None,
        sequence=1,
    )
    assert kept.read(head) == canceled


def test_what_was_said_with_the_state_goes_when_a_task_is_canceled(kept: Kept) -> None:
    head = kept.add(replace(begun(), status_message=b'{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}'))

    assert kept.store.cancel(head, NOON).status_message is None


@pytest.mark.parametrize("state", [TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED])
def test_a_finished_task_is_not_canceled(kept: Kept, state: TaskState) -> None:
    head = kept.add(in_state(state))
    with pytest.raises(TaskNotCancelableError) as refused:
        kept.store.cancel(head, NOON)

    assert refused.value.metadata == {"state": state.value}
    assert kept.read(head) == head


def test_a_foreign_task_is_not_canceled(kept: Kept) -> None:
    head = kept.add(in_state(TaskState.INPUT_REQUIRED))
    with pytest.raises(TaskNotFoundError):
        kept.store.cancel(replace(head, owner="stranger"), NOON)

    assert kept.read(head) == head


@pytest.mark.parametrize("state", [TaskState.WORKING, TaskState.INPUT_REQUIRED])
def test_a_turn_that_was_canceled_meanwhile_loses_its_write(kept: Kept, state: TaskState) -> None:
    head = kept.add(in_state(state))
    canceled = kept.store.cancel(head, NOON)
    with pytest.raises(ConflictError) as conflict:
        kept.store.prepare(head, replace(head, revision=head.revision + 1, state=TaskState.COMPLETED, write=""))()

    assert conflict.value.current == canceled


def test_a_task_that_does_not_exist_is_not_canceled(kept: Kept) -> None:
    head = begun()
    with pytest.raises(TaskNotFoundError):
        kept.store.cancel(head, NOON)

    assert kept.store.read(OWNER, head.task_id) is None


# Content


@pytest.mark.parametrize("turns", [1, 2, 5])
def test_the_history_is_the_newest_messages_in_order(kept: Kept, turns: int) -> None:
    head = conversation(kept, turns)
    everything = ["Hello", "1?", *(each for turn in range(2, turns + 1) for each in (f"said {turn}", f"{turn}?"))]

    assert texts(kept.store.history(head)) == everything
    for limit in [*range(1, 12), 1000]:
        assert texts(kept.store.history(head, limit)) == everything[-limit:]


def test_a_running_turn_is_part_of_the_history(kept: Kept) -> None:
    asked = conversation(kept, 2)
    running, _ = followed(asked, "third")
    kept.store.prepare(asked, running)()

    assert texts(kept.store.history(kept.read(asked), 3)) == ["said 2", "2?", "third"]


def test_messages_have_the_ids_of_their_task(kept: Kept) -> None:
    head = conversation(kept, 2)

    assert {(each.task_id, each.context_id) for each in kept.store.history(head)} == {(head.task_id, head.context_id)}


def test_artifacts_are_folded_over_all_turns(kept: Kept) -> None:
    head = kept.add(ended(begun(), api.artifact("1", artifact_id="a"), api.input_required("?")))
    head = take_turn(kept, head, "no artifact", api.input_required("?"))
    head = take_turn(
        kept, head, "two", api.artifact("2", artifact_id="b"), api.artifact("3", artifact_id="a", append=True)
    )

    assert kept.store.artifacts(head) == [
        Artifact("a", [Part(text="1"), Part(text="3")]),
        Artifact("b", [Part(text="2")]),
    ]


def test_a_task_without_artifacts_has_none(kept: Kept) -> None:
    assert kept.store.artifacts(conversation(kept, 3)) == []


def test_what_was_said_with_a_final_state_is_kept(kept: Kept) -> None:
    head = kept.add(in_state(TaskState.FAILED))
    said = kept.store.status_message(head)

    assert said is not None
    assert (texts([said]), said.task_id, said.context_id) == (["Broken."], head.task_id, head.context_id)


def test_a_state_without_a_word_has_no_message(kept: Kept) -> None:
    assert kept.store.status_message(kept.add(in_state(TaskState.COMPLETED))) is None


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_content_of_any_size_comes_back_as_it_was(kept: Kept, text: str) -> None:
    updates = (api.artifact(text, artifact_id="a", name=text[:10]), api.failed(text))
    head = begun()
    sent = message(text, task_id=head.task_id, context_id=head.context_id)
    stored = kept.add(ended(replace(head, messages=task.encode_messages([sent])), *updates, message_=sent))

    assert kept.store.history(stored) == [sent]
    assert kept.store.artifacts(stored) == [Artifact("a", [Part(text=text)], name=text[:10])]
    assert texts([kept.store.status_message(stored) or message("missing")]) == [text]


@pytest.mark.parametrize("text", SAMPLES.values(), ids=SAMPLES)
def test_content_of_any_size_comes_back_from_earlier_turns(kept: Kept, text: str) -> None:
    head = begun()
    sent = message(text, task_id=head.task_id, context_id=head.context_id)
    asked = ended(head, api.artifact(text, artifact_id="a"), api.input_required(text), message_=sent)
    stored = kept.add(asked)
    stored = take_turn(kept, stored, "two", api.input_required("2?"))
    stored = take_turn(kept, stored, "three", api.artifact("3", artifact_id="a", append=True))

    assert texts(kept.store.history(stored)) == [text, text, "two", "2?", "three"]
    assert texts(kept.store.history(stored, 2)) == ["2?", "three"]
    assert kept.store.artifacts(stored) == [Artifact("a", [Part(text=text), Part(text="3")])]


NUMBERS: Final[list[Any]] = [0, -1, 0.1, 1e-320, 1.7976931348623157e308, 2**53 + 1, 2**64, 10**400, -(10**40), 1e2]


def test_numbers_come_back_as_they_were(kept: Kept) -> None:
    head = begun()
    sent = Message("m", message().role, [Part(data={"n": NUMBERS})], task_id=head.task_id, context_id=head.context_id)
    stored = kept.add(replace(head, messages=task.encode_messages([sent])))
    (shown,) = kept.store.history(stored)

    assert shown.parts[0].data == {"n": NUMBERS}
    assert [type(each) for each in shown.parts[0].data["n"]] == [type(each) for each in NUMBERS]


# Expiry


def test_a_task_is_gone_thirty_days_after_its_last_change(kept: Kept) -> None:
    head = kept.add(in_state(TaskState.INPUT_REQUIRED))
    kept.clock.now = NOON + 30 * DAY - 1000
    assert kept.store.read(head.owner, head.task_id) == head

    kept.clock.now = NOON + 30 * DAY
    assert kept.store.read(head.owner, head.task_id) is None
    with pytest.raises(TaskNotFoundError):
        kept.store.cancel(head, kept.clock.now)


def test_a_change_of_state_keeps_a_task_for_longer(kept: Kept) -> None:
    head = kept.add(in_state(TaskState.INPUT_REQUIRED))
    following, _ = followed(head, now=NOON + 20 * DAY)
    kept.store.prepare(head, following)()
    kept.clock.now = NOON + 49 * DAY

    assert bare(kept.store.read(head.owner, head.task_id)) == bare(following)
