"""Tasks that pass through several functions: what each of them does of one, and how each of them starts."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.session import get_session

from bench import calls
from bench.chain import FUNCTIONS, PUSH, RELAY, RPC, WORKER, Chain, Place
from bench.interpreters import chained, cold_start

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bench.calls import Event
    from bench.interpreters import Cold, Done
    from bench.staging import Stack, Stage
    from bench.webhook import Webhook
    from local.deployment import Deployment

TASKS = 40
"""Of each kind, for the CPU."""
COLD_TASKS = 10
COLD_TASKS_WITH_WEBHOOK = 3
"""Tasks each of whose invocations is a cold start; of the second there are more a task."""

ONE_SHOT = "one-shot, read-only"
ACTING = "one-shot, acting"
BACKGROUND = "in the background"
WITH_WEBHOOK = "in the background, with a webhook"

TEXT = calls.kilobyte("Where is order A-1001?")


@dataclass(frozen=True)
class Kind:
    """A kind of task: its functions, and the message that begins it."""

    functions: Mapping[str, Stack]
    message: Event


@dataclass(frozen=True)
class Passed:
    """How tasks of a kind pass through the functions."""

    done: Done
    """What each function does of one task."""
    cpu: Mapping[str, float]
    """The seconds of CPU that each function takes for one task."""
    stored_bytes: float
    """What there is of a task in the end."""
    posted_bytes: float
    """What a webhook receives of one task, without headers."""
    posts: float


@dataclass(frozen=True)
class Background:
    """All that was measured here."""

    passed: Mapping[str, Passed]
    """By the kind of task."""
    cold: Mapping[str, list[Cold]]
    """By the function. Of the one that answers requests, this is with a message for the background."""


def measure(stage: Stage, deployed: Deployment, place: Place, webhook: Webhook) -> Background:
    """Send tasks of each kind through the functions."""
    kinds = _kinds(stage, deployed, webhook)
    return Background(
        passed={name: _pass(stage.python, kind, place, webhook) for name, kind in kinds.items()},
        cold=_cold_starts(stage.python, kinds, place),
    )


def place_of(deployed: Deployment, endpoint: str) -> Place:
    """Where the functions of a deployment on the AWS at an endpoint find what lies between them."""
    variables = deployed.variables()
    queues = {WORKER: variables["WORK_QUEUE"], PUSH: variables["PUSH_QUEUE"]}
    return Place(endpoint, variables["TASKS_TABLE"], queues)


def _kinds(stage: Stage, deployed: Deployment, webhook: Webhook) -> dict[str, Kind]:
    functions = {name: stage.functions[name] for name in FUNCTIONS if name != PUSH}
    pushing = {name: stage.functions[name].with_variables(**deployed.functions[name].variables) for name in FUNCTIONS}
    return {
        ONE_SHOT: Kind(functions, calls.send("", TEXT)),
        ACTING: Kind(
            {
                name: each.with_variables(A2A_AGENT="asking:ActingAgent", QUESTION="")
                for name, each in functions.items()
            },
            calls.send("", TEXT),
        ),
        BACKGROUND: Kind(functions, calls.background("", TEXT)),
        WITH_WEBHOOK: Kind(pushing, calls.background("", TEXT, webhook=webhook.url)),
    }


def _pass(python: str, kind: Kind, place: Place, webhook: Webhook) -> Passed:
    job = {
        "message": kind.message,
        "place": {"endpoint": place.endpoint, "table": place.table, "queues": dict(place.queues)},
    }
    done, stored = chained(python, kind.functions, "metered", 1, job)
    webhook.taken()
    timed, _ = chained(python, kind.functions, "timed", TASKS, job)
    posted = webhook.taken()
    return Passed(
        done=done,
        cpu={name: each["cpu"] for name, each in timed.items()},
        stored_bytes=stored,
        # One task more is sent, which is not counted.
        posted_bytes=sum(map(len, posted)) / (TASKS + 1),
        posts=len(posted) / (TASKS + 1),
    )


def _cold_starts(python: str, kinds: Mapping[str, Kind], place: Place) -> dict[str, list[Cold]]:
    found: dict[str, list[Cold]] = {name: [] for name in FUNCTIONS}
    for kind, tasks in ((BACKGROUND, COLD_TASKS), (WITH_WEBHOOK, COLD_TASKS_WITH_WEBHOOK)):
        counted = {PUSH} if kind == WITH_WEBHOOK else {RPC, RELAY, WORKER}
        chain = Chain(place, _client(place), _starting(python, kinds[kind].functions, found, counted))
        for _ in range(tasks):
            chain.run(calls.renamed(kinds[kind].message, str(uuid.uuid4())))
    return found


def _client(place: Place) -> Callable[[str], Any]:
    session = get_session()
    return lambda service: session.create_client(service, endpoint_url=place.endpoint)


def _starting(
    python: str, functions: Mapping[str, Stack], found: dict[str, list[Cold]], counted: set[str]
) -> Callable[[str, Event], Any]:
    """What invokes a function in a fresh interpreter, and keeps what it took of those that count."""

    def invoke(name: str, event: Event) -> Any:
        cold = cold_start(python, functions[name], event)
        if name in counted:
            found[name].append(cold)
        return cold.answer

    return invoke
