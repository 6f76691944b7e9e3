"""A function and a batch of records: which of them failed."""

import threading
from pathlib import Path
from typing import Any

import pytest

from local.batches import invoke, reported_failures
from local.deployment import Function
from local.functions import LoadedFunction

RECORDS: dict[str, dict[str, Any]] = {"1": {"body": "a"}, "2": {"body": "b"}}


def failures(handler: Any, *, reports: bool = True, timeout: float = 5) -> set[str]:
    function = Function("Notes", Path(), "app.handler", timeout, 512, {}, ())
    return invoke(LoadedFunction(function, handler), RECORDS, reports=reports)


def item(identifier: Any) -> dict[str, Any]:
    return {"itemIdentifier": identifier}


def test_a_function_is_given_the_records() -> None:
    seen: list[Any] = []
    failures(lambda event, _: seen.append(event))
    assert seen == [{"Records": [{"body": "a"}, {"body": "b"}]}]


def test_what_a_function_reports_has_failed() -> None:
    assert failures(lambda _event, _: {"batchItemFailures": [item("2")]}) == {"2"}


def test_what_a_function_reports_is_not_asked_for_everywhere() -> None:
    assert failures(lambda _event, _: {"batchItemFailures": [item("2")]}, reports=False) == set()


def test_a_function_that_raises_has_failed_with_all(capsys: pytest.CaptureFixture[str]) -> None:
    def handler(_event: Any, _context: Any) -> None:
        raise LookupError("its own")

    assert failures(handler, reports=False) == {"1", "2"}
    assert "its own" in capsys.readouterr().err


def test_a_function_that_takes_too_long_has_failed_with_all(capsys: pytest.CaptureFixture[str]) -> None:
    gate = threading.Event()
    assert failures(lambda _event, _: gate.wait(), timeout=0) == {"1", "2"}
    gate.set()
    assert "Notes did not answer within 0 s" in capsys.readouterr().err


def test_a_batch_is_one_line_on_the_console(capsys: pytest.CaptureFixture[str]) -> None:
    failures(lambda _event, _: {"batchItemFailures": [item("2")]})
    assert capsys.readouterr().out.startswith("Notes 2 records, 1 failed ")


@pytest.mark.parametrize("result", [None, {}, {"batchItemFailures": None}, {"batchItemFailures": []}])
def test_a_result_without_failures_is_a_success(result: Any) -> None:
    assert reported_failures(result, {"1", "2"}) == set()


@pytest.mark.parametrize("identifier", ["", None, "3", 1, ["1"]])
def test_a_failure_that_names_no_record_is_a_failure_of_all(identifier: Any) -> None:
    assert reported_failures({"batchItemFailures": [item("1"), item(identifier)]}, {"1", "2"}) == {"1", "2"}


@pytest.mark.parametrize("result", ["done", {"batchItemFailures": "1"}, {"batchItemFailures": [{"id": "1"}]}])
def test_a_result_that_cannot_be_understood_is_a_failure_of_all(result: Any) -> None:
    assert reported_failures(result, {"1", "2"}) == {"1", "2"}


def test_a_record_may_be_named_twice() -> None:
    assert reported_failures({"batchItemFailures": [item("1"), item("1")]}, {"1", "2"}) == {"1"}
