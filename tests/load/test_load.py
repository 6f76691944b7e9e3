"""What callers ask, what is made of their answers, how it is told, and a small load that ends well."""

import json
import re
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from load import __main__ as command
from load import calls
from load.callers import RATE_LIMITED, UNAVAILABLE, Answer, read
from load.calls import OK, OPEN, Call, Mix
from load.checks import CHECKS
from load.report import OPERATIONS, errors, percentile, speed
from load.settings import LIMITS, LoadError, Settings, read_settings
from tests.local.processes import ROOT, Command

STRANGER = "00000000-0000-4000-8000-000000000000"


def params(call: Call) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call.body)["params"]
    return found


def new_mix() -> Mix:
    """The mix of an owner who has nothing, beside a stranger's task."""
    return Mix(Random(1), deque([STRANGER]))  # noqa: S311 - the same in each run


def with_a_task() -> Mix:
    """The mix of an owner who has an open task."""
    mix = new_mix()
    (begun,) = mix.begin()
    mix.learn(begun, {"own": OPEN}, "")
    return mix


def test_a_caller_asks_for_everything() -> None:
    mix = with_a_task()
    asked = Counter(call.operation for _ in range(1000) for call in mix.step())
    assert asked.keys() == set(OPERATIONS)


def test_a_copy_is_the_same_request_at_the_same_moment() -> None:
    first, second = with_a_task().copy()
    assert first == second
    assert first.operation == calls.COPY
    assert first.message_id


def test_a_race_is_between_two_calls_on_one_task() -> None:
    mix = with_a_task()
    for _ in range(10):
        message, rival = mix.race()
        assert params(message)["message"]["taskId"] == "own"
        assert b'"own"' in rival.body
        assert rival.message_id != message.message_id


def test_another_owners_task_must_not_be_found() -> None:
    (call,) = with_a_task().trespass()
    assert STRANGER.encode() in call.body
    assert call.allowed == {calls.NOT_FOUND}


def test_what_a_trespasser_was_shown_is_not_its_own() -> None:
    mix = new_mix()
    (call,) = mix.trespass()
    mix.learn(call, {STRANGER: OPEN}, "")
    (following,) = mix.go_on()
    assert following.operation == calls.NEW


def test_a_list_is_walked_with_its_own_filters() -> None:
    mix = with_a_task()
    (first,) = mix.walk()
    mix.learn(first, {}, "token")
    (second,) = mix.walk()
    assert params(second) == params(first) | {"pageToken": "token"}
    mix.learn(second, {}, "")
    (third,) = mix.walk()
    assert "pageToken" not in params(third)


def failure(code: int, *details: Mapping[str, str]) -> bytes:
    return json.dumps({"error": {"code": code, "data": details}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, b'{"result": {}}', OK),
        (200, failure(-32603), "-32603"),
        (200, failure(-32603, {"@type": "type.googleapis.com/google.rpc.RetryInfo"}), UNAVAILABLE),
        (200, failure(-32001, {"@type": "type.googleapis.com/google.rpc.ErrorInfo"}), "-32001"),
        (503, b"", UNAVAILABLE),
        (429, b"", RATE_LIMITED),
        (500, b"", "HTTP 500"),
    ],
)
def test_answers_are_told_apart(status: int, body: bytes, kind: str) -> None:
    assert read(status, body)[0] == kind


def answered(operation: str, *milliseconds: float, kind: str = OK) -> list[Answer]:
    return [Answer(Call(operation, b""), "ann", kind, seconds=each / 1000) for each in milliseconds]


def test_latencies_are_told_by_operation_and_together() -> None:
    told = speed([*answered(calls.GET, *range(1, 101)), *answered(calls.LIST, 500)])
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in told.splitlines()]
    assert rows[2:] == [
        ["GetTask", "100", "50", "90", "99", "100"],
        ["ListTasks", "1", "500", "500", "500", "500"],
        ["all", "101", "51", "91", "100", "500"],
    ]


def test_errors_are_counted_by_kind_and_operation() -> None:
    assert errors([*answered(calls.GET, 1, 2, kind="-32001"), *answered(calls.GET, 3)]) == ["     2  -32001 to GetTask"]


@pytest.mark.parametrize(("percent", "value"), [(1, 1), (50, 2), (75, 3), (76, 4), (100, 4)])
def test_a_percentile_is_one_of_the_values(percent: int, value: float) -> None:
    assert percentile([1, 2, 3, 4], percent) == value


def test_the_load_is_bounded_without_any_setting() -> None:
    assert read_settings({}) == Settings(callers=200, seconds=12, requests=20_000, rate=0)


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("text", ["-1", "many", "1000000", "²"])
def test_a_setting_out_of_bounds_is_refused(name: str, text: str) -> None:
    with pytest.raises(LoadError, match=name):
        read_settings({name: text})


def test_a_fault_with_either_agent_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in command.AGENTS:
        monkeypatch.setattr(command, "load", lambda name, _settings, wrong=wrong: name != wrong)
        assert command.main() == 1


def test_a_small_load_ends_well() -> None:
    with Command((sys.executable, "-m", "load"), {"CALLERS": "20", "SECONDS": "2"}) as loading:
        status = loading.end()
    assert status == 0, loading.output
    assert len(re.findall(r"^ok      ", loading.output, re.MULTILINE)) == 2 * len(CHECKS)
    assert "FAILED" not in loading.output
    assert [line.split(":")[0] for line in loading.output.splitlines() if " a second" in line] == [
        "acting agent",
        "read-only agent",
    ]


def test_what_cannot_be_done_is_said() -> None:
    refused = subprocess.run(
        [sys.executable, "-m", "load"], cwd=ROOT, env={"CALLERS": "0"}, text=True, capture_output=True, check=False
    )
    assert refused.returncode == 2
    assert "CALLERS must be" in refused.stderr
