"""The JSON-RPC binding: requests and responses, ids, notifications, versions, and the form of each error."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from a2a_lambda import apigateway, errors
from a2a_lambda.agent import AgentProfile, Turn, Updates, artifact, completed, reply
from a2a_lambda.apigateway import MAX_TEXT_BYTES
from a2a_lambda.errors import UnavailableError
from a2a_lambda.jsonrpc import METHODS, Answer
from a2a_lambda.model import AgentExtension
from tests.unit.factories import GENEROUS, SKILL, Json, Rpc, agent, asking, call, rpc, send_params, yielding

TYPE: Final = "type.googleapis.com/google.rpc."
UNKNOWN: Final = "00000000-0000-4000-8000-ffffffffffff"

STREAMING: Final = ["SendStreamingMessage", "SubscribeToTask"]
PUSH: Final = [
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
]


def answered(body: bytes, *, version: str = "1.0") -> Json:
    """Return the response object to a body."""
    answer = rpc().answer(body, version=version)
    assert answer.status == 200
    return msgspec.json.decode(answer.body)


def task_of(endpoint: Rpc, **message_fields: Json) -> Json:
    return endpoint.ask("SendMessage", send_params(**message_fields))["result"]["task"]


# Responses


def test_send_message_answers_with_the_task_in_a_wrapper() -> None:
    response = rpc().ask("SendMessage", send_params())

    assert set(response) == {"jsonrpc", "id", "result"}
    assert (response["jsonrpc"], response["id"]) == ("2.0", 1)
    assert set(response["result"]) == {"task"}
    assert response["result"]["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"


def test_send_message_answers_with_a_message_where_there_is_no_task() -> None:
    response = rpc(yielding(reply("Hi!"))).ask("SendMessage", send_params())

    message = response["result"]["message"]
    assert set(response["result"]) == {"message"}
    assert set(message) == {"messageId", "contextId", "role", "parts"}
    assert (message["role"], message["parts"]) == ("ROLE_AGENT", [{"text": "Hi!"}])


def test_get_task_answers_with_the_task_itself() -> None:
    endpoint = rpc()
    task = task_of(endpoint)

    assert endpoint.ask("GetTask", {"id": task["id"]})["result"] == task


def test_cancel_task_answers_with_the_task_itself() -> None:
    endpoint = rpc()
    task = task_of(endpoint)

    canceled = endpoint.ask("CancelTask", {"id": task["id"]})["result"]

    assert (canceled["id"], canceled["status"]["state"]) == (task["id"], "TASK_STATE_CANCELED")


def test_a_task_without_artifacts_has_no_such_key() -> None:
    assert set(task_of(rpc())) == {"id", "contextId", "status", "history"}


# Ids


@pytest.mark.parametrize(
    "identity",
    ["1", "", "x" * 1000, "é😀", 0, 1, -1, 1.5, 2**53, 2**64, -(2**70), 10**300, None],
)
def test_an_id_is_repeated_as_it_came(identity: Json) -> None:
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": identity, "method": "SendMessage", "params": send_params()})

    assert answered(body)["id"] == identity


@pytest.mark.parametrize("identity", ["x", 7, 1.5, 10**300, None])
def test_an_error_repeats_the_id_too(identity: Json) -> None:
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": identity, "method": "no such method"})

    assert answered(body)["id"] == identity


def test_an_id_of_null_is_a_request() -> None:
    response = answered(b'{"jsonrpc":"2.0","id":null,"method":"GetTask","params":{"id":"x"}}')

    assert (response["id"], response["error"]["code"]) == (None, -32001)


# Notifications


def test_a_notification_is_carried_out_and_answered_with_nothing() -> None:
    endpoint = rpc()
    body = msgspec.json.encode({"jsonrpc": "2.0", "method": "SendMessage", "params": send_params()})

    answer = endpoint.answer(body)

    assert (answer.status, answer.body, answer.outcome) == (204, b"", "ok")
    assert endpoint.store.writes == 1


@pytest.mark.parametrize(
    "request_",
    [
        {"method": "no such method"},
        {"method": "SendMessage"},
        {"method": "SendMessage", "params": []},
        {"method": "SendStreamingMessage"},
        {"method": "CreateTaskPushNotificationConfig"},
        {"method": "GetTask", "params": {"id": UNKNOWN}},
    ],
)
def test_a_notification_that_fails_is_answered_with_nothing(request_: Json) -> None:
    answer = rpc().answer(msgspec.json.encode({"jsonrpc": "2.0", **request_}))

    assert (answer.status, answer.body) == (204, b"")
    assert answer.error is not None


def test_a_notification_of_another_version_is_answered_with_nothing() -> None:
    answer = rpc().answer(b'{"jsonrpc":"2.0","method":"GetTask","params":{"id":"x"}}', version="0.3")

    assert (answer.status, answer.body, answer.outcome) == (204, b"", "VersionNotSupportedError")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"jsonrpc":"2.0",', -32700),
        (b"", -32700),
        (b'{"method":"GetTask"}', -32600),
        (b'{"jsonrpc":"2.0"}', -32600),
        (b"[]", -32600),
    ],
)
def test_what_is_not_even_a_notification_is_answered_with_a_null_id(body: bytes, code: int) -> None:
    response = answered(body)

    assert "id" in response
    assert (response["id"], response["error"]["code"]) == (None, code)


def test_a_notification_that_is_too_large_is_refused_with_413() -> None:
    answer = rpc(max_body_bytes=10).answer(b'{"jsonrpc":"2.0","method":"GetTask"}')

    assert (answer.status, msgspec.json.decode(answer.body)["id"]) == (413, None)


# Versions


@pytest.mark.parametrize("version", ["1.0", "1.0.0", "1.0.1", "1.0.99", " 1.0 "])
def test_only_major_and_minor_version_count(version: str) -> None:
    assert "result" in rpc().ask("SendMessage", send_params(), version=version)


@pytest.mark.parametrize(
    "version",
    ["0.3", "1", "1.1", "1.00", "01.0", "2.0", "1.0.", "1.0.x", "1.0,1.0", "v1.0", "1.0.1.1", "\u0661.\u0660", "x"],
)
def test_any_other_version_is_refused(version: str) -> None:
    error = rpc().refusal("SendMessage", send_params(), version=version)

    assert error["code"] == -32009
    assert version in error["message"]
    assert "1.0" in error["message"]


def test_no_version_means_0_3() -> None:
    error = rpc().refusal("SendMessage", send_params(), version="")

    assert error["code"] == -32009
    assert "0.3" in error["message"]
    assert error["data"][0]["metadata"] == {"requestedVersion": "0.3", "supportedVersions": "1.0"}


def test_a_long_version_is_not_repeated_whole() -> None:
    assert len(rpc().refusal("SendMessage", version="9" * 10_000)["message"]) < 200


# Each error


def error_info(reason: str, domain: str = "a2a-protocol.org", **metadata: str) -> Json:
    info: Json = {"@type": f"{TYPE}ErrorInfo", "reason": reason, "domain": domain}
    return info | ({"metadata": metadata} if metadata else {})


def bad_request(*fields: tuple[str, str]) -> Json:
    violations = [{"field": field, "description": description} for field, description in fields]
    return {"@type": f"{TYPE}BadRequest", "fieldViolations": violations}


def test_a_parse_error_has_no_data() -> None:
    assert answered(b"{")["error"] == {"code": -32700, "message": "Invalid JSON payload"}


def test_an_invalid_request_names_its_violated_members() -> None:
    assert answered(b'{"id":1}')["error"] == {
        "code": -32600,
        "message": "Request payload validation error",
        "data": [bad_request(("jsonrpc", 'must be "2.0"'), ("method", "must be a string"))],
    }


@pytest.mark.parametrize("method", ["message/send", "sendMessage", "", "ListTask", "__class__", "GetTask ", "x" * 5000])
def test_an_unknown_method_is_not_found(method: str) -> None:
    assert rpc().refusal(method, {}) == {"code": -32601, "message": "Method not found"}


def test_invalid_parameters_name_every_violated_field() -> None:
    assert rpc().refusal("SendMessage", {"message": {"role": "user", "parts": []}}) == {
        "code": -32602,
        "message": "Invalid parameters",
        "data": [
            bad_request(
                ("message.messageId", "is required"),
                ("message.role", "must be one of ROLE_USER, ROLE_AGENT"),
                ("message.parts", "is required"),
            )
        ],
    }


def test_an_unknown_task_is_not_found() -> None:
    assert rpc().refusal("GetTask", {"id": UNKNOWN}) == {
        "code": -32001,
        "message": "Task not found",
        "data": [error_info("TASK_NOT_FOUND")],
    }


def test_a_finished_task_is_not_cancelable() -> None:
    endpoint = rpc(yielding(completed()))
    error = endpoint.refusal("CancelTask", {"id": task_of(endpoint)["id"]})

    assert error["code"] == -32002
    assert "finished" in error["message"]
    assert error["data"] == [error_info("TASK_NOT_CANCELABLE", state="TASK_STATE_COMPLETED")]


@pytest.mark.parametrize("method", PUSH)
def test_push_operations_are_refused(method: str) -> None:
    assert rpc().refusal(method, {}) == {
        "code": -32003,
        "message": "Push notifications are not supported by this agent",
        "data": [error_info("PUSH_NOTIFICATION_NOT_SUPPORTED")],
    }


@pytest.mark.parametrize("method", [*STREAMING, "GetExtendedAgentCard"])
def test_operations_that_the_card_does_not_declare_are_refused(method: str) -> None:
    error = rpc().refusal(method, {})

    assert error["code"] == -32004
    assert method in error["message"]
    assert error["data"] == [error_info("UNSUPPORTED_OPERATION")]


def test_a_message_to_a_finished_task_is_refused() -> None:
    endpoint = rpc(yielding(completed()))
    error = endpoint.refusal("SendMessage", send_params(taskId=task_of(endpoint)["id"]))

    assert error["code"] == -32004
    assert "finished" in error["message"]
    assert error["data"] == [error_info("UNSUPPORTED_OPERATION", state="TASK_STATE_COMPLETED")]


@pytest.mark.parametrize("part", [{"url": "https://example.com/x.pdf", "mediaType": "application/pdf"}, {"raw": ""}])
def test_a_part_that_the_agent_does_not_take_is_refused(part: Json) -> None:
    error = rpc().refusal("SendMessage", send_params(parts=[part]))

    assert error["code"] == -32005
    assert "text/plain" in error["message"]
    assert error["data"] == [error_info("CONTENT_TYPE_NOT_SUPPORTED")]


def needing_an_extension() -> AgentProfile:
    extensions = [AgentExtension(uri="urn:needed", required=True), AgentExtension(uri="urn:optional")]
    return AgentProfile(name="n", description="d", version="1", skills=[SKILL], extensions=extensions)


@pytest.mark.parametrize(
    ("method", "params"),
    [("SendMessage", send_params()), ("GetTask", {"id": UNKNOWN}), ("CancelTask", {"id": UNKNOWN})],
)
def test_an_extension_that_the_agent_requires_must_be_listed(method: str, params: Json) -> None:
    endpoint = rpc(yielding(completed(), profile=needing_an_extension()))
    error = endpoint.refusal(method, params, caller=call(extensions=["urn:optional"]))

    assert error["code"] == -32008
    assert "urn:needed" in error["message"]
    assert error["data"] == [error_info("EXTENSION_SUPPORT_REQUIRED", extensions="urn:needed")]


def test_an_extension_that_is_listed_is_enough() -> None:
    endpoint = rpc(yielding(completed(), profile=needing_an_extension()))

    assert "result" in endpoint.ask("SendMessage", send_params(), caller=call(extensions=["urn:x", "urn:needed"]))


def test_a_body_that_is_too_large_is_refused_with_413() -> None:
    answer = rpc(max_body_bytes=100).answer(b" " * 101)
    response = msgspec.json.decode(answer.body)

    assert answer.status == 413
    assert (response["jsonrpc"], response["id"], response["error"]["code"]) == ("2.0", None, -32000)
    assert response["error"]["data"] == [error_info("PAYLOAD_TOO_LARGE", "a2a-lambda")]


def test_a_body_of_just_the_limit_is_read() -> None:
    assert rpc(max_body_bytes=100).answer(b" " * 100).status == 200


def failing_with(error: Exception) -> Rpc:
    """Return an endpoint whose store always raises."""
    endpoint = rpc()

    def fail(*_arguments: Any) -> Any:
        raise error

    for name in ("read", "commit", "cancel"):
        setattr(endpoint.store, name, fail)
    return endpoint


REQUESTS: Final = [("SendMessage", send_params()), ("GetTask", {"id": UNKNOWN}), ("CancelTask", {"id": UNKNOWN})]


@pytest.mark.parametrize(("method", "params"), REQUESTS)
def test_a_store_that_is_unavailable_is_an_internal_error_with_a_time_to_retry(method: str, params: Json) -> None:
    assert failing_with(UnavailableError()).refusal(method, params) == {
        "code": -32603,
        "message": "Internal error",
        "data": [{"@type": f"{TYPE}RetryInfo", "retryDelay": "1s"}],
    }


@pytest.mark.parametrize(("method", "params"), REQUESTS)
def test_a_fault_of_the_server_is_logged_and_not_told(
    method: str, params: Json, caplog: pytest.LogCaptureFixture
) -> None:
    error = failing_with(ZeroDivisionError("secret")).refusal(method, params)

    assert error == {"code": -32603, "message": "Internal error"}
    assert "ZeroDivisionError: secret" in caplog.text


def test_each_error_has_its_code() -> None:
    codes = {each.code for each in _concrete(errors.ProtocolError)}

    assert codes >= {-32700, -32600, -32601, -32602, -32603, *range(-32006, -32000), -32008, -32009}


def _concrete(kind: type[errors.ProtocolError]) -> list[type[errors.ProtocolError]]:
    below = [each for child in kind.__subclasses__() for each in _concrete(child)]
    return below + ([kind] if hasattr(kind, "code") else [])


def test_all_methods_of_the_protocol_are_known() -> None:
    assert set(METHODS) == {
        "SendMessage", "GetTask", "CancelTask", "ListTasks", "GetExtendedAgentCard", *STREAMING, *PUSH,
    }  # fmt: skip


# What the log may tell


def test_the_log_is_told_the_method_and_the_outcome() -> None:
    answer = rpc().answer(b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}')

    assert (answer.method, answer.outcome) == ("GetTask", "TaskNotFoundError")


def test_the_log_is_not_told_a_callers_own_words() -> None:
    assert rpc().answer(b'{"jsonrpc":"2.0","id":1,"method":"secret"}').method == ""


# The order of the checks

WRONG_PART: Final = {"url": "https://example.com"}
PUSH_CONFIG: Final = {"taskPushNotificationConfig": {"url": "https://example.com"}}
PROBES: Final[list[tuple[str, Callable[[Rpc], Json], int]]] = [
    ("an invalid request beats the version", lambda r: _raw(r, {"jsonrpc": "1.0", "method": "x"}, ""), -32600),
    ("the version beats an unknown method", lambda r: r.refusal("no such method", [], version=""), -32009),
    ("the version beats a streaming method", lambda r: r.refusal("SubscribeToTask", {}, version="2.0"), -32009),
    ("an unknown method beats its parameters", lambda r: r.refusal("no such method", []), -32601),
    ("streaming beats its parameters", lambda r: r.refusal("SendStreamingMessage", []), -32004),
    ("push operations beat their parameters", lambda r: r.refusal("GetTaskPushNotificationConfig", 5), -32003),
    ("a push config beats the parameters", lambda r: r.refusal("SendMessage", {"configuration": PUSH_CONFIG}), -32003),
    ("the parameters beat the extension", lambda r: r.refusal("SendMessage", send_params(parts=[])), -32602),
    ("the page token beats the extension", lambda r: r.refusal("ListTasks", {"pageToken": "forged"}), -32602),
    ("the extension beats the list", lambda r: r.refusal("ListTasks", {}), -32008),
    ("the extension beats the content", lambda r: r.refusal("SendMessage", send_params(parts=[WRONG_PART])), -32008),
]


def _raw(endpoint: Rpc, request: Json, version: str) -> Json:
    return msgspec.json.decode(endpoint.answer(msgspec.json.encode(request), version=version).body)["error"]


@pytest.mark.parametrize(("probe", "code"), [each[1:] for each in PROBES], ids=[each[0] for each in PROBES])
def test_the_checks_go_in_their_order(probe: Callable[[Rpc], Json], code: int) -> None:
    endpoint = rpc(yielding(completed(), profile=needing_an_extension()))

    assert probe(endpoint)["code"] == code
    assert (endpoint.store.reads, endpoint.store.writes) == (0, 0)


def test_the_size_beats_the_json() -> None:
    assert rpc(max_body_bytes=3).answer(b"{{{{").status == 413


def test_the_content_beats_the_task() -> None:
    endpoint = rpc()

    assert endpoint.refusal("SendMessage", send_params(taskId=UNKNOWN, parts=[WRONG_PART]))["code"] == -32005
    assert endpoint.store.reads == 0


def test_the_task_beats_the_context() -> None:
    assert rpc().refusal("SendMessage", send_params(taskId=UNKNOWN, contextId="another"))["code"] == -32001


def test_the_context_beats_the_state() -> None:
    endpoint = rpc(yielding(completed()))
    task = task_of(endpoint)

    assert endpoint.refusal("SendMessage", send_params(taskId=task["id"], contextId="another"))["code"] == -32602
    assert endpoint.store.writes == 1


@pytest.mark.parametrize("name", ["taskPushNotificationConfig", "task_push_notification_config"])
@pytest.mark.parametrize("config", [{}, {"url": "https://example.com"}, 5, "x", []])
def test_a_message_with_a_push_config_is_refused(name: str, config: Json) -> None:
    endpoint = rpc()

    assert endpoint.refusal("SendMessage", send_params() | {"configuration": {name: config}})["code"] == -32003
    assert endpoint.store.writes == 0


def test_a_push_config_of_null_is_none() -> None:
    params = send_params() | {"configuration": {"taskPushNotificationConfig": None}}

    assert "result" in rpc().ask("SendMessage", params)


@pytest.mark.parametrize("method", ["GetTask", "CancelTask"])
def test_a_field_that_another_operation_has_is_an_unknown_field(method: str) -> None:
    params = {"id": UNKNOWN, "configuration": PUSH_CONFIG}

    assert rpc().refusal(method, params)["code"] == -32001


# Answers that are hard to write


@pytest.mark.parametrize("value", [10**308, -(10**308), 2**64, 1e308, 5e-324, "😀\x00\x7f\u2028", [[]] * 50])
def test_what_came_goes_back_unchanged(value: Json) -> None:
    endpoint = rpc(asking())
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "SendMessage",
        "params": send_params(parts=[{"text": "x", "metadata": {"v": value}}], metadata={"v": value}),
    }
    response = msgspec.json.decode(endpoint.answer(msgspec.json.encode(body)).body)

    first = response["result"]["task"]["history"][0]
    assert (first["metadata"], first["parts"][0]["metadata"]) == ({"v": value}, {"v": value})


def test_an_agent_of_one_turn_sees_what_the_client_sent() -> None:
    seen: list[Json] = []

    def respond(turn: Turn) -> Updates:
        seen.extend(msgspec.to_builtins(turn.message.parts))
        yield completed()

    rpc(agent(respond)).ask("SendMessage", send_params(parts=[{"text": "a"}, {"text": "b", "metadata": {"x": None}}]))

    assert seen == [{"text": "a"}, {"text": "b", "metadata": {"x": None}}]


LAMBDA_LIMIT: Final = 6 * 1024 * 1024
"""What Lambda carries back, as JSON in which the body is one more string."""


def as_lambda_carries_it(answer: Answer) -> bytes:
    return msgspec.json.encode(apigateway.response(answer.status, answer.body, answer.headers))


@pytest.mark.parametrize("said", ['"' * 45_000, "\\" * 45_000, "\x01" * 15_000, "é" * 45_000, "😀" * 22_500])
def test_a_long_history_fits_through_lambda_however_often_it_is_escaped(said: str) -> None:
    endpoint = rpc(asking(), max_body_bytes=10**6)
    task = task_of(endpoint)
    unshown = {"configuration": {"historyLength": 0}}
    for number in range(55):
        more = send_params(taskId=task["id"], messageId=str(number), parts=[{"text": said}])
        endpoint.ask("SendMessage", more | unshown)
    answer = endpoint.answer(asking_for(task["id"]))

    assert len(as_lambda_carries_it(answer)) <= LAMBDA_LIMIT
    assert len(answer.body) > MAX_TEXT_BYTES
    assert msgspec.json.decode(answer.body)["result"]["history"][-2]["messageId"] == "54"


def asking_for(task_id: str) -> bytes:
    """Return a request for a task with all its messages."""
    params = {"id": task_id, "historyLength": 1000}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": params})


def test_a_task_with_as_large_artifacts_as_there_may_be_fits_through_lambda() -> None:
    largest = [artifact('"' * 524_000, artifact_id=str(number)) for number in range(4)]
    endpoint = rpc(yielding(*largest))
    task = task_of(endpoint, parts=[{"text": "x" * 50_000}])
    answer = endpoint.answer(asking_for(task["id"]))

    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert len(answer.body) > GENEROUS.max_task_bytes
    assert len(as_lambda_carries_it(answer)) <= LAMBDA_LIMIT


def test_an_artifact_that_is_too_large_to_be_answered_is_not_kept() -> None:
    endpoint = rpc(yielding(artifact("x" * 7_000_000)))
    task = task_of(endpoint)

    assert task["status"]["state"] == "TASK_STATE_FAILED"
    assert "artifacts" not in task


def test_the_longest_list_of_violations_fits_through_lambda() -> None:
    body = msgspec.json.encode(
        {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {"parts": [0] * 32_000}}}
    )

    assert len(as_lambda_carries_it(rpc().answer(body))) <= LAMBDA_LIMIT
