"""The built functions answer in AWS's runtime: their layers hold all that they import."""

import base64
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from a2a_lambda.keys import TableKeys
from tests.runtime.emulator import LOG, Invoke
from tests.template.sam import ROOT

Json = dict[str, Any]

METRICS = "_aws"
"""What CloudWatch knows a line with metrics by."""


def sample(name: str, **changes: Any) -> Json:
    event: Json = json.loads((ROOT / "events" / f"{name}.json").read_text())
    return event | changes


def call(rpc: Invoke, method: str, params: Json) -> Json:
    """What a JSON-RPC request is answered, as a whole."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    answer: Json = json.loads(rpc(sample("send-message", body=body))["body"])
    return answer


def send(rpc: Invoke, message_id: str, text: str, **references: str) -> Json:
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}], **references}
    task: Json = call(rpc, "SendMessage", {"message": message})["result"]["task"]
    return task


def logged(folder: Path) -> list[Json]:
    return [json.loads(line) for line in (folder / LOG).read_text().splitlines() if line.startswith("{")]


def test_the_card_is_served(card: Invoke) -> None:
    answer = card(sample("card"))

    (interface,) = json.loads(answer["body"])["supportedInterfaces"]
    assert answer["statusCode"] == 200
    assert interface["url"] == "https://abcdef1234.execute-api.eu-central-1.amazonaws.com/a2a"


def test_a_card_that_the_client_has_is_not_sent_again(card: Invoke) -> None:
    etag = card(sample("card"))["headers"]["etag"]
    event = sample("card")
    event["headers"]["if-none-match"] = etag

    answer = card(event)

    assert (answer["statusCode"], answer.get("body", "")) == (304, "")


def test_a_task_is_carried_over_several_turns(rpc: Invoke) -> None:
    asked = send(rpc, "turn-1", "Where is my order?")
    answered = send(rpc, "turn-2", "It is A-1001", taskId=asked["id"])

    assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert answered["id"] == asked["id"]
    assert answered["status"]["state"] == "TASK_STATE_COMPLETED"
    assert [artifact["name"] for artifact in answered["artifacts"]] == ["order-status"]


def test_a_stored_task_is_read_again(rpc: Invoke) -> None:
    task = send(rpc, "stored-1", "Where is order A-1002?")

    read = call(rpc, "GetTask", {"id": task["id"], "historyLength": 1})["result"]

    assert read["status"] == task["status"]
    assert read["artifacts"] == task["artifacts"]
    assert [message["messageId"] for message in read["history"]] == ["stored-1"]


def test_tasks_are_listed_newest_first(rpc: Invoke) -> None:
    tasks = [send(rpc, f"listed-{number}", "Where is order A-1001?", contextId="a-list") for number in range(3)]

    page = call(rpc, "ListTasks", {"contextId": "a-list", "pageSize": 2})["result"]
    rest = call(rpc, "ListTasks", {"contextId": "a-list", "pageToken": page["nextPageToken"]})["result"]

    assert page["totalSize"] == 3
    assert [task["id"] for task in page["tasks"] + rest["tasks"]] == [task["id"] for task in reversed(tasks)]
    assert rest["nextPageToken"] == ""


def test_a_caller_without_a_key_is_refused(guarded_rpc: Invoke) -> None:
    answer = guarded_rpc(sample("send-message"))

    assert answer["statusCode"] == 401
    assert "www-authenticate" in answer["headers"]


def test_a_key_lets_its_caller_in(guarded_rpc: Invoke, keys: TableKeys) -> None:
    key, _ = keys.make("alice")
    event = sample("send-message")
    event["headers"]["x-api-key"] = key

    answer = guarded_rpc(event)

    assert json.loads(answer["body"])["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_an_unknown_task_is_an_error(rpc: Invoke) -> None:
    assert call(rpc, "GetTask", {"id": "no-such-task"})["error"]["code"] == -32001


def test_a_base64_body_is_decoded(rpc: Invoke) -> None:
    plain = sample("send-message")
    encoded = base64.b64encode(plain["body"].encode()).decode()

    answer = rpc(plain | {"body": encoded, "isBase64Encoded": True})

    assert json.loads(answer["body"])["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_log_line_has_what_lambda_filters_by(rpc: Invoke, rpc_folder: Path) -> None:
    """Lambda takes a line without a level and an RFC 3339 time for INFO, whatever it says."""
    rpc(sample("get-task-unknown"))

    lines = [line for line in logged(rpc_folder) if METRICS not in line]
    assert lines
    for line in lines:
        assert line["level"] in {"DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRITICAL"}
        assert datetime.fromisoformat(line["timestamp"]).tzinfo is not None
        assert "T" in line["timestamp"]


def test_a_request_is_counted(rpc: Invoke, rpc_folder: Path) -> None:
    rpc(sample("get-task-unknown"))

    metrics = [line[METRICS]["CloudWatchMetrics"] for line in logged(rpc_folder) if METRICS in line]
    assert {metric["Namespace"] for (metric,) in metrics} == {"a2a"}
    assert "Requests" in {counted["Name"] for (metric,) in metrics for counted in metric["Metrics"]}
