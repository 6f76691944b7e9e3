"""The tasks table as the template describes it, and what tests watch and disturb about its client."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from a2a_lambda.agent import Agent
from a2a_lambda.bootstrap import CLIENT_CONFIG
from a2a_lambda.dynamodb import DynamoDBTaskStore
from a2a_lambda.tables import Table
from local.deployment import read_deployment
from tests.integration.dynamodb_rules import obey
from tests.unit.factories import Clock, Ids, Server, server

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TEMPLATE: Final = Path(__file__).resolve().parents[2] / "template.yaml"
RETENTION_DAYS: Final = 30
WINDOW_SECONDS: Final = 300

Item = dict[str, Any]
Answer = tuple[AWSResponse, dict[str, Any]]


def new_client(endpoint: str | None = None, config: Config | None = None) -> "DynamoDBClient":
    """Return a client as the function has it, which tries once where nothing else is asked for."""
    once = CLIENT_CONFIG.merge(Config(retries={"total_max_attempts": 1, "mode": "standard"}))
    client: DynamoDBClient = session().create_client("dynamodb", endpoint_url=endpoint, config=config or once)
    obey(client)
    return client


def patient_client(endpoint: str) -> "DynamoDBClient":
    """Return a client for many callers at once, who wait for one DynamoDB on one machine."""
    return new_client(endpoint, CLIENT_CONFIG.merge(Config(read_timeout=60, retries={"total_max_attempts": 1})))


@functools.cache
def session() -> Any:
    """Return a session that has read the service's description once for all tests."""
    return botocore.session.get_session()


@functools.cache
def described() -> Mapping[str, Any]:
    """Return what the template says of the table."""
    tables = {table.name: table for table in read_deployment(TEMPLATE, {}).tables}
    return tables["TasksTable"].creation


@dataclass
class Tasks:
    """A tasks table of its own, and the client that the store under test uses."""

    client: "DynamoDBClient"
    clock: Clock = field(default_factory=Clock)
    calls: list[str] = field(default_factory=list)
    """The names of the store's DynamoDB calls, in order."""
    name: str = ""
    endpoint: str | None = None

    _numbers: ClassVar[Iterator[int]] = itertools.count(1)

    def __post_init__(self) -> None:
        """Create the table, and begin to note the calls."""
        self.name = f"Tasks-{next(self._numbers)}"
        creation: Any = {**described(), "TableName": self.name}
        self.client.create_table(**creation)
        self.client.meta.events.register(
            "before-call.dynamodb", lambda model, **_rest: self.calls.append(model.name), unique_id=self.name
        )

    def store(
        self, client: Any = None, *, retention_days: int = RETENTION_DAYS, window_seconds: int = WINDOW_SECONDS
    ) -> DynamoDBTaskStore:
        """Return a store over the table."""
        return DynamoDBTaskStore(
            Table(client or self.client, self.name),
            retention_days=retention_days,
            window_seconds=window_seconds,
            clock=self.clock,
            new_id=Ids(),
        )

    def serve(
        self,
        agent: Agent,
        client: Any = None,
        *,
        retention_days: int = RETENTION_DAYS,
        window_seconds: int = WINDOW_SECONDS,
    ) -> Server:
        """Return a server whose tasks are kept in the table."""
        store = self.store(client, retention_days=retention_days, window_seconds=window_seconds)
        return server(agent, store=store, clock=self.clock, window_seconds=window_seconds)

    def items(self, task_id: str) -> dict[str, Item]:
        """Return all items of a task, by their sort keys."""
        with self.unobserved():
            found = self.client.query(
                TableName=self.name,
                KeyConditionExpression="task_id = :t",
                ExpressionAttributeValues={":t": {"S": task_id}},
            )
        return {item["entry"]["S"]: dict(item) for item in found["Items"]}

    def all_items(self) -> list[Item]:
        """Return every item of the table."""
        with self.unobserved():
            return [dict(item) for item in self.client.scan(TableName=self.name)["Items"]]

    def sweep(self) -> None:
        """Delete what has expired, as DynamoDB does in its own time."""
        with self.unobserved():
            for item in self.all_items():
                if int(item["expires_at"]["N"]) < self.clock.now // 1000:
                    key = {name: item[name] for name in ("task_id", "entry")}
                    self.client.delete_item(TableName=self.name, Key=key)

    @contextlib.contextmanager
    def unobserved(self) -> Iterator[None]:
        """Leave calls out of `calls`."""
        noted = len(self.calls)
        yield
        del self.calls[noted:]

    def calls_of(self, action: Callable[[], object]) -> list[str]:
        """Return the calls that an action makes."""
        self.calls.clear()
        action()
        return list(self.calls)

    def before(self, operation: str, action: Callable[[], object], *, at: int = 1) -> None:
        """Carry out an action once, just before the store's next (or `at`th) call of an operation is sent."""
        event = f"before-call.dynamodb.{operation}"
        left = itertools.count(at - 1, -1)

        def act(**_call: Any) -> None:
            if next(left) == 0:
                self.client.meta.events.unregister(event, act)
                action()

        self.client.meta.events.register(event, act)

    def answer(self, operation: str, *answers: Answer | BaseException) -> None:
        """Answer the store's next calls of an operation in DynamoDB's place, or fail to."""
        event = f"before-call.dynamodb.{operation}"
        left = list(answers)

        def respond(**_call: Any) -> Answer:
            answer = left.pop(0)
            if not left:
                self.client.meta.events.unregister(event, respond)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        self.client.meta.events.register_first(event, respond)


def response(**parsed: Any) -> Answer:
    """Return an answer of DynamoDB's."""
    return AWSResponse("http://dynamodb", 200, {}, None), parsed


def error(code: str, status: int = 400) -> Answer:
    """Return one of DynamoDB's errors."""
    parsed = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return AWSResponse("http://dynamodb", status, {}, None), parsed
