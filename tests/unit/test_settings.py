"""The settings: what each may be, and that a bad one is named."""

from typing import Final

import pytest

from a2a_lambda.settings import (
    CardSettings,
    InvalidSettingError,
    PushSettings,
    RelaySettings,
    RpcSettings,
    WorkerSettings,
    load,
)

AGENT: Final = {"A2A_AGENT": "order_status:OrderStatusAgent"}
RPC: Final = AGENT | {"TASKS_TABLE": "tasks", "CALLERS_TABLE": "callers"}
QUEUES: Final = {
    "WORK_QUEUE": "https://sqs.us-east-1.amazonaws.com/1/Work",
    "PUSH_QUEUE": "http://127.0.0.1:8000/1/Push.fifo",
    "PUSH_DEAD_LETTERS": "http://127.0.0.1:8000/1/Dead.fifo",
}
ALL: Final = RPC | QUEUES

AnySettings = CardSettings | RpcSettings | RelaySettings | WorkerSettings | PushSettings


def refused(settings_type: type[AnySettings], environ: dict[str, str]) -> str:
    with pytest.raises(InvalidSettingError) as error:
        load(settings_type, environ)
    return str(error.value)


def test_settings_have_defaults() -> None:
    assert load(RpcSettings, RPC) == RpcSettings(
        a2a_agent="order_status:OrderStatusAgent",
        auth="none",
        required_scope="",
        tasks_table="tasks",
        callers_table="callers",
        dynamodb_endpoint="",
        retention_days=30,
        idempotency_seconds=300,
        max_body_bytes=65_536,
        max_parts=100,
        max_text_chars=50_000,
        max_messages=1000,
        max_artifact_bytes=1_048_576,
        max_task_bytes=4_194_304,
        rate_per_second=20,
        rate_burst=200,
        push="off",
        push_allow_local="off",
        push_allowed_hosts="",
    )


def test_settings_are_read_from_variables_in_capitals() -> None:
    given = RPC | {"MAX_BODY_BYTES": "1000", "RETENTION_DAYS": "7", "DYNAMODB_ENDPOINT": "http://127.0.0.1:8000"}

    assert load(RpcSettings, given) == RpcSettings(
        a2a_agent="order_status:OrderStatusAgent",
        tasks_table="tasks",
        callers_table="callers",
        dynamodb_endpoint="http://127.0.0.1:8000",
        max_body_bytes=1000,
        retention_days=7,
    )


def test_an_empty_variable_is_not_set() -> None:
    empty = {"MAX_BODY_BYTES": "", "RETENTION_DAYS": "", "DYNAMODB_ENDPOINT": ""}

    assert load(RpcSettings, RPC | empty) == load(RpcSettings, RPC)


def test_other_variables_are_left_alone() -> None:
    assert load(CardSettings, AGENT | {"PATH": "/bin", "max_body_bytes": "x"}) == load(CardSettings, AGENT)


@pytest.mark.parametrize("name", ["A2A_AGENT", "TASKS_TABLE", "CALLERS_TABLE"])
def test_a_setting_that_is_needed_is_named(name: str) -> None:
    assert refused(RpcSettings, {key: value for key, value in RPC.items() if key != name}) == f"{name}: must be set"


BAD_NUMBERS: Final = ["x", "-1", "0", "1.5", "1e99", "0x10", "9" * 5000, "true", "null", "1_000", "١"]  # noqa: RUF001


BOUNDED: Final = ["MAX_BODY_BYTES", "RETENTION_DAYS", "MAX_ARTIFACT_BYTES", "MAX_TASK_BYTES"]
UNBOUNDED: Final = ["MAX_PARTS", "MAX_TEXT_CHARS", "MAX_MESSAGES", "RATE_PER_SECOND", "RATE_BURST"]
HUGE_NUMBER: Final = "9" * 30


@pytest.mark.parametrize("name", BOUNDED)
def test_a_limit_has_a_limit(name: str) -> None:
    assert refused(RpcSettings, RPC | {name: HUGE_NUMBER}).startswith(f"{name}: ")


@pytest.mark.parametrize("value", BAD_NUMBERS)
@pytest.mark.parametrize("name", BOUNDED + UNBOUNDED)
def test_a_number_that_cannot_be_used_is_refused_by_name(name: str, value: str) -> None:
    assert refused(RpcSettings, RPC | {name: value}).startswith(f"{name}: ")


def test_a_window_of_zero_switches_the_memory_for_messages_off() -> None:
    assert load(RpcSettings, RPC | {"IDEMPOTENCY_SECONDS": "0"}).idempotency_seconds == 0


@pytest.mark.parametrize("value", ["-1", "86401", "x", "1.5"])
def test_a_window_is_a_day_at_most(value: str) -> None:
    assert refused(RpcSettings, RPC | {"IDEMPOTENCY_SECONDS": value}).startswith("IDEMPOTENCY_SECONDS: ")


@pytest.mark.parametrize("value", ["api_key", "API-KEY", "jwt ", "oauth", "0"])
def test_another_way_of_authenticating_is_refused_by_name(value: str) -> None:
    assert refused(RpcSettings, RPC | {"AUTH": value}).startswith("AUTH: ")
    assert refused(CardSettings, AGENT | {"AUTH": value}).startswith("AUTH: ")


@pytest.mark.parametrize("value", ["order_status", ":A", "a:", "a.b", "a/b:C", "a:B.C", "1a:B", "a:B:C", "a b:C"])
def test_an_agent_that_is_not_named_as_module_and_class_is_refused_by_name(value: str) -> None:
    assert refused(CardSettings, {"A2A_AGENT": value}).startswith("A2A_AGENT: ")
    assert refused(RpcSettings, RPC | {"A2A_AGENT": value}).startswith("A2A_AGENT: ")


@pytest.mark.parametrize(
    "url",
    [
        "https://agent.example",
        "https://agent.example/path/",
        "https://agent.example:8443",
        "http://localhost:3000",
        "http://127.0.0.1",
        "http://[::1]:3000/x",
    ],
)
def test_a_public_url_is_https_or_this_machine(url: str) -> None:
    assert load(CardSettings, AGENT | {"PUBLIC_URL": url}).public_url == url


@pytest.mark.parametrize(
    "url",
    [
        "agent.example",
        "http://agent.example",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "ftp://x",
        "https://x?y",
        "https://x#y",
        "https://x y",
        "//x",
        "javascript:x",
    ],
)
def test_any_other_public_url_is_refused_by_name(url: str) -> None:
    assert refused(CardSettings, AGENT | {"PUBLIC_URL": url}).startswith("PUBLIC_URL: ")


@pytest.mark.parametrize("url", ["https://", "https:///a2a", "https://agent.example\n"])
def test_a_public_url_has_a_host_and_nothing_behind_it(url: str) -> None:
    assert refused(CardSettings, AGENT | {"PUBLIC_URL": url}).startswith("PUBLIC_URL: ")


@pytest.mark.parametrize("endpoint", ["127.0.0.1:8000", "x", "ftp://127.0.0.1", "http://"])
def test_an_endpoint_that_is_no_url_is_refused_by_name(endpoint: str) -> None:
    assert refused(RpcSettings, RPC | {"DYNAMODB_ENDPOINT": endpoint}).startswith("DYNAMODB_ENDPOINT: ")


@pytest.mark.parametrize(
    ("settings_type", "needed"),
    [
        (RelaySettings, ["TASKS_TABLE", "WORK_QUEUE"]),
        (WorkerSettings, ["A2A_AGENT", "TASKS_TABLE", "WORK_QUEUE"]),
        (PushSettings, ["TASKS_TABLE", "PUSH_QUEUE", "PUSH_DEAD_LETTERS"]),
    ],
)
def test_a_function_needs_its_table_and_its_queues(settings_type: type[AnySettings], needed: list[str]) -> None:
    load(settings_type, {name: ALL[name] for name in needed})
    for missing in needed:
        given = {name: value for name, value in ALL.items() if name != missing}
        assert refused(settings_type, given) == f"{missing}: must be set"


def test_the_worker_has_the_defaults_of_the_rpc_function() -> None:
    worker, rpc = load(WorkerSettings, ALL), load(RpcSettings, ALL)

    for name in ("retention_days", "idempotency_seconds", "max_messages", "max_artifact_bytes", "max_task_bytes"):
        assert getattr(worker, name) == getattr(rpc, name)


def test_without_push_notifications_there_is_no_push_queue() -> None:
    assert load(RelaySettings, ALL | {"PUSH_QUEUE": ""}).push_queue == ""


@pytest.mark.parametrize("url", ["Work", "sqs:Work", "https://", "https://x/1 2", "ftp://x/1/Work"])
def test_a_queue_that_is_no_url_is_refused_by_name(url: str) -> None:
    assert refused(WorkerSettings, ALL | {"WORK_QUEUE": url}).startswith("WORK_QUEUE: ")


@pytest.mark.parametrize("value", ["ON", "true", "1", "yes"])
@pytest.mark.parametrize("name", ["PUSH", "PUSH_ALLOW_LOCAL"])
def test_a_switch_is_on_or_off(name: str, value: str) -> None:
    assert load(RpcSettings, ALL | {name: "on"}) != load(RpcSettings, ALL | {name: "off"})
    assert refused(RpcSettings, ALL | {name: value}).startswith(f"{name}: ")


@pytest.mark.parametrize("value", ["example.com", "example.com,*.example.org,192.0.2.1", "2001:db8::1"])
def test_hosts_are_names_and_addresses(value: str) -> None:
    assert load(PushSettings, ALL | {"PUSH_ALLOWED_HOSTS": value}).push_allowed_hosts == value


@pytest.mark.parametrize("value", ["https://example.com", "example.com/", "a b", "a,", ",a", "a,,b", "me@example.com"])
def test_anything_but_hosts_is_refused_by_name(value: str) -> None:
    assert refused(PushSettings, ALL | {"PUSH_ALLOWED_HOSTS": value}).startswith("PUSH_ALLOWED_HOSTS: ")
