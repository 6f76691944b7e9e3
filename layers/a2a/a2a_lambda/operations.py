"""The operations of A2A (§3.1), the same for every binding: parameters in, wire types out.

A binding has authenticated the caller and parsed the request; here the rules of `task` meet the store and the
agent. The checks come in the specification's order, and nothing is written before the last of them.
"""

import re
from collections.abc import Callable, Collection
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from a2a_lambda import tally, task, turns
from a2a_lambda.agent import Agent, Turn
from a2a_lambda.capabilities import check_content, check_extensions, input_modes
from a2a_lambda.errors import InternalError, TaskNotFoundError, UnavailableError
from a2a_lambda.listing import list_tasks, read_listing
from a2a_lambda.model import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SendMessageRequest,
    SendMessageResponse,
    Task,
    TaskStatus,
)
from a2a_lambda.outcome import TERMINAL, Outcome
from a2a_lambda.presentation import present
from a2a_lambda.retries import first_id, message_key
from a2a_lambda.store import ConflictError, TaskStore
from a2a_lambda.task import DirectReply, Head, Limits
from a2a_lambda.timestamps import format_timestamp

RETRY_MARGIN_SECONDS: Final = 5.0
"""A turn that lost a race is not run again with less time than this."""

WAIT_MARGIN_SECONDS: Final = 3.0
"""Waiting for another's turn ends this long before the function is stopped."""

MAX_KEPT_REPLY: Final = 300_000
"""The longest direct reply, in bytes, that is kept. A copy of a request with a longer one runs the agent again."""

POLL_SECONDS: Final = (0.1, 0.2, 0.4, 1.0)
"""The pauses between looks at a task that is waited for; the last one repeats."""

TASK_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The ids that this server makes. Any other is unknown without a read."""


T = TypeVar("T")


class Call(Struct, frozen=True, kw_only=True):
    """Who calls, and under which conditions: what a binding knows besides the parameters."""

    owner: str
    extensions: Collection[str] = ()
    """The extensions that the client listed (§3.2.6)."""
    seconds_left: Callable[[], float]
    """The time until the function is stopped."""


class World(Struct, frozen=True, kw_only=True):
    """What the rules do not make themselves."""

    clock: Callable[[], int]
    """The time in milliseconds since the epoch."""
    new_id: Callable[[], str]
    """Ids that match TASK_ID, none twice."""
    pause: Callable[[float], None]
    """Waits for so many seconds."""


class Operations:
    """The operations for one agent and one store."""

    def __init__(self, agent: Agent, store: TaskStore, limits: Limits, world: World, *, window_seconds: int) -> None:
        """Args: the window is how long a message is remembered, so that a copy is not taken twice; 0: not at all."""
        self._agent = agent
        self._store = store
        self._limits = limits
        self._world = world
        self._window = window_seconds * 1000
        self._input_modes = input_modes(agent.card)

    def send_message(self, request: SendMessageRequest, call: Call) -> SendMessageResponse:
        """Answer a message: with its task once that is terminal or interrupted, or with a message (§3.1.1).

        The same message from the same caller within the idempotency window is answered from the same task
        (§3.3.1).

        Raises:
            ExtensionSupportRequiredError, ContentTypeNotSupportedError, TaskNotFoundError, InvalidParamsError,
            UnsupportedOperationError: nothing was changed.
            UnavailableError: other writers were always faster, or the store did not answer; a copy may be sent.
        """
        check_extensions(self._agent.card, call.extensions)
        check_content(request.message.parts, self._input_modes)
        if request.message.task_id:
            return self._continue(request, call)
        return self._start(request, call)

    def get_task(self, request: GetTaskRequest, call: Call) -> Task:
        """Return a task as it stands (§3.1.3).

        Raises:
            TaskNotFoundError: there is none with this id, or it is another owner's.
        """
        check_extensions(self._agent.card, call.extensions)
        return self._present(self._existing(request.id, call), request.history_length)

    def list_tasks(self, request: ListTasksRequest, call: Call) -> ListTasksResponse:
        """Return a page of the caller's tasks (§3.1.4).

        Raises:
            InvalidParamsError: the page token is not one of this list.
        """
        now = self._world.clock()
        listing = read_listing(call.owner, request, now)
        check_extensions(self._agent.card, call.extensions)
        return list_tasks(self._store, listing, request, now)

    def cancel_task(self, request: CancelTaskRequest, call: Call) -> Task:
        """Cancel a task at once, whatever its turn is doing (§3.1.5).

        Raises:
            TaskNotFoundError: there is none with this id, or it is another owner's.
            TaskNotCancelableError: it is finished.
        """
        check_extensions(self._agent.card, call.extensions)
        head = self._existing(request.id, call)
        # Read before it counts: a cancellation that counted is not answered with an error.
        shown = self._present(head, UNSET)
        canceled = self._store.cancel(head, self._world.clock())
        tally.current().finished.append(canceled.state.value)
        if canceled.revision != head.revision + 1:
            return self._present(canceled, UNSET)
        return replace(shown, status=TaskStatus(canceled.state, timestamp=format_timestamp(canceled.status_at)))

    def _existing(self, task_id: str, call: Call) -> Head:
        """Return a task of the caller's, given up if its turn has outlived its deadline."""
        head = self._store.read(call.owner, task_id) if TASK_ID.fullmatch(task_id) else None
        if head is None:
            raise TaskNotFoundError
        return self._settled(head)

    def _settled(self, head: Head) -> Head:
        """Return a task as it stands once a turn that has outlived its deadline is given up."""
        while task.is_overdue(head, now := self._world.clock()):
            given_up = task.give_up(head, message_id=self._world.new_id(), now=now)
            try:
                self._commit(head, given_up)
            except ConflictError as conflict:
                head = conflict.current_or_gone()
            else:
                return given_up
        return head

    def _commit(self, previous: Head | None, following: Head) -> None:
        self._count(self._store.prepare(previous, following), following)

    def _commit_shown(self, previous: Head | None, following: Head, history_length: int | UnsetType) -> Task:
        """Commit, and return the task as answers carry it: read before it counts, so that no error follows."""
        commit = self._store.prepare(previous, following)
        shown = self._present(following, history_length)
        self._count(commit, following)
        return shown

    def _count(self, commit: Callable[[], None], following: Head) -> None:
        """Make a write count. It is tried once more where the store does not answer: its own call knows its write."""
        try:
            try:
                commit()
            except UnavailableError:
                commit()
        except ConflictError:
            tally.current().conflicts += 1
            raise
        if following.state in TERMINAL:
            tally.current().finished.append(following.state.value)

    def _present(self, head: Head, history_length: int | UnsetType) -> Task:
        tally.current().task_id = head.task_id
        return present(self._store, head, history_length)

    def _start(self, request: SendMessageRequest, call: Call) -> SendMessageResponse:
        """Begin a task, or answer from what this very message has come to already."""
        key = message_key(request.message)
        context_id = request.message.context_id or self._world.new_id()
        outcome: Outcome | None = None

        def take(task_id: str) -> SendMessageResponse:
            """Take the first turn under an id. What a read-only agent made of it serves under another as well."""
            nonlocal outcome
            message = replace(request.message, task_id=task_id, context_id=context_id)
            now = self._world.clock()
            begun = task.begin(owner=call.owner, message=message, key=key, now=now, deadline=_deadline(now, call))
            if not self._agent.read_only:
                return self._claim(None, begun, message, request, call)
            outcome = outcome or self._run(None, begun, message, request, call)
            return self._keep(None, begun, outcome, request)

        task_id = first_id(call.owner, key) if self._window else self._world.new_id()
        try:
            return take(task_id)
        except ConflictError as conflict:
            begun = conflict.current
        if not self._is_recent(begun):
            again_id = self._store.begin_again(call.owner, task_id, self._world.new_id())
            try:
                return take(again_id)
            except ConflictError as conflict:
                begun = conflict.current
        return self._repeat(begun, request, call)

    def _is_recent(self, begun: Head | DirectReply | None) -> bool:
        return begun is not None and self._world.clock() < begun.created_at + self._window

    def _repeat(self, begun: Head | DirectReply | None, request: SendMessageRequest, call: Call) -> SendMessageResponse:
        """Answer a message from what a copy of it has come to."""
        if begun is None:
            raise TaskNotFoundError
        if isinstance(begun, DirectReply):
            return SendMessageResponse(message=msgspec.json.decode(begun.content, type=Message))
        return self._answer(begun, request, call)

    def _continue(self, request: SendMessageRequest, call: Call) -> SendMessageResponse:
        """Take the next turn of a task. Who loses a race looks at the task again, and at the rules."""
        task_id, key = request.message.task_id, message_key(request.message)
        while TASK_ID.fullmatch(task_id):
            head, is_repeated = self._store.find(call.owner, task_id, key)
            if head is None:
                break
            if is_repeated:
                return self._answer(head, request, call)
            head = self._settled(head)
            now = self._world.clock()
            task.admit(head, request.message, now, self._limits)
            message = replace(request.message, context_id=head.context_id)
            begun = task.follow(head, message, key=key, now=now, deadline=_deadline(now, call))
            try:
                return self._take_turn(head, begun, message, request, call)
            except ConflictError as conflict:
                if call.seconds_left() < RETRY_MARGIN_SECONDS:
                    raise UnavailableError from conflict
        raise TaskNotFoundError

    def _take_turn(
        self, previous: Head, begun: Head, message: Message, request: SendMessageRequest, call: Call
    ) -> SendMessageResponse:
        """Run the agent on a turn and make the result count.

        A read-only agent's turn is written once, finished:   run ── commit
        an acting agent's is claimed before it runs:          commit ── run ── commit

        Raises:
            ConflictError: the task is no longer at `previous`, and an acting agent has not run.
        """
        if not self._agent.read_only:
            return self._claim(previous, begun, message, request, call)
        return self._keep(previous, begun, self._run(previous, begun, message, request, call), request)

    def _claim(
        self, previous: Head | None, begun: Head, message: Message, request: SendMessageRequest, call: Call
    ) -> SendMessageResponse:
        """Take an acting agent's turn."""
        self._commit(previous, begun)
        outcome = self._run(previous, begun, message, request, call)
        finished = task.finish(begun, outcome, now=self._world.clock())
        history_length = request.configuration.history_length
        return SendMessageResponse(task=self._commit_claimed(begun, finished, history_length, call))

    def _run(
        self, previous: Head | None, begun: Head, message: Message, request: SendMessageRequest, call: Call
    ) -> Outcome:
        outcome = Outcome(
            message,
            max_artifact_bytes=self._limits.max_artifact_bytes,
            max_bytes=self._limits.max_task_bytes - begun.artifact_bytes,
            new_id=self._world.new_id,
        )
        turns.run(self._agent, self._turn(previous, begun, message, request, call), outcome)
        return outcome

    def _keep(
        self, previous: Head | None, begun: Head, outcome: Outcome, request: SendMessageRequest
    ) -> SendMessageResponse:
        """Keep what a read-only agent made of a turn: a direct reply, or the task."""
        if outcome.is_reply and outcome.status_message and previous is None:
            return SendMessageResponse(message=self._keep_reply(begun, outcome.status_message))
        finished = task.finish(begun, outcome, now=self._world.clock())
        shown = self._commit_shown(previous, finished, request.configuration.history_length)
        return SendMessageResponse(task=shown)

    def _commit_claimed(self, begun: Head, finished: Head, history_length: int | UnsetType, call: Call) -> Task:
        """Return the task after its claimed turn: as finished, or as whoever ended it meanwhile left it.

        The agent has acted, so the result is tried to keep for as long as there is time.

        Raises:
            InternalError: the store did not answer until then. The deadline will end the turn.
        """
        while True:
            try:
                return self._commit_or_find(begun, finished, history_length)
            except UnavailableError as error:
                if call.seconds_left() < WAIT_MARGIN_SECONDS:
                    raise InternalError from error
                self._world.pause(POLL_SECONDS[-1])

    def _commit_or_find(self, begun: Head, finished: Head, history_length: int | UnsetType) -> Task:
        try:
            return self._commit_shown(begun, finished, history_length)
        except ConflictError as conflict:
            return self._present(conflict.current_or_gone(), history_length)

    def _keep_reply(self, begun: Head, reply: Message) -> Message:
        """Return a direct reply, kept for copies of its request."""
        direct = replace(reply, task_id="")
        content = msgspec.json.encode(direct)
        if self._window and len(content) <= MAX_KEPT_REPLY:
            self._store.keep_reply(
                DirectReply(task_id=begun.task_id, owner=begun.owner, created_at=begun.created_at, content=content)
            )
        return direct

    def _answer(self, head: Head, request: SendMessageRequest, call: Call) -> SendMessageResponse:
        """Answer from a task whose turn another request takes or took: wait for it, if the client does."""
        pauses = iter(POLL_SECONDS)
        while (
            head.deadline is not None
            and not request.configuration.return_immediately
            and call.seconds_left() > WAIT_MARGIN_SECONDS
        ):
            self._world.pause(next(pauses, POLL_SECONDS[-1]))
            head = self._existing(head.task_id, call)
        return SendMessageResponse(task=self._present(head, request.configuration.history_length))

    def _turn(
        self, previous: Head | None, begun: Head, message: Message, request: SendMessageRequest, call: Call
    ) -> Turn:
        def canceled() -> bool:
            current = self._store.read(begun.owner, begun.task_id)
            return current is not None and current.state in TERMINAL

        is_kept = previous is not None or not self._agent.read_only
        return Turn(
            message=_copy(message),
            task_id=begun.task_id,
            context_id=begun.context_id,
            caller=begun.owner,
            metadata={} if request.metadata is UNSET else _copy(request.metadata),
            accepted_output_modes=request.configuration.accepted_output_modes,
            seconds_left=call.seconds_left,
            # A read-only agent's first turn is nothing yet that could be canceled.
            canceled=turns.at_most_once_a_second(canceled, self._world.clock) if is_kept else lambda: False,
            earlier_messages=lambda: self._store.history(previous) if previous else [],
        )


def _deadline(now: int, call: Call) -> int:
    return now + int(call.seconds_left() * 1000)


def _copy(value: T) -> T:
    """Return a copy that shares nothing: what an agent does to what it is given changes nothing here."""
    return msgspec.json.decode(msgspec.json.encode(value), type=type(value))
