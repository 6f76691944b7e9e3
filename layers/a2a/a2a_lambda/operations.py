"""The operations of A2A (§3.1), the same for every binding: parameters in, wire types out.

A binding has authenticated the caller and parsed the request; here the rules of `task` meet the store and the
agent. The checks come in the specification's order, and nothing is written before the last of them.
"""

import re
from collections.abc import Callable, Collection
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from a2a_lambda import task, turns
from a2a_lambda.agent import APPLICATION_JSON, TEXT_PLAIN, Agent, AgentProfile, Turn
from a2a_lambda.errors import (
    ContentTypeNotSupportedError,
    ExtensionSupportRequiredError,
    PushNotificationNotSupportedError,
    TaskNotFoundError,
    UnavailableError,
    UnsupportedOperationError,
)
from a2a_lambda.model import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    SendMessageRequest,
    SendMessageResponse,
    Task,
    TaskStatus,
)
from a2a_lambda.store import ConflictError, TaskStore
from a2a_lambda.task import Head, Outcome
from a2a_lambda.timestamps import format_timestamp

DEFAULT_HISTORY_LENGTH: Final = 100
"""Messages in an answer whose request names no historyLength (§3.2.4)."""

MAX_ANSWER_BYTES: Final = 5_000_000
"""An answer carries fewer messages rather than being longer; Lambda answers 6 MB at most."""

OCTET_STREAM: Final = "application/octet-stream"

STREAMING_OPERATIONS: Final = frozenset({"SendStreamingMessage", "SubscribeToTask"})
PUSH_OPERATIONS: Final = frozenset(
    {
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
    }
)

RETRY_MARGIN_SECONDS: Final = 5.0
"""A turn that lost a race is not run again with less time than this."""

TASK_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The ids that this server makes. Any other is unknown without a read."""


class Call(Struct, frozen=True, kw_only=True):
    """Who calls, and under which conditions: what a binding knows besides the parameters."""

    owner: str
    extensions: Collection[str] = ()
    """The extensions that the client listed (§3.2.6)."""
    seconds_left: Callable[[], float]
    """The time until the function is stopped."""


class Operations:
    """The operations for one agent and one store."""

    def __init__(self, agent: Agent, store: TaskStore, *, clock: Callable[[], int], new_id: Callable[[], str]) -> None:
        """Args: the clock gives milliseconds since the epoch; new_id gives ids that match TASK_ID."""
        self._agent = agent
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self._input_modes = input_modes(agent.card)

    def send_message(self, request: SendMessageRequest, call: Call) -> SendMessageResponse:
        """Answer a message: with its task once that is terminal or interrupted, or with a message (§3.1.1).

        Raises:
            ExtensionSupportRequiredError, ContentTypeNotSupportedError, TaskNotFoundError, InvalidParamsError, UnsupportedOperationError:
                nothing was changed.
            UnavailableError: other writers were always faster; nothing was changed.
        """
        self._check_extensions(call)
        self._check_content(request.message.parts)
        if request.message.task_id:
            return self._continue(request, call)
        return self._start(request, call)

    def get_task(self, request: GetTaskRequest, call: Call) -> Task:
        """Return a task as it stands (§3.1.3).

        Raises:
            TaskNotFoundError: there is none with this id, or it is another owner's.
        """
        self._check_extensions(call)
        return self._present(self._existing(request.id, call), request.history_length)

    def cancel_task(self, request: CancelTaskRequest, call: Call) -> Task:
        """Cancel a task at once, whatever its turn is doing (§3.1.5).

        Raises:
            TaskNotFoundError: there is none with this id, or it is another owner's.
            TaskNotCancelableError: it is finished.
        """
        self._check_extensions(call)
        if not TASK_ID.fullmatch(request.id):
            raise TaskNotFoundError
        return self._present(self._store.cancel(call.owner, request.id, self._clock()), UNSET)

    def _check_extensions(self, call: Call) -> None:
        required = [each.uri for each in self._agent.card.extensions if each.required]
        missing = [uri for uri in required if uri not in call.extensions]
        if missing:
            raise ExtensionSupportRequiredError(
                f"List the extension {missing[0]} in the A2A-Extensions header", extensions=", ".join(missing)
            )

    def _check_content(self, parts: list[Part]) -> None:
        for part in parts:
            if media_type(part) not in self._input_modes:
                taken = ", ".join(sorted(self._input_modes))
                raise ContentTypeNotSupportedError(f"This agent takes parts of these media types: {taken}")

    def _existing(self, task_id: str, call: Call) -> Head:
        """Return a task of the caller's, given up if its turn has outlived its deadline."""
        head = self._store.read(call.owner, task_id) if TASK_ID.fullmatch(task_id) else None
        while head and task.is_overdue(head, now := self._clock()):
            given_up = task.give_up(head, message_id=self._new_id(), now=now)
            try:
                self._store.commit(head, given_up)
                return given_up
            except ConflictError as conflict:
                head = conflict.current
        if head is None:
            raise TaskNotFoundError
        return head

    def _start(self, request: SendMessageRequest, call: Call) -> SendMessageResponse:
        message = replace(
            request.message, task_id=self._new_id(), context_id=request.message.context_id or self._new_id()
        )
        now = self._clock()
        begun = task.begin(owner=call.owner, message=message, now=now, deadline=_deadline(now, call))
        return self._take_turn(None, begun, message, request, call)

    def _continue(self, request: SendMessageRequest, call: Call) -> SendMessageResponse:
        """Take the next turn of a task. Who loses a race looks at the task again, and at the rules."""
        head: Head | None = self._existing(request.message.task_id, call)
        while head:
            now = self._clock()
            task.admit(head, request.message, now)
            message = replace(request.message, context_id=head.context_id)
            begun = task.follow(head, message, now=now, deadline=_deadline(now, call))
            try:
                return self._take_turn(head, begun, message, request, call)
            except ConflictError as conflict:
                head = conflict.current
                if call.seconds_left() < RETRY_MARGIN_SECONDS:
                    raise UnavailableError from conflict
        raise TaskNotFoundError

    def _take_turn(
        self, previous: Head | None, begun: Head, message: Message, request: SendMessageRequest, call: Call
    ) -> SendMessageResponse:
        """Run the agent on a turn and make the result count.

        A read-only agent's turn is written once, finished:   run ── commit
        an acting agent's is claimed before it runs:          commit ── run ── commit

        Raises:
            ConflictError: the task is no longer at `previous`, and an acting agent has not run.
        """
        claims = not self._agent.read_only
        if claims:
            self._store.commit(previous, begun)
        outcome = Outcome(message, self._new_id)
        turns.run(self._agent, self._turn(previous, begun, message, request, call), outcome)
        if outcome.direct_reply and not previous and not claims:
            return SendMessageResponse(message=outcome.direct_reply)
        finished = task.finish(begun, outcome, now=self._clock())
        if claims:
            finished = self._commit_claimed(begun, finished)
        else:
            self._store.commit(previous, finished)
        return SendMessageResponse(task=self._present(finished, request.configuration.history_length))

    def _commit_claimed(self, begun: Head, finished: Head) -> Head:
        """Return the task after its claimed turn: as finished, or as whoever ended it meanwhile left it."""
        try:
            self._store.commit(begun, finished)
        except ConflictError as conflict:
            if conflict.current is None:
                raise TaskNotFoundError from conflict
            return conflict.current
        return finished

    def _turn(
        self, previous: Head | None, begun: Head, message: Message, request: SendMessageRequest, call: Call
    ) -> Turn:
        def canceled() -> bool:
            current = self._store.read(begun.owner, begun.task_id)
            return current is not None and current.state in task.TERMINAL

        return Turn(
            message=message,
            task_id=begun.task_id,
            context_id=begun.context_id,
            caller=begun.owner,
            metadata={} if request.metadata is UNSET else request.metadata,
            accepted_output_modes=request.configuration.accepted_output_modes,
            seconds_left=call.seconds_left,
            canceled=turns.at_most_once_a_second(canceled, self._clock),
            earlier_messages=lambda: self._store.history(previous) if previous else [],
        )

    def _present(self, head: Head, history_length: int | UnsetType) -> Task:
        """Return a task as answers carry it, with its newest messages (§3.2.4)."""
        limit = DEFAULT_HISTORY_LENGTH if history_length is UNSET else history_length
        asks = head.state in task.INTERRUPTED
        history = self._store.history(head, max(limit, 1)) if limit or asks else []
        said = history[-1] if asks else self._store.status_message(head)
        shown = Task(
            id=head.task_id,
            context_id=head.context_id,
            status=TaskStatus(head.state, said or UNSET, format_timestamp(head.status_at)),
            artifacts=self._store.artifacts(head) or UNSET,
            history=history if limit and history else UNSET,
        )
        return shorten(shown)


def shorten(shown: Task) -> Task:
    """Return a task with as many of its newest messages as fit into MAX_ANSWER_BYTES (§3.2.4)."""
    room = MAX_ANSWER_BYTES - len(msgspec.json.encode(shown))
    if room >= 0 or shown.history is UNSET:
        return shown
    dropped = 0
    while room < 0 and dropped < len(shown.history):
        room += len(msgspec.json.encode(shown.history[dropped])) + 1
        dropped += 1
    return replace(shown, history=shown.history[dropped:] or UNSET)


def check_capability(operation: str, params: Any) -> None:
    """Refuse what the agent card does not declare (§3.3.4). `params` are the request's, unchecked.

    Raises:
        UnsupportedOperationError: a streaming operation, ListTasks or the extended card.
        PushNotificationNotSupportedError: a push operation, or a message with a push configuration.
    """
    if operation in STREAMING_OPERATIONS:
        raise UnsupportedOperationError(f"{operation} is not supported: the agent card declares no streaming")
    if operation == "GetExtendedAgentCard":
        raise UnsupportedOperationError(f"{operation} is not supported: the agent card declares no extended card")
    if operation == "ListTasks":
        raise UnsupportedOperationError(f"{operation} is not supported by this server")
    if operation in PUSH_OPERATIONS or _asks_for_push(params):
        raise PushNotificationNotSupportedError


def media_type(part: Part) -> str:
    """Return what a part holds, as it is compared: in lower case, without parameters."""
    if part.media_type:
        return part.media_type.partition(";")[0].strip().lower()
    if part.text is not UNSET:
        return TEXT_PLAIN
    return APPLICATION_JSON if part.data is not UNSET else OCTET_STREAM


def input_modes(profile: AgentProfile) -> frozenset[str]:
    """Return the media types that an agent takes, by default or for any of its skills."""
    modes = {*profile.default_input_modes, *(mode for skill in profile.skills for mode in skill.input_modes)}
    return frozenset(mode.partition(";")[0].strip().lower() for mode in modes)


def _deadline(now: int, call: Call) -> int:
    return now + int(call.seconds_left() * 1000)


def _asks_for_push(params: Any) -> bool:
    configuration = params.get("configuration") if isinstance(params, dict) else None
    if not isinstance(configuration, dict):
        return False
    names = ("taskPushNotificationConfig", "task_push_notification_config")
    return any(configuration.get(name) is not None for name in names)
