"""The functions' handlers: API Gateway's events in, its answers and one log line out."""

import base64
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from a2a_lambda.apigateway import HSTS
from a2a_lambda.keys import TableKeys
from a2a_lambda.settings import InvalidSettingError
from a2a_lambda.timestamps import now
from local.template import load as load_template
from local.template import mapping
from tests.integration.callers_fixtures import Callers
from tests.integration.functions import AWS_DOMAIN, CARD_PATH, Context, Handler, content, http_event, load, rpc_event
from tests.integration.tables import TEMPLATE, Tasks
from tests.unit.factories import Json, send_params

OTHER_AGENTS: Final = """
from a2a_lambda.agent import Agent, AgentProfile, completed
from a2a_lambda.model import AgentExtension

class Raising(Agent):
    card = AgentProfile(name="n", description="d", version="1", skills=[])
    def respond(self, turn):
        raise RuntimeError("what went wrong")
        yield

class Slow(Agent):
    card = AgentProfile(name="n", description="d", version="1", skills=[])
    def respond(self, turn):
        yield completed(str(turn.seconds_left()))

class Picky(Agent):
    card = AgentProfile(name="n", description="d", version="1", skills=[],
                        extensions=[AgentExtension(uri="urn:x", required=True)])
    def respond(self, turn):
        yield completed()
"""


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module with other agents."""
    name = f"agents_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(OTHER_AGENTS)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def rpc(tasks: Tasks, monkeypatch: pytest.MonkeyPatch, **environ: str) -> Handler:
    return load("rpc", {"TASKS_TABLE": tasks.name, "CALLERS_TABLE": "callers", **environ}, monkeypatch)


def card(monkeypatch: pytest.MonkeyPatch, **environ: str) -> Handler:
    return load("card", environ, monkeypatch)


def log_lines(capsys: pytest.CaptureFixture[str]) -> list[Json]:
    return [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]


def ask(handler: Handler, method: str, params: Json, **headers: str) -> Json:
    return content(handler(rpc_event(method, params, **headers), Context()))


# POST /a2a


def test_a_request_is_answered_as_json(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = rpc(tasks, monkeypatch)(rpc_event("SendMessage", send_params()), Context())

    assert (answer["statusCode"], answer["headers"]) == (200, {"content-type": "application/json", **HSTS})
    assert content(answer)["result"]["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"


def test_a_task_is_read_by_another_instance(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    task = ask(rpc(tasks, monkeypatch), "SendMessage", send_params())["result"]["task"]

    assert ask(rpc(tasks, monkeypatch), "GetTask", {"id": task["id"]})["result"] == task


def test_a_notification_is_answered_with_204_and_no_body(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    request = msgspec.json.encode({"jsonrpc": "2.0", "method": "SendMessage", "params": send_params()}).decode()
    answer = rpc(tasks, monkeypatch)(http_event("POST", "/a2a", {"A2A-Version": "1.0"}, request), Context())

    assert answer["statusCode"] == 204
    assert "body" not in answer
    assert len(tasks.all_items()) == 1


@pytest.mark.parametrize("proxy", ["", None])
def test_a_trailing_slash_is_no_other_path(tasks: Tasks, monkeypatch: pytest.MonkeyPatch, proxy: str | None) -> None:
    event = rpc_event("SendMessage", send_params()) | {"pathParameters": {"proxy": proxy}}

    assert rpc(tasks, monkeypatch)(event, Context())["statusCode"] == 200


@pytest.mark.parametrize("proxy", ["x", "message:send", "/", " "])
def test_there_is_nothing_below_the_path(tasks: Tasks, monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    event = rpc_event("SendMessage", send_params()) | {"pathParameters": {"proxy": proxy}}
    answer = rpc(tasks, monkeypatch)(event, Context())

    assert (answer["statusCode"], content(answer)) == (404, {"message": "Not Found"})
    assert tasks.all_items() == []


def test_a_body_may_be_base64(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    event = rpc_event("SendMessage", send_params())
    event |= {"body": base64.b64encode(event["body"].encode()).decode(), "isBase64Encoded": True}

    assert "result" in content(rpc(tasks, monkeypatch)(event, Context()))


def sized(length: int) -> dict[str, Any]:
    """Return the event of a request with a body of that many bytes."""
    event = rpc_event("SendMessage", send_params(parts=[{"text": ""}]))
    room = length - len(event["body"])
    return rpc_event("SendMessage", send_params(parts=[{"text": "x" * room}]))


@pytest.mark.parametrize(("length", "status"), [(65_536, 200), (65_537, 413)])
@pytest.mark.parametrize("encoded", [False, True])
def test_a_body_over_64_kib_is_refused(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, length: int, status: int, *, encoded: bool
) -> None:
    event = sized(length)
    assert len(event["body"]) == length
    if encoded:
        event |= {"body": base64.b64encode(event["body"].encode()).decode(), "isBase64Encoded": True}

    assert rpc(tasks, monkeypatch)(event, Context())["statusCode"] == status


def test_a_body_is_measured_in_bytes_and_not_by_its_header(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    event = rpc_event("SendMessage", send_params(parts=[{"text": "é" * 500}]), **{"Content-Length": "10"})

    assert rpc(tasks, monkeypatch, MAX_BODY_BYTES="900")(event, Context())["statusCode"] == 413
    assert rpc(tasks, monkeypatch, MAX_BODY_BYTES="1500")(event, Context())["statusCode"] == 200


@pytest.mark.parametrize(
    ("headers", "query", "served"),
    [
        ({"a2a-version": "1.0"}, {}, True),
        ({}, {"A2A-Version": "1.0"}, True),
        ({"a2a-version": "1.0"}, {"A2A-Version": "0.3"}, True),
        ({"a2a-version": "0.3"}, {"A2A-Version": "1.0"}, False),
        ({}, {}, False),
        ({"a2a-version": ""}, {}, False),
    ],
)
def test_the_version_is_a_header_or_else_a_parameter(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, headers: Json, query: Json, *, served: bool
) -> None:
    event = rpc_event("SendMessage", send_params()) | {"headers": headers, "queryStringParameters": query}
    response = content(rpc(tasks, monkeypatch)(event, Context()))

    assert ("result" in response) == served
    assert response.get("error", {}).get("code", -32009) == -32009


def test_extensions_are_listed_in_a_header(tasks: Tasks, monkeypatch: pytest.MonkeyPatch, agents: str) -> None:
    handler = rpc(tasks, monkeypatch, A2A_AGENT=f"{agents}:Picky")

    assert ask(handler, "SendMessage", send_params())["error"]["code"] == -32008
    assert "result" in ask(handler, "SendMessage", send_params(), **{"A2A-Extensions": "urn:y, urn:x"})


def test_an_agent_is_told_the_time_that_the_function_has(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, agents: str
) -> None:
    handler = rpc(tasks, monkeypatch, A2A_AGENT=f"{agents}:Slow")
    answer = content(handler(rpc_event("SendMessage", send_params()), Context(milliseconds_left=12_345)))

    assert answer["result"]["task"]["status"]["message"]["parts"] == [{"text": "12.345"}]


# The log


def test_a_request_is_one_log_line(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = rpc(tasks, monkeypatch)(rpc_event("SendMessage", send_params()), Context())
    (line,) = log_lines(capsys)

    assert line.keys() >= {"timestamp", "location", "duration_ms", "dynamodb_units"}
    assert line | EXPECTED_LINE == line
    assert line["task_id"] == content(answer)["result"]["task"]["id"]


EXPECTED_LINE: Final = {
    "level": "INFO",
    "service": "a2a",
    "message": "request",
    "method": "SendMessage",
    "outcome": "ok",
    "status": 200,
    "caller": "anonymous",
    "dynamodb_calls": 1,
    "correlation_id": "gateway-1",
}


def test_a_refused_request_is_one_log_line(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rpc(tasks, monkeypatch)(rpc_event("GetTask", {"id": "x"}), Context())
    (line,) = log_lines(capsys)

    assert (line["method"], line["outcome"], line["dynamodb_calls"]) == ("GetTask", "TaskNotFoundError", 0)


def limited(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> tuple[Handler, Json]:
    """Return a handler that takes one request, and that request, with alice's key."""
    callers = Callers(tasks.client)
    key, _ = TableKeys(callers, clock=now).make("alice")
    limits = {"AUTH": "api-key", "CALLERS_TABLE": callers.name, "RATE_BURST": "1", "RATE_PER_SECOND": "1"}
    return rpc(tasks, monkeypatch, **limits), rpc_event("ListTasks", {}, **{"x-api-key": key})


def test_the_line_of_a_limited_request_names_the_caller(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handler, event = limited(tasks, monkeypatch)
    statuses = [handler(event, Context())["statusCode"] for _ in range(2)]
    last = log_lines(capsys)[-1]

    assert statuses == [200, 429]
    assert (last["outcome"], last["status"], last["caller"]) == ("RateLimitedError", 429, "key:alice")


def test_the_line_of_a_request_by_nobody_names_nobody(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handler, event = limited(tasks, monkeypatch)
    handler(event, Context())
    wrong = event | {"headers": event["headers"] | {"x-api-key": "a2a_" + "x" * 43}}

    assert handler(wrong, Context())["statusCode"] == 401
    assert log_lines(capsys)[-1]["caller"] == ""


def test_an_authorizer_without_claims_is_no_fault(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    handler, event = limited(tasks, monkeypatch)
    context = event["requestContext"] | {"authorizer": {"jwt": None}}

    assert handler(event | {"requestContext": context}, Context())["statusCode"] == 200


def test_metrics_are_written_beside_the_log_line(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rpc(tasks, monkeypatch, POWERTOOLS_METRICS_DISABLED="")(rpc_event("GetTask", {"id": "x"}), Context())
    _, metric = log_lines(capsys)

    assert (metric["Requests"], metric["method"], metric["outcome"]) == ([1.0], "GetTask", "TaskNotFoundError")
    assert metric["_aws"]["CloudWatchMetrics"][0]["Namespace"] == "a2a"


def test_what_a_caller_wrote_is_not_logged(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = rpc(tasks, monkeypatch)
    secret: Mapping[str, str] = {"Authorization": "Bearer secret"}
    handler(rpc_event("SendMessage", send_params(parts=[{"text": "secret"}]), **secret), Context())
    handler(rpc_event("secret", {"secret": "secret"}), Context())
    handler(http_event("POST", "/a2a", secret, '{"secret"'), Context())

    assert "secret" not in capsys.readouterr().out


def test_the_traceback_of_an_agent_is_logged_as_json_and_not_told(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], agents: str
) -> None:
    handler = rpc(tasks, monkeypatch, A2A_AGENT=f"{agents}:Raising")
    answer = handler(rpc_event("SendMessage", send_params()), Context())
    task = content(answer)["result"]["task"]
    raised, _ = log_lines(capsys)

    assert task["status"]["state"] == "TASK_STATE_FAILED"
    assert "went wrong" not in answer["body"]
    assert (raised["level"], raised["task_id"]) == ("ERROR", task["id"])
    assert "RuntimeError: what went wrong" in raised["exception"]


def test_the_log_level_can_be_set(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rpc(tasks, monkeypatch, POWERTOOLS_LOG_LEVEL="ERROR")(rpc_event("GetTask", {"id": "x"}), Context())

    assert log_lines(capsys) == []


# The card


def fetch(handler: Handler, method: str = "GET", domain: str = AWS_DOMAIN, **headers: str) -> dict[str, Any]:
    return handler(http_event(method, CARD_PATH, headers, domain=domain), None)


def address(answer: Mapping[str, Any]) -> str:
    (interface,) = content(answer)["supportedInterfaces"]
    url: str = interface["url"]
    return url


def test_the_card_is_published_at_the_address_of_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = card(monkeypatch)

    assert address(fetch(handler)) == f"https://{AWS_DOMAIN}/a2a"
    assert address(fetch(handler, domain="localhost", host="localhost:3000")) == "http://localhost:3000/a2a"


def test_the_card_does_not_believe_the_host_header(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "evil" not in fetch(card(monkeypatch), host="evil.example")["body"]


@pytest.mark.parametrize("url", ["https://agent.example/base", "https://agent.example/base/"])
def test_the_public_url_comes_first(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    assert address(fetch(card(monkeypatch, PUBLIC_URL=url))) == "https://agent.example/base/a2a"


def test_the_card_may_be_cached_and_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = card(monkeypatch)
    first = fetch(handler)
    again = fetch(handler, **{"if-none-match": f"W/{first['headers']['etag']}"})

    assert (first["statusCode"], again["statusCode"]) == (200, 304)
    assert "body" not in again
    assert again["headers"] == {name: first["headers"][name] for name in ("cache-control", "etag", *HSTS)}


def test_head_has_the_headers_of_get(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = card(monkeypatch)

    assert fetch(handler, "HEAD")["headers"] == fetch(handler)["headers"]


# Settings that cannot be used


@pytest.mark.parametrize(
    ("function", "environ", "named"),
    [
        ("card", {"PUBLIC_URL": "agent.example"}, "PUBLIC_URL"),
        ("card", {"A2A_AGENT": "no_such_module:Agent"}, "A2A_AGENT"),
        ("rpc", {"TASKS_TABLE": ""}, "TASKS_TABLE"),
        ("rpc", {"A2A_AGENT": ""}, "A2A_AGENT"),
        ("rpc", {"MAX_BODY_BYTES": "many"}, "MAX_BODY_BYTES"),
        ("rpc", {"RETENTION_DAYS": "0"}, "RETENTION_DAYS"),
    ],
)
def test_a_function_does_not_start_with_a_setting_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch, function: str, environ: dict[str, str], named: str
) -> None:
    with pytest.raises(InvalidSettingError, match=named):
        load(function, {"TASKS_TABLE": "tasks", "CALLERS_TABLE": "callers", **environ}, monkeypatch)


def parameters() -> Mapping[str, Any]:
    """Return the template's parameters."""
    return mapping(load_template(TEMPLATE)["Parameters"])


BOUNDS: Final = {"MaxBodyBytes": "MAX_BODY_BYTES", "RetentionDays": "RETENTION_DAYS"}


@pytest.mark.parametrize("parameter", BOUNDS)
@pytest.mark.parametrize("bound", ["MinValue", "MaxValue"])
def test_the_template_takes_no_number_that_the_function_refuses(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch, parameter: str, bound: str
) -> None:
    allowed = parameters()[parameter][bound]

    assert rpc(tasks, monkeypatch, **{BOUNDS[parameter]: str(allowed)}) is not None


def test_the_template_takes_no_public_url_that_the_function_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = re.compile(parameters()["PublicUrl"]["AllowedPattern"])
    url = "http://agent.example"
    with pytest.raises(InvalidSettingError):
        card(monkeypatch, PUBLIC_URL=url)

    assert not pattern.match(url)
