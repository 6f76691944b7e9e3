"""The agents that the callers talk to. They do as the message says, and note each run in a file."""

import os
from pathlib import Path
from typing import Final

from a2a_lambda.agent import Agent, AgentProfile, Turn, Updates, artifact, input_required
from a2a_lambda.model import AgentSkill

RUNS: Final = "LOAD_RUNS"
"""The variable that names the file: a line a run, the task's id and the message's. Several processes add to it."""


class ReadOnly(Agent):
    """Completes the task where the message begins with "done", and asks for more where it does not."""

    read_only = True
    card = AgentProfile(
        name="Load",
        description="Is talked to by many callers at once.",
        version="1",
        skills=[AgentSkill("load", "Load", "Does as the message says.", ["load"])],
    )

    def respond(self, turn: Turn) -> Updates:
        """Note the run, then ask or answer."""
        with Path(os.environ[RUNS]).open("ab", buffering=0) as runs:
            runs.write(f"{turn.task_id} {turn.message.message_id}\n".encode())
        if turn.text.startswith("done"):
            yield artifact("Here it is.", name="result")
        else:
            yield input_required("What else?")


class Acting(ReadOnly):
    """The same, claimed before it runs, so that no turn may run twice."""

    read_only = False
