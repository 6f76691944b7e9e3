"""A callers' table beside the tasks table, an index that lags behind, and many tasks at once."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from msgspec.structs import replace

from a2a_lambda import items, task
from a2a_lambda.agent import Update
from a2a_lambda.dynamodb import INDEX
from a2a_lambda.model import TaskState
from a2a_lambda.tables import Table
from a2a_lambda.task import Head
from local.deployment import read_deployment
from tests.integration.tables import RETENTION_DAYS, TEMPLATE, Item, Tasks
from tests.unit.factories import NOON, Ids, ended, message

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PROJECTED: Final = ("task_id", "entry", "owner", "status_order", "context_id", "state")


class Callers(Table):
    """A callers' table of its own."""

    _numbers: ClassVar[Iterator[int]] = itertools.count(1)

    def __init__(self, client: "DynamoDBClient") -> None:
        self.client = client
        self.name = f"Callers-{next(self._numbers)}"
        described = {table.name: table for table in read_deployment(TEMPLATE, {}).tables}
        creation: Any = {**described["CallersTable"].creation, "TableName": self.name}
        client.create_table(**creation)
        super().__init__(client, self.name)

    def items(self) -> list[Item]:
        """Return everything that the table holds."""
        return [dict(item) for item in self.client.scan(TableName=self.name)["Items"]]


def new_task(
    *updates: Update, owner: str = "anonymous", at: int = NOON, context_id: str = "context-1", said: str = "Hello"
) -> Head:
    """Return a new task that is finished by these updates at a time."""
    sent = message(said, task_id=Ids()(), context_id=context_id)
    head = task.begin(owner=owner, message=sent, key=f"key-of-{sent.task_id}", now=at, deadline=at + 1000)
    return ended(head, *updates, message_=sent)


def fill(tasks: Tasks, heads: Sequence[Head]) -> None:
    """Put tasks into the table, with fewer calls than one a task."""
    kept = [replace(head, retention=RETENTION_DAYS * 24 * 3600) for head in heads]
    written = [items.Writer(head, f"write-{head.task_id}").head() for head in kept]
    with tasks.unobserved():
        Table(tasks.client, tasks.name).put_all(written)


class LaggingIndex:
    """A client whose index is as it was when it was last brought up to date, or each replica of it its own way."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self.replicas: list[list[Item]] = []
        """What the index has; queries go to each in turn."""
        self._turns = itertools.count()
        self.catch_up()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tasks.client, name)

    def snapshot(self) -> list[Item]:
        """Return the index as it should be now."""
        whole = [item for item in self._tasks.all_items() if "status_order" in item]
        return [{name: item[name] for name in PROJECTED} for item in whole]

    def catch_up(self) -> None:
        """Bring the index up to date."""
        self.replicas = [self.snapshot()]

    def query(self, **query: Any) -> Any:
        """Answer from the index as it was, and all other queries as they are."""
        if query.get("IndexName") != INDEX:
            return self._tasks.client.query(**query)
        replica = self.replicas[next(self._turns) % len(self.replicas)]
        values = query["ExpressionAttributeValues"]
        start = query.get("ExclusiveStartKey", {}).get("status_order", {"S": "~"})["S"]
        found = sorted(
            (
                entry
                for entry in replica
                if entry["owner"] == values[":owner"] and values[":since"]["S"] <= entry["status_order"]["S"] < start
            ),
            key=lambda entry: str(entry["status_order"]["S"]),
            reverse=True,
        )
        examined = found[: query["Limit"]]
        matching = [each for each in examined if _matches(each, query.get("FilterExpression", ""), values)]
        answer = {"Items": matching, "Count": len(matching), "ScannedCount": len(examined)}
        if len(examined) == query["Limit"]:
            answer["LastEvaluatedKey"] = {name: examined[-1][name] for name in PROJECTED[:4]}
        return answer


def _matches(entry: Item, expression: str, values: Item) -> bool:
    same_context = "context_id" not in expression or entry["context_id"] == values[":context_id"]
    return same_context and ("#state" not in expression or entry["state"] == values[":state"])


def moved(tasks: Tasks, head: Head, *, at: int, state: TaskState = TaskState.CANCELED) -> None:
    """Change a task's state at a time."""
    following = replace(head, state=state, status_at=at, revision=head.revision + 1)
    tasks.store().prepare(head, following)()


def counted(calls: Callable[[], object], tasks: Tasks) -> dict[str, int]:
    """Return how often each operation of DynamoDB is called."""
    made = tasks.calls_of(calls)
    return {name: made.count(name) for name in sorted(set(made))}
