"""What a caller asks: all operations in a mix, by chance, with copies, races, mistakes and other callers' tasks."""

from __future__ import annotations

import json
import uuid
from collections import deque
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

OK: Final = "ok"
NOT_FOUND: Final = "-32001"
NOT_CANCELABLE: Final = "-32002"
NOT_TAKEN: Final = "-32004"
"""The task is finished or busy."""

NEW: Final = "SendMessage, new task"
NEXT: Final = "SendMessage, next turn"
COPY: Final = "SendMessage, copy"
GET: Final = "GetTask"
LIST: Final = "ListTasks"
CANCEL: Final = "CancelTask"
BAD: Final = "bad request"
FOREIGN: Final = "another's task"

OPEN: Final = "TASK_STATE_INPUT_REQUIRED"
STATES: Final = (OPEN, "TASK_STATE_COMPLETED", "TASK_STATE_CANCELED")

AT_ONCE: Final = 0.15
"""How many messages are to be answered at once, and their turns run by the worker."""
ASKING: Final = 0.7
"""How many messages leave their task open."""
CONTEXTS: Final = 3

REMEMBERED: Final = 3
"""How many of its messages an owner can send again."""


@dataclass(frozen=True)
class Call:
    """A request, and how it may be answered."""

    operation: str
    body: bytes = field(repr=False)
    allowed: frozenset[str] = frozenset({OK})
    message_id: str = ""
    """Of the message that it sends."""


def _body(method: str, params: Mapping[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


MISTAKES: Final[Mapping[bytes, str]] = {
    b'{"jsonrpc": "2.0", ': "-32700",
    b"[]": "-32600",
    _body("ForgetTask", {}): "-32601",
    _body("SendMessage", {"message": {"messageId": "1", "role": "ROLE_USER", "parts": []}}): "-32602",
    _body("ListTasks", {"pageSize": 1000}): "-32602",
    _body("ListTasks", {"pageToken": "none"}): "-32602",
    _body("GetTask", {"id": str(uuid.uuid4())}): NOT_FOUND,
}


class Mix:
    """What an owner's callers ask next, given what they were answered. They share it."""

    def __init__(self, chance: Random, strangers: deque[str]) -> None:
        """Args: what decides; the newest tasks of all owners, to which this one adds its own."""
        self._lock = Lock()
        self._chance = chance
        self._strangers = strangers
        self._contexts = [str(uuid.uuid4()) for _ in range(CONTEXTS)]
        self._tasks: dict[str, str] = {}
        self._sent: deque[Call] = deque(maxlen=REMEMBERED)
        self._walk: dict[str, Any] = {}

    def step(self) -> list[Call]:
        """The next call, or two that are to be sent at the same moment."""
        with self._lock:
            (kind,) = self._chance.choices([*WEIGHTS], [*WEIGHTS.values()])
            return kind(self)

    def learn(self, call: Call, states: Mapping[str, str], page_token: str) -> None:
        """Remember what a call was answered: tasks with their states, and where a list goes on."""
        if call.operation == FOREIGN:
            return
        with self._lock:
            self._strangers.extend(states.keys() - self._tasks.keys())
            self._tasks |= states
            if call.message_id:
                self._sent.append(call)
            if page_token:
                self._walk = json.loads(call.body)["params"] | {"pageToken": page_token}

    def begin(self) -> list[Call]:
        """A message that begins a task."""
        return [self._send(NEW, frozenset({OK}), contextId=self._chance.choice(self._contexts))]

    def go_on(self) -> list[Call]:
        """A message to an open task."""
        task_id = self._one_of(OPEN)
        return [self._next_turn(task_id)] if task_id else self.begin()

    def copy(self) -> list[Call]:
        """A message twice at once: a new one, or one that was sent before."""
        fresh = self._chance.choice([self.begin, self.go_on])()
        return [replace(self._chance.choice([*fresh, *self._sent]), operation=COPY)] * 2

    def race(self) -> list[Call]:
        """Two messages to an open task at once, or one that meets its cancellation or a reader."""
        task_id = self._one_of(OPEN)
        if not task_id:
            return self.begin()
        rival = self._chance.choice([self._next_turn, _cancel, _get])
        return [self._next_turn(task_id), rival(task_id)]

    def look(self) -> list[Call]:
        """A look at a task."""
        task_id = self._one_of()
        return [_get(task_id)] if task_id else self.begin()

    def walk(self) -> list[Call]:
        """A page of a list: the next one of the list that is being walked, or the first of another."""
        walk, self._walk = self._walk, {}
        if not walk:
            walk["pageSize"] = self._chance.choice([1, 5, 20])
            walk |= self._chance.choice([{}, {"contextId": self._chance.choice(self._contexts)}])
            walk |= self._chance.choice([{}, {"status": self._chance.choice(STATES)}])
        return [Call(LIST, _body("ListTasks", walk))]

    def cancel(self) -> list[Call]:
        """A cancellation, of a task in any state."""
        task_id = self._one_of()
        return [_cancel(task_id)] if task_id else self.begin()

    def mistake(self) -> list[Call]:
        """A request that is none."""
        body = self._chance.choice([*MISTAKES])
        return [Call(BAD, body, frozenset({MISTAKES[body]}))]

    def trespass(self) -> list[Call]:
        """A request for another caller's task."""
        others = [task_id for task_id in self._strangers.copy() if task_id not in self._tasks]
        if not others:
            return self.begin()
        call = self._chance.choice([_get, _cancel, self._next_turn])(self._chance.choice(others))
        return [replace(call, operation=FOREIGN, allowed=frozenset({NOT_FOUND}))]

    def _one_of(self, wanted: str = "") -> str:
        """One of the owner's tasks, or of those that were last seen in the wanted state; "" where there is none."""
        return self._chance.choice([task_id for task_id, state in self._tasks.items() if wanted in state] or [""])

    def _next_turn(self, task_id: str) -> Call:
        return self._send(NEXT, frozenset({OK, NOT_TAKEN}), taskId=task_id)

    def _send(self, operation: str, allowed: frozenset[str], **where: str) -> Call:
        message_id = str(uuid.uuid4())
        text = "ask me more" if self._chance.random() < ASKING else "done, thank you"
        message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}], **where}
        configuration: dict[str, Any] = {"returnImmediately": True} if self._chance.random() < AT_ONCE else {}
        configuration["historyLength"] = self._chance.choice([0, 2, 100])
        body = _body("SendMessage", {"message": message, "configuration": configuration})
        return Call(operation, body, allowed, message_id)


def _get(task_id: str) -> Call:
    return Call(GET, _body("GetTask", {"id": task_id}))


def _cancel(task_id: str) -> Call:
    return Call(CANCEL, _body("CancelTask", {"id": task_id}), frozenset({OK, NOT_CANCELABLE}))


WEIGHTS: Final[Mapping[Callable[[Mix], list[Call]], int]] = {
    Mix.begin: 25,
    Mix.go_on: 20,
    Mix.copy: 10,
    Mix.race: 8,
    Mix.look: 14,
    Mix.walk: 10,
    Mix.cancel: 3,
    Mix.mistake: 5,
    Mix.trespass: 5,
}
"""How often each is asked for."""
