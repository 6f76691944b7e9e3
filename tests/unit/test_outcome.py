"""What a turn comes to: an agent's updates, folded in order, and what is not an update."""

from typing import Any, Final, cast

import pytest
from msgspec import UNSET

from a2a_lambda import agent as api
from a2a_lambda.agent import StatusUpdate, Update, artifact, completed, data, input_required, reply, text, working
from a2a_lambda.errors import InvalidAgentResponseError
from a2a_lambda.model import Artifact, Message, Part, Role, TaskState
from a2a_lambda.outcome import Outcome
from tests.unit.factories import Json, message, new_outcome, texts

FINAL_UPDATES: Final = {
    TaskState.INPUT_REQUIRED: input_required("?"),
    TaskState.AUTH_REQUIRED: api.auth_required("?"),
    TaskState.COMPLETED: completed(),
    TaskState.FAILED: api.failed(),
    TaskState.REJECTED: api.rejected(),
}
QUESTION: Final = message(task_id="task-1", context_id="context-1")


def outcome(*updates: object) -> Outcome:
    """Return what a turn on QUESTION comes to."""
    folded = new_outcome(QUESTION)
    for update in updates:
        folded.apply(update)
    folded.close()
    return folded


def artifacts(*updates: Update) -> list[Artifact]:
    return [each.artifact for each in outcome(*updates).deltas]


def contents(*updates: Update) -> list[tuple[str, list[str]]]:
    return [(each.artifact_id, [str(part.text) for part in each.parts]) for each in artifacts(*updates)]


def refused(*updates: object) -> str:
    with pytest.raises(InvalidAgentResponseError) as error:
        outcome(*updates)
    return error.value.message


# States


def test_ending_without_an_update_is_completed() -> None:
    assert (outcome().state, outcome().status_message) == (TaskState.COMPLETED, None)


@pytest.mark.parametrize("update", [working(), working("Looking …"), artifact("x")])
def test_ending_without_a_final_update_is_completed_without_a_word(update: Update) -> None:
    folded = outcome(update)

    assert (folded.state, folded.status_message) == (TaskState.COMPLETED, None)


@pytest.mark.parametrize("state", FINAL_UPDATES)
def test_a_final_update_decides_the_state(state: TaskState) -> None:
    assert outcome(FINAL_UPDATES[state]).state is state


def test_the_newest_progress_replaces_the_one_before_it() -> None:
    folded = new_outcome(QUESTION)
    folded.apply(working("One"))
    folded.apply(working("Two"))

    assert folded.state is TaskState.WORKING
    assert folded.status_message is not None
    assert texts([folded.status_message]) == ["Two"]


def test_progress_without_a_word_takes_the_earlier_word_back() -> None:
    folded = new_outcome(QUESTION)
    folded.apply(working("One"))
    folded.apply(working())

    assert folded.status_message is None


def test_a_question_is_a_message_of_the_agent_in_the_task() -> None:
    question = outcome(input_required("Which one?")).status_message

    assert question == Message(
        question.message_id if question else "",
        Role.AGENT,
        [Part(text="Which one?")],
        task_id="task-1",
        context_id="context-1",
    )


def test_a_question_may_have_several_parts() -> None:
    question = outcome(input_required([text("Which one?"), data({"choices": [1, 2]})])).status_message

    assert question is not None
    assert question.parts == [Part(text="Which one?"), Part(data={"choices": [1, 2]}, media_type="application/json")]


@pytest.mark.parametrize("ask", [api.input_required, api.auth_required])
def test_asking_without_a_word_is_refused(ask: Any) -> None:
    assert "without a message" in refused(ask([]))


@pytest.mark.parametrize("state", FINAL_UPDATES)
@pytest.mark.parametrize("late", [working("x"), artifact("x"), completed(), input_required("?"), reply("x"), None])
def test_an_update_after_a_final_one_is_refused(state: TaskState, late: object) -> None:
    assert "an update after" in refused(FINAL_UPDATES[state], late)


def test_an_update_after_a_reply_is_refused() -> None:
    assert "an update after" in refused(reply("x"), reply("y"))


# Replies


def test_a_reply_alone_is_a_message_without_a_task() -> None:
    folded = outcome(reply("Hi!"))

    assert folded.is_reply
    assert folded.status_message is not None
    assert (folded.status_message.role, folded.status_message.context_id) == (Role.AGENT, "context-1")
    assert texts([folded.status_message]) == ["Hi!"]


def test_a_reply_completes_the_task_where_there_is_one() -> None:
    folded = outcome(reply("Hi!"))

    assert folded.state is TaskState.COMPLETED
    assert folded.status_message is not None
    assert (folded.status_message.task_id, texts([folded.status_message])) == ("task-1", ["Hi!"])


@pytest.mark.parametrize("earlier", [working(), working("x"), artifact("x")])
def test_a_reply_after_other_updates_needs_the_task(earlier: Update) -> None:
    folded = outcome(earlier, reply("Hi!"))

    assert not folded.is_reply
    assert folded.state is TaskState.COMPLETED
    assert texts([folded.status_message] if folded.status_message else []) == ["Hi!"]


def test_a_turn_that_fails_after_a_reply_is_not_a_reply() -> None:
    folded = outcome(reply("Hi!"))
    folded.fail("Broken.")

    assert (folded.is_reply, folded.state) == (False, TaskState.FAILED)


# Artifacts


def test_an_artifact_without_an_id_is_a_new_one_each_time() -> None:
    ids = [each.artifact_id for each in artifacts(artifact("x"), artifact("x"))]

    assert len(set(ids)) == 2
    assert all(ids)


def test_an_artifact_with_a_known_id_replaces_it() -> None:
    assert contents(artifact("1", artifact_id="a"), artifact("2", artifact_id="a")) == [("a", ["2"])]


def test_parts_are_appended_to_an_artifact_with_a_known_id() -> None:
    given = artifact("1", artifact_id="a"), artifact("2", artifact_id="a", append=True, last_chunk=True)
    assert contents(*given) == [("a", ["1", "2"])]


def test_several_artifacts_stand_in_the_order_of_their_first_parts() -> None:
    given = (
        artifact("1", artifact_id="b"),
        artifact("2", artifact_id="a"),
        artifact("3", artifact_id="b", append=True),
        artifact("4", artifact_id="a"),
    )
    assert contents(*given) == [("b", ["1", "3"]), ("a", ["4"])]


@pytest.mark.parametrize(
    ("given", "appends"),
    [
        ([artifact("1", artifact_id="a")], False),
        ([artifact("1", artifact_id="a", append=True)], True),
        ([artifact("1", artifact_id="a", append=True), artifact("2", artifact_id="a", append=True)], True),
        ([artifact("1", artifact_id="a", append=True), artifact("2", artifact_id="a")], False),
        ([artifact("1", artifact_id="a"), artifact("2", artifact_id="a", append=True)], False),
    ],
)
def test_a_turn_extends_an_earlier_turns_artifact_unless_it_gave_the_whole(given: list[Update], appends: bool) -> None:  # noqa: FBT001
    assert [each.append for each in outcome(*given).deltas] == [appends]


def test_an_artifact_has_all_that_the_agent_says_of_it() -> None:
    given = artifact(
        [text("x"), api.raw(b"y", media_type="image/png", filename="y.png"), api.url("z:", media_type="a/b")],
        name="n",
        description="d",
        artifact_id="a",
        metadata={"k": 1},
    )
    assert artifacts(given) == [
        Artifact(
            "a",
            [
                Part(text="x"),
                Part(raw=b"y", media_type="image/png", filename="y.png"),
                Part(url="z:", media_type="a/b"),
            ],
            name="n",
            description="d",
            metadata={"k": 1},
        )
    ]


def test_artifacts_given_before_a_failure_stay() -> None:
    folded = new_outcome(QUESTION)
    folded.apply(artifact("x", artifact_id="a"))
    folded.fail("Broken.")

    assert [each.artifact.artifact_id for each in folded.deltas] == ["a"]
    assert texts([folded.status_message] if folded.status_message else []) == ["Broken."]


# What an agent may not give


@pytest.mark.parametrize("update", [None, "x", 5, {}, [], text("x"), working, TaskState.COMPLETED, object()])
def test_what_is_no_update_is_refused(update: object) -> None:
    assert "is not an update" in refused(update)


@pytest.mark.parametrize("update", [artifact([]), reply([]), artifact(())])
def test_an_artifact_or_a_reply_without_parts_is_refused(update: Update) -> None:
    assert "without parts" in refused(update)


@pytest.mark.parametrize(
    "part",
    [Part(), Part(text="x", url="y:"), Part(text="x", data=None), Part(data=UNSET), data(UNSET)],
)
@pytest.mark.parametrize("make", [artifact, input_required, reply, working, completed])
def test_a_part_without_exactly_one_content_is_refused(make: Any, part: Part) -> None:
    assert "exactly one" in refused(make(part))


def circle() -> Json:
    endless: list[Json] = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    "value",
    ["\ud800", {"\ud800": 1}, object(), {"a": UNSET}, 1j, {(1, 2): 3}, circle(), {None: 1}],
    ids=["surrogate", "surrogate key", "object", "unset", "complex", "tuple key", "circle", "null key"],
)
@pytest.mark.parametrize("make", [artifact, input_required, reply, working, completed])
def test_a_value_that_json_cannot_hold_is_refused(make: Any, value: Json) -> None:
    assert "JSON cannot hold" in refused(make(data(value)))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [float("-inf")], {"a": float("nan")}])
def test_a_number_that_json_cannot_hold_is_refused(value: Json) -> None:
    assert "JSON cannot hold" in refused(artifact(data(value)))


@pytest.mark.parametrize(
    "update",
    [
        artifact(cast("Any", ["not a part"])),
        artifact(text(cast("Any", 5))),
        artifact("x", name=cast("Any", 5)),
        artifact("x", metadata=cast("Any", None)),
        artifact("x", metadata=cast("Any", [])),
        artifact("x", artifact_id=cast("Any", 5)),
        artifact("\ud800"),
        input_required("\ud800"),
        completed(cast("Any", [None])),
        artifact("x", metadata={"a": object()}),
    ],
)
def test_a_value_of_a_wrong_type_is_refused(update: Update) -> None:
    assert refused(update)


@pytest.mark.parametrize("state", [TaskState.SUBMITTED, TaskState.CANCELED, "TASK_STATE_COMPLETED", None])
def test_a_state_that_is_not_the_agents_to_give_is_refused(state: Any) -> None:
    assert refused(StatusUpdate(state, (Part(text="x"),)))


@pytest.mark.parametrize("value", [None, 0, "", False, 10**30, 0.1, [None], {"a": {"b": [1]}}, "😀"])
def test_any_json_value_is_data(value: Json) -> None:
    assert artifacts(artifact(data(value)))[0].parts == [Part(data=value, media_type="application/json")]


# What an agent does afterwards


def test_what_an_agent_does_to_a_value_after_giving_it_changes_nothing() -> None:
    value: dict[str, Json] = {"a": [1]}
    parts = [data(value)]
    metadata = {"k": [1]}
    folded = new_outcome(QUESTION)
    folded.apply(artifact(parts, artifact_id="a", metadata=metadata))

    value["a"].append(2)
    parts.append(text("more"))
    metadata["k"].append(2)

    assert [each.artifact for each in folded.deltas] == [
        Artifact("a", [Part(data={"a": [1]}, media_type="application/json")], metadata={"k": [1]})
    ]


def test_what_an_agent_does_to_a_question_after_asking_it_changes_nothing() -> None:
    value = [1]
    folded = new_outcome(QUESTION)
    folded.apply(input_required(data(value)))

    value.append(2)

    assert folded.messages[-1].parts[0].data == [1]
