"""The functions' code in this process: loaded once, invoked by many threads at a time."""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
import traceback
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

from local.errors import FunctionExitedError, FunctionNotLoadedError, FunctionTimeoutError
from local.template import function_arn

if TYPE_CHECKING:
    from collections.abc import Callable

    from local.deployment import Function

Handler: TypeAlias = "Callable[[dict[str, object], LambdaContext], object]"


@dataclass(frozen=True)
class LambdaContext:
    """What a handler is told beside its event.

    https://docs.aws.amazon.com/lambda/latest/dg/python-context.html
    """

    aws_request_id: str
    function_name: str
    memory_limit_in_mb: str
    deadline: float
    function_version: str = "$LATEST"
    identity: None = None
    client_context: None = None

    @property
    def invoked_function_arn(self) -> str:
        """The ARN that the function was invoked by."""
        return function_arn(self.function_name)

    @property
    def log_group_name(self) -> str:
        """The log group that the function would write to."""
        return f"/aws/lambda/{self.function_name}"

    @property
    def log_stream_name(self) -> str:
        """The log stream of this instance."""
        return "local"

    def get_remaining_time_in_millis(self) -> int:
        """The milliseconds until the function's timeout."""
        return max(0, round((self.deadline - time.monotonic()) * 1000))


@dataclass(frozen=True)
class LoadedFunction:
    """A function and its handler."""

    function: Function
    handler: Handler

    def invoke(self, event: dict[str, object], request_id: str, timeout: float) -> object:
        """The handler's result.

        Raises FunctionTimeoutError after `timeout` seconds or the function's own, and what
        the handler raises. AWS ends the function then; here its thread runs on unheard.
        """
        seconds = min(timeout, self.function.timeout)
        deadline = time.monotonic() + self.function.timeout
        context = LambdaContext(request_id, self.function.name, str(self.function.memory), deadline)
        outcome: Future[object] = Future()

        def run() -> None:
            try:
                outcome.set_result(self.handler(event, context))
            except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
                outcome.set_exception(error if isinstance(error, Exception) else FunctionExitedError(repr(error)))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(seconds)
        if thread.is_alive():
            raise FunctionTimeoutError(f"{self.function.name} did not answer within {seconds:g} s")
        return outcome.result()


def load_function(function: Function) -> LoadedFunction:
    """The function with its module imported, under a name of its own since all are called `app`."""
    module_path, _, attribute = function.handler.rpartition(".")
    file = function.source / f"{module_path.replace('.', '/')}.py"
    name = f"functions.{function.name}.{module_path}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise FunctionNotLoadedError(f"{function.name}: there is no {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        if type(error).__module__ == "builtins":
            # A bug rather than a refusal: its author needs to see where.
            traceback.print_exc()
        raise FunctionNotLoadedError(f"{function.name} cannot be loaded: {error}") from error
    handler = getattr(module, attribute, None)
    if not callable(handler):
        raise FunctionNotLoadedError(f"{function.name}: {file} has no function {attribute}")
    return LoadedFunction(function, cast("Handler", handler))
