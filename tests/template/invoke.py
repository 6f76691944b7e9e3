"""Invokes the functions with events, each through the route or the event source that it names; prints their answers.

In: a JSON list of events on standard input, settings as environment variables. An interpreter of its own, since
a function reads its settings when it is imported.
"""

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from local.deployment import Deployment, read_deployment
from local.functions import load_function
from local.mappings import SourceMapping, StreamMapping
from local.queues import create_missing_queues

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
SECONDS_TO_ANSWER = 30


def answers(events: list[dict[str, Any]]) -> list[object]:
    """What the functions behind the events' routes and sources answer."""
    deployment = read_deployment(TEMPLATE, os.environ)
    os.environ.update(deployment.variables())
    sys.path.extend(str(layer) for layer in deployment.layers())
    if any("Records" in event for event in events):
        create_missing_queues(os.environ["SQS_ENDPOINT"], deployment.queues)
    functions = {name: load_function(function) for name, function in deployment.functions.items()}
    return [
        functions[function_of(event, deployment)].invoke(event, f"request-{number}", SECONDS_TO_ANSWER)
        for number, event in enumerate(events)
    ]


def function_of(event: dict[str, Any], deployment: Deployment) -> str:
    """The function behind an event's route, or behind the stream or queue that its records are from."""
    if "routeKey" in event:
        return next(route.function for route in deployment.routes if route.key == event["routeKey"])
    source = event["Records"][0]["eventSourceARN"]
    return next(mapping.function for mapping in deployment.mappings if f"-{logical_id(mapping)}-" in source)


def logical_id(mapping: SourceMapping) -> str:
    """The template's name of a mapping's table or queue, which in AWS is a part of its name."""
    if isinstance(mapping, StreamMapping):
        return mapping.table
    return mapping.queue.rpartition(":")[2].removesuffix(".fifo")


# The functions log to standard output.
with contextlib.redirect_stdout(sys.stderr):
    found = answers(json.load(sys.stdin))
json.dump(found, sys.stdout)
