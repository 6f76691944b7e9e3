"""SendMessage (§3.1.1): a message begins a task, or takes the next turn of one, and is answered from it.

    a turn that runs …    of a read-only agent            of one that acts on the world
    in the request        run ─ commit                    commit ─ run ─ commit
    in the background     commit … the worker runs it     commit … the worker runs it

A copy of a message is answered from what the message has come to.
"""

from typing import Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from a2a_lambda import task
from a2a_lambda.agent import Agent
from a2a_lambda.calls import Call, World
from a2a_lambda.errors import TaskNotFoundError, UnavailableError
from a2a_lambda.ledger import TASK_ID, Ledger
from a2a_lambda.model import Message, SendMessageRequest, SendMessageResponse, Task
from a2a_lambda.outcome import TERMINAL, Outcome
from a2a_lambda.pushing import Pushing, accompanied
from a2a_lambda.retries import first_id, message_key
from a2a_lambda.running import Question, Runner
from a2a_lambda.store import ConflictError, TaskStore
from a2a_lambda.task import DirectReply, Head, Limits, Request

RETRY_MARGIN_SECONDS: Final = 5.0
"""A turn that lost a race is not run again with less time than this."""

WAIT_MARGIN_SECONDS: Final = 3.0
"""Waiting for another's turn ends this long before the function is stopped."""

MAX_KEPT_REPLY: Final = 300_000
"""The longest direct reply, in bytes, that is kept. A copy of a request with a longer one runs the agent again."""

POLL_SECONDS: Final = (0.1, 0.2, 0.4, 1.0)
"""The pauses between looks at a task that is waited for; the last one repeats."""


class Sending:
    """Takes messages for one agent."""

    def __init__(
        self,
        agent: Agent,
        store: TaskStore,
        ledger: Ledger,
        limits: Limits,
        world: World,
        pushing: Pushing | None,
        *,
        window_ms: int,
    ) -> None:
        """Args: the window is how long a message is remembered, so that a copy is not taken twice; 0: not at all."""
        self._agent = agent
        self._store = store
        self._ledger = ledger
        self._limits = limits
        self._world = world
        self._pushing = pushing
        self._runner = Runner(agent, store, ledger, limits, world)
        self._window = window_ms

    def send(self, request: SendMessageRequest, call: Call) -> SendMessageResponse:
        """Answer a message: with its task once that is terminal or interrupted, or with a message.

        A turn in the background is answered with its task as soon as that exists, where the client wishes it, or
        as it is shortly before the function is stopped.
        """
        if request.message.task_id:
            return self._continue(request, call)
        return self._start(request, call)

    def _start(self, request: SendMessageRequest, call: Call) -> SendMessageResponse:
        """Begin a task, or answer from what this very message has come to already."""
        key = message_key(request.message)
        context_id = request.message.context_id or self._world.new_id()
        folded: dict[int, Outcome] = {}

        def take(task_id: str) -> SendMessageResponse:
            """Take the first turn under an id. What a read-only agent made of it serves under another as well."""
            sent = replace(request, message=replace(request.message, task_id=task_id, context_id=context_id))
            now = self._world.clock()
            begun = task.begin(
                owner=call.owner,
                message=sent.message,
                key=key,
                now=now,
                deadline=_deadline(now, call),
                push=_has_config(request),
            )
            return self._take_turn(None, begun, sent, call, folded)

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
        """Tell whether a copy is answered from what was begun: within the window, or while the first turn is open.

        Without a window the id was new, and what stands under it is this very request's.
        """
        if not self._window:
            return True
        if isinstance(begun, Head) and begun.turn == 1 and begun.deadline is not None:
            return True
        return begun is not None and self._world.clock() < begun.created_at + self._window

    def _repeat(self, begun: Head | DirectReply | None, request: SendMessageRequest, call: Call) -> SendMessageResponse:
        """Answer a message from what a copy of it has come to."""
        if begun is None:
            raise TaskNotFoundError
        if isinstance(begun, DirectReply):
            return SendMessageResponse(message=msgspec.json.decode(begun.content, type=Message))
        return self._join(begun, request, call)

    def _join(self, head: Head, request: SendMessageRequest, call: Call) -> SendMessageResponse:
        """Answer a message from the task that a copy of it has begun or continued."""
        head = self._ledger.settled(head)
        config = request.configuration.task_push_notification_config
        if self._pushing and config is not UNSET and head.state not in TERMINAL:
            self._pushing.configure(head, config)
        return self._answer(head, request, call)

    def _continue(self, request: SendMessageRequest, call: Call) -> SendMessageResponse:
        """Take the next turn of a task. Who loses a race looks at the task again, and at the rules."""
        task_id, key = request.message.task_id, message_key(request.message)
        folded: dict[int, Outcome] = {}
        while TASK_ID.fullmatch(task_id):
            head, is_repeated = self._store.find(call.owner, task_id, key)
            if head is None:
                break
            if is_repeated:
                return self._join(head, request, call)
            head = self._ledger.settled(head)
            now = self._world.clock()
            task.admit(head, request.message, now, self._limits)
            sent = replace(request, message=replace(request.message, context_id=head.context_id))
            watched = replace(head, push=head.push or _has_config(request))
            begun = task.follow(watched, sent.message, key=key, now=now, deadline=_deadline(now, call))
            try:
                return self._take_turn(head, begun, sent, call, folded)
            except ConflictError as conflict:
                current = conflict.current
                if isinstance(current, Head) and (current.turn, current.message_key) == (begun.turn, key):
                    return self._join(current, request, call)
                if call.seconds_left() < RETRY_MARGIN_SECONDS:
                    raise UnavailableError from conflict
        raise TaskNotFoundError

    def _take_turn(
        self, previous: Head | None, begun: Head, request: SendMessageRequest, call: Call, folded: dict[int, Outcome]
    ) -> SendMessageResponse:
        """Take the next turn of a task, or the first of a new one.

        `folded` keeps what a read-only agent made of a turn, by its number: who loses a race to a change that began
        no other turn need not run it again.

        Raises:
            ConflictError: the task is no longer at `previous`, and an acting agent has not run.
        """
        if self._is_queued(request):
            return self._enqueue(previous, begun, request, call)
        if not self._agent.read_only:
            return self._claim(previous, begun, request, call)
        if begun.turn not in folded:
            folded[begun.turn] = self._runner.fold(previous, begun, _question(request), call.seconds_left)
        return self._keep(previous, begun, folded[begun.turn], request)

    def _is_queued(self, request: SendMessageRequest) -> bool:
        return self._agent.background or request.configuration.return_immediately

    def _enqueue(
        self, previous: Head | None, begun: Head, request: SendMessageRequest, call: Call
    ) -> SendMessageResponse:
        """Leave a turn to the worker."""
        waiting = task.enqueue(begun, _question(request).request, now=self._world.clock())
        waiting = self._configured(previous, waiting, request)
        shown = self._ledger.commit_shown(previous, waiting, request.configuration.history_length)
        self._promote(waiting)
        if request.configuration.return_immediately:
            return SendMessageResponse(task=shown)
        return self._answer(waiting, request, call)

    def _claim(
        self, previous: Head | None, begun: Head, request: SendMessageRequest, call: Call
    ) -> SendMessageResponse:
        """Take an acting agent's turn."""
        begun = self._configured(previous, begun, request)
        self._ledger.commit(previous, begun)
        self._promote(begun)
        history_length = request.configuration.history_length
        shown: Task | None = None

        def commit(running: Head, finished: Head) -> None:
            nonlocal shown
            shown = self._ledger.commit_shown(running, finished, history_length)

        head = self._runner.run(begun, _question(request), call.seconds_left, commit)
        return SendMessageResponse(task=shown or self._ledger.present(head, history_length))

    def _keep(
        self, previous: Head | None, begun: Head, outcome: Outcome, request: SendMessageRequest
    ) -> SendMessageResponse:
        """Keep what a read-only agent made of a turn: a direct reply, or the task."""
        if outcome.is_reply and outcome.status_message and previous is None:
            return SendMessageResponse(message=self._keep_reply(begun, outcome.status_message))
        finished = task.finish(begun, outcome, now=self._world.clock())
        finished = self._configured(previous, finished, request)
        shown = self._ledger.commit_shown(previous, finished, request.configuration.history_length)
        self._promote(finished)
        return SendMessageResponse(task=shown)

    def _keep_reply(self, begun: Head, reply: Message) -> Message:
        """Return a direct reply, kept for copies of its request."""
        direct = replace(reply, task_id="")
        content = msgspec.json.encode(direct)
        if self._window and len(content) <= MAX_KEPT_REPLY:
            self._store.keep_reply(
                DirectReply(task_id=begun.task_id, owner=begun.owner, created_at=begun.created_at, content=content)
            )
        return direct

    def _configured(self, previous: Head | None, following: Head, request: SendMessageRequest) -> Head:
        """Return a task with the webhook that its message brings, for which it has room. It counts with the task.

        Raises:
            UnsupportedOperationError: there is no room for it.
        """
        config = request.configuration.task_push_notification_config
        if self._pushing is None or config is UNSET:
            return following
        if previous:
            self._pushing.check_room(previous, config)
        return accompanied(following, config, self._world.new_id())

    def _promote(self, counted: Head) -> None:
        if self._pushing:
            self._pushing.promote(counted)

    def _answer(self, head: Head, request: SendMessageRequest, call: Call) -> SendMessageResponse:
        """Answer from a task whose turn another takes or took: wait for it, if the client does."""
        pauses = iter(POLL_SECONDS)
        while (
            head.deadline is not None
            and not request.configuration.return_immediately
            and call.seconds_left() > WAIT_MARGIN_SECONDS
        ):
            self._world.pause(next(pauses, POLL_SECONDS[-1]))
            head = self._ledger.existing(head.owner, head.task_id)
        return SendMessageResponse(task=self._ledger.present(head, request.configuration.history_length))


def _has_config(request: SendMessageRequest) -> bool:
    return request.configuration.task_push_notification_config is not UNSET


def _question(request: SendMessageRequest) -> Question:
    metadata = {} if request.metadata is UNSET else request.metadata
    return Question(request.message, Request(metadata, request.configuration.accepted_output_modes))


def _deadline(now: int, call: Call) -> int:
    return now + int(call.seconds_left() * 1000)
