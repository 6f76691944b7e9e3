"""Agents whose doing the world sees: each run of a turn asks it, step by step."""

from typing import Final

from a2a_lambda.agent import Agent, AgentProfile, Turn, Updates, artifact, completed, input_required, reply, working
from a2a_lambda.model import AgentSkill
from tests.deaths.instances import ask, commit_now

PROFILE: Final = AgentProfile(
    name="Test agent",
    description="For tests.",
    version="1.0.0",
    skills=[AgentSkill(id="act", name="Act", description="Acts.", tags=["test"])],
)

LARGE: Final = "x" * 20_000
"""More than rides in the item that it belongs to."""


class Acting(Agent):
    """Acts on the world, and says so as it goes."""

    card = PROFILE

    def respond(self, turn: Turn) -> Updates:
        """Act, with updates between; a message that asks to be asked is answered with a question."""
        ask("act", turn.message.message_id)
        if turn.text == "Hello":
            yield reply("Hello")
            return
        if turn.text == "Ask me":
            yield input_required("What?")
            return
        yield working("Begun")
        commit_now()
        ask("step", "begun")
        yield artifact("One", artifact_id="report")
        if turn.text == "At length":
            yield artifact(LARGE, artifact_id="annex")
        commit_now()
        ask("step", "half")
        if turn.canceled():
            return
        yield artifact("Two", artifact_id="report", append=True, last_chunk=True)
        yield completed("Done")


class ActingLong(Acting):
    """Acts, and always in the worker."""

    background = True


class Reading(Acting):
    """Only looks things up."""

    read_only = True


class ReadingLong(Reading):
    """Only looks things up, and always in the worker."""

    background = True
