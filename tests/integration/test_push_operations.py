"""The operations on push notification configs (§3.1.7–3.1.10) over DynamoDB, as JSON-RPC shows them."""

from typing import Final

import pytest

from a2a_lambda import agent as api
from a2a_lambda.model import AgentExtension
from a2a_lambda.push_configs import MAX_CONFIGS
from tests.integration.tables import Tasks, error
from tests.integration.webhooks import CONFIG, HOOK, SHOWN, WORD, Pushed, Webhooks
from tests.unit.factories import DAY, SECOND, Ids, Json, agent, asking, new_message_id, send_params, yielding

UNKNOWN: Final = "00000000-0000-4000-8000-00000000dead"
CREATE: Final = "CreateTaskPushNotificationConfig"
GET: Final = "GetTaskPushNotificationConfig"
LIST: Final = "ListTaskPushNotificationConfigs"
DELETE: Final = "DeleteTaskPushNotificationConfig"


@pytest.fixture
def pushed(tasks: Tasks) -> Pushed:
    return Pushed(tasks, asking())


def violated(refusal: Json) -> dict[str, str]:
    assert refusal["code"] == -32602
    return {each["field"]: each["description"] for each in refusal["data"][0]["fieldViolations"]}


def test_a_config_is_created_read_listed_and_deleted(pushed: Pushed) -> None:
    task_id = pushed.send()
    shown = {**SHOWN, "id": "config-1", "taskId": task_id}
    named = {"taskId": task_id, "id": "config-1"}

    assert pushed.create(task_id, id="config-1") == shown
    assert pushed.result(GET, named) == shown
    assert pushed.result(LIST, {"taskId": task_id}) == {"configs": [shown]}
    assert pushed.result(DELETE, named) == {}
    assert pushed.result(LIST, {"taskId": task_id}) == {}
    assert pushed.refusal(GET, named)["code"] == -32001


def test_without_an_id_the_id_is_the_tasks_so_that_a_copy_makes_no_second_config(pushed: Pushed) -> None:
    task_id = pushed.send()

    assert [pushed.create(task_id)["id"] for _ in range(2)] == [task_id, task_id]
    assert [each["id"] for each in pushed.listed(task_id)] == [task_id]


def test_a_config_without_secrets_has_none_to_leave_out(pushed: Pushed) -> None:
    task_id = pushed.send()

    assert pushed.create(task_id, token=None, authentication=None) == {"id": task_id, "taskId": task_id, "url": HOOK}


def test_an_existing_config_is_replaced(pushed: Pushed) -> None:
    task_id = pushed.send()
    pushed.create(task_id)

    pushed.create(task_id, url="https://other.example")

    assert [each["url"] for each in pushed.listed(task_id)] == ["https://other.example"]


def test_secrets_are_kept_and_never_answered(pushed: Pushed) -> None:
    task_id = pushed.send(config=CONFIG)
    named = {"taskId": task_id, "id": task_id}
    answers = [pushed.create(task_id), pushed.result(GET, named), pushed.listed(task_id)]
    answers.append(pushed.result("GetTask", {"id": task_id}))

    assert WORD not in str(answers)
    kept = pushed.configs.get("anonymous", task_id, task_id)
    assert kept is not None
    assert (kept.token, kept.authentication.credentials) == (WORD, WORD)  # type: ignore[union-attr]


def test_a_finished_task_takes_a_config(tasks: Tasks) -> None:
    pushed = Pushed(tasks, yielding(api.completed()))
    task_id = pushed.send()

    pushed.create(task_id)

    assert len(pushed.listed(task_id)) == 1


def test_the_eleventh_config_is_refused(pushed: Pushed) -> None:
    task_id = pushed.send()
    for number in range(MAX_CONFIGS):
        pushed.create(task_id, id=f"{number}")

    refusal = pushed.refusal(CREATE, {**CONFIG, "taskId": task_id, "id": "one more"})

    assert (refusal["code"], refusal["message"]) == (-32004, "A task may have 10 push notification configs")
    assert len(pushed.listed(task_id)) == MAX_CONFIGS


# Lists


def test_a_list_is_walked_by_its_tokens(pushed: Pushed) -> None:
    task_id = pushed.send()
    made = [pushed.create(task_id, id=f"{number}")["id"] for number in range(5)]

    found, token = [], ""
    while True:
        page = pushed.result(LIST, {"taskId": task_id, "pageSize": 2, "pageToken": token})
        found.append([each["id"] for each in page["configs"]])
        token = page.get("nextPageToken", "")
        if not token:
            break

    assert [len(ids) for ids in found] == [2, 2, 1]
    assert sorted(config_id for ids in found for config_id in ids) == made


@pytest.mark.parametrize("size", [None, 0, "0", 100])
def test_a_page_size_of_nothing_is_the_servers_own(pushed: Pushed, size: Json) -> None:
    task_id = pushed.send()
    for number in range(3):
        pushed.create(task_id, id=f"{number}")

    assert len(pushed.result(LIST, {"taskId": task_id, "pageSize": size})["configs"]) == 3


@pytest.mark.parametrize("size", [-1, 101, 1.5, "x"])
def test_a_page_size_that_cannot_be_is_refused(pushed: Pushed, size: Json) -> None:
    assert list(violated(pushed.refusal(LIST, {"taskId": pushed.send(), "pageSize": size}))) == ["pageSize"]


def test_a_token_is_of_one_list(pushed: Pushed) -> None:
    first, second = pushed.send(), pushed.send()
    for number in range(2):
        pushed.create(first, id=f"{number}")
    token = pushed.result(LIST, {"taskId": first, "pageSize": 1})["nextPageToken"]

    for params in ({"taskId": second, "pageToken": token}, {"taskId": first, "pageToken": "x"}):
        assert list(violated(pushed.refusal(LIST, params))) == ["pageToken"]
    pushed.tasks.clock.advance(2 * DAY)
    assert list(violated(pushed.refusal(LIST, {"taskId": first, "pageToken": token}))) == ["pageToken"]


# Whose


@pytest.mark.parametrize(
    ("method", "params"), [(CREATE, CONFIG), (GET, {"id": "config-1"}), (LIST, {}), (DELETE, {"id": "config-1"})]
)
def test_a_foreign_task_and_a_missing_one_are_answered_alike(pushed: Pushed, method: str, params: Json) -> None:
    task_id = pushed.send()
    pushed.create(task_id, id="config-1")
    before = pushed.tasks.all_items()

    foreign = pushed.ask(method, {**params, "taskId": task_id}, owner="key:mallory")
    missing = pushed.ask(method, {**params, "taskId": UNKNOWN}, owner="key:mallory")

    assert foreign == missing
    assert foreign["error"]["code"] == -32001
    assert pushed.tasks.all_items() == before


def test_a_config_that_there_is_not_is_deleted_all_the_same(pushed: Pushed) -> None:
    assert pushed.result(DELETE, {"taskId": pushed.send(), "id": "config-1"}) == {}


def test_an_expired_task_has_no_configs(pushed: Pushed) -> None:
    task_id = pushed.send()
    pushed.create(task_id)

    pushed.tasks.clock.advance(31 * DAY)

    assert pushed.refusal(LIST, {"taskId": task_id})["code"] == -32001


# What is refused


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"taskId": None}, "taskId"),
        ({"taskId": ""}, "taskId"),
        ({"url": None}, "url"),
        ({"url": ""}, "url"),
        ({"url": "http://hook.example"}, "url"),
        ({"url": 5}, "url"),
        ({"token": "a\r\nb"}, "token"),
        ({"token": "a\nb"}, "token"),
        ({"token": "a\x00b"}, "token"),
        ({"token": "x" * 4097}, "token"),
        ({"authentication": {}}, "authentication.scheme"),
        ({"authentication": {"scheme": ""}}, "authentication.scheme"),
        ({"authentication": {"scheme": "a\nb"}}, "authentication.scheme"),
        ({"authentication": {"scheme": "Bearer", "credentials": "a\r\nX-Other: b"}}, "authentication.credentials"),
        ({"authentication": {"scheme": "Bearer", "credentials": "\u00e9"}}, "authentication.credentials"),
        ({"authentication": "Bearer"}, "authentication"),
        ({"id": "x" * 513}, "id"),
    ],
)
def test_a_config_that_cannot_be_is_refused_by_its_field(pushed: Pushed, changed: Json, field: str) -> None:
    task_id = pushed.send()
    before = pushed.tasks.all_items()
    config = {**CONFIG, "taskId": task_id, **changed}

    assert list(violated(pushed.refusal(CREATE, config))) == [field]

    assert pushed.tasks.all_items() == before


def test_all_that_is_wrong_with_a_config_is_said_at_once(pushed: Pushed) -> None:
    wrong = {"token": "\n", "authentication": {"credentials": "\n"}}

    assert sorted(violated(pushed.refusal(CREATE, wrong))) == [
        "authentication.credentials",
        "authentication.scheme",
        "taskId",
        "token",
        "url",
    ]


def test_an_unsafe_url_is_refused_before_it_is_said_whether_the_task_exists(pushed: Pushed) -> None:
    assert violated(pushed.refusal(CREATE, {"taskId": UNKNOWN, "url": "http://hook.example"})) == {
        "url": "must be an https URL"
    }


# With a message


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"url": "http://hook.example"}, "url"),
        ({"url": None}, "url"),
        ({"token": "\n"}, "token"),
        ({"authentication": {}}, "authentication.scheme"),
        ({"authentication": {"scheme": "Bearer", "credentials": "\r"}}, "authentication.credentials"),
    ],
)
def test_a_messages_config_is_refused_by_its_path_and_nothing_is_written(
    pushed: Pushed, changed: Json, field: str
) -> None:
    configuration = {"taskPushNotificationConfig": {**CONFIG, **changed}}

    refusal = pushed.refusal("SendMessage", {**send_params(), "configuration": configuration})

    assert list(violated(refusal)) == [f"configuration.taskPushNotificationConfig.{field}"]
    assert pushed.tasks.all_items() == []


def test_a_message_brings_a_config_whose_task_is_its_own(pushed: Pushed) -> None:
    task_id = pushed.send(config={**CONFIG, "taskId": UNKNOWN})

    assert pushed.listed(task_id) == [{**SHOWN, "id": task_id, "taskId": task_id}]


def test_a_config_beside_a_direct_message_is_dropped(tasks: Tasks) -> None:
    pushed = Pushed(tasks, yielding(api.reply("Hello.")))
    params = {**send_params(), "configuration": {"taskPushNotificationConfig": CONFIG}}

    assert "message" in pushed.result("SendMessage", params)

    assert WORD not in str(tasks.all_items())


def test_a_message_that_comes_twice_brings_one_config(pushed: Pushed) -> None:
    params = {**send_params(messageId=new_message_id()), "configuration": {"taskPushNotificationConfig": CONFIG}}

    task_ids = {pushed.result("SendMessage", params)["task"]["id"] for _ in range(2)}

    (task_id,) = task_ids
    assert len(pushed.listed(task_id)) == 1


def test_a_follow_up_to_a_full_task_brings_no_eleventh_config(pushed: Pushed) -> None:
    task_id = pushed.send()
    for number in range(MAX_CONFIGS):
        pushed.create(task_id, id=f"{number}")
    params = {**send_params(messageId=new_message_id(), taskId=task_id)}

    before = pushed.tasks.all_items()

    refusal = pushed.refusal("SendMessage", {**params, "configuration": {"taskPushNotificationConfig": CONFIG}})

    assert refusal["code"] == -32004
    assert pushed.tasks.all_items() == before
    assert "result" in pushed.ask("SendMessage", params)


def with_config(**message: Json) -> Json:
    return {**send_params(**message), "configuration": {"taskPushNotificationConfig": CONFIG}}


def configs(pushed: Pushed, task_id: str) -> list[Json]:
    """Return what there is of webhooks beside a task: configs, and such as wait for their write."""
    kinds = ("config#", "webhook#")
    return [item for entry, item in pushed.tasks.items(task_id).items() if entry.startswith(kinds)]


def test_a_message_that_comes_again_changes_nothing_about_its_webhook(tasks: Tasks) -> None:
    pushed = Pushed(tasks, yielding(api.artifact("done")))
    params = with_config(messageId=new_message_id())
    task_id = pushed.result("SendMessage", params)["task"]["id"]
    pushed.pass_on(task_id)
    before = [item for item in configs(pushed, task_id) if item["entry"]["S"].startswith("config#")]

    tasks.clock.advance(3 * SECOND)
    assert pushed.result("SendMessage", params)["task"]["id"] == task_id

    assert [item for item in configs(pushed, task_id) if item["entry"]["S"].startswith("config#")] == before
    assert [delivery.outcome for delivery in pushed.deliver_all()] == ["delivered"]
    assert pushed.webhooks.states() == ["COMPLETED"]
    assert pushed.listed(task_id) == []


def test_a_message_that_comes_again_makes_no_room_for_more_webhooks(pushed: Pushed) -> None:
    params = with_config(messageId=new_message_id())
    task_id = pushed.result("SendMessage", params)["task"]["id"]
    for number in range(MAX_CONFIGS - 1):
        pushed.create(task_id, id=f"{number}")

    pushed.tasks.clock.advance(3 * SECOND)
    pushed.result("SendMessage", params)

    assert pushed.refusal(CREATE, {**CONFIG, "taskId": task_id, "id": "one more"})["code"] == -32004


def test_a_message_that_is_refused_brings_no_config(tasks: Tasks) -> None:
    pushed = Pushed(tasks, yielding(api.completed()))
    task_id = pushed.send()

    refusal = pushed.refusal("SendMessage", with_config(messageId=new_message_id(), taskId=task_id))

    assert refusal["code"] == -32004
    assert configs(pushed, task_id) == []


def test_a_follow_up_that_loses_its_task_brings_no_config(pushed: Pushed) -> None:
    task_id = pushed.send()
    pushed.tasks.before("PutItem", lambda: pushed.result("CancelTask", {"id": task_id}))

    refusal = pushed.refusal("SendMessage", with_config(messageId=new_message_id(), taskId=task_id))

    assert refusal["code"] == -32004
    assert [item["entry"]["S"].partition("#")[0] for item in configs(pushed, task_id)] == ["webhook"]
    pushed.tasks.clock.advance(2 * DAY)
    pushed.tasks.sweep()
    assert configs(pushed, task_id) == []


@pytest.mark.parametrize("operation", ["BatchGetItem", "UpdateItem", "TransactWriteItems"])
def test_a_config_whose_writer_could_not_keep_it_is_kept_by_the_relay(pushed: Pushed, operation: str) -> None:
    pushed.tasks.answer(operation, error("InternalServerError", 500))
    task_id = pushed.result("SendMessage", with_config(messageId=new_message_id()))["task"]["id"]
    assert pushed.listed(task_id) == []

    pushed.pass_on(task_id)

    assert len(pushed.listed(task_id)) == 1
    assert [delivery.outcome for delivery in pushed.deliver_all()] == ["delivered"]


def test_a_config_that_was_deleted_does_not_come_back_with_the_relay(pushed: Pushed) -> None:
    task_id = pushed.result("SendMessage", with_config(messageId=new_message_id()))["task"]["id"]
    pushed.result(DELETE, {"taskId": task_id, "id": task_id})

    pushed.pass_on(task_id)

    assert pushed.listed(task_id) == []
    assert pushed.deliver_all() == []


def test_a_follow_ups_config_is_told_of_what_that_comes_to_alone(pushed: Pushed) -> None:
    task_id = pushed.send(config={**CONFIG, "id": "first"})

    pushed.send(to=task_id, config={**CONFIG, "id": "second", "url": "https://second.example"})
    pushed.deliver_all()

    assert len(pushed.webhooks.states()) == 2
    assert len(pushed.webhooks.states("https://second.example")) == 1


@pytest.mark.parametrize("background", [True, False])
def test_a_config_can_be_read_as_soon_as_its_message_is_answered(
    tasks: Tasks,
    background: bool,  # noqa: FBT001
) -> None:
    pushed = Pushed(tasks, agent(lambda _turn: iter([api.input_required("?")]), read_only=False, background=background))
    params = with_config(messageId=new_message_id())
    params["configuration"]["returnImmediately"] = background
    task_id = pushed.result("SendMessage", params)["task"]["id"]

    assert pushed.listed(task_id) == [{**SHOWN, "id": task_id, "taskId": task_id}]
    assert [item["entry"]["S"].partition("#")[0] for item in configs(pushed, task_id)] == ["config"]


def test_a_message_without_a_config_costs_nothing_for_one(tasks: Tasks) -> None:
    pushed = Pushed(tasks, yielding(api.completed()))

    assert tasks.calls_of(lambda: pushed.result("SendMessage", send_params())) == ["PutItem"]


def test_a_required_extension_is_asked_for_after_the_fields(tasks: Tasks) -> None:
    profile = api.AgentProfile(
        name="Strict",
        description="d",
        version="1",
        skills=[],
        extensions=[AgentExtension(uri="urn:x", required=True)],
    )
    pushed = Pushed(tasks, agent(lambda _turn: iter(()), profile=profile), Webhooks())

    assert pushed.refusal(CREATE, {"taskId": UNKNOWN, "url": "http://x"})["code"] == -32602
    for method, params in ((CREATE, CONFIG), (GET, {"id": "1"}), (LIST, {}), (DELETE, {"id": "1"})):
        assert pushed.refusal(method, {**params, "taskId": Ids()()})["code"] == -32008
