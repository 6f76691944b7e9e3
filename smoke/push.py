"""The checks of push notification configs (§3.1.7–3.1.10), on a task that has ended: nothing is ever sent."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from smoke.errors import NotCheckedError, WrongError
from smoke.expectations import Code, Json, shown
from smoke.requests import NO_TASK
from smoke.visit import checked_result

if TYPE_CHECKING:
    from smoke.visit import Visit

CREATE: Final = "CreateTaskPushNotificationConfig"
GET: Final = "GetTaskPushNotificationConfig"
LIST: Final = "ListTaskPushNotificationConfigs"
DELETE: Final = "DeleteTaskPushNotificationConfig"

TOKEN: Final = "shown-to-nobody"  # noqa: S105 - opens nothing

INWARD: Final = [
    "https://169.254.169.254/latest/meta-data/",
    "https://10.0.0.1/",
    "https://[::ffff:169.254.169.254]/",
    "ftp://example.com/",
    "/relative",
]
"""Where no notification may go."""


def undeclared_configs_are_refused(visit: Visit) -> str:
    """Push notifications that the card does not declare are -32003 (§3.3.4)."""
    if visit.capabilities.get("pushNotifications"):
        raise NotCheckedError("the card declares push notifications")
    url = visit.settings.webhook
    config = {"taskId": NO_TASK, "url": url}
    named = {"taskId": NO_TASK, "id": "smoke-test"}
    for method, params in ((CREATE, config), (GET, named), (LIST, {"taskId": NO_TASK}), (DELETE, named)):
        visit.caller.refusal(Code.PUSH_NOTIFICATION_NOT_SUPPORTED, method, params)
    params = visit.message() | {"configuration": {"taskPushNotificationConfig": {"url": url}}}
    visit.caller.refusal(Code.PUSH_NOTIFICATION_NOT_SUPPORTED, "SendMessage", params)
    return f"{Code.PUSH_NOTIFICATION_NOT_SUPPORTED.value}, as the card does not declare them"


def configs_are_kept(visit: Visit) -> str:
    """A config is created, read, listed and deleted, and its secrets are not shown (§3.1.7–3.1.10)."""
    task_id, config_id, url = _task(visit), f"smoke-{uuid.uuid4()}", visit.settings.webhook
    named = {"taskId": task_id, "id": config_id}
    authentication = {"scheme": "Bearer", "credentials": TOKEN}
    created = _created(visit, {**named, "url": url, "token": TOKEN, "authentication": authentication})
    try:
        read = visit.caller.result(GET, named)
        listed = visit.caller.result(LIST, {"taskId": task_id}).get("configs", [])
    finally:
        deleted = visit.caller.result(DELETE, named)
    for config in (created, read, *(each for each in listed if each.get("id") == config_id)):
        if (config.get("taskId"), config.get("id"), config["url"]) != (task_id, config_id, url):
            raise WrongError(f"another config: {shown(config)}")
        if TOKEN in str(config):
            raise WrongError("an answer shows the token or the credentials")
    if config_id not in [each.get("id") for each in listed]:
        raise WrongError(f"the list has not the new config: {shown(listed)}")
    visit.caller.refusal(Code.TASK_NOT_FOUND, GET, named)
    visit.caller.refusal(Code.TASK_NOT_FOUND, CREATE, {"taskId": NO_TASK, "url": url})
    if visit.caller.result(DELETE, named) != deleted:
        raise WrongError("deleting it again is answered otherwise")
    return f"created, read, listed among {len(listed)}, deleted; the token was not shown"


def inward_webhooks_are_refused(visit: Visit) -> str:
    """A webhook that leads inwards, or is none, is -32602 with `url` (§13.2)."""
    task_id = _task(visit)
    for url in INWARD:
        named = visit.caller.refusal(Code.INVALID_PARAMS, CREATE, {"taskId": task_id, "url": url})
        if "url" not in named:
            raise WrongError(f"{url} names {named}, and not url")
    return f"{Code.INVALID_PARAMS.value} with url, for {len(INWARD)} addresses"


def configs_of_unknown_tasks_are_refused(visit: Visit) -> str:
    """A config needs a task (§3.1.7)."""
    _task(visit)
    visit.caller.refusal(Code.TASK_NOT_FOUND, LIST, {"taskId": NO_TASK})
    visit.caller.refusal(Code.TASK_NOT_FOUND, GET, {"taskId": NO_TASK, "id": "smoke-test"})
    return f"{Code.TASK_NOT_FOUND.value}"


def _task(visit: Visit) -> str:
    """The id of a task that has ended, where configs may be kept.

    Raises NotCheckedError.
    """
    if not visit.capabilities.get("pushNotifications"):
        raise NotCheckedError("the card declares no push notifications")
    return str(visit.finished()["id"])


def _created(visit: Visit, config: dict[str, Json]) -> Json:
    """The config as it was answered.

    Raises NotCheckedError where the webhook is one that this agent does not take.
    """
    reply = visit.caller.call(CREATE, config)
    match reply:
        case {"error": {"code": Code.INVALID_PARAMS}}:
            raise NotCheckedError(f"the agent takes no webhook at {config['url']}; name another with WEBHOOK=")
    return checked_result(CREATE, reply)
