"""A task is its owner's: to everybody else each operation answers as if there were none, byte for byte."""

from collections.abc import Callable
from typing import Final

import msgspec
import pytest

from a2a_lambda import agent as api
from a2a_lambda.agent import Turn, Updates, artifact, completed, input_required, reply
from a2a_lambda.jsonrpc import METHODS, Endpoint
from a2a_lambda.push_configs import TablePushConfigs
from a2a_lambda.retries import first_id, message_key
from a2a_lambda.tables import Table
from tests.integration.tables import RETENTION_DAYS, Tasks
from tests.unit.factories import DAY, OWNER, SECOND, VALIDATOR, Ids, Json, agent, hurried, message, send_params, server

MISSING: Final = "00000000-0000-4000-8000-ffffffffffff"

HOOK: Final = "https://hooks.example.com/secret"

OPERATIONS: Final[dict[str, Callable[[str], Json]]] = {
    "GetTask": lambda task_id: {"id": task_id},
    "GetTask with a history": lambda task_id: {"id": task_id, "historyLength": 10},
    "CancelTask": lambda task_id: {"id": task_id},
    "SendMessage": lambda task_id: send_params(taskId=task_id),
    "SendMessage with a context": lambda task_id: send_params(taskId=task_id, contextId="context-1"),
    "SendMessage that the task has": lambda task_id: send_params(taskId=task_id, messageId="m-2"),
    "SendMessage that goes on at once": lambda task_id: (
        send_params(taskId=task_id) | {"configuration": {"returnImmediately": True}}
    ),
    "SendMessage with a webhook": lambda task_id: (
        send_params(taskId=task_id) | {"configuration": {"taskPushNotificationConfig": {"url": HOOK, "id": "hook"}}}
    ),
    "CreateTaskPushNotificationConfig": lambda task_id: {"taskId": task_id, "url": HOOK, "id": "hook"},
    "GetTaskPushNotificationConfig": lambda task_id: {"taskId": task_id, "id": "hook"},
    "ListTaskPushNotificationConfigs": lambda task_id: {"taskId": task_id},
    "DeleteTaskPushNotificationConfig": lambda task_id: {"taskId": task_id, "id": "hook"},
    "ListTasks": lambda _task_id: {},
    "ListTasks of the context": lambda _task_id: {"contextId": "context-1"},
    "ListTasks with everything": lambda _task_id: {"historyLength": 10, "includeArtifacts": True, "pageSize": 100},
}
UNDECLARED: Final = [name for name, method in METHODS.items() if method is None]


def respond(turn: Turn) -> Updates:
    """Come to what the message says."""
    match turn.text:
        case "reply":
            yield reply("Hi!")
        case "done":
            yield artifact("secret")
            yield completed("secret")
        case "fail":
            yield api.failed("secret")
        case _:
            yield artifact("secret", artifact_id="a")
            yield input_required("secret?")


class Anywhere:
    """Lets every webhook pass."""

    def check(self, url: str) -> None:
        """Let it pass."""


class Asking:
    """The endpoint of an agent, and what it answers."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        configs = TablePushConfigs(Table(tasks.client, tasks.name), clock=tasks.clock, new_id=Ids())
        push = configs, Anywhere()
        self.server = server(agent(respond, read_only=False), store=tasks.store(), clock=tasks.clock, push=push)
        self.replies = tasks.serve(agent(respond))
        self.endpoint = Endpoint(self.server.operations, VALIDATOR, max_body_bytes=65_536, push=True)

    def answer(self, method: str, params: Json, owner: str) -> bytes:
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        caller = hurried(self.tasks.clock, owner=owner)
        return self.endpoint.answer(body, version="1.0", admit=lambda: caller).body

    def task_in(self, kind: str) -> str:
        """Return the id of a task of OWNER's in some state of its life."""
        sent = message("asks", message_id="m-1", context_id="context-1")
        match kind:
            case "direct reply":
                first = message("reply")
                self.replies.send(first)
                return first_id(OWNER, message_key(first))
            case "running" | "overdue":
                first = message("die")
                self.tasks.before("PutItem", lambda: self.tasks.answer("PutItem", KeyboardInterrupt()))
                with pytest.raises(KeyboardInterrupt):
                    self.server.send(first)
                self.tasks.clock.advance(60 * SECOND if kind == "overdue" else 0)
                return first_id(OWNER, message_key(first))
            case "done" | "fail":
                return self.server.task(message(kind, context_id="context-1")).id
        task_id = self.server.task(sent).id
        self.server.task(message("asks", message_id="m-2", task_id=task_id))
        self.answer("CreateTaskPushNotificationConfig", {"taskId": task_id, "url": HOOK, "id": "hook"}, OWNER)
        if kind == "canceled":
            self.server.cancel(task_id)
        if kind == "expired":
            self.tasks.clock.advance(RETENTION_DAYS * DAY)
        return task_id


@pytest.fixture
def asking(tasks: Tasks) -> Asking:
    return Asking(tasks)


def anonymous(answer: bytes, task_id: str) -> bytes:
    """Return an answer with the task's id struck out."""
    return answer.replace(task_id.encode(), b"ID")


KINDS: Final = ["asks", "done", "fail", "running", "overdue", "canceled", "direct reply", "expired"]


SOME: Final = {"asks", "overdue", "direct reply", "expired"}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize(
    "kind", [kind if kind in SOME else pytest.param(kind, marks=pytest.mark.thorough) for kind in KINDS]
)
def test_a_foreign_task_is_answered_as_a_missing_one(asking: Asking, kind: str, name: str) -> None:
    task_id = asking.task_in(kind)
    before = asking.tasks.all_items()
    method = name.partition(" ")[0]

    foreign = asking.answer(method, OPERATIONS[name](task_id), "stranger")
    missing = asking.answer(method, OPERATIONS[name](MISSING), "stranger")
    assert anonymous(foreign, task_id) == anonymous(missing, MISSING)
    assert b"secret" not in foreign
    assert asking.tasks.all_items() == before


@pytest.mark.parametrize("name", [name for name in OPERATIONS if not name.startswith("ListTasks")])
@pytest.mark.parametrize("kind", ["expired", "direct reply"])
def test_an_owners_own_task_that_is_none_is_answered_as_a_missing_one(asking: Asking, kind: str, name: str) -> None:
    task_id = asking.task_in(kind)
    method = name.partition(" ")[0]

    own = asking.answer(method, OPERATIONS[name](task_id), OWNER)
    missing = asking.answer(method, OPERATIONS[name](MISSING), OWNER)
    assert anonymous(own, task_id) == anonymous(missing, MISSING)


@pytest.mark.parametrize("method", UNDECLARED)
def test_what_is_not_served_says_nothing_of_a_task(asking: Asking, method: str) -> None:
    task_id = asking.task_in("asks")

    foreign = asking.answer(method, {"id": task_id, "taskId": task_id}, "stranger")
    missing = asking.answer(method, {"id": MISSING, "taskId": MISSING}, "stranger")
    assert anonymous(foreign, task_id) == anonymous(missing, MISSING)


def test_every_operation_is_walked() -> None:
    served = {name for name, method in METHODS.items() if method is not None}

    assert {name.partition(" ")[0] for name in OPERATIONS} == served


def test_the_id_of_a_task_that_two_owners_would_make_of_one_message_differs(asking: Asking) -> None:
    params = send_params(messageId="same")
    answers = [msgspec.json.decode(asking.answer("SendMessage", params, owner)) for owner in ("alice", "bob")]

    assert len({answer["result"]["task"]["id"] for answer in answers}) == 2


def test_two_owners_never_meet(asking: Asking) -> None:
    for owner in ("alice", "bob"):
        for number in range(5):
            asking.answer("SendMessage", send_params(messageId=f"{number}", contextId="shared"), owner)
    lists = [
        msgspec.json.decode(asking.answer("ListTasks", {"contextId": "shared"}, each))["result"]
        for each in ("alice", "bob")
    ]

    assert [each["totalSize"] for each in lists] == [5, 5]
    assert not {task["id"] for task in lists[0]["tasks"]} & {task["id"] for task in lists[1]["tasks"]}
