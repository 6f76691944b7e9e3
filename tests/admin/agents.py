"""An agent that leaves everything behind that a caller can have."""

from typing import Final

from a2a_lambda.agent import Agent, AgentProfile, Turn, Updates, artifact, input_required, reply
from a2a_lambda.model import AgentSkill

LARGE: Final = "x" * 310_000


class Talker(Agent):
    """Answers `hi` directly, and asks on after anything else; `large` gets more than fits into an item."""

    read_only = True
    card = AgentProfile(
        name="Talker", description="Talks.", version="1.0.0", skills=[AgentSkill("talk", "Talk", "Talks.", ["talk"])]
    )

    def respond(self, turn: Turn) -> Updates:
        if turn.text == "hi":
            yield reply("hi")
            return
        yield artifact(LARGE if turn.text == "large" else "small", name="said")
        yield input_required("And?")
