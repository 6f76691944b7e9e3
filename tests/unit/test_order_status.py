"""The demo agent: which order a message means, and what is known of it."""

from typing import Final

import pytest

from a2a_lambda.agent import ArtifactUpdate, StatusUpdate, Turn, Update
from a2a_lambda.model import Part, TaskState
from order_status import ORDERS, OrderStatusAgent, find_order_id
from tests.unit.factories import Json, message

SHIPPED: Final = "Shipped on 2026-09-24. Expected delivery 2026-09-29."
PACKED: Final = "Packed. Not shipped yet."


def updates(*parts: Part) -> list[Update]:
    return list(OrderStatusAgent().respond(Turn(message=message(parts))))


def result(*parts: Part) -> tuple[Json, Json]:
    """Return text and data of the one artifact that the agent gives."""
    (given,) = updates(*parts)
    assert isinstance(given, ArtifactUpdate)
    assert given.name == "order-status"
    text, data = given.parts
    assert data.media_type == "application/json"
    return text.text, data.data


def asks(*parts: Part) -> bool:
    (given,) = updates(*parts)
    return isinstance(given, StatusUpdate) and given.state is TaskState.INPUT_REQUIRED


def test_the_agent_only_looks_things_up() -> None:
    assert OrderStatusAgent.read_only


@pytest.mark.parametrize(("order_id", "status"), [("A-1001", SHIPPED), ("A-1002", PACKED)])
def test_a_known_order_is_found_in_a_text_and_in_data(order_id: str, status: str) -> None:
    expected = (f"{order_id}: {status}", {"orderId": order_id, "found": True, "status": status})

    assert result(Part(text=f"Where is order {order_id}?")) == expected
    assert result(Part(data={"orderId": order_id})) == expected


@pytest.mark.parametrize("text", ["A-1001", "(A-1001)", "order:A-1001.", "A-1001\n", "x A-1001 A-1002", "é A-1001é"])
def test_an_order_number_is_found_among_other_words(text: str) -> None:
    assert find_order_id([Part(text=text)]) == "A-1001"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Where is my order?",
        "a-1001",
        "A1001",
        "A-100",
        "A-10011",
        "XA-1001",
        "A_1001",
        "A-1001x",
        "A-\u0661\u0660\u0660\u0661",
        "É-1001",
    ],
)
def test_what_is_no_order_number_is_asked_for(text: str) -> None:
    assert asks(Part(text=text))


@pytest.mark.parametrize("number", ["B-9999", "Z-0000"])
def test_an_unknown_order_is_not_found(number: str) -> None:
    text, data = result(Part(text=number))

    assert text.startswith(f"{number}: ")
    assert (data["orderId"], data["found"]) == (number, False)


@pytest.mark.parametrize("number", ["constructor", "__proto__", "toString", "a-1001", " A-1001", "é", "x" * 10_000])
def test_a_strange_order_number_in_data_is_not_found(number: str) -> None:
    _, data = result(Part(data={"orderId": number}))

    assert (data["orderId"], data["found"]) == (number, False)


@pytest.mark.parametrize(
    "data", [None, 0, "", "A-1001", [], ["A-1001"], {}, {"orderid": "A-1001"}, {"orderId": None}, {"orderId": 1001}]
)
def test_data_without_an_order_number_is_asked_for(data: Json) -> None:
    assert asks(Part(data=data))


def test_an_empty_order_number_is_asked_for() -> None:
    assert asks(Part(data={"orderId": ""}))


def test_the_first_order_number_counts() -> None:
    assert find_order_id([Part(text="hello"), Part(data={"orderId": "A-1002"}), Part(text="A-1001")]) == "A-1002"


def test_nothing_is_found_in_a_file() -> None:
    assert find_order_id([Part(url="https://example.com/A-1001"), Part(raw=b"A-1001")]) is None


def test_the_example_in_the_question_is_an_order() -> None:
    (question,) = updates(Part(text="?"))
    assert isinstance(question, StatusUpdate)

    assert find_order_id(question.parts) in ORDERS
