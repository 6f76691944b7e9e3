"""Where the commands work."""

from collections.abc import Iterator

import pytest
from moto import mock_aws

from a2a_lambda.errors import UnavailableError
from admin.__main__ import TEMPLATE
from admin.database import open_database
from admin.errors import AdminError
from local.deployment import Deployment, read_deployment
from local.server import listen, port_of
from local.tables import create_missing_tables
from tests.admin.cloudformation import cloudformation
from tests.admin.deployment import new_client

KEY = {"subject": {"S": "s"}, "entry": {"S": "e"}}


def deployment() -> Deployment:
    return read_deployment(TEMPLATE, {})


@pytest.fixture
def aws() -> Iterator[None]:
    with mock_aws():
        yield


@pytest.fixture
def stacks(dynamodb: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An AWS with a stack of this project and another one."""
    ours = {"TasksTableName": "TasksTable", "CallersTableName": "CallersTable", "EndpointUrl": "https://x"}
    with cloudformation({"agent": ours, "other": {"TasksTableName": "t"}}) as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", address)
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb)
        yield


@pytest.mark.usefixtures("stacks")
def test_a_deployed_stack_says_itself_which_its_tables_are(dynamodb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create_missing_tables(dynamodb, deployment().tables)
    monkeypatch.setenv("STACK", "agent")
    with open_database(deployment()) as database:
        assert (database.tasks_table, database.callers_table) == ("TasksTable", "CallersTable")
        database.callers.put(KEY)
        assert database.callers.get(KEY) == KEY


@pytest.mark.usefixtures("stacks")
@pytest.mark.parametrize(
    ("stack", "reason"),
    [
        ("other", "the stack other has no output CallersTableName: deploy it anew"),
        ("nothing", "the stack nothing cannot be used: .* does not exist"),
    ],
)
def test_a_stack_that_is_not_this_projects_is_said_to_be(
    stack: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STACK", stack)
    with pytest.raises(AdminError, match=reason), open_database(deployment()):
        pass


def test_a_stack_and_an_endpoint_are_one_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STACK", "agent")
    monkeypatch.setenv("DYNAMODB_ENDPOINT", "http://127.0.0.1:8000")
    with pytest.raises(AdminError, match="not both"), open_database(deployment()):
        pass


def test_on_this_machine_missing_tables_are_created(dynamodb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PORT", dynamodb.rpartition(":")[2])
    with open_database(deployment()) as database:
        assert database.place == dynamodb
        assert database.callers.get({"subject": {"S": "nobody"}, "entry": {"S": "rate"}}) is None
        assert list(database.scan_tasks({})) == []


@pytest.mark.usefixtures("aws")
def test_elsewhere_nothing_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNAMODB_ENDPOINT", "https://dynamodb.us-east-1.amazonaws.com")
    with pytest.raises(AdminError, match="cannot be used") as refused, open_database(deployment()) as database:
        database.callers.put(KEY)
    assert "\n" not in str(refused.value)
    assert new_client().list_tables()["TableNames"] == []


@pytest.mark.parametrize("endpoint", ["x", "127.0.0.1:8000", "http://"])
def test_what_is_no_address_is_said_to_be_none(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNAMODB_ENDPOINT", endpoint)
    with pytest.raises(AdminError, match="is not an address"), open_database(deployment()):
        pass


def test_where_nothing_runs_it_is_said_what_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with listen(0) as taken:
        nobody = f"http://127.0.0.1:{port_of(taken)}"
    monkeypatch.setenv("DYNAMODB_ENDPOINT", nobody)
    with pytest.raises(AdminError, match="Is `make run` or `make database` running"), open_database(deployment()):
        pass


def test_a_database_that_stops_answering_is_said_to(dynamodb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNAMODB_ENDPOINT", dynamodb)
    with pytest.raises(AdminError, match="does not answer now"), open_database(deployment()):
        raise UnavailableError


@pytest.mark.usefixtures("aws")
def test_without_a_region_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "none")
    monkeypatch.setenv("STACK", "agent")
    with pytest.raises(AdminError, match="region"), open_database(deployment()):
        pass
