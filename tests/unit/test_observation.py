"""What an operator sees of a request: its log line and metrics, and nothing that a caller wrote or showed."""

import io
import itertools
import json
import logging
from typing import Final

import msgspec
import pytest
from aws_lambda_powertools import Logger

from a2a_lambda import tally
from a2a_lambda.agent import artifact, completed
from a2a_lambda.errors import (
    InternalError,
    PermissionDeniedError,
    ProtocolError,
    RateLimitedError,
    TaskNotFoundError,
    UnauthenticatedError,
    UnavailableError,
)
from a2a_lambda.jsonrpc import Answer
from a2a_lambda.observation import METRICS_DISABLED, metrics, relay_metrics, report
from a2a_lambda.tally import Tally
from tests.unit.factories import Json, rpc, send_params, yielding

SECRETS: Final = ["said-by-the-client", "said-by-the-agent", "a2a_secretkey", "metadata-of-the-client", "forged-token"]


_services: Final = itertools.count(1)


def measured(answer: Answer, **counts: Json) -> list[tuple[str, int, dict[str, str]]]:
    return list(metrics(answer, Tally(**counts)))


def refused(error: ProtocolError, method: str = "") -> Answer:
    return Answer(status=error.http_status, method=method, error=error)


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Json:
    """Return a function that reports an answer, and returns the lines that were written, decoded."""
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "a2a")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "a2a")
    log = io.StringIO()
    logger = Logger(service=f"a2a-{next(_services)}", logger_handler=logging.StreamHandler(log))

    def written(answer: Answer, counts: Tally | None = None) -> list[Json]:
        report(logger, answer, counts or Tally(), duration_ms=12.345, correlation_id="request-1")
        return [json.loads(line) for line in (log.getvalue() + capsys.readouterr().out).splitlines()]

    return written


# Metrics


@pytest.mark.parametrize(
    ("error", "counted"), [(InternalError(), True), (UnavailableError(), False), (TaskNotFoundError(), False)]
)
def test_a_fault_of_the_server_is_counted_by_itself(error: ProtocolError, *, counted: bool) -> None:
    assert (("FailedRequests", 1, {}) in measured(refused(error))) == counted


def test_changes_are_counted_by_what_came_of_them() -> None:
    assert list(relay_metrics({"ok": 3, "broken": 1})) == [
        ("RelayedChanges", 3, {"outcome": "ok"}),
        ("RelayedChanges", 1, {"outcome": "broken"}),
    ]


def test_a_request_is_counted_by_method_and_outcome() -> None:
    assert measured(Answer(method="GetTask")) == [("Requests", 1, {"method": "GetTask", "outcome": "ok"})]
    assert measured(refused(TaskNotFoundError(), "GetTask")) == [
        ("Requests", 1, {"method": "GetTask", "outcome": "TaskNotFoundError"})
    ]


def test_a_request_without_a_known_method_has_none() -> None:
    assert measured(Answer())[0] == ("Requests", 1, {"method": "none", "outcome": "ok"})


@pytest.mark.parametrize("error", [UnauthenticatedError("Bearer"), PermissionDeniedError("no", scope="a")])
def test_a_failed_authentication_is_counted(error: ProtocolError) -> None:
    assert ("AuthenticationFailures", 1, {}) in measured(refused(error))


def test_a_limited_request_is_counted() -> None:
    assert ("LimitedRequests", 1, {}) in measured(refused(RateLimitedError(3)))


def test_tasks_are_counted_by_their_final_state() -> None:
    found = measured(Answer(), finished=["TASK_STATE_COMPLETED", "TASK_STATE_CANCELED"])

    assert found[1:] == [
        ("Tasks", 1, {"state": "TASK_STATE_COMPLETED"}),
        ("Tasks", 1, {"state": "TASK_STATE_CANCELED"}),
    ]


def test_conflicts_and_requests_without_a_limit_are_counted() -> None:
    assert measured(Answer(), conflicts=3, unlimited=2)[1:] == [("Conflicts", 3, {}), ("UnlimitedRequests", 2, {})]


# The tally of an operation


def asked(method: str, params: Json, *, to: str = "") -> Tally:
    endpoint = rpc(yielding(artifact("x"), completed()))
    task_id = endpoint.ask("SendMessage", send_params())["result"]["task"]["id"] if to else ""
    counts = tally.begin()
    endpoint.ask(method, params | {"id": task_id} if to else params)
    return counts


def test_a_task_that_ends_is_tallied() -> None:
    counts = asked("SendMessage", send_params())

    assert counts.finished == ["TASK_STATE_COMPLETED"]
    assert counts.task_id


def test_a_task_that_is_read_is_tallied_and_ends_no_second_time() -> None:
    counts = asked("GetTask", {}, to="read")

    assert (counts.finished, bool(counts.task_id)) == ([], True)


def test_a_task_that_is_refused_ends_no_second_time() -> None:
    assert asked("CancelTask", {}, to="cancel").finished == []


def test_calls_and_units_are_added_up() -> None:
    counts = Tally()
    counts.add_call({"ConsumedCapacity": {"CapacityUnits": 1.5}})
    counts.add_call({"ConsumedCapacity": [{"CapacityUnits": 0.5}, {"CapacityUnits": 2.0}]})
    counts.add_call({})

    assert (counts.calls, counts.units) == (3, 4.0)


# The log line


def test_a_request_is_one_line(lines: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(METRICS_DISABLED, "true")
    (line,) = lines(Answer(method="GetTask"), Tally(caller="key:alice", calls=2, units=1.5, task_id="t-1"))

    assert {
        name: line[name]
        for name in (
            "level", "message", "method", "caller", "task_id", "outcome", "status", "duration_ms",
            "dynamodb_calls", "dynamodb_units", "correlation_id",
        )
    } == {
        "level": "INFO", "message": "request", "method": "GetTask", "caller": "key:alice", "task_id": "t-1",
        "outcome": "ok", "status": 200, "duration_ms": 12.3, "dynamodb_calls": 2, "dynamodb_units": 1.5,
        "correlation_id": "request-1",
    }  # fmt: skip


def test_metrics_are_lines_in_cloudwatchs_format(lines: Json) -> None:
    found = lines(refused(RateLimitedError(3), "GetTask"))[1:]

    assert [sorted(set(each) & {"Requests", "LimitedRequests"}) for each in found] == [
        ["Requests"],
        ["LimitedRequests"],
    ]
    assert all("_aws" in each for each in found)
    assert (found[0]["method"], found[0]["outcome"]) == ("GetTask", "RateLimitedError")


def test_metrics_are_switched_off_on_this_machine(lines: Json, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(METRICS_DISABLED, "True")

    assert len(lines(Answer())) == 1


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("SendMessage", send_params(parts=[{"text": SECRETS[0]}], metadata={"x": SECRETS[3]})),
        ("SendMessage", send_params(parts=[{"text": SECRETS[0]}, {}])),
        ("SendMessage", send_params(parts=[{"url": SECRETS[0]}])),
        ("SendMessage", send_params(taskId=SECRETS[0])),
        ("GetTask", {"id": SECRETS[0]}),
        ("ListTasks", {"pageToken": SECRETS[4], "contextId": SECRETS[0]}),
        (SECRETS[0], {}),
    ],
)
def test_what_callers_and_agents_say_is_in_no_line(method: str, params: Json, lines: Json) -> None:
    counts = tally.begin()
    endpoint = rpc(yielding(artifact(SECRETS[1]), completed(SECRETS[1])))
    answer = endpoint.answer(
        msgspec.json.encode({"jsonrpc": "2.0", "id": SECRETS[0], "method": method, "params": params})
    )

    written = json.dumps(lines(answer, counts))
    assert not [secret for secret in SECRETS if secret in written]
