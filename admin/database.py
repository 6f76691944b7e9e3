"""Where a command works: the tables of this machine's database, of another endpoint, or of a deployed stack."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import get_session

from a2a_lambda.bootstrap import dynamodb_client
from a2a_lambda.errors import UnavailableError
from a2a_lambda.tables import Table
from admin.errors import AdminError
from local.endpoints import identify_to, is_here
from local.errors import DatabaseUnreachableError
from local.tables import create_missing_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mypy_boto3_dynamodb import DynamoDBClient

    from a2a_lambda.tables import Item
    from local.deployment import Deployment

CALLERS_OUTPUT = "CallersTableName"
TASKS_OUTPUT = "TasksTableName"


@dataclass(frozen=True)
class Database:
    """A DynamoDB, the names of a deployment's two tables in it, and what to call it."""

    place: str
    client: DynamoDBClient
    tasks_table: str
    callers_table: str

    @property
    def tasks(self) -> Table:
        """The table of tasks."""
        return Table(self.client, self.tasks_table)

    @property
    def callers(self) -> Table:
        """The callers' table."""
        return Table(self.client, self.callers_table)

    def scan_tasks(self, arguments: Mapping[str, Any]) -> Iterator[Item]:
        """Read the whole table of tasks, consistently, and yield the items that the arguments leave."""
        pages = self.client.get_paginator("scan").paginate(TableName=self.tasks_table, ConsistentRead=True, **arguments)
        return (item for page in pages for item in page["Items"])


@contextmanager
def open_database(deployment: Deployment) -> Iterator[Database]:
    """The database that the environment names: STACK's, DYNAMODB_ENDPOINT's, or the one at DB_PORT.

    What goes wrong with it inside is raised as AdminError. The deployment is the
    template's: it says which tables there are on this machine.
    """
    stack, endpoint = stack_and_endpoint()
    with using(f"the stack {stack}" if stack else endpoint):
        yield _of_stack(stack) if stack else _at(endpoint, deployment)


def stack_and_endpoint() -> tuple[str, str]:
    """The stack's name and "", or "" and the endpoint of a DynamoDB, as the environment has it.

    Raises AdminError where it names both.
    """
    stack, endpoint = os.environ.get("STACK", ""), os.environ.get("DYNAMODB_ENDPOINT", "")
    if stack and endpoint:
        raise AdminError("give STACK or DYNAMODB_ENDPOINT, not both")
    return stack, "" if stack else endpoint or f"http://127.0.0.1:{os.environ.get('DB_PORT') or 8000}"


@contextmanager
def using(place: str) -> Iterator[None]:
    """Raise what goes wrong with AWS, or what stands for it, as AdminError."""
    try:
        yield
    except UnavailableError as error:
        raise AdminError(f"{place} does not answer now; try again") from error
    except (BotoCoreError, ClientError) as error:
        raise AdminError(f"{place} cannot be used: {error}") from error


def outputs_of(stack: str) -> dict[str, str]:
    """What a deployed stack says of itself."""
    cloudformation: Any = get_session().create_client("cloudformation")
    (described,) = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])}


def _at(endpoint: str, deployment: Deployment) -> Database:
    identify_to(endpoint)
    if not urlsplit(endpoint).hostname:
        raise AdminError(f"DYNAMODB_ENDPOINT={endpoint} is not an address")
    try:
        if is_here(endpoint):
            create_missing_tables(endpoint, deployment.tables)
        client = dynamodb_client(endpoint)
    except DatabaseUnreachableError as error:
        raise AdminError(f"{error}. Is `make run` or `make database` running?") from error
    except ValueError as error:
        raise AdminError(f"DYNAMODB_ENDPOINT={endpoint}: {error}") from error
    names = deployment.variables()
    return Database(endpoint, client, names["TASKS_TABLE"], names["CALLERS_TABLE"])


def _of_stack(stack: str) -> Database:
    outputs = outputs_of(stack)
    missing = {CALLERS_OUTPUT, TASKS_OUTPUT} - outputs.keys()
    if missing:
        raise AdminError(f"the stack {stack} has no output {' and no '.join(sorted(missing))}: deploy it anew")
    return Database(f"the stack {stack}", dynamodb_client(""), outputs[TASKS_OUTPUT], outputs[CALLERS_OUTPUT])
