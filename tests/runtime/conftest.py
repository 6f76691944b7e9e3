"""The built functions in the emulator, rpc once open to everybody and once not, with a database."""

import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from botocore.session import get_session

from a2a_lambda import timestamps
from a2a_lambda.keys import TableKeys
from a2a_lambda.tables import Table
from local.deployment import Function, read_deployment
from local.endpoints import LOCAL_IDENTITY
from tests.runtime import emulator
from tests.template import sam
from tests.template.database import running_database
from tests.template.invocations import OPEN


def deployed(name: str, variables: Mapping[str, str]) -> Function:
    return read_deployment(sam.ROOT / "template.yaml", variables).functions[name]


@pytest.fixture(scope="session")
def build() -> Path:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("the emulator in aws-sam-cli that these tests start is for Linux on x86_64")
    sam.require_python()
    return sam.build("x86_64")


@pytest.fixture(scope="module")
def card(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[emulator.Invoke]:
    with emulator.running(deployed("CardFunction", OPEN), build, tmp_path_factory.mktemp("card")) as invoke:
        yield invoke


@pytest.fixture(scope="module")
def rpc_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rpc")


@pytest.fixture(scope="session")
def database() -> Iterator[str]:
    with running_database() as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def rpc(build: Path, rpc_folder: Path, database: str) -> Iterator[emulator.Invoke]:
    function = deployed("RpcFunction", {**OPEN, "DYNAMODB_ENDPOINT": database})
    with emulator.running(function, build, rpc_folder) as invoke:
        yield invoke


@pytest.fixture(scope="module")
def guarded_rpc(build: Path, database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[emulator.Invoke]:
    function = deployed("RpcFunction", {"AUTH": "api-key", "DYNAMODB_ENDPOINT": database})
    with emulator.running(function, build, tmp_path_factory.mktemp("guarded-rpc")) as invoke:
        yield invoke


@pytest.fixture
def keys(database: str) -> TableKeys:
    session = get_session()
    session.set_credentials(LOCAL_IDENTITY["AWS_ACCESS_KEY_ID"], LOCAL_IDENTITY["AWS_SECRET_ACCESS_KEY"])
    client = session.create_client("dynamodb", LOCAL_IDENTITY["AWS_REGION"], endpoint_url=database)
    return TableKeys(Table(client, "CallersTable"), clock=timestamps.now)
