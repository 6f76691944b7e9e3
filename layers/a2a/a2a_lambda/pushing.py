"""The operations on a task's push notification configs (§3.1.7–3.1.10), and the config that comes with a message.

A config names a webhook that is told of the task's updates. What it holds of secrets is never shown again. Sending
the updates is `delivering`'s business.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from a2a_lambda import tally
from a2a_lambda.addresses import UnsafeUrlError
from a2a_lambda.agent import AgentProfile
from a2a_lambda.calls import Call
from a2a_lambda.capabilities import check_extensions
from a2a_lambda.errors import InvalidParamsError, TaskNotFoundError, UnavailableError
from a2a_lambda.model import (
    CreateTaskPushNotificationConfigRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    Nothing,
    TaskPushNotificationConfig,
)
from a2a_lambda.outcome import TERMINAL
from a2a_lambda.pages import Place, make_token, read_token
from a2a_lambda.task import Head, Outbox

DEFAULT_PAGE_SIZE: Final = 50


class PushConfigs(Protocol):
    """Where configs are kept. Every call may raise UnavailableError."""

    def put(self, head: Head, config: TaskPushNotificationConfig) -> TaskPushNotificationConfig:
        """Keep a config of a task, in the place of the one with its id, and return it. Its default id is the task's.

        Raises:
            UnsupportedOperationError: the task has as many configs as it may have.
        """

    def check_room(self, owner: str, task_id: str, config_id: str) -> None:
        """Check that a task has room for a config with this id.

        Raises:
            UnsupportedOperationError: it has as many as it may have.
        """

    def promote_own(self, head: Head, *, told: int) -> None:
        """Keep the config that came with a head as `put` does, unless that was done, or another write came after it.

        It is told of what comes after the event of the number that is given.
        """

    def get(self, owner: str, task_id: str, config_id: str) -> TaskPushNotificationConfig | None:
        """Return a config, also one that is switched off; None where there is none with this id."""

    def page(
        self, owner: str, task_id: str, size: int, cursor: str | None
    ) -> tuple[list[TaskPushNotificationConfig], str | None]:
        """Return the next configs that are not switched off, and the cursor behind them; None at the end."""

    def delete(self, owner: str, task_id: str, config_id: str) -> None:
        """Delete a config, if it is there."""


class Webhooks(Protocol):
    """What knows where notifications may be sent."""

    def check(self, url: str) -> None:
        """Let a webhook pass to which something could be posted now.

        Raises:
            UnsafeUrlError: there is none, or nothing is sent there.
        """


class Pushing:
    """The operations for one agent."""

    def __init__(
        self,
        profile: AgentProfile,
        configs: PushConfigs,
        webhooks: Webhooks,
        *,
        existing: Callable[[str, str], Head],
        watch: Callable[[Head], None],
        clock: Callable[[], int],
    ) -> None:
        """Begin with what is kept.

        Args:
            profile: the agent's, which says what extensions it requires.
            configs: where configs are kept.
            webhooks: what knows where notifications may be sent.
            existing: returns an owner's task, or raises TaskNotFoundError (`Ledger.existing`).
            watch: has webhooks told of a task's changes from now on (`TaskStore.watch`).
            clock: the time in milliseconds since the epoch.
        """
        self._profile = profile
        self._configs = configs
        self._webhooks = webhooks
        self._existing = existing
        self._watch = watch
        self._clock = clock

    def check(self, config: TaskPushNotificationConfig | CreateTaskPushNotificationConfigRequest, path: str) -> None:
        """Check that notifications may be sent to a config's URL (§13.2). The path is the config's, "" at the top.

        Raises:
            InvalidParamsError: they may not, naming the URL's path.
        """
        try:
            self._webhooks.check(config.url)
        except UnsafeUrlError as error:
            raise InvalidParamsError.at(f"{path}.url" if path else "url", str(error)) from None

    def configure(self, head: Head, config: TaskPushNotificationConfig) -> TaskPushNotificationConfig:
        """Have a checked webhook told of a task's updates from now on, and return its config as answers show it.

        Raises:
            UnsupportedOperationError: the task has as many configs as it may have.
        """
        kept = self._configs.put(head, config)
        if not head.push and head.state not in TERMINAL:
            self._watch(head)
        return _shown(kept)

    def check_room(self, head: Head, config: TaskPushNotificationConfig) -> None:
        """Check that a task has room for the webhook that a message to it brings.

        Raises:
            UnsupportedOperationError: the task has as many configs as it may have.
        """
        self._configs.check_room(head.owner, head.task_id, config.id)

    def promote(self, head: Head) -> None:
        """Have the webhook that came with a change which counts be one of its task's, if one came.

        Where the store does not answer, or the task has been changed since, the relay does it.
        """
        if head.outbox and head.outbox.config:
            with suppress(UnavailableError):
                self._configs.promote_own(head, told=head.sequence - len(head.outbox.events))

    def create(self, request: CreateTaskPushNotificationConfigRequest, call: Call) -> TaskPushNotificationConfig:
        """Have a webhook told of a task's updates (§3.1.7). An id that there is already is replaced.

        Raises:
            InvalidParamsError: nothing is sent to such a URL.
            ExtensionSupportRequiredError: the client did not list an extension that the agent requires.
            TaskNotFoundError: there is no such task, or it is another owner's.
            UnsupportedOperationError: the task has as many configs as it may have.
        """
        self.check(request, "")
        config = TaskPushNotificationConfig(
            request.url,
            tenant=request.tenant,
            id=request.id,
            token=request.token,
            authentication=request.authentication,
        )
        return self.configure(self._task(request.task_id, call), config)

    def get(self, request: GetTaskPushNotificationConfigRequest, call: Call) -> TaskPushNotificationConfig:
        """Return a config (§3.1.8), without its secrets.

        Raises:
            ExtensionSupportRequiredError: as `create`.
            TaskNotFoundError: there is no such task, it is another owner's, or it has no such config.
        """
        self._task(request.task_id, call)
        config = self._configs.get(call.owner, request.task_id, request.id)
        if config is None:
            raise TaskNotFoundError("The task has no push notification config with this id")
        return _shown(config)

    def list(
        self, request: ListTaskPushNotificationConfigsRequest, call: Call
    ) -> ListTaskPushNotificationConfigsResponse:
        """Return a page of a task's configs (§3.1.9), without their secrets.

        Raises:
            InvalidParamsError: the page token is not one of this list.
            ExtensionSupportRequiredError, TaskNotFoundError: as `create`.
        """
        now, name = self._clock(), msgspec.json.encode(["push", call.owner, request.task_id]).decode()
        place = read_token(request.page_token, name, now) if request.page_token else None
        self._task(request.task_id, call)
        configs, behind = self._configs.page(
            call.owner, request.task_id, request.page_size or DEFAULT_PAGE_SIZE, place.cursor if place else None
        )
        token = make_token(Place(behind, 0, now), name) if behind else ""
        return ListTaskPushNotificationConfigsResponse([_shown(config) for config in configs], token)

    def delete(self, request: DeleteTaskPushNotificationConfigRequest, call: Call) -> Nothing:
        """Delete a config, if the task has it (§3.1.10).

        Raises:
            ExtensionSupportRequiredError, TaskNotFoundError: as `create`.
        """
        self._task(request.task_id, call)
        self._configs.delete(call.owner, request.task_id, request.id)
        return Nothing()

    def _task(self, task_id: str, call: Call) -> Head:
        check_extensions(self._profile, call.extensions)
        head = self._existing(call.owner, task_id)
        tally.current().task_id = task_id
        return head


def accompanied(head: Head, config: TaskPushNotificationConfig, write: str) -> Head:
    """Return a task with the webhook that comes with its change. It counts with the change, which has this id."""
    return replace(head, write=write, outbox=replace(head.outbox or Outbox(), config=config))


def _shown(config: TaskPushNotificationConfig) -> TaskPushNotificationConfig:
    """Return a config as answers carry it."""
    authentication = config.authentication
    if authentication is not UNSET:
        authentication = replace(authentication, credentials="")
    return replace(config, token="", authentication=authentication)
