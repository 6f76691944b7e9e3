"""How much a task may hold: messages, artifacts, everything together."""

from typing import Final

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from a2a_lambda import agent as api
from a2a_lambda.agent import Turn, Update, Updates, artifact, completed, input_required, reply, working
from a2a_lambda.errors import UnsupportedOperationError
from a2a_lambda.model import Task, TaskState
from a2a_lambda.outcome import OutputTooLargeError
from tests.unit.factories import GENEROUS, Server, agent, asking, message, new_outcome, rpc, send_params, server, texts

BIG_ARTIFACT: Final = "The agent gave an artifact of more than 1000 bytes."
BIG_TASK: Final = "The agent gave more than a task of this server may hold."


def said_with(task: Task) -> list[str]:
    return texts([task.status.message] if task.status.message else [])


def limited(*updates: Update, read_only: bool = True) -> Server:
    """Return a server that takes artifacts of 1,000 bytes and tasks of 2,500."""
    limits = replace(GENEROUS, max_artifact_bytes=1000, max_task_bytes=2500)
    return server(agent(lambda _turn: iter(updates), read_only=read_only), limits=limits)


def artifact_ids(task: Task) -> list[str]:
    return [] if task.artifacts is UNSET else [each.artifact_id for each in task.artifacts]


# Messages


@pytest.mark.parametrize("most", [2, 3, 4, 5, 6, 7])
def test_a_task_takes_messages_up_to_its_limit(most: int) -> None:
    served = server(asking(), limits=replace(GENEROUS, max_messages=most))
    task = served.task("a")
    for said in "bc"[: most // 2 - 1]:
        task = served.task(said, to=task.id)
    with pytest.raises(UnsupportedOperationError, match=f"may have {most} messages") as refused:
        served.task("d", to=task.id)

    assert refused.value.metadata == {"state": "TASK_STATE_INPUT_REQUIRED"}
    assert served.get(task.id) == task
    assert len(texts(task.history)) in (most, most - 1)


def test_a_message_over_the_limit_is_an_unsupported_operation() -> None:
    endpoint = rpc(limits=replace(GENEROUS, max_messages=2))
    task = endpoint.ask("SendMessage", send_params())["result"]["task"]

    assert endpoint.refusal("SendMessage", send_params(taskId=task["id"]))["code"] == -32004
    assert endpoint.store.writes == 1


def test_a_full_task_is_still_canceled() -> None:
    served = server(asking(), limits=replace(GENEROUS, max_messages=2))

    assert served.cancel(served.task().id).status.state is TaskState.CANCELED


def test_a_copy_of_the_last_message_is_answered_though_the_task_is_full() -> None:
    served = server(asking(), limits=replace(GENEROUS, max_messages=4))
    task = served.task("a")
    last = message("b", message_id="last", task_id=task.id)

    assert served.task(last) == served.task(last)


# Artifacts


@pytest.mark.parametrize("read_only", [True, False])
def test_an_artifact_over_the_limit_fails_the_task_and_none_of_it_is_kept(read_only: bool) -> None:  # noqa: FBT001
    served = limited(artifact("x", artifact_id="a"), artifact("y" * 1000, artifact_id="b"), read_only=read_only)
    task = served.task()

    assert (task.status.state, said_with(task), artifact_ids(task)) == (TaskState.FAILED, [BIG_ARTIFACT], ["a"])
    assert served.get(task.id) == task


def test_appended_chunks_count_together() -> None:
    chunks = [artifact("y" * 100, artifact_id="a", append=True) for _ in range(9)]
    task = limited(*chunks).task()

    assert (task.status.state, said_with(task)) == (TaskState.FAILED, [BIG_ARTIFACT])
    assert task.artifacts is not UNSET
    assert sum(len(str(part.text)) for part in task.artifacts[0].parts) < 1000


def test_an_artifact_that_is_replaced_counts_once() -> None:
    given = [artifact("y" * 800, artifact_id="a") for _ in range(20)]
    task = limited(*given).task()

    assert task.status.state is TaskState.COMPLETED


def test_an_agent_is_not_run_on_after_too_large_an_artifact() -> None:
    reached: list[str] = []

    def respond(_turn: Turn) -> Updates:
        yield artifact("y" * 1000)
        reached.append("the end")

    server(agent(respond), limits=replace(GENEROUS, max_artifact_bytes=1000)).task()

    assert reached == []


def test_a_characters_bytes_count() -> None:
    limits = replace(GENEROUS, max_artifact_bytes=1000)
    state = server(agent(lambda _turn: iter([artifact("é" * 480)])), limits=limits).task().status.state

    assert state is TaskState.FAILED


# Everything together


def test_artifacts_over_the_limit_of_a_task_fail_it() -> None:
    given = [artifact("y" * 800, artifact_id=str(number)) for number in range(5)]
    task = limited(*given).task()

    assert (task.status.state, said_with(task), artifact_ids(task)) == (TaskState.FAILED, [BIG_TASK], ["0", "1"])


def test_artifacts_of_all_turns_count() -> None:
    def respond(turn: Turn) -> Updates:
        yield artifact("y" * 800, artifact_id=turn.text)
        yield input_required("?")

    served = server(agent(respond), limits=replace(GENEROUS, max_artifact_bytes=1000, max_task_bytes=2500))
    task = served.task("0")
    task = served.task("1", to=task.id)
    task = served.task("2", to=task.id)

    assert (task.status.state, said_with(task), artifact_ids(task)) == (TaskState.FAILED, [BIG_TASK], ["0", "1"])


@pytest.mark.parametrize("say", [completed, input_required, api.failed, reply, working])
def test_what_is_said_counts_too(say: object) -> None:
    assert callable(say)
    outcome = new_outcome(message(), max_bytes=2500)
    outcome.apply(artifact("y" * 1500))
    with pytest.raises(OutputTooLargeError):
        outcome.apply(say("y" * 1500))


def test_what_is_said_too_large_is_said_in_part_by_nobody() -> None:
    task = limited(completed("y" * 3000)).task()

    assert (task.status.state, said_with(task)) == (TaskState.FAILED, [BIG_TASK])


def test_too_large_an_output_is_logged_without_its_content(caplog: pytest.LogCaptureFixture) -> None:
    limited(artifact("secret" * 1000)).task()

    assert BIG_ARTIFACT in caplog.text
    assert "secret" not in caplog.text
