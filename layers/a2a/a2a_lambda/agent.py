"""The Agent API: what someone who publishes an agent reads, imports and implements.

An agent is a class with a profile and a generator:

    class Greeter(Agent):
        read_only = True
        card = AgentProfile(name="Greeter", description="Says hello", version="1.0.0", skills=[...])

        def respond(self, turn: Turn) -> Updates:
            if turn.text:
                yield artifact(f"Hello, {turn.text}!", name="greeting")
            else:
                yield input_required("Whom shall I greet?")

What becomes of the updates is decided by `task`, not here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

from msgspec import UNSET, Struct, UnsetType

from a2a_lambda.model import AgentExtension, AgentProvider, AgentSkill, Message, Part, TaskState

TEXT_PLAIN = "text/plain"
APPLICATION_JSON = "application/json"

Content = str | Part | Iterable[Part]
"""What updates are made from: a text, a part, or several parts."""


class AgentProfile(Struct, frozen=True, kw_only=True):
    """What an agent says of itself: the part of the agent card that is its author's (§4.4.1)."""

    name: str
    description: str
    version: str
    skills: Sequence[AgentSkill]
    default_input_modes: Sequence[str] = (TEXT_PLAIN,)
    default_output_modes: Sequence[str] = (TEXT_PLAIN,)
    extensions: Sequence[AgentExtension] = ()
    provider: AgentProvider | UnsetType = UNSET
    documentation_url: str | UnsetType = UNSET
    icon_url: str | UnsetType = UNSET


class StatusUpdate(Struct, frozen=True):
    """The task's state changes. `parts` are what the agent says with it."""

    state: TaskState
    parts: tuple[Part, ...] = ()


class ArtifactUpdate(Struct, frozen=True, kw_only=True):
    """An output, or (with `append`) more of one that has begun. `artifact_id` is "" for a new one."""

    parts: tuple[Part, ...]
    name: str
    description: str
    artifact_id: str
    append: bool
    last_chunk: bool
    metadata: dict[str, Any] | UnsetType


class Reply(Struct, frozen=True):
    """An answer as a direct Message, without a task."""

    parts: tuple[Part, ...]


Update = StatusUpdate | ArtifactUpdate | Reply
Updates = Iterator[Update]


def text(value: str) -> Part:
    """Return a text part."""
    return Part(text=value)


def data(value: Any, *, media_type: str = APPLICATION_JSON) -> Part:
    """Return a data part: any JSON value."""
    return Part(data=value, media_type=media_type)


def raw(value: bytes, *, media_type: str, filename: str = "") -> Part:
    """Return a part that holds a file's bytes."""
    return Part(raw=value, media_type=media_type, filename=filename)


def url(value: str, *, media_type: str, filename: str = "") -> Part:
    """Return a part that names a file's address."""
    return Part(url=value, media_type=media_type, filename=filename)


def _parts(content: Content) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (text(content),)
    if isinstance(content, Part):
        return (content,)
    return tuple(content)


def working(content: Content = ()) -> StatusUpdate:
    """Report progress. The newest report replaces the one before it."""
    return StatusUpdate(TaskState.WORKING, _parts(content))


def artifact(
    content: Content,
    *,
    name: str = "",
    description: str = "",
    artifact_id: str = "",
    append: bool = False,
    last_chunk: bool = False,
    metadata: dict[str, Any] | UnsetType = UNSET,
) -> ArtifactUpdate:
    """Give an output.

    An `artifact_id` that the task has already replaces that artifact, or extends it with `append`; an
    artifact without an id is a new one.
    """
    return ArtifactUpdate(
        parts=_parts(content),
        name=name,
        description=description,
        artifact_id=artifact_id,
        append=append,
        last_chunk=last_chunk,
        metadata=metadata,
    )


def input_required(question: Content) -> StatusUpdate:
    """End the turn with a question; the caller's next message on this task is the next turn."""
    return StatusUpdate(TaskState.INPUT_REQUIRED, _parts(question))


def auth_required(explanation: Content) -> StatusUpdate:
    """End the turn saying which authorization is missing; the task goes on with the next message."""
    return StatusUpdate(TaskState.AUTH_REQUIRED, _parts(explanation))


def completed(content: Content = ()) -> StatusUpdate:
    """End the task as done. Ending without any of the final updates means the same."""
    return StatusUpdate(TaskState.COMPLETED, _parts(content))


def failed(content: Content = ()) -> StatusUpdate:
    """End the task as failed; the content says why, to the caller."""
    return StatusUpdate(TaskState.FAILED, _parts(content))


def rejected(content: Content = ()) -> StatusUpdate:
    """End the task as refused: the agent will not do it."""
    return StatusUpdate(TaskState.REJECTED, _parts(content))


def reply(content: Content) -> Reply:
    """Answer directly, with a message and without a task.

    Only a first message can be answered so. Where there is a task already (a follow-up, an agent that acts on
    the world, other updates before this one), the reply completes it and is its status message.
    """
    return Reply(_parts(content))


class Turn(Struct, frozen=True, kw_only=True):
    """What an agent may know of the message that it answers."""

    message: Message
    task_id: str = ""
    context_id: str = ""
    caller: str = "anonymous"
    metadata: dict[str, Any] = {}
    accepted_output_modes: list[str] = []
    seconds_left: Callable[[], float] = lambda: float("inf")
    """How much time this turn still has, in seconds."""
    canceled: Callable[[], bool] = lambda: False
    """Whether the caller canceled the task. At most one read of the store a second."""
    earlier_messages: Callable[[], Sequence[Message]] = lambda: ()
    """The task's messages before this one, oldest first. Read from the store when first called."""

    @property
    def text(self) -> str:
        """All text of the message, its parts joined by line ends."""
        return "\n".join(part.text for part in self.message.parts if isinstance(part.text, str))


class Agent(ABC):
    """An agent: a profile and a generator of updates. One instance serves all turns of a Lambda instance."""

    card: ClassVar[AgentProfile]

    read_only: ClassVar[bool] = False
    """True says that a turn only looks things up, so that it may be run again safely. False, the default, says
    that it acts on the world: such a turn is claimed in the store before it runs, and never run twice."""

    background: ClassVar[bool] = False
    """True says that a turn always runs in the worker, which has minutes for it. False, the default, says that it
    runs while the client waits, for half a minute at most, unless the client asks for an answer at once."""

    @abstractmethod
    def respond(self, turn: Turn) -> Updates:
        """Answer one message with updates, in order.

        An exception fails the task with a neutral message; the traceback goes to the log, never to the caller.
        """
