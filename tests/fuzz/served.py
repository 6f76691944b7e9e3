"""A server that is asked one thing after another, with all that happens meanwhile: while an agent acts, while a client
waits. Time passes when an agent or a client lets it.
"""

from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, cast

import msgspec

from a2a_lambda import tally
from a2a_lambda.addresses import UnsafeUrlError
from a2a_lambda.calls import World
from a2a_lambda.jsonrpc import Endpoint
from a2a_lambda.ledger import Ledger
from a2a_lambda.operations import Operations
from a2a_lambda.pushing import PushConfigs
from a2a_lambda.running import Runner
from a2a_lambda.store import TaskStore
from a2a_lambda.task import Head, Limits
from a2a_lambda.working import Work, Worker
from tests.fuzz.knowledge import CALL_SECONDS, MAX_MESSAGES, WORKER_SECONDS
from tests.fuzz.matching import Json
from tests.fuzz.scripted import ScriptedAgent
from tests.fuzz.steps import NOBODY, SELF, Ask, Attend, Step, named
from tests.schema import check_rpc
from tests.unit.factories import SECOND, VALIDATOR, Clock, Ids, hurried

WINDOW_SECONDS: Final = 300
LIMITS: Final = Limits(max_messages=MAX_MESSAGES, max_artifact_bytes=1_048_576, max_task_bytes=4_194_304)


class Stopped(BaseException):
    """The function is stopped, which nothing in it may catch."""


class AnyWebhook:
    """Webhooks at every https address."""

    def check(self, url: str) -> None:
        if not url.startswith("https://"):
            raise UnsafeUrlError("must be an https URL")


@dataclass
class Request:
    """What a function is doing."""

    task_id: str = NOBODY
    """The task that it last asked the store for."""
    is_dead: bool = False
    vanishes: bool = False
    """It is stopped after its next write that counts."""


@dataclass
class Mortal:
    """A store in a function that may be stopped; notes what is asked of it."""

    store: TaskStore
    requests: list[Request] = field(default_factory=list)
    """Those that are being answered, each within the one before it."""
    begun: list[str] = field(default_factory=list)
    """The tasks that were made, in order."""

    ABOUT: ClassVar[dict[str, Callable[..., str]]] = {
        "read": lambda _owner, task_id: task_id,
        "find": lambda _owner, task_id, _key: task_id,
        "keep_reply": lambda reply: reply.task_id,
    }
    """Which task a call is about."""

    def __getattr__(self, name: str) -> Any:
        action: Callable[..., Any] = getattr(self.store, name)

        def act(*arguments: Any) -> Any:
            request = self.requests[-1]
            if request.is_dead:
                raise Stopped
            if name in self.ABOUT:
                request.task_id = self.ABOUT[name](*arguments)
            answer = action(*arguments)
            if name == "keep_reply":
                self._count()
            return answer

        return act

    def prepare(self, previous: Head | None, following: Head) -> Callable[[], None]:
        request = self.requests[-1]
        if request.is_dead:
            raise Stopped
        request.task_id = following.task_id
        commit = self.store.prepare(previous, following)

        def count() -> None:
            commit()
            if previous is None:
                self.begun.append(following.task_id)
            self._count()

        return count

    def _count(self) -> None:
        if self.requests[-1].vanishes:
            raise Stopped


@dataclass
class MortalConfigs:
    """Where webhooks are kept, in a function that may be stopped."""

    configs: PushConfigs
    store: Mortal

    def __getattr__(self, name: str) -> Any:
        if self.store.requests[-1].is_dead:
            raise Stopped
        return getattr(self.configs, name)


@dataclass
class Timers:
    """Actions that are carried out when their time has come."""

    clock: Clock
    waiting: list[tuple[int, Callable[[], None]]] = field(default_factory=list)

    def __call__(self, seconds: float, action: Callable[[], None]) -> Callable[[], None]:
        entry = self.clock.now + round(seconds * SECOND), action
        self.waiting.append(entry)
        return lambda: self.waiting.remove(entry) if entry in self.waiting else None

    def fire(self) -> None:
        due = [entry for entry in self.waiting if entry[0] <= self.clock.now]
        self.waiting = [entry for entry in self.waiting if entry not in due]
        for _, action in due:
            action()


class Served:
    """The server, and the stage of its agent."""

    def __init__(
        self,
        store: TaskStore,
        clock: Clock,
        *,
        read_only: bool,
        background: bool,
        configs: PushConfigs | None = None,
    ) -> None:
        """Args: the store under test, with its clock; the agent's kind; where webhooks are kept, None for push off."""
        self._clock = clock
        self._timers = Timers(clock)
        self._store = Mortal(store)
        self._meanwhile: list[Step] = []
        self._answers: list[Json] = []
        kind = type("Kind", (ScriptedAgent,), {"read_only": read_only, "background": background})
        agent = kind(self)
        kept = cast("TaskStore", self._store)
        world = World(clock=clock, new_id=Ids(), pause=self._pause, later=self._timers)
        mortal = cast("PushConfigs", MortalConfigs(configs, self._store)) if configs else None
        push = (mortal, AnyWebhook()) if mortal else None
        operations = Operations(agent, kept, LIMITS, world, window_seconds=WINDOW_SECONDS, push=push)
        ledger = Ledger(kept, world, read_only=read_only)
        self._endpoint = Endpoint(operations, VALIDATOR, max_body_bytes=65_536, push=push is not None)
        self._worker = Worker(kept, ledger, Runner(agent, kept, ledger, LIMITS, world), world)

    def carry_out(self, step: Step, meanwhile: Sequence[Step]) -> tuple[list[Json], list[str]]:
        """Return the answers to a step and to what happens meanwhile, in their order, and the tasks that were made."""
        self._answers, self._store.begun, self._meanwhile = [], [], list(meanwhile)
        self._carry_out(step)
        assert not self._timers.waiting
        return self._answers, self._store.begun

    # The agent's stage

    def wait(self, seconds: int) -> None:
        self._clock.advance(seconds * SECOND)
        self._timers.fire()

    def meanwhile(self) -> None:
        if self._meanwhile:
            self._carry_out(self._meanwhile.pop(0))

    def die(self) -> None:
        self._store.requests[-1].is_dead = True

    def vanish(self) -> None:
        self._store.requests[-1].vanishes = True

    def _pause(self, _seconds: float) -> None:
        self.wait(1)
        self.meanwhile()

    # Steps

    def _carry_out(self, step: Step) -> None:
        requests = self._store.requests
        task_id = requests[-1].task_id if requests else NOBODY
        request = Request()
        requests.append(request)
        try:
            # In a context of its own, as a request has its tally.
            answer = copy_context().run(self._answer, step, task_id)
        except Stopped:
            answer = None
        requests.pop()
        self._answers.append(None if request.is_dead else answer)

    def _answer(self, step: Step, task_id: str) -> Json:
        tally.begin()
        return self._attend(step, task_id) if isinstance(step, Attend) else self._ask(step, task_id)

    def _ask(self, step: Ask, task_id: str) -> Json:
        params = named(step.params, task_id)
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": step.method, "params": params})
        call = hurried(self._clock, owner=step.owner, seconds_left=CALL_SECONDS)
        answer = self._endpoint.answer(body, version="1.0", admit=lambda: call)
        check_rpc(body, answer.status, answer.body)
        response = msgspec.json.decode(answer.body)
        return {name: value for name, value in response.items() if name in ("result", "error")}

    def _attend(self, step: Attend, task_id: str) -> Json:
        end = self._clock.now + WORKER_SECONDS * SECOND
        work = self._work(replace(step, task_id=task_id)) if step.task_id == SELF else _work(step)
        attended = self._worker.attend(work, lambda: (end - self._clock.now) / SECOND)
        return {"outcome": attended.outcome, "state": attended.state, "hidden": attended.hidden_seconds}

    def _work(self, step: Attend) -> Work:
        """Return the work queue's message of a task's current run."""
        head = self._store.store.read(step.owner, step.task_id)
        return _work(replace(step, turn=head.turn, run=head.run) if head else replace(step, turn=1, run=1))


def _work(step: Attend) -> Work:
    return Work(step.owner, step.task_id, step.turn, step.run)
