"""The demo agent: says where an order is. Replace this file with an agent of your own."""

import re
from collections.abc import Iterable
from typing import Final

from a2a_lambda.agent import (
    APPLICATION_JSON,
    TEXT_PLAIN,
    Agent,
    AgentProfile,
    Turn,
    Updates,
    artifact,
    data,
    input_required,
    text,
)
from a2a_lambda.model import AgentSkill, Part

ORDERS: Final = {
    "A-1001": "Shipped on 2026-09-24. Expected delivery 2026-09-29.",
    "A-1002": "Packed. Not shipped yet.",
}
ORDER_ID: Final = re.compile(r"\b[A-Z]-\d{4}\b", re.ASCII)


class OrderStatusAgent(Agent):
    """Looks an order up, and asks for its number where the message has none."""

    read_only = True
    card = AgentProfile(
        name="Order Status Demo",
        description="Tells where an order is. A demo agent with two made-up orders, A-1001 and A-1002.",
        version="0.1.0",
        default_input_modes=[TEXT_PLAIN, APPLICATION_JSON],
        default_output_modes=[TEXT_PLAIN, APPLICATION_JSON],
        skills=[
            AgentSkill(
                id="order-status",
                name="Order status",
                description="Takes an order number, in a sentence or as data, and returns the order's status as "
                "text and as data.",
                tags=["orders", "shipping"],
                examples=["Where is order A-1001?", '{"orderId":"A-1002"}'],
            )
        ],
    )

    def respond(self, turn: Turn) -> Updates:
        """Complete the task with the order's status, or ask for the order's number."""
        order_id = find_order_id(turn.message.parts)
        if order_id is None:
            yield input_required("Which order do you mean? Please give its number, for example A-1001.")
            return
        found = order_id in ORDERS
        status = ORDERS.get(order_id, "There is no order with this number.")
        result = {"orderId": order_id, "found": found, "status": status}
        yield artifact([text(f"{order_id}: {status}"), data(result)], name="order-status")


def find_order_id(parts: Iterable[Part]) -> str | None:
    """Return the first order number in a text part, or the `orderId` of a data part."""
    for part in parts:
        if isinstance(part.text, str) and (match := ORDER_ID.search(part.text)):
            return match[0]
        if isinstance(part.data, dict) and (order_id := part.data.get("orderId")) and isinstance(order_id, str):
            return order_id
    return None
