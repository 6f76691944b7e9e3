"""Invokes the functions with events, each through the route that it names, and prints their answers.

In: a JSON list of events on standard input, settings as environment variables. An interpreter of its own, since
a function reads its settings when it is imported.
"""

import contextlib
import json
import os
import sys
from pathlib import Path

from local.deployment import read_deployment
from local.functions import load_function

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
SECONDS_TO_ANSWER = 30


def answers(events: list[dict[str, object]]) -> list[object]:
    """What the functions behind the events' routes answer."""
    deployment = read_deployment(TEMPLATE, os.environ)
    os.environ.update(deployment.variables())
    sys.path.extend(str(layer) for layer in deployment.layers())
    functions = {name: load_function(function) for name, function in deployment.functions.items()}
    routes = {route.key: functions[route.function] for route in deployment.routes}
    return [
        routes[str(event["routeKey"])].invoke(event, f"request-{number}", SECONDS_TO_ANSWER)
        for number, event in enumerate(events)
    ]


# The functions log to standard output.
with contextlib.redirect_stdout(sys.stderr):
    found = answers(json.load(sys.stdin))
json.dump(found, sys.stdout)
