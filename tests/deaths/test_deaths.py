"""Whoever dies, and wherever: no answered task is lost or stuck, no acting turn runs twice, no webhook is left out.

Each flow is carried out once for each step that an instance of a function takes: each call of the store and of a
queue, each of a webhook's connection, each thing that the agent does. Before that step the instance dies (os._exit),
and others carry on. With DEATHS=2 also two die, before each two steps, which takes hours. DEATHS_LOG=file keeps the
logs of the functions.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import Final, Self, TypeGuard

import msgspec
import pytest

from tests.deaths.deployment import ROOT
from tests.deaths.flows import FLOWS, MORE_FLOWS

PROCESSES: Final = 2
"""That explore at the same time."""

Found = Callable[[str], list[str]]


class ExplorerProcess:
    """Explores flows in a process of its own, from which others can be forked."""

    def __enter__(self) -> Self:
        path = os.pathsep.join(str(ROOT / folder) for folder in (".", "layers/a2a", "layers/agent"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.deaths.explore"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate()

    def explore(self, name: str) -> list[str]:
        """Return what is wrong with a flow."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{name}\n")
        return msgspec.json.decode(self._process.stdout.readline(), type=list[str])


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest) -> Iterator[Found]:
    """What is wrong with a flow. Those that are wanted are explored side by side."""
    names = [str(item.callspec.params["name"]) for item in request.session.items if is_explored(item)]
    free: SimpleQueue[ExplorerProcess] = SimpleQueue()

    def explore(name: str) -> list[str]:
        explorer = free.get()
        try:
            return explorer.explore(name)
        finally:
            free.put(explorer)

    with ExplorerProcess() as one, ExplorerProcess() as another, ThreadPoolExecutor(PROCESSES) as pool:
        free.put(one)
        free.put(another)
        results: dict[str, Future[list[str]]] = {name: pool.submit(explore, name) for name in names}
        yield lambda name: results[name].result()
        pool.shutdown(cancel_futures=True)


def is_explored(item: pytest.Item) -> TypeGuard[pytest.Function]:
    return isinstance(item, pytest.Function) and item.path.samefile(__file__)


@pytest.mark.parametrize("name", [*FLOWS, *(pytest.param(name, marks=pytest.mark.thorough) for name in MORE_FLOWS)])
def test_whoever_dies_others_carry_on(found: Found, name: str) -> None:
    assert found(name) == []
