"""AWS's Runtime Interface Emulator with a built function in it: the runtime's own client, no Docker.

The emulator serves one request at a time, crashes on two, and answers 200 whether the handler
returned or raised. Its binary is part of the `aws-sam-cli` package.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from local.deployment import Function
from local.endpoints import LOCAL_IDENTITY
from tests.template import sam

BINARY: Final = "samcli/local/rapid/aws-lambda-rie-x86_64"
LOG: Final = "emulator.log"
INVOCATIONS: Final = "2015-03-31/functions/function/invocations"
SECONDS_TO_START: Final = 30
SECONDS_TO_STOP: Final = 30
SECONDS_TO_ANSWER: Final = 60

Invoke = Callable[[dict[str, Any]], dict[str, Any]]


def free_address() -> tuple[str, int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        host, port = probe.getsockname()
    return str(host), int(port)


def executable(folder: Path) -> Path:
    """A copy of the emulator that may be executed, whatever the package manager made of the original."""
    (original,) = sam.environment().glob(f"lib/python*/site-packages/{BINARY}")
    copy = folder / original.name
    shutil.copyfile(original, copy)
    copy.chmod(0o755)
    return copy


def await_listener(address: tuple[str, int], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as probe:
            probe.settimeout(0.1)
            if probe.connect_ex(address) == 0:
                return
    message = "the emulator does not listen"
    raise TimeoutError(message)


@contextlib.contextmanager
def running(function: Function, build: Path, folder: Path) -> Iterator[Invoke]:
    """Run a built function in the emulator, its log in the folder; what is yielded invokes it with an event."""
    address, runtime_address = free_address(), free_address()
    layers = [str(layer) for layer in sorted(build.glob("*/python"))]
    command = [
        str(executable(folder)),
        "--runtime-interface-emulator-address",
        "{}:{}".format(*address),
        "--runtime-api-address",
        "{}:{}".format(*runtime_address),
        str(sam.environment() / "bin" / "python3.13"),
        "-m",
        "awslambdaric",
        function.handler,
    ]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(layers),
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_TIMEOUT": f"{function.timeout:.0f}",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory),
        # What Lambda sets for the template's LoggingConfig.
        "AWS_LAMBDA_LOG_FORMAT": "JSON",
        "AWS_LAMBDA_LOG_LEVEL": function.variables["POWERTOOLS_LOG_LEVEL"],
        **LOCAL_IDENTITY,
        **function.variables,
    }
    with (folder / LOG).open("wb") as log:
        process = subprocess.Popen(command, cwd=build / function.name, env=environment, stdout=log, stderr=log)
        try:
            await_listener(address, process)
            yield lambda event: invoke("http://{}:{}/{}".format(*address, INVOCATIONS), event)
        finally:
            # The emulator ends the runtime that it started.
            process.terminate()
            process.wait(timeout=SECONDS_TO_STOP)


def invoke(url: str, event: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(url, json.dumps(event).encode())  # noqa: S310 - an address of this module
    with urllib.request.urlopen(request, timeout=SECONDS_TO_ANSWER) as response:  # noqa: S310
        answer: dict[str, Any] = json.load(response)
    assert "errorType" not in answer, answer
    return answer
