"""The built functions in the emulator, rpc with a database of its own."""

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.deployment import Function, read_deployment
from tests.runtime import emulator
from tests.template import sam
from tests.template.database import running_database


def deployed(name: str, variables: dict[str, str]) -> Function:
    return read_deployment(sam.ROOT / "template.yaml", variables).functions[name]


@pytest.fixture(scope="session")
def build() -> Path:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("the emulator in aws-sam-cli that these tests start is for Linux on x86_64")
    sam.require_python()
    return sam.build("x86_64")


@pytest.fixture(scope="module")
def card(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[emulator.Invoke]:
    with emulator.running(deployed("CardFunction", {}), build, tmp_path_factory.mktemp("card")) as invoke:
        yield invoke


@pytest.fixture(scope="module")
def rpc_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rpc")


@pytest.fixture(scope="module")
def rpc(build: Path, rpc_folder: Path) -> Iterator[emulator.Invoke]:
    with running_database() as endpoint:
        function = deployed("RpcFunction", {"DYNAMODB_ENDPOINT": endpoint})
        with emulator.running(function, build, rpc_folder) as invoke:
            yield invoke
