"""What an agent may know of the message that it answers."""

import pytest
from msgspec import UNSET

from a2a_lambda.agent import Turn, Updates, completed, input_required
from a2a_lambda.model import Part, SendMessageConfiguration, SendMessageRequest
from tests.unit.factories import Json, Server, agent, call, message, server, texts
from tests.unit.memory_store import InMemoryTaskStore


def turn_of(request: SendMessageRequest, *, owner: str = "anonymous", seconds_left: float = 25.0) -> Turn:
    """Return the turn that an agent is given for a request."""
    seen: list[Turn] = []

    def respond(turn: Turn) -> Updates:
        seen.append(turn)
        yield completed()

    served = server(agent(respond))
    served.operations.send_message(request, call(owner=owner, seconds_left=seconds_left))
    return seen[0]


def remembering(*, read_only: bool = True) -> tuple[Server, list[list[str]]]:
    """Return a server whose agent notes the earlier messages of each turn."""
    seen: list[list[str]] = []

    def respond(turn: Turn) -> Updates:
        seen.append(texts(list(turn.earlier_messages())))
        yield input_required(f"{turn.text}?")

    return server(agent(respond, read_only=read_only)), seen


def test_a_turn_has_the_message_with_the_ids_of_task_and_context() -> None:
    turn = turn_of(SendMessageRequest(message("Hello", context_id="mine")))

    assert turn.message == message("Hello", task_id=turn.task_id, context_id="mine")
    assert turn.context_id == "mine"
    assert turn.task_id


def test_a_turn_has_the_caller() -> None:
    assert turn_of(SendMessageRequest(message()), owner="alice").caller == "alice"


@pytest.mark.parametrize(("metadata", "seen"), [(UNSET, {}), ({}, {}), ({"a": None}, {"a": None})])
def test_a_turn_has_the_requests_metadata(metadata: Json, seen: Json) -> None:
    assert turn_of(SendMessageRequest(message(), metadata=metadata)).metadata == seen


def test_a_turn_has_the_output_modes_that_the_client_accepts() -> None:
    configuration = SendMessageConfiguration(accepted_output_modes=["text/plain"])

    assert turn_of(SendMessageRequest(message(), configuration=configuration)).accepted_output_modes == ["text/plain"]


def test_a_turn_has_the_seconds_left() -> None:
    assert turn_of(SendMessageRequest(message()), seconds_left=12.5).seconds_left() == 12.5


def test_the_text_of_a_message_is_its_text_parts_joined() -> None:
    parts = [Part(text="a"), Part(text=""), Part(text="b")]

    assert turn_of(SendMessageRequest(message(parts))).text == "a\n\nb"


def test_data_is_no_text() -> None:
    assert Turn(message=message([Part(data="x"), Part(url="y:"), Part(text="z")])).text == "z"


@pytest.mark.parametrize("read_only", [True, False])
def test_the_earlier_messages_are_those_before_this_one_oldest_first(read_only: bool) -> None:  # noqa: FBT001
    served, seen = remembering(read_only=read_only)
    task = served.task("a")
    served.task("b", to=task.id)
    served.task("c", to=task.id)

    assert seen == [[], ["a", "a?"], ["a", "a?", "b", "b?"]]


def test_the_earlier_messages_are_all_of_them() -> None:
    served, seen = remembering()
    task = served.task("0")
    for turn in range(1, 80):
        task = served.task(str(turn), to=task.id)

    assert len(seen[-1]) == 2 * 79


def test_a_canceled_check_of_a_new_turn_is_no() -> None:
    told: list[bool] = []

    def respond(turn: Turn) -> Updates:
        told.append(turn.canceled())
        yield completed()

    server(agent(respond)).task()

    assert told == [False]


def test_a_turn_made_by_hand_is_enough_to_test_an_agent() -> None:
    turn = Turn(message=message("Hello"))

    assert (turn.canceled(), turn.earlier_messages(), turn.seconds_left()) == (False, (), float("inf"))


def test_nothing_is_read_for_an_agent_that_asks_for_nothing() -> None:
    served = server(agent(lambda _turn: iter([input_required("?")])))
    task = served.task()
    served.task("more", to=task.id, history_length=0)

    assert isinstance(served.store, InMemoryTaskStore)
    assert served.store.reads == 1
