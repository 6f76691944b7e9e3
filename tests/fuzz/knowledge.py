"""What a server knows, as the reference keeps it. Times are milliseconds since the epoch."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from tests.fuzz.matching import NOT_FOUND, Json, Made, Refusal
from tests.fuzz.words import Work

SECOND: Final = 1000
DAY: Final = 24 * 3600 * SECOND
WINDOW: Final = 300 * SECOND
RETENTION: Final = 30 * DAY
MESSAGE_DAYS: Final = 30 * DAY
TOKEN_LIFETIME: Final = DAY
QUEUED: Final = 3600 * SECOND
RUNS: Final = 3
WAITS: Final = 24
MAX_MESSAGES: Final = 9
MAX_CONFIGS: Final = 10
DEFAULT_HISTORY: Final = 100
DEFAULT_PAGE: Final = 50

CALL_SECONDS: Final = 10
"""How long a request may take; also the lease of a turn in it."""
WORKER_SECONDS: Final = 30
LEASE_MARGIN: Final = 10
WAIT_MARGIN: Final = 3
"""A client is answered this long before its time is over."""
RETRY_MARGIN: Final = 5
"""A turn that lost a race is not tried again later than this before its time is over."""
LAST_SECONDS: Final = 2
"""An agent is ended this long before its time is over."""


class Refused(Exception):  # noqa: N818 - what is expected, not a fault
    """A request that is answered with an error."""

    def __init__(self, refusal: Json) -> None:
        self.refusal = refusal
        super().__init__(refusal)


class Died(Exception):  # noqa: N818
    """A function that is stopped before it answers."""


def refused(code: int, word: str, *, field: str = "", state: str = "") -> Refused:
    return Refused(Refusal(code, word, field, f"TASK_STATE_{state}" if state else ""))


def not_found() -> Refused:
    return Refused({"error": NOT_FOUND})


@dataclass
class Sent:
    """A message with what came beside it."""

    owner: str
    message: Json
    configuration: Json
    metadata: Json
    end: int
    """When the time of its request is over."""

    @property
    def key(self) -> str:
        return repr(self.message)

    @property
    def config(self) -> Json:
        return self.configuration.get("taskPushNotificationConfig")

    @property
    def is_immediate(self) -> bool:
        return bool(self.configuration.get("returnImmediately"))


@dataclass
class Turn:
    """A message and what became of it."""

    sent: Sent
    taken: int
    last: int
    """When the task last changed its state in this turn."""
    question: Json = None


@dataclass
class Config:
    """A webhook."""

    created: int
    shown: Json


@dataclass(eq=False)
class Task:
    """A task. `artifacts` are as they are now; `base`, as the newest turn found them."""

    task_id: str
    owner: str
    context: Json
    created: int
    created_late: int
    """The time of creation may be any from the one to the other."""
    turns: list[Turn]
    state: str = "WORKING"
    since: int = 0
    said: Json = None
    artifacts: dict[Any, Json] = field(default_factory=dict)
    base: dict[Any, Json] = field(default_factory=dict)
    deadline: int | None = None
    is_queued: bool = False
    run: int = 1
    waits: int = 1
    changes: int = 0
    is_watched: bool = False
    configs: dict[str, Config] = field(default_factory=dict)

    def move(self, state: str, now: int, said: Json = None) -> None:
        self.state, self.since, self.said = state, now, said
        self.turns[-1].last = now
        self.changes += 1

    @property
    def messages(self) -> list[Json]:
        """The history, without the ids of task and context."""
        spoken = [(turn.sent.message, turn.question) for turn in self.turns]
        return [message for pair in spoken for message in pair if message]


@dataclass
class Begun:
    """What a first message has come to: a task, or a direct reply."""

    early: int
    late: int
    answer: "Task | Json"
    first: "Begun | None"
    """What the message came to the first time, where it has begun something before."""


@dataclass(eq=False)
class Running:
    """A claimed run."""

    task: Task
    turn: int
    run: int
    work: Work

    @property
    def is_over(self) -> bool:
        task = self.task
        return (len(task.turns), task.run) != (self.turn, self.run) or task.is_queued or task.deadline is None


@dataclass
class Walk:
    """A place in a list."""

    owner: str
    wanted: Json
    behind: tuple[int, str]
    total: int
    issued: int


def as_shown(made: Json) -> Json:
    """Return an id, as answers have shown it where the server made it."""
    return made.value if isinstance(made, Made) else made


def written(time: int) -> str:
    moment = datetime.fromtimestamp(time // SECOND, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time % SECOND:03}Z"


def read_time(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int(moment.timestamp()) * SECOND + -(-moment.microsecond // 1000)
