"""The life of a task: which messages it takes, and how one head follows another."""

from typing import Final

import msgspec
import pytest

from a2a_lambda import agent as api
from a2a_lambda import task
from a2a_lambda.errors import InvalidParamsError, UnsupportedOperationError
from a2a_lambda.model import Artifact, Message, Part, Role, TaskState
from a2a_lambda.outcome import ArtifactDelta
from a2a_lambda.task import Head
from tests.unit.factories import DAY, GENEROUS, NOON, SECOND, Json, begun, ended, followed, in_state, message

S: Final = TaskState
TAKING: Final = [S.INPUT_REQUIRED, S.AUTH_REQUIRED]
FINISHED: Final = [S.COMPLETED, S.FAILED, S.CANCELED, S.REJECTED]
BUSY: Final = [S.SUBMITTED, S.WORKING]


def stored(content: object) -> Json:
    assert isinstance(content, bytes)
    return msgspec.json.decode(content)


def said(head: Head) -> list[str]:
    return [each["parts"][0]["text"] for each in stored(head.messages)]


# Admission


def test_every_state_is_in_one_of_the_three_kinds() -> None:
    assert sorted([*TAKING, *FINISHED, *BUSY], key=str) == sorted(TaskState, key=str)


@pytest.mark.parametrize("state", TAKING)
def test_a_task_that_asks_takes_a_message(state: TaskState) -> None:
    task.admit(in_state(state), message(), NOON, GENEROUS)


@pytest.mark.parametrize("state", FINISHED)
def test_a_message_to_a_finished_task_is_refused(state: TaskState) -> None:
    with pytest.raises(UnsupportedOperationError, match="finished") as refused:
        task.admit(in_state(state), message(), NOON, GENEROUS)
    assert refused.value.metadata == {"state": state.value}


@pytest.mark.parametrize("state", BUSY)
def test_a_message_to_a_busy_task_is_refused(state: TaskState) -> None:
    with pytest.raises(UnsupportedOperationError, match="busy") as refused:
        task.admit(in_state(state), message(), NOON, GENEROUS)
    assert refused.value.metadata == {"state": state.value}


def test_a_message_may_name_the_context_of_the_task() -> None:
    head = in_state(S.INPUT_REQUIRED)
    task.admit(head, message(context_id=head.context_id), NOON, GENEROUS)


@pytest.mark.parametrize("state", TaskState)
def test_a_message_that_names_another_context_is_refused_in_every_state(state: TaskState) -> None:
    with pytest.raises(InvalidParamsError) as refused:
        task.admit(in_state(state), message(context_id="another"), NOON, GENEROUS)
    assert [each.field for each in refused.value.violations] == ["message.contextId"]


def test_a_task_takes_messages_for_thirty_days() -> None:
    head = in_state(S.INPUT_REQUIRED)
    task.admit(head, message(), NOON + 30 * DAY - 1, GENEROUS)
    with pytest.raises(UnsupportedOperationError, match="30 days"):
        task.admit(head, message(), NOON + 30 * DAY, GENEROUS)


# From head to head


def test_a_new_task_works_on_its_first_message() -> None:
    head = begun()

    assert (head.state, head.turn, head.revision) == (S.WORKING, 1, 1)
    assert head.deadline == NOON + 25 * SECOND
    assert said(head) == ["Hello"]


def test_stored_messages_lack_the_ids_that_the_head_has() -> None:
    head = begun()

    assert set(stored(head.messages)[0]) == {"messageId", "role", "parts"}


def test_a_turn_is_shown_with_the_ids_of_its_task() -> None:
    head = begun()
    shown = task.within(head, message())

    assert (shown.task_id, shown.context_id) == (head.task_id, head.context_id)


def test_a_question_belongs_to_the_turn_at_once() -> None:
    head = ended(begun(), api.input_required("Which one?"))

    assert said(head) == ["Hello", "Which one?"]
    assert head.status_message is None


def test_what_is_said_with_a_final_state_is_not_in_the_history() -> None:
    head = ended(begun(), api.completed("Done."))

    assert said(head) == ["Hello"]
    assert stored(head.status_message)["parts"] == [{"text": "Done."}]


def test_progress_is_not_in_the_history() -> None:
    assert said(ended(begun(), api.working("Looking …"), api.completed())) == ["Hello"]


def test_a_finished_turn_is_one_revision_on_and_has_no_deadline() -> None:
    head = ended(begun(), api.input_required("Which one?"), now=NOON + 5)

    assert (head.revision, head.turn, head.deadline, head.status_at) == (2, 1, None, NOON + 5)


def test_the_next_turn_starts_with_its_message_alone() -> None:
    asked = ended(begun(), api.artifact("One"), api.input_required("Which one?"))
    head, _ = followed(asked, "This one", now=NOON + 7)

    assert (head.state, head.turn, head.revision) == (S.WORKING, 2, asked.revision + 1)
    assert said(head) == ["This one"]
    assert head.artifacts is None
    assert (head.status_at, head.deadline) == (NOON + 7, NOON + 7 + 25 * SECOND)


def test_turns_that_left_artifacts_are_counted() -> None:
    one = ended(begun(), api.artifact("One"), api.input_required("More?"))
    two, message_two = followed(one)
    two = ended(two, api.input_required("More?"), message_=message_two)
    three, _ = followed(two)

    assert (one.artifact_turns, two.artifact_turns, three.artifact_turns) == (0, 1, 1)


def test_a_status_is_never_older_than_the_one_before_it() -> None:
    asked = ended(begun(), api.input_required("Which one?"), now=NOON + 1000)
    head, _ = followed(asked, now=NOON)

    assert head.status_at == NOON + 1000


# Deadlines


@pytest.mark.parametrize(("elapsed", "overdue"), [(0, False), (25 * SECOND - 1, False), (25 * SECOND, True)])
def test_a_turn_is_overdue_from_its_deadline_on(elapsed: int, overdue: bool) -> None:  # noqa: FBT001
    assert task.is_overdue(begun(), NOON + elapsed) is overdue


@pytest.mark.parametrize("state", [S.INPUT_REQUIRED, S.AUTH_REQUIRED, S.COMPLETED, S.FAILED, S.REJECTED])
def test_a_turn_that_has_ended_is_never_overdue(state: TaskState) -> None:
    assert not task.is_overdue(in_state(state), NOON + 365 * DAY)


def test_a_turn_that_is_given_up_fails_with_its_outcome_unknown() -> None:
    head = begun()
    given_up = task.settle(head, read_only=False, message_id="m", now=NOON + 60 * SECOND)

    assert (given_up.state, given_up.deadline, given_up.revision) == (S.FAILED, None, head.revision + 1)
    assert given_up.status_at == NOON + 60 * SECOND
    assert "unknown" in stored(given_up.status_message)["parts"][0]["text"]
    assert given_up.messages == head.messages


# Artifacts over turns


def delta(artifact_id: str, *contents: str, append: bool = False, name: str = "") -> ArtifactDelta:
    parts = [Part(text=each) for each in contents]
    return ArtifactDelta(artifact=Artifact(artifact_id, parts, name=name), append=append)


def folded(*turns: list[ArtifactDelta]) -> list[tuple[str, list[str]]]:
    return [(each.artifact_id, [str(part.text) for part in each.parts]) for each in task.fold_artifacts(turns)]


def test_a_later_turn_appends_to_an_artifact_of_an_earlier_one() -> None:
    assert folded([delta("a", "1")], [delta("a", "2", append=True)]) == [("a", ["1", "2"])]


def test_a_later_turn_replaces_an_artifact_of_an_earlier_one() -> None:
    assert folded([delta("a", "1")], [delta("a", "2")], [delta("a", "3", append=True)]) == [("a", ["2", "3"])]


def test_artifacts_stand_in_the_order_in_which_they_were_first_given() -> None:
    turns = [delta("b", "1"), delta("a", "2")], [delta("c", "3"), delta("a", "4"), delta("b", "5", append=True)]
    assert folded(*turns) == [("b", ["1", "5"]), ("a", ["4"]), ("c", ["3"])]


def test_parts_that_are_appended_to_nothing_are_an_artifact() -> None:
    assert folded([delta("a", "1", append=True)]) == [("a", ["1"])]


def test_an_artifact_keeps_its_name_when_parts_are_appended_without_one() -> None:
    folded_artifacts = task.fold_artifacts([[delta("a", "1", name="n")], [delta("a", "2", append=True)]])
    assert [each.name for each in folded_artifacts] == ["n"]


def test_messages_are_encoded_without_loss() -> None:
    sent = Message("m", Role.USER, [Part(data={"a": [0.1, 10**30, None, "😀"]}, metadata={})], extensions=["urn:x"])
    assert msgspec.json.decode(task.encode_messages([sent]), type=list[Message]) == [sent]
