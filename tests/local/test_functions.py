"""Loading and invoking functions."""

import threading
from pathlib import Path

import pytest

from local.deployment import Function
from local.errors import FunctionExitedError, FunctionNotLoadedError, FunctionTimeoutError
from local.functions import LambdaContext, LoadedFunction, load_function


def function(source: Path, handler: str = "app.handler", timeout: float = 5) -> Function:
    return Function("Worker", source, handler, timeout, 512, {}, ())


def write(folder: Path, code: str) -> Function:
    (folder / "app.py").write_text(code, encoding="utf-8")
    return function(folder)


def test_functions_with_the_same_file_name_are_modules_of_their_own(tmp_path: Path) -> None:
    results = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        code = f"def handler(event, context): return {name!r}"
        (tmp_path / name / "app.py").write_text(code, encoding="utf-8")
        loaded = load_function(Function(name, tmp_path / name, "app.handler", 5, 512, {}, ()))
        results.append(loaded.invoke({}, "r", 5))
    assert results == ["one", "two"]


@pytest.mark.parametrize("code", ["", "handler = 1", "raise OSError('no')", "def", "import nothing_of_this_name"])
def test_a_function_that_cannot_be_loaded_is_named(tmp_path: Path, code: str) -> None:
    with pytest.raises(FunctionNotLoadedError, match="Worker"):
        load_function(write(tmp_path, code))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FunctionNotLoadedError, match=r"app\.py"):
        load_function(function(tmp_path))


def test_a_bug_is_shown_where_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FunctionNotLoadedError):
        load_function(write(tmp_path, "1 / 0"))
    assert "1 / 0" in capsys.readouterr().err


def test_a_refusal_in_the_functions_own_words_needs_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "class InvalidSetting(Exception): pass\nraise InvalidSetting('SIZE: must be a number')"
    with pytest.raises(FunctionNotLoadedError, match="SIZE: must be a number"):
        load_function(write(tmp_path, code))
    assert capsys.readouterr().err == ""


def test_a_handler_is_told_of_its_invocation(tmp_path: Path) -> None:
    seen: list[LambdaContext] = []
    LoadedFunction(function(tmp_path), lambda _, context: seen.append(context)).invoke({}, "request-1", 30)
    (context,) = seen
    assert context.aws_request_id == "request-1"
    assert context.function_name == "Worker"
    assert context.memory_limit_in_mb == "512"
    assert context.invoked_function_arn == "arn:aws:lambda:us-east-1:123456789012:function:Worker"
    assert (context.log_group_name, context.log_stream_name) == ("/aws/lambda/Worker", "local")
    assert 0 < context.get_remaining_time_in_millis() <= 5000


def test_what_a_handler_raises_is_raised(tmp_path: Path) -> None:
    def handler(_event: dict[str, object], _context: LambdaContext) -> object:
        raise LookupError("its own")

    with pytest.raises(LookupError, match="its own"):
        LoadedFunction(function(tmp_path), handler).invoke({}, "r", 5)


def test_a_handler_that_would_end_the_process_does_not(tmp_path: Path) -> None:
    def handler(_event: dict[str, object], _context: LambdaContext) -> object:
        raise SystemExit(1)

    with pytest.raises(FunctionExitedError, match="SystemExit"):
        LoadedFunction(function(tmp_path), handler).invoke({}, "r", 5)


@pytest.mark.parametrize(("own", "integration"), [(0.01, 5), (5, 0.01)])
def test_a_handler_is_awaited_until_the_first_timeout(tmp_path: Path, own: float, integration: float) -> None:
    gate = threading.Event()
    loaded = LoadedFunction(function(tmp_path, timeout=own), lambda _event, _context: gate.wait())
    with pytest.raises(FunctionTimeoutError):
        loaded.invoke({}, "r", integration)
    gate.set()


def test_invocations_run_at_the_same_time(tmp_path: Path) -> None:
    together = threading.Barrier(2, timeout=5)
    loaded = LoadedFunction(function(tmp_path), lambda _event, _context: together.wait() >= 0)
    other = threading.Thread(target=loaded.invoke, args=({}, "r", 5))
    other.start()
    assert loaded.invoke({}, "r", 5) is True
    other.join()
