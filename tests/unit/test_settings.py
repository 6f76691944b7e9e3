"""The settings: what each may be, and that a bad one is named."""

from typing import Final

import pytest

from a2a_lambda.settings import CardSettings, InvalidSettingError, RpcSettings, load

AGENT: Final = {"A2A_AGENT": "order_status:OrderStatusAgent"}
RPC: Final = AGENT | {"TASKS_TABLE": "tasks", "CALLERS_TABLE": "callers"}


def refused(settings_type: type[CardSettings | RpcSettings], environ: dict[str, str]) -> str:
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
