"""What the tests are built from: messages, agents, callers, a clock that stands still and ids that count."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from a2a_lambda import agent as api
from a2a_lambda import task, validation
from a2a_lambda.agent import Agent, AgentProfile, Turn, Update, Updates
from a2a_lambda.calls import Call, World
from a2a_lambda.jsonrpc import Answer, Endpoint
from a2a_lambda.ledger import Ledger
from a2a_lambda.model import (
    AgentSkill,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SendMessageResponse,
    Task,
    TaskState,
)
from a2a_lambda.operations import Operations
from a2a_lambda.outcome import Outcome
from a2a_lambda.pushing import PushConfigs, Webhooks
from a2a_lambda.retries import message_key
from a2a_lambda.running import Runner
from a2a_lambda.store import TaskStore
from a2a_lambda.task import Head
from a2a_lambda.validation import Validator
from a2a_lambda.working import Attended, Work, Worker
from tests.unit.memory_store import InMemoryTaskStore

Json = Any
"""A value as it is read from JSON."""

OWNER: Final = "anonymous"
NOON: Final = 1_790_000_000_000
"""When tests begin, in milliseconds since the epoch."""

SECOND: Final = 1000
DAY: Final = 24 * 3600 * SECOND

SKILL: Final = AgentSkill(id="echo", name="Echo", description="Says it again.", tags=["test"])
PROFILE: Final = AgentProfile(name="Test agent", description="For tests.", version="1.0.0", skills=[SKILL])

Script = Callable[[Turn], Updates]


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: int = NOON) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, milliseconds: int) -> None:
        self.now += milliseconds


class Pause:
    """A pause in which nothing happens but that the clock moves on, and what `meanwhile` does."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.taken: list[float] = []
        """The pauses, in seconds."""
        self.meanwhile: Callable[[], object] = int

    def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        self._clock.advance(round(seconds * SECOND))
        self.meanwhile()


class Timers:
    """Actions that wait for their time, which comes when a test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[float, Callable[[], None]]] = []
        """With the seconds that they were to wait."""

    def __call__(self, seconds: float, action: Callable[[], None]) -> Callable[[], None]:
        entry = seconds, action
        self.waiting.append(entry)
        return lambda: self.waiting.remove(entry) if entry in self.waiting else None

    def fire(self) -> None:
        """Carry out what waits."""
        due, self.waiting = self.waiting, []
        for _, action in due:
            action()


class Ids:
    """Ids in the form of the server's own, in the order of their making."""

    _count: ClassVar[Iterator[int]] = itertools.count(1)

    def __call__(self) -> str:
        return f"00000000-0000-4000-8000-{next(self._count):012x}"


_messages: Final = itertools.count(1)


def new_message_id() -> str:
    """Return the messageId of one more message."""
    return f"msg-{next(_messages)}"


def message(
    content: str | Sequence[Part] = "Hello", *, message_id: str = "msg-1", task_id: str = "", context_id: str = ""
) -> Message:
    """Return a client's message."""
    parts = [Part(text=content)] if isinstance(content, str) else list(content)
    return Message(message_id, Role.USER, parts, task_id=task_id, context_id=context_id)


GENEROUS: Final = task.Limits(max_messages=1000, max_artifact_bytes=1_048_576, max_task_bytes=4_194_304)
"""The limits of the settings' defaults."""

VALIDATOR: Final = Validator(validation.Limits(max_parts=100, max_text_chars=50_000))


def new_outcome(sent: Message, *, max_artifact_bytes: int = 1_048_576, max_bytes: int = 4_194_304) -> Outcome:
    """Return the outcome of a turn on a message, which has just begun."""
    return Outcome(sent, max_artifact_bytes=max_artifact_bytes, max_bytes=max_bytes, new_id=Ids())


def texts(messages: Sequence[Message] | UnsetType) -> list[str]:
    """Return what messages say."""
    assert messages is not UNSET
    return [str(part.text) for each in messages for part in each.parts]


def agent(
    script: Script, *, read_only: bool = True, background: bool = False, profile: AgentProfile = PROFILE
) -> Agent:
    """Return an agent that answers with a generator function."""

    class Scripted(Agent):
        card = profile

        def respond(self, turn: Turn) -> Updates:
            return script(turn)

    made = type("Scripted", (Scripted,), {"read_only": read_only, "background": background})()
    assert isinstance(made, Agent)
    return made


def yielding(
    *updates: Update, read_only: bool = True, background: bool = False, profile: AgentProfile = PROFILE
) -> Agent:
    """Return an agent that answers every message with the same updates."""
    return agent(lambda _turn: iter(updates), read_only=read_only, background=background, profile=profile)


def asking(*, read_only: bool = True) -> Agent:
    """Return an agent that answers every message with a question."""
    return yielding(api.input_required("Which one?"), read_only=read_only)


def call(*, owner: str = OWNER, extensions: Sequence[str] = (), seconds_left: float = 25.0) -> Call:
    """Return a caller with time left, which does not pass."""
    return Call(owner=owner, extensions=extensions, seconds_left=lambda: seconds_left)


def hurried(clock: Clock, *, owner: str = OWNER, seconds_left: float = 25.0) -> Call:
    """Return a caller whose time passes with the clock."""
    end = clock.now + round(seconds_left * SECOND)
    return Call(owner=owner, seconds_left=lambda: (end - clock.now) / SECOND)


@dataclass(frozen=True)
class Server:
    """The operations of one agent, with what they stand on."""

    operations: Operations
    worker: Worker
    store: TaskStore
    clock: Clock
    pause: Pause
    timers: Timers

    def send(
        self,
        said: str | Sequence[Part] | Message = "Hello",
        *,
        to: str = "",
        history_length: int | UnsetType = UNSET,
        return_immediately: bool = False,
        caller: Call | None = None,
    ) -> SendMessageResponse:
        """Send a message: a new task's, or `to` a task. A text is another message each time."""
        sent = said if isinstance(said, Message) else message(said, message_id=new_message_id(), task_id=to)
        wishes = SendMessageConfiguration(history_length=history_length, return_immediately=return_immediately)
        request = SendMessageRequest(sent, configuration=wishes)
        return self.operations.send_message(request, caller or hurried(self.clock))

    def task(
        self,
        said: str | Sequence[Part] | Message = "Hello",
        *,
        to: str = "",
        history_length: int | UnsetType = UNSET,
        return_immediately: bool = False,
        caller: Call | None = None,
    ) -> Task:
        """Send a message that is answered with a task, and return that."""
        response = self.send(
            said, to=to, history_length=history_length, return_immediately=return_immediately, caller=caller
        )
        assert response.task is not UNSET
        return response.task

    def get(self, task_id: str, *, history_length: int | UnsetType = UNSET, caller: Call | None = None) -> Task:
        """Read a task."""
        return self.operations.get_task(
            GetTaskRequest(task_id, history_length=history_length), caller or hurried(self.clock)
        )

    def cancel(self, task_id: str, *, caller: Call | None = None) -> Task:
        """Cancel a task."""
        return self.operations.cancel_task(CancelTaskRequest(task_id), caller or hurried(self.clock))

    def work(self, task_id: str, *, turn: int = 1, run: int = 1, seconds_left: float = 300.0) -> Attended:
        """Attend to a run of a turn, as the worker does."""
        return self.worker.attend(Work(OWNER, task_id, turn, run), lambda: seconds_left)

    def list(self, request: ListTasksRequest | None = None, *, caller: Call | None = None) -> ListTasksResponse:
        """Read a page of a list."""
        return self.operations.list_tasks(request or ListTasksRequest(), caller or hurried(self.clock))


def server(
    served: Agent,
    *,
    store: TaskStore | None = None,
    clock: Clock | None = None,
    limits: task.Limits = GENEROUS,
    window_seconds: int = 300,
    push: tuple[PushConfigs, Webhooks] | None = None,
) -> Server:
    """Return a server for an agent, with a store in memory unless another is given."""
    clock = clock or Clock()
    store = store or InMemoryTaskStore(clock, window_seconds=window_seconds)
    pause, timers = Pause(clock), Timers()
    world = World(clock=clock, new_id=Ids(), pause=pause, later=timers)
    operations = Operations(served, store, limits, world, window_seconds=window_seconds, push=push)
    ledger = Ledger(store, world, read_only=served.read_only)
    worker = Worker(store, ledger, Runner(served, store, ledger, limits, world), world)
    return Server(operations, worker, store, clock, pause, timers)


@dataclass(frozen=True)
class Rpc:
    """A JSON-RPC endpoint over a store in memory."""

    endpoint: Endpoint
    store: InMemoryTaskStore
    clock: Clock

    def answer(self, body: bytes, *, version: str = "1.0", caller: Call | None = None) -> Answer:
        """Answer a request as it came over the wire."""
        return self.endpoint.answer(body, version=version, admit=lambda: caller or hurried(self.clock))

    def refused(self, body: bytes, error: Exception) -> Answer:
        """Answer a request whose caller may not send it."""

        def admit() -> Call:
            raise error

        return self.endpoint.answer(body, version="1.0", admit=admit)

    def ask(self, method: str, params: Json = UNSET, *, version: str = "1.0", caller: Call | None = None) -> Json:
        """Call a method, and return the response object."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method} | ({} if params is UNSET else {"params": params})
        body = msgspec.json.encode(request)
        return msgspec.json.decode(self.answer(body, version=version, caller=caller).body)

    def refusal(self, method: str, params: Json = UNSET, *, version: str = "1.0", caller: Call | None = None) -> Json:
        """Call a method that must be refused, and return the error object."""
        response = self.ask(method, params, version=version, caller=caller)
        assert "error" in response, response
        return response["error"]


def rpc(
    served: Agent | None = None,
    *,
    store: InMemoryTaskStore | None = None,
    clock: Clock | None = None,
    max_body_bytes: int = 65_536,
    validator: Validator = VALIDATOR,
    limits: task.Limits = GENEROUS,
) -> Rpc:
    """Return a JSON-RPC endpoint for an agent, with a store in memory."""
    clock = clock or Clock()
    store = store or InMemoryTaskStore(clock)
    behind = server(served or asking(), store=store, clock=clock, limits=limits)
    return Rpc(Endpoint(behind.operations, validator, max_body_bytes=max_body_bytes), store, clock)


def send_params(**message_fields: Json) -> dict[str, Json]:
    """Return SendMessage's parameters as JSON, with the message's fields changed; None takes one out."""
    fields: dict[str, Json] = {"messageId": "msg-1", "role": "ROLE_USER", "parts": [{"text": "Hello"}]} | message_fields
    return {"message": {name: value for name, value in fields.items() if value is not None}}


def begun(*, message_: Message | None = None, owner: str = OWNER, now: int = NOON) -> Head:
    """Return a new task whose first turn runs."""
    ids = Ids()
    first = message_ or message(task_id=ids(), context_id="context-1")
    return task.begin(owner=owner, message=first, key=message_key(first), now=now, deadline=now + 25 * SECOND)


def ended(head: Head, *updates: Update, now: int | None = None, message_: Message | None = None) -> Head:
    """Return a task after its running turn, in which the agent gave these updates."""
    said = message_ or message(task_id=head.task_id, context_id=head.context_id)
    outcome = new_outcome(said)
    for update in updates:
        outcome.apply(update)
    outcome.close()
    return task.finish(head, outcome, now=head.status_at if now is None else now)


def followed(head: Head, said: str = "And then?", *, now: int | None = None) -> tuple[Head, Message]:
    """Return a task with the next turn begun, and that turn's message."""
    at = head.status_at if now is None else now
    sent = message(said, message_id=f"msg-{head.turn + 1}", task_id=head.task_id, context_id=head.context_id)
    return task.follow(head, sent, key=message_key(sent), now=at, deadline=at + 25 * SECOND), sent


CLOSED_BY: Final[dict[TaskState, tuple[Update, ...]]] = {
    TaskState.INPUT_REQUIRED: (api.input_required("Which one?"),),
    TaskState.AUTH_REQUIRED: (api.auth_required("Log in first."),),
    TaskState.COMPLETED: (),
    TaskState.FAILED: (api.failed("Broken."),),
    TaskState.REJECTED: (api.rejected("No."),),
}


def in_state(state: TaskState) -> Head:
    """Return a task in a state."""
    head = begun()
    return ended(head, *CLOSED_BY[state]) if state in CLOSED_BY else replace(head, state=state)
