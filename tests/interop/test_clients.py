"""The official clients, Python's and JavaScript's, take the same walk through a local gateway that is a process.

They use what the card declares: no streaming, and push notifications to webhooks on this machine. What they read is
the protocol's.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from a2a.types import a2a_pb2

from tests.interop.clients import CLIENTS, Caller, Connect, RefusedError
from tests.local.processes import GATEWAY, ROOT, Command, eventually
from tests.local.webhooks import Webhooks
from tests.schema import check_message, read

Json = Any

UNKNOWN_TASK = "00000000-0000-4000-8000-000000000000"
SHIPPED = "A-1001: Shipped on 2026-09-24. Expected delivery 2026-09-29."
WORD = "hill"
"""What a webhook wants to hear, and nobody else may."""

SECRETS = {"token": WORD, "authentication": {"scheme": "Bearer", "credentials": WORD}}
SHOWN = {"authentication": {"scheme": "Bearer"}}


@pytest.fixture(scope="module")
def gateway() -> Iterator[Command]:
    with Command(GATEWAY, {"AUTH": "none", "PUSH": "on", "PUSH_ALLOW_LOCAL": "on"}) as running:
        yield running.ready()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Command]:
    """A gateway that asks for API keys, and sends nothing to webhooks."""
    with Command(GATEWAY, {"AUTH": "api-key"}) as running:
        yield running.ready()


@pytest.fixture(scope="module")
def hooks() -> Iterator[Webhooks]:
    with Webhooks() as listening:
        yield listening


@pytest.fixture(scope="module", params=CLIENTS)
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    with CLIENTS[request.param]() as connecting:
        yield connecting


@pytest.fixture(scope="module")
def client(connect: Connect, gateway: Command) -> Caller:
    return connect(gateway.gateway)


@pytest.fixture(scope="module")
def keys(guarded: Command) -> list[str]:
    """The keys of two callers."""
    return [new_key(guarded, caller) for caller in ("one", "other")]


def new_key(gateway: Command, caller: str) -> str:
    made = subprocess.run(
        [sys.executable, "-m", "admin", "key"],
        cwd=ROOT,
        env={"DYNAMODB_ENDPOINT": gateway.database, "CALLER": caller},
        text=True,
        capture_output=True,
        check=True,
    )
    return made.stdout.splitlines()[-1]


def message(*parts: Json, **fields: Any) -> Json:
    return {"message": {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": list(parts), **fields}}


def send(client: Caller, *parts: Json, **fields: Any) -> Json:
    """The task that a message comes to."""
    return client.call("SendMessage", message(*parts, **fields))["task"]


def ask(client: Caller, **fields: Any) -> Json:
    """A task whose agent has asked for the order's number."""
    return send(client, {"text": "Where is my order?"}, **fields)


# What works


@pytest.mark.parametrize("serving", ["gateway", "guarded"])
def test_the_card_that_a_client_reads_is_the_one_that_is_served(
    connect: Connect, serving: str, request: pytest.FixtureRequest
) -> None:
    origin = request.getfixturevalue(serving).gateway
    served = read(httpx.get(f"{origin}/.well-known/agent-card.json").content)
    card = connect(origin).card

    check_message(a2a_pb2.AgentCard, served)
    assert without_empty(card) == without_empty(served)
    assert card["supportedInterfaces"][0]["url"] == f"{origin}/a2a"


def without_empty(card: Json) -> Json:
    """A card without what is empty in it: the clients write it or leave it out."""
    if not isinstance(card, dict):
        return card
    return {name: without_empty(value) for name, value in card.items() if value not in ([], {}, "")}


def test_a_question_is_answered_on_the_same_task(client: Caller) -> None:
    asked = ask(client)
    answered = send(client, {"text": "It is A-1001"}, taskId=asked["id"])

    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert "number" in asked["status"]["message"]["parts"][0]["text"]
    assert (answered["id"], answered["contextId"]) == (asked["id"], asked["contextId"])
    assert answered["status"]["state"] == "TASK_STATE_COMPLETED"
    assert answered["artifacts"][0]["parts"][0]["text"] == SHIPPED
    assert [each["role"] for each in answered["history"]] == ["ROLE_USER", "ROLE_AGENT", "ROLE_USER"]


def test_data_goes_in_and_comes_out(client: Caller) -> None:
    done = send(client, {"data": {"orderId": "A-1002"}, "mediaType": "application/json"})

    of_artifact = done["artifacts"][0]["parts"][1]
    assert of_artifact["mediaType"] == "application/json"
    assert of_artifact["data"] == {"orderId": "A-1002", "found": True, "status": "Packed. Not shipped yet."}


@pytest.mark.parametrize("data", [0, False, "", [], {}, [None, {"deep": [1.5, "é\u2028🎈"]}]])
def test_any_data_is_repeated_as_it_was(client: Caller, data: Json) -> None:
    asked = send(client, {"data": data})

    assert asked["history"][0]["parts"][0]["data"] == data


def test_a_task_can_be_read_with_as_much_history_as_is_wanted(client: Caller) -> None:
    asked = ask(client)
    lengths = [len(got(client, asked, **wanted).get("history", [])) for wanted in ({}, {"historyLength": 1})]

    assert lengths == [2, 1]
    assert got(client, asked)["status"] == asked["status"]
    assert not got(client, asked, historyLength=0).get("history")


def got(client: Caller, task: Json, **wanted: int) -> Json:
    return client.call("GetTask", {"id": task["id"], **wanted})


def test_a_task_that_waits_can_be_canceled(client: Caller) -> None:
    asked = ask(client)
    canceled = client.call("CancelTask", {"id": asked["id"]})

    assert (canceled["id"], canceled["status"]["state"]) == (asked["id"], "TASK_STATE_CANCELED")
    assert got(client, asked)["status"] == canceled["status"]


def test_tasks_are_listed_page_by_page(client: Caller) -> None:
    context = str(uuid4())
    tasks = [ask(client, contextId=context) for _ in range(5)]

    listed: list[str] = []
    sizes: list[tuple[int, int, int]] = []
    token = ""
    while not sizes or token:
        page = client.call("ListTasks", {"contextId": context, "pageSize": 2, "pageToken": token})
        listed += [each["id"] for each in page["tasks"]]
        sizes.append((len(page["tasks"]), page["pageSize"], page["totalSize"]))
        token = page.get("nextPageToken", "")

    assert sizes == [(2, 2, 5), (2, 2, 5), (1, 2, 5)]
    assert sorted(listed) == sorted(each["id"] for each in tasks)


def test_a_list_is_of_one_state_since_one_moment(client: Caller) -> None:
    context = str(uuid4())
    asked = ask(client, contextId=context)
    done = send(client, {"text": "A-1001"}, contextId=context)
    since = done["status"]["timestamp"]

    def listed(**filters: Any) -> list[str]:
        page = client.call("ListTasks", {"contextId": context, **filters})
        return [each["id"] for each in page["tasks"]]

    assert listed() == [done["id"], asked["id"]]
    assert listed(status="TASK_STATE_INPUT_REQUIRED") == [asked["id"]]
    assert listed(statusTimestampAfter=since) == [done["id"]]


def test_a_list_has_artifacts_where_they_are_wanted(client: Caller) -> None:
    context = str(uuid4())
    done = send(client, {"text": "A-1001"}, contextId=context)

    plain, full = (
        client.call("ListTasks", {"contextId": context, **wanted})["tasks"][0]
        for wanted in ({}, {"includeArtifacts": True})
    )

    assert not plain.get("artifacts")
    assert full["artifacts"] == done["artifacts"]


def test_an_address_with_a_slash_at_its_end_works(connect: Connect, gateway: Command) -> None:
    client = connect(gateway.gateway, interface={"url": f"{gateway.gateway}/a2a/"})

    assert send(client, {"text": "A-1001"})["status"]["state"] == "TASK_STATE_COMPLETED"


# Push notifications


def configs(client: Caller, task: Json) -> list[Json]:
    found: list[Json] = client.call("ListTaskPushNotificationConfigs", {"taskId": task["id"]}).get("configs", [])
    return found


def test_a_waiting_tasks_configs_are_created_read_listed_and_deleted(client: Caller) -> None:
    asked = ask(client)
    named = {"taskId": asked["id"], "id": "mine"}
    created = {**named, "url": "http://127.0.0.1/updates"}

    assert client.call("CreateTaskPushNotificationConfig", created | SECRETS) == created | SHOWN
    assert client.call("GetTaskPushNotificationConfig", named) == created | SHOWN
    assert configs(client, asked) == [created | SHOWN]
    assert client.call("DeleteTaskPushNotificationConfig", named) == {}
    assert configs(client, asked) == []


def test_a_webhook_is_told_of_a_turn_that_goes_on_behind_its_answer(client: Caller, hooks: Webhooks) -> None:
    name = str(uuid4())
    configuration = {"returnImmediately": True, "taskPushNotificationConfig": {"url": hooks.url(name), **SECRETS}}
    answer = client.call("SendMessage", message({"text": "A-1001"}) | {"configuration": configuration})
    task = answer["task"]

    assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
    assert WORD not in json.dumps(answer)
    assert eventually(lambda: states(hooks.updates(name))[-1:] == ["TASK_STATE_COMPLETED"])
    assert eventually(lambda: configs(client, task) == [])
    updates = hooks.updates(name)
    for update in updates:
        check_message(a2a_pb2.StreamResponse, update)
    assert {each["taskId"] for update in updates for each in update.values()} == {task["id"]}
    (given,) = (update["artifactUpdate"]["artifact"] for update in updates if "artifactUpdate" in update)
    assert given["parts"][0]["text"] == SHIPPED
    assert given["artifactId"] == got(client, task)["artifacts"][0]["artifactId"]


def states(updates: list[Json]) -> list[str]:
    """The states that a webhook was told of."""
    return [update["statusUpdate"]["status"]["state"] for update in updates if "statusUpdate" in update]


# What is refused, as the client's own exceptions


def refusal(client: Caller, operation: str, params: Json) -> tuple[str, str]:
    with pytest.raises(RefusedError) as refused:
        client.call(operation, params)
    return refused.value.name, refused.value.message


@pytest.mark.parametrize("operation", ["GetTask", "CancelTask"])
@pytest.mark.parametrize("task_id", [UNKNOWN_TASK, "no-such-task"])
def test_an_unknown_task_is_not_found(client: Caller, operation: str, task_id: str) -> None:
    assert refusal(client, operation, {"id": task_id}) == ("TaskNotFoundError", "Task not found")


def test_an_unknown_push_config_is_not_found(client: Caller) -> None:
    unknown = {"taskId": ask(client)["id"], "id": "no-such-config"}

    assert refusal(client, "GetTaskPushNotificationConfig", unknown)[0] == "TaskNotFoundError"


def test_where_nothing_is_sent_to_webhooks_no_config_is_taken(
    connect: Connect, guarded: Command, keys: list[str]
) -> None:
    client = connect(guarded.gateway, api_key=keys[0])
    config = {"taskId": ask(client)["id"], "id": "mine", "url": "http://127.0.0.1/updates"}

    name, _ = refusal(client, "CreateTaskPushNotificationConfig", config)
    assert name == "PushNotificationNotSupportedError"


def test_a_message_to_an_unknown_task_is_refused(client: Caller) -> None:
    sent = message({"text": "A-1001"}, taskId=UNKNOWN_TASK)

    assert refusal(client, "SendMessage", sent) == ("TaskNotFoundError", "Task not found")


def test_a_finished_task_takes_no_message(client: Caller) -> None:
    done = send(client, {"text": "A-1001"})
    name, said = refusal(client, "SendMessage", message({"text": "Thanks"}, taskId=done["id"]))

    assert name == "UnsupportedOperationError"
    assert "finished" in said


def test_a_finished_task_cannot_be_canceled(client: Caller) -> None:
    done = send(client, {"text": "A-1001"})

    assert refusal(client, "CancelTask", {"id": done["id"]})[0] == "TaskNotCancelableError"


def test_a_file_is_not_taken(client: Caller) -> None:
    sent = message({"url": "https://example.com/receipt.pdf", "mediaType": "application/pdf"})
    name, said = refusal(client, "SendMessage", sent)

    assert name == "ContentTypeNotSupportedError"
    assert "application/json, text/plain" in said


def test_a_message_without_parts_is_refused(client: Caller) -> None:
    assert refusal(client, "SendMessage", message())[1] == "Invalid parameters"


def test_another_version_is_refused(connect: Connect, gateway: Command) -> None:
    client = connect(gateway.gateway, headers={"A2A-Version": "1.1"})
    name, said = refusal(client, "GetTask", {"id": UNKNOWN_TASK})

    assert name == "VersionNotSupportedError"
    assert "1.1" in said


# Keys


def test_a_key_lets_a_client_in(connect: Connect, guarded: Command, keys: list[str]) -> None:
    client = connect(guarded.gateway, api_key=keys[0])

    done = send(client, {"text": "A-1001"})
    assert client.call("ListTasks", {})["tasks"][0]["id"] == done["id"]


@pytest.mark.parametrize("key", ["", "a2a_" + "x" * 43])
def test_without_a_key_that_is_valid_a_client_is_refused(connect: Connect, guarded: Command, key: str) -> None:
    client = connect(guarded.gateway, api_key=key)
    _, said = refusal(client, "ListTasks", {})

    assert "401" in said or said == "Valid credentials are required"


def test_one_clients_tasks_are_unknown_to_another(connect: Connect, guarded: Command, keys: list[str]) -> None:
    one, other = (connect(guarded.gateway, api_key=key) for key in keys)
    asked = ask(one)

    assert refusal(other, "GetTask", {"id": asked["id"]}) == ("TaskNotFoundError", "Task not found")
    assert got(one, asked)["id"] == asked["id"]
