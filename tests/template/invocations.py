"""Invoking the functions on this machine with events from elsewhere: the samples, or SAM's."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

from local.endpoints import LOCAL_IDENTITY
from tests.template.sam import ROOT, SCRIPTS

SECONDS_TO_ANSWER = 60

OPEN: Final = {"AUTH": "none"}
"""The settings under which everybody may call."""


def invoke(events: list[dict[str, Any]], endpoint: str, settings: Mapping[str, str] = OPEN) -> list[dict[str, Any]]:
    """What the functions answer to the events, in order, their tasks and queues at the endpoint."""
    finished = subprocess.run(
        [sys.executable, str(SCRIPTS / "invoke.py")],
        cwd=ROOT,
        env={
            **os.environ,
            **LOCAL_IDENTITY,
            **settings,
            "DYNAMODB_ENDPOINT": endpoint,
            "SQS_ENDPOINT": endpoint,
            "PYTHONPATH": str(ROOT),
        },
        input=json.dumps(events),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_TO_ANSWER,
    )
    assert finished.returncode == 0, finished.stderr
    answers: list[dict[str, Any]] = json.loads(finished.stdout)
    return answers


def outcome(answer: dict[str, Any]) -> str | int | None:
    """What a JSON-RPC answer says: the task's state, the error's code, or None without a body."""
    if not answer.get("body"):
        return None
    document = json.loads(answer["body"])
    if "error" in document:
        code: int = document["error"]["code"]
        return code
    result = document.get("result", {})
    state: str | None = result.get("task", result).get("status", {}).get("state")
    return state
