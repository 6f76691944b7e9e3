"""Carries out flows, once for each step before which an instance may die.

It reads names of flows from its standard input, and writes for each a line of JSON: what was found wrong. All
instances are forked from this process, which has one thread, and has read and made all that they need.
"""

import gc
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from itertools import combinations
from typing import Any

import msgspec

from tests.deaths import instances
from tests.deaths.aws import Aws
from tests.deaths.checks import problems
from tests.deaths.deployment import ENVIRONMENT, FUNCTIONS
from tests.deaths.flows import AGENTS, FLOWS, MORE_FLOWS, Flow
from tests.deaths.instances import NOON, Context, Handler, line
from tests.deaths.webhook import Webhook
from tests.deaths.world import Instances, World, rpc_event

Deaths = frozenset[int]
Handlers = Mapping[str, Handler]


class Explorer:
    """Carries out flows in one AWS, which is emptied each time."""

    def __init__(self) -> None:
        """Make everything ready, in this process, for good."""
        os.environ.update(ENVIRONMENT)
        instances.take_over()
        self._aws = Aws()
        self._handlers = {agent: {name: load(name, agent) for name in FUNCTIONS} for agent in AGENTS}
        rehearse(self._aws, self._handlers[AGENTS[0]])
        # What is there now is never collected, and so stays shared between the processes.
        gc.freeze()

    def explore(self, flow: Flow) -> list[str]:
        """Return what is wrong with a flow, each with the steps before which an instance died."""
        self._instances = Instances(self._handlers[flow.agent])
        steps, wrong = self._run(flow)
        found = [f"alive: {problem}" for problem in wrong]
        for deaths in chosen(len(steps)):
            _, wrong = self._run(flow, deaths)
            where = " and ".join(f"{step} ({steps[step]})" for step in sorted(deaths))
            found += [f"dead before {where}: {problem}" for problem in wrong]
        self._instances.close()
        return found

    def _run(self, flow: Flow, deaths: Deaths = frozenset()) -> tuple[list[str], list[str]]:
        """Carry out a flow, let everything come to rest, and return the steps, and what is wrong then."""
        line.now = NOON
        self._aws.empty()
        world = World(self._aws, Webhook(), self._instances, deaths)
        try:
            flow.script(world)
            world.carry_on()
            steps = list(world.steps)
            return steps, list(problems(flow, world))
        except Exception:  # noqa: BLE001 - it is told, and the next one tried
            # Instances may have been left in the middle of something.
            self._instances = Instances(self._handlers[flow.agent])
            return world.steps, [f"{traceback.format_exc()} after {world.steps[-10:]}"]
        finally:
            world.webhook.close()


def chosen(steps: int) -> Iterator[Deaths]:
    """Yield the deaths of each run: one, or with DEATHS=2 also two."""
    for count in range(1, int(os.environ.get("DEATHS", "1")) + 1):
        yield from map(frozenset, combinations(range(steps), count))


def load(name: str, agent: str) -> Handler:
    """Return a function's handler, as it is deployed with an agent of the tests."""
    os.environ["A2A_AGENT"] = f"tests.deaths.agents:{agent}"
    spec = spec_from_file_location(f"function_{name}_{agent}", FUNCTIONS[name].source / "app.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    handler: Handler = module.handler
    return handler


def rehearse(aws: Aws, handlers: Handlers) -> None:
    """Go through it once in this process: what is made ready at first use need not be made ready in each instance."""
    message = {"messageId": "m-0", "role": "ROLE_USER", "parts": [{"text": "At length"}]}
    configuration = {"returnImmediately": True, "taskPushNotificationConfig": {"url": "http://127.0.0.1:1/"}}
    answer = _rpc(handlers, "SendMessage", {"message": message, "configuration": configuration})
    handlers["relay"]({"Records": aws.unrelayed()}, Context(FUNCTIONS["relay"].timeout))
    line.now += 1
    for function, queue in (("worker", aws.work), ("push", aws.push)):
        handlers[function]({"Records": [queue.receive()]}, Context(FUNCTIONS[function].timeout))
    _rpc(handlers, "GetTask", {"id": answer["result"]["task"]["id"]})


def _rpc(handlers: Handlers, method: str, params: Any) -> Any:
    return msgspec.json.decode(handlers["rpc"](rpc_event(method, params), Context(FUNCTIONS["rpc"].timeout))["body"])


def main() -> None:
    """Explore the flows that are asked for."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    log = os.open(os.environ.get("DEATHS_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, sys.stdout.fileno())
    explorer, flows = Explorer(), {**FLOWS, **MORE_FLOWS}
    for name in map(str.strip, sys.stdin):
        answers.write(msgspec.json.encode(explorer.explore(flows[name])).decode() + "\n")


if __name__ == "__main__":
    main()
