"""The operations of A2A (§3.1), the same for every binding: parameters in, wire types out.

A binding has authenticated the caller and parsed the request; here the rules of `task` meet the store and the
agent. The checks come in the specification's order, and nothing is written before the last of them.
"""

from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from a2a_lambda import tally
from a2a_lambda.agent import Agent
from a2a_lambda.calls import Call, World
from a2a_lambda.capabilities import check_content, check_extensions, input_modes
from a2a_lambda.errors import PushNotificationNotSupportedError
from a2a_lambda.ledger import Ledger
from a2a_lambda.listing import list_tasks, read_listing
from a2a_lambda.model import (
    CancelTaskRequest,
    CreateTaskPushNotificationConfigRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Nothing,
    SendMessageRequest,
    SendMessageResponse,
    Task,
    TaskPushNotificationConfig,
    TaskStatus,
)
from a2a_lambda.pushing import PushConfigs, Pushing, Webhooks
from a2a_lambda.sending import Sending
from a2a_lambda.store import TaskStore
from a2a_lambda.task import Limits
from a2a_lambda.timestamps import format_timestamp

CONFIG_PATH: Final = "configuration.taskPushNotificationConfig"


class Operations:
    """The operations for one agent and one store."""

    def __init__(
        self,
        agent: Agent,
        store: TaskStore,
        limits: Limits,
        world: World,
        *,
        window_seconds: int,
        push: tuple[PushConfigs, Webhooks] | None = None,
    ) -> None:
        """Begin with nothing in memory: all that outlives a request is in the store.

        Args:
            agent: what answers messages.
            store: where tasks are kept.
            limits: how much a task may hold.
            world: the clock, the ids, the pauses.
            window_seconds: how long a message is remembered, so that a copy is not taken twice; 0: not at all.
            push: where push notification configs are kept, and what knows where notifications may be sent; None
                where there are none.
        """
        self._agent = agent
        self._store = store
        self._world = world
        self._ledger = Ledger(store, world, read_only=agent.read_only)
        self._pushing = self._pushing_by(*push) if push else None
        self._sending = Sending(
            agent, store, self._ledger, limits, world, self._pushing, window_ms=window_seconds * 1000
        )
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
        config = request.configuration.task_push_notification_config
        if self._pushing and config is not UNSET:
            self._pushing.check(config, CONFIG_PATH)
        check_extensions(self._agent.card, call.extensions)
        check_content(request.message.parts, self._input_modes)
        return self._sending.send(request, call)

    def get_task(self, request: GetTaskRequest, call: Call) -> Task:
        """Return a task as it stands (§3.1.3).

        Raises:
            TaskNotFoundError: there is none with this id, or it is another owner's.
        """
        check_extensions(self._agent.card, call.extensions)
        return self._ledger.present(self._ledger.existing(call.owner, request.id), request.history_length)

    def list_tasks(self, request: ListTasksRequest, call: Call) -> ListTasksResponse:
        """Return a page of the caller's tasks (§3.1.4).

        Raises:
            InvalidParamsError: the page token is not one of this list.
        """
        now = self._world.clock()
        listing = read_listing(call.owner, request, now)
        check_extensions(self._agent.card, call.extensions)
        return list_tasks(self._store, listing, request, now, self._ledger.settled)

    def cancel_task(self, request: CancelTaskRequest, call: Call) -> Task:
        """Cancel a task at once, whatever its turn is doing (§3.1.5).

        Raises:
            TaskNotFoundError: there is none with this id, or it is another owner's.
            TaskNotCancelableError: it is finished.
        """
        check_extensions(self._agent.card, call.extensions)
        head = self._ledger.existing(call.owner, request.id)
        # Read before it counts: a cancellation that counted is not answered with an error.
        shown = self._ledger.present(head, UNSET)
        canceled = self._store.cancel(head, self._world.clock())
        tally.current().finished.append(canceled.state.value)
        if canceled.revision != head.revision + 1:
            return self._ledger.present(canceled, UNSET)
        return replace(shown, status=TaskStatus(canceled.state, timestamp=format_timestamp(canceled.status_at)))

    def create_push_config(
        self, request: CreateTaskPushNotificationConfigRequest, call: Call
    ) -> TaskPushNotificationConfig:
        """Have a webhook told of a task's updates (§3.1.7). Errors are those of `Pushing.create`."""
        return self._supported().create(request, call)

    def get_push_config(self, request: GetTaskPushNotificationConfigRequest, call: Call) -> TaskPushNotificationConfig:
        """Return a webhook of a task (§3.1.8). Errors are those of `Pushing.get`."""
        return self._supported().get(request, call)

    def list_push_configs(
        self, request: ListTaskPushNotificationConfigsRequest, call: Call
    ) -> ListTaskPushNotificationConfigsResponse:
        """Return the webhooks of a task (§3.1.9). Errors are those of `Pushing.list`."""
        return self._supported().list(request, call)

    def delete_push_config(self, request: DeleteTaskPushNotificationConfigRequest, call: Call) -> Nothing:
        """Delete a webhook of a task (§3.1.10). Errors are those of `Pushing.delete`."""
        return self._supported().delete(request, call)

    def _pushing_by(self, configs: PushConfigs, webhooks: Webhooks) -> Pushing:
        return Pushing(
            self._agent.card,
            configs,
            webhooks,
            existing=self._ledger.existing,
            watch=self._store.watch,
            clock=self._world.clock,
        )

    def _supported(self) -> Pushing:
        if self._pushing is None:
            raise PushNotificationNotSupportedError
        return self._pushing
