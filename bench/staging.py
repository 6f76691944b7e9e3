"""The functions laid out as they are deployed, each stack by itself: what it imports is what it brings.

    .venv-bench/server/task-RpcFunction   the function's folder, and so for the others
    .venv-bench/server/opt                its layers, one over the other
    .venv-bench/server/runtime            what Lambda's own runtime brings
    .venv-bench/sdk                       the official SDK and what it needs
    .venv-bench/sdk-sql                   what its SQL store needs beside that

Everything is compiled, for all alike. Packages are installed again when a list of them has changed.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from local.deployment import read_deployment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from local.deployment import Deployment

ROOT = Path(__file__).parent.parent
STAGE = ROOT / ".venv-bench"
RPC = "RpcFunction"
NOT_CODE = ("__pycache__", "*.pyc", ".*_cache")

DEPLOYED_PYTHON = "3.13"
"""The version that is measured where this machine has it; otherwise the one that runs the bench."""

IDENTITY = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}
"""What botocore needs to call a DynamoDB on this machine."""


@dataclass(frozen=True)
class Stack:
    """A function as an interpreter starts it: import path and environment."""

    name: str
    path: tuple[Path, ...]
    variables: Mapping[str, str]

    def environment(self) -> dict[str, str]:
        """The environment of its interpreter. The bench's own modules come last on the path."""
        path = ":".join(str(each) for each in (*self.path, ROOT))
        return {**IDENTITY, **self.variables, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

    def with_variables(self, **variables: str) -> Stack:
        """The same stack with these settings."""
        return Stack(self.name, self.path, {**self.variables, **variables})


class StageError(Exception):
    """Something could not be laid out. The message says what, and what may be done about it."""


@dataclass(frozen=True)
class Stage:
    """The stacks to be measured, and the interpreter to measure them with."""

    python: str
    functions: Mapping[str, Stack]
    """This server's functions by name, without push notifications."""
    memory: Mapping[str, int]
    """The megabytes that each of them has."""
    sdk_memory: Stack
    sdk_sql: Stack
    deployed_bytes: int
    sdk_bytes: int
    sdk_sql_bytes: int

    @property
    def server(self) -> Stack:
        """The function that answers requests."""
        return self.functions[RPC]

    @property
    def card(self) -> Stack:
        """The function that answers with the card."""
        return self.functions["CardFunction"]


def deployment(endpoint: str) -> Deployment:
    """What template.yaml deploys, open to everybody and with an unsigned card, on the AWS at an endpoint."""
    given = {"AUTH": "none", "PUSH": "on", "PUSH_ALLOW_LOCAL": "on"}
    return read_deployment(ROOT / "template.yaml", {**given, "DYNAMODB_ENDPOINT": endpoint, "SQS_ENDPOINT": endpoint})


@contextmanager
def alone() -> Iterator[None]:
    """Keep every other bench from these folders and databases until the end of the block.

    Raises StageError where another one has them.
    """
    STAGE.mkdir(exist_ok=True)
    with (STAGE / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StageError(f"Another bench is at work in {STAGE.name}; its numbers would be wrong, too.") from error
        yield


def prepare(deployed: Deployment) -> Stage:
    """Lay everything out.

    Raises StageError.
    """
    python = interpreter()
    runtime, sdk, sdk_sql = STAGE / "server" / "runtime", STAGE / "sdk", STAGE / "sdk-sql"
    for name, target in (("bench-runtime", runtime), ("bench-sdk", sdk), ("bench-sdk-sql", sdk_sql)):
        install(python, ROOT / "requirements" / f"{name}.txt", target)
    opt = STAGE / "server" / "opt"
    layers = deployed.layers()
    shutil.rmtree(opt, ignore_errors=True)
    for layer in layers:
        if (layer / "requirements.txt").exists():
            packages = STAGE / "packages" / layer.name
            install(python, layer / "requirements.txt", packages)
            shutil.copytree(packages, opt, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*NOT_CODE))
        shutil.copytree(layer, opt, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*NOT_CODE))
    stacks, deployed_bytes = {}, size(opt)
    path = (opt, ROOT / "bench" / "agents", runtime)
    for name, function in deployed.functions.items():
        task = STAGE / "server" / f"task-{name}"
        shutil.rmtree(task, ignore_errors=True)
        shutil.copytree(function.source, task, ignore=shutil.ignore_patterns(*NOT_CODE))
        deployed_bytes += size(task)
        stacks[name] = Stack("this server", (task, *path), {**function.variables, **without_push(function.variables)})
    compile_all(python, [opt, runtime, sdk, sdk_sql, ROOT / "bench", *(STAGE / "server").glob("task-*")])
    database = STAGE / "sdk.sqlite"
    database.unlink(missing_ok=True)
    sdk_path = (ROOT / "bench" / "sdk", sdk)
    return Stage(
        python,
        functions=stacks,
        memory={name: function.memory for name, function in deployed.functions.items()},
        sdk_memory=Stack("SDK, memory", sdk_path, {"TASK_STORE": "memory"}),
        sdk_sql=Stack("SDK, SQL", (*sdk_path, sdk_sql), {"TASK_STORE": f"sqlite+aiosqlite:///{database}"}),
        deployed_bytes=deployed_bytes,
        sdk_bytes=size(sdk),
        sdk_sql_bytes=size(sdk) + size(sdk_sql),
    )


def without_push(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of a function's variables that say whether there are push notifications, as they are by default."""
    return {name: value for name, value in {"PUSH": "off", "PUSH_QUEUE": ""}.items() if name in variables}


def interpreter() -> str:
    """The interpreter to measure with."""
    asked = [str(ROOT / "local" / "find_python"), "exactly", DEPLOYED_PYTHON]
    found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return found or str(Path(sys.executable).resolve())


def install(python: str, requirements: Path, target: Path) -> None:
    """Install a list of packages into a folder of their own, unless that very list is there.

    Raises StageError.
    """
    lists = requirements.read_bytes() + (ROOT / "requirements" / "constraints.txt").read_bytes()
    mark = target.with_name(f"{target.name}.installed")
    wanted = hashlib.sha256(lists + python.encode()).hexdigest()
    if mark.exists() and mark.read_text() == wanted:
        return
    mark.unlink(missing_ok=True)
    shutil.rmtree(target, ignore_errors=True)
    # Errors and no warnings, one of which is that root may install, too.
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "-qq", "--disable-pip-version-check"]
    run(
        [*pip, "--no-compile", "--no-deps", "--target", str(target), "-r", str(requirements)],
        f"The packages of {requirements.relative_to(ROOT)} cannot be installed for {python}; pip says why.",
    )
    mark.write_text(wanted)


def compile_all(python: str, folders: Sequence[Path]) -> None:
    """Compile what is not compiled yet.

    Raises StageError.
    """
    run(
        [python, "-m", "compileall", "-q", "-j", "0", *map(str, folders)], f"{python} cannot compile what it is to run."
    )


def run(command: Sequence[str], failure: str) -> None:
    """Run a command that lays something out.

    Raises StageError, saying what its failure means.
    """
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise StageError(f"{failure} What is in {STAGE.name} may be deleted: it is made again.") from error


def size(folder: Path) -> int:
    """The bytes of a folder's files, compiled code aside."""
    return sum(path.stat().st_size for path in files(folder))


def files(folder: Path) -> Iterable[Path]:
    """The files of a folder, compiled code aside."""
    return (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
