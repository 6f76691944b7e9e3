"""The deployed agent, asking in as many words as the measurement wants, and one that says it acts on the world."""

import os

from a2a_lambda.agent import Turn, Updates, input_required
from order_status import OrderStatusAgent, find_order_id

QUESTION = os.environ["QUESTION"]


class AskingAgent(OrderStatusAgent):
    """Looks orders up; asks for the number in the words of QUESTION."""

    def respond(self, turn: Turn) -> Updates:
        """Ask, or answer as the deployed agent does."""
        if find_order_id(turn.message.parts) is None:
            yield input_required(QUESTION)
            return
        yield from super().respond(turn)


class ActingAgent(AskingAgent):
    """The same, claimed before it runs."""

    read_only = False
