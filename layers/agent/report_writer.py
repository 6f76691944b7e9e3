"""A second demo agent: works for a while in the background, says how far it is, and may be canceled.

make run AGENT=slow SECONDS=10
"""

import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from a2a_lambda.agent import Agent, AgentProfile, Turn, Updates, artifact, input_required, working
from a2a_lambda.model import AgentSkill
from a2a_lambda.settings import InvalidSettingError

MAX_SECONDS: Final = 900
FEWEST_STEPS: Final = 3
TOPIC_CHARS: Final = 80


class ReportWriter(Agent):
    """Writes a report to a file, chapter by chapter, and gives each chapter as it is done."""

    read_only = False  # it writes a file: a turn that was begun is not run again
    background = True
    card = AgentProfile(
        name="Report Writer Demo",
        description="Writes a report on a topic, slowly. A demo agent that works in the background.",
        version="0.1.0",
        skills=[
            AgentSkill(
                id="report",
                name="Report",
                description="Takes a topic and returns a report on it, chapter by chapter.",
                tags=["reports", "background"],
                examples=["The history of tea"],
            )
        ],
    )

    def __init__(self, pause: Callable[[float], None] = time.sleep, environ: Mapping[str, str] = os.environ) -> None:
        """Args: how time is spent; the settings, SECONDS and REPORTS_FOLDER.

        Raises:
            InvalidSettingError: SECONDS is no such number.
        """
        self._pause = pause
        self._seconds = seconds(environ.get("SECONDS") or "10")
        self._folder = Path(environ.get("REPORTS_FOLDER") or Path(tempfile.gettempdir(), "reports"))

    def respond(self, turn: Turn) -> Updates:
        """Complete the task with a report on the message's text, or ask for its topic."""
        topic = turn.text.strip()[:TOPIC_CHARS]
        if not topic:
            yield input_required("What shall the report be about?")
            return
        steps = max(FEWEST_STEPS, round(self._seconds))
        self._folder.mkdir(parents=True, exist_ok=True)
        report = self._folder / f"{turn.task_id}.txt"  # named by the server, not by a caller
        finished = False
        try:
            for step in range(1, steps + 1):
                if turn.canceled():
                    return
                yield working(f"Step {step} of {steps}")
                self._pause(self._seconds / steps)
                chapter = f"Chapter {step}: {topic}\n"
                with report.open("a", encoding="utf-8") as file:
                    file.write(chapter)
                finished = step == steps
                yield artifact(chapter, name="report", artifact_id="report", append=step > 1, last_chunk=finished)
        finally:
            if not finished:
                report.unlink(missing_ok=True)


def seconds(text: str) -> float:
    """Return how long a report takes.

    Raises:
        InvalidSettingError: it is not a number, or too small or too large a one.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= MAX_SECONDS:
        raise InvalidSettingError(f"SECONDS: must be a number above 0, {MAX_SECONDS} at most")
    return value
