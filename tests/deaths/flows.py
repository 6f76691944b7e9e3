"""What happens in the world, from a client's first message on: each flow is tried with a death before each step."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.deaths.instances import line
from tests.deaths.world import World

AGENTS: Final = ("Acting", "ActingLong", "Reading", "ReadingLong")

COMPLETED: Final = "TASK_STATE_COMPLETED"
FAILED: Final = "TASK_STATE_FAILED"
CANCELED: Final = "TASK_STATE_CANCELED"

MINUTE: Final = 60_000
PUSH_TRIES: Final = 6

Json = Any
Script = Callable[..., object]
"""What happens in a world, its last or only argument."""


@dataclass(frozen=True)
class Flow:
    """Something that happens, with the agent that it happens to."""

    agent: str
    script: Script
    ends: frozenset[str] = frozenset({COMPLETED})
    """The states in which the task may be left in any case."""
    insists: bool = True
    """Whether its client insists on an answer."""

    @property
    def acts(self) -> bool:
        """Whether the agent acts on the world."""
        return self.agent.startswith("Acting")


# A message, sent again until it is answered.


def begin(world: World) -> None:
    world.send()


def begin_at_once(world: World) -> None:
    world.send(returnImmediately=True)


def greet(world: World) -> None:
    world.send("Hello")


def watched(world: World) -> None:
    world.send(taskPushNotificationConfig={"url": world.webhook.url})


def watched_at_length(world: World) -> None:
    world.send("At length", taskPushNotificationConfig={"url": world.webhook.url}, returnImmediately=True)


def converse(world: World) -> None:
    """A question comes back, and is answered."""
    world.send("Ask me")
    world.carry_on()
    world.send(message_id="m-2", task_id=world.task_id)


def watched_converse(world: World) -> None:
    """The same, with a webhook from the first message on."""
    world.send("Ask me", taskPushNotificationConfig={"url": world.webhook.url})
    world.carry_on()
    world.send(message_id="m-2", task_id=world.task_id)


def watched_later(world: World) -> None:
    """The same, with a webhook from the question on."""
    world.send("Ask me")
    world.carry_on()
    world.configure()
    world.send(message_id="m-2", task_id=world.task_id)


# What happens to it on its way.


def meanwhile(step: str, happens: Script, script: Script, world: World) -> None:
    world.meanwhile[step] = lambda: happens(world)
    script(world)


def behind(script: Script, happens: Script, world: World) -> None:
    """It happens before any event source delivers."""
    script(world)
    happens(world)


def fatal(step: str, times: int, script: Script, world: World) -> None:
    world.fatal[step] = times
    script(world)


def forsaken(world: World, found_by: Script | None = None) -> None:
    """A message is sent once, and its sender never comes back; another looks for the task, later."""
    world.send(insists=False)
    if found_by:
        line.now += MINUTE
        found_by(world)


def get_task(world: World) -> None:
    for head in world.heads():
        world.task(head["task_id"]["S"])


def list_tasks(world: World) -> None:
    world.insist("ListTasks", {})


def refused_for_long(world: World) -> None:
    """The webhook takes nothing, and is switched off. It is named again, and its dead letters are put back."""
    world.webhook.status = lambda: 500
    watched(world)
    world.carry_on()
    if len(world.webhook.posts) not in (PUSH_TRIES, PUSH_TRIES + len(world.died)):
        world.errors.append(f"the webhook was tried {len(world.webhook.posts)} times")
    world.webhook.status = lambda: 200
    world.configure()
    world.told_from = 0
    world.redrive()


FAILS: Final = frozenset({FAILED})
EITHER_CANCELED: Final = frozenset({COMPLETED, CANCELED})

FLOWS: Final[Mapping[str, Flow]] = {
    "acting": Flow("Acting", begin),
    "acting, at once": Flow("Acting", begin_at_once),
    "acting, dies, nobody comes": Flow("Acting", partial(fatal, "half", 1, forsaken), FAILS, insists=False),
    "acting, dies, found by GetTask": Flow(
        "Acting", partial(fatal, "half", 1, partial(forsaken, found_by=get_task)), FAILS, insists=False
    ),
    "acting, long, canceled": Flow("ActingLong", partial(meanwhile, "half", World.cancel, begin), EITHER_CANCELED),
    "reading, long": Flow("ReadingLong", begin),
    "acting, at once, watched": Flow("Acting", watched_at_length),
    "reading, webhook refuses": Flow("Reading", refused_for_long),
}
"""What always is tried."""

MORE_FLOWS: Final[Mapping[str, Flow]] = {
    "acting, asks": Flow("Acting", converse),
    "reading, asks": Flow("Reading", converse),
    "acting, dies, found by ListTasks": Flow(
        "Acting", partial(fatal, "half", 1, partial(forsaken, found_by=list_tasks)), FAILS, insists=False
    ),
    "acting, long, dies": Flow("ActingLong", partial(fatal, "half", 1, begin), FAILS),
    "reading, long, always dies": Flow("ReadingLong", partial(fatal, "half", 3, begin_at_once), FAILS),
    "acting, canceled, watched": Flow("Acting", partial(meanwhile, "half", World.cancel, watched), EITHER_CANCELED),
    "acting, watched meanwhile": Flow("Acting", partial(meanwhile, "begun", World.configure, begin)),
    "reading, asks, watched": Flow("Reading", watched_converse),
    "acting, long": Flow("ActingLong", begin),
    "acting, replies": Flow("Acting", greet),
    "acting, canceled": Flow("Acting", partial(meanwhile, "half", World.cancel, begin), EITHER_CANCELED),
    "acting, canceled in the queue": Flow("Acting", partial(behind, begin_at_once, World.cancel), EITHER_CANCELED),
    "reading": Flow("Reading", begin),
    "reading, replies": Flow("Reading", greet),
    "reading, at once": Flow("Reading", begin_at_once),
    "reading, long, canceled": Flow("ReadingLong", partial(meanwhile, "half", World.cancel, begin), EITHER_CANCELED),
    "reading, watched": Flow("Reading", watched),
    "acting, long, asks": Flow("ActingLong", converse),
    "acting, nobody comes": Flow("Acting", forsaken, insists=False),
    "reading, long, dies twice": Flow(
        "ReadingLong", partial(fatal, "half", 2, begin_at_once), frozenset({COMPLETED, FAILED})
    ),
    "acting, watched": Flow("Acting", watched),
    "acting, asks, watched": Flow("Acting", watched_converse),
    "acting, asks, watched later": Flow("Acting", watched_later),
}
