"""The callers: a thread and a key each, with a connection to every gateway, and what they are answered."""

from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, Final

from load.calls import OK, Call, Mix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from load.settings import Settings

RATE_LIMITED: Final = "rate limited"
UNAVAILABLE: Final = "unavailable"
TURNED_AWAY: Final = frozenset({RATE_LIMITED, UNAVAILABLE})
"""How a server may answer that has too much to do. Whether an unavailable one has taken a message is not known."""
NO_ANSWER: Final = "no proper answer"
KINDS: Final[Mapping[int, str]] = {429: RATE_LIMITED, 503: UNAVAILABLE}

NO_JSON_RPC: Final = (ValueError, LookupError, TypeError, AttributeError)
"""How reading something else fails."""

TIMEOUT: Final = 40.0
"""Seconds after which there is no answer: the gateway gives up after 30."""
AWAY_SECONDS: Final = 1.0
"""How long a caller that was turned away keeps away."""
STRANGERS: Final = 200


@dataclass(frozen=True)
class Seen:
    """A task as an answer showed it."""

    task_id: str
    state: str
    time: str
    """Of the state, as it is written."""


@dataclass(frozen=True)
class Answer:
    """What came of a call. The kind is "ok", an error's code, one of TURNED_AWAY, or what else went wrong."""

    call: Call
    owner: str
    kind: str
    tasks: tuple[Seen, ...] = ()
    page_token: str = ""
    seconds: float = 0.0


class Pace:
    """When a caller may ask again, and when it is enough."""

    def __init__(self, settings: Settings) -> None:
        self._numbers = itertools.count()
        self._requests = settings.requests
        self._until = time.monotonic() + settings.seconds
        self._seconds = settings.callers / settings.rate if settings.rate else 0.0
        self._stopped = threading.Event()

    def goes_on(self) -> bool:
        """Wait for the turn of a caller's next request, and tell whether it may be made."""
        if self._seconds:
            self.wait(random.expovariate(1 / self._seconds))
        is_over = self._stopped.is_set() or time.monotonic() > self._until
        return not is_over and next(self._numbers) < self._requests

    def wait(self, seconds: float) -> None:
        """Let time pass, until it is enough."""
        self._stopped.wait(max(0.0, min(seconds, self._until - time.monotonic())))

    def stop(self) -> None:
        """Let no further request be made."""
        self._stopped.set()


def drive(settings: Settings, ports: Sequence[int], keys: Mapping[str, str]) -> list[Answer]:
    """Have all callers ask until it is enough; what they were answered.

    The gateways are at the ports of this machine. Keys are those of owners, who have several callers each.
    """
    pace, answers, strangers = Pace(settings), list[Answer](), deque[str](maxlen=STRANGERS)
    mixes = {owner: Mix(random.Random(owner), strangers) for owner in keys}  # noqa: S311 - hides nothing

    def ask(owner: str) -> None:
        mix, connections = mixes[owner], [HTTPConnection("127.0.0.1", port, timeout=TIMEOUT) for port in ports]
        while pace.goes_on():
            random.shuffle(connections)
            for answer in exchange(connections, mix.step(), owner, keys[owner]):
                answers.append(answer)
                mix.learn(answer.call, {task.task_id: task.state for task in answer.tasks}, answer.page_token)
                if answer.kind in TURNED_AWAY:
                    pace.wait(AWAY_SECONDS)

    with ThreadPoolExecutor(settings.callers) as threads:
        try:
            owners = itertools.islice(itertools.cycle(keys), settings.callers)
            for caller in [threads.submit(ask, owner) for owner in owners]:
                caller.result()
        finally:
            pace.stop()
    return answers


def exchange(connections: Sequence[HTTPConnection], calls: Sequence[Call], owner: str, key: str) -> list[Answer]:
    """Send each call on a connection of its own, before any is answered; the answers."""
    headers = {"Content-Type": "application/json", "A2A-Version": "1.0", "x-api-key": key}
    started = time.perf_counter()
    answers = []
    pairs = list(zip(connections, calls, strict=False))
    for connection, call in pairs:
        try:
            connection.request("POST", "/a2a", call.body, headers)
        except OSError:
            connection.close()
    for connection, call in pairs:
        try:
            response = connection.getresponse()
            kind, result = read(response.status, response.read())
            tasks, page_token = _tasks(result), result.get("nextPageToken", "")
        except (OSError, HTTPException, *NO_JSON_RPC):
            connection.close()
            kind, tasks, page_token = NO_ANSWER, (), ""
        answers.append(Answer(call, owner, kind, tasks, page_token, time.perf_counter() - started))
    return answers


def read(status: int, body: bytes) -> tuple[str, dict[str, Any]]:
    """The kind of an answer, and its result where it is one.

    Raises one of NO_JSON_RPC where it is none.
    """
    if status != HTTPStatus.OK:
        return KINDS.get(status, f"HTTP {status}"), {}
    answer = json.loads(body)
    if "error" not in answer:
        return OK, answer["result"]
    may_be_repeated = any(detail["@type"].endswith(".RetryInfo") for detail in answer["error"].get("data", []))
    return UNAVAILABLE if may_be_repeated else str(answer["error"]["code"]), {}


def _tasks(result: Mapping[str, Any]) -> tuple[Seen, ...]:
    """The tasks of a result: a list's, a message's, or the result itself."""
    tasks = result["tasks"] if "tasks" in result else [result["task"]] if "task" in result else [result]
    return tuple(
        Seen(task["id"], task["status"]["state"], task["status"]["timestamp"]) for task in tasks if "id" in task
    )
