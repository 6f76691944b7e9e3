"""A deployment in this process: its tables, its server, and callers with keys."""

import functools
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import botocore.session

from a2a_lambda import bootstrap, timestamps
from a2a_lambda.callers import Credentials
from a2a_lambda.calls import Call
from a2a_lambda.keys import TableKeys
from admin.__main__ import TEMPLATE
from admin.database import Database
from local.deployment import read_deployment

AGENT: Final = "tests.admin.agents:Talker"

Item = Mapping[str, Any]


@functools.cache
def described() -> dict[str, Mapping[str, Any]]:
    """What the template says of the tables."""
    return {table.name: table.creation for table in read_deployment(TEMPLATE, {}).tables}


def new_client() -> Any:
    return botocore.session.get_session().create_client("dynamodb")


@dataclass
class Caller:
    """Someone with a key, who calls the server."""

    server: bootstrap.Server
    key: str

    _numbers: ClassVar[Iterator[int]] = itertools.count(1)

    def call(self, method: str, params: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        credentials = Credentials(api_key=self.key, source_address="127.0.0.1")

        def admit() -> Call:
            return Call(owner=self.server.admit(credentials), extensions=[], seconds_left=lambda: 29.0)

        return json.loads(self.server.endpoint.answer(body, version="1.0", admit=admit).body)

    def try_to_send(self, text: str, **message: str) -> Any:
        sent = {"messageId": str(next(self._numbers)), "role": "ROLE_USER", "parts": [{"text": text}], **message}
        return self.call("SendMessage", {"message": sent, "configuration": {"historyLength": 0}})

    def send(self, text: str, **message: str) -> Any:
        return self.try_to_send(text, **message)["result"]

    def converse(self) -> str:
        """Begin a task of three turns with content of every size; its id."""
        task_id: str = self.send("large")["task"]["id"]
        self.send("small", taskId=task_id)
        self.send("large", taskId=task_id)
        return task_id


@dataclass
class Deployed:
    """Tables of their own, and the server in front of them."""

    client: Any = field(default_factory=new_client)
    server: bootstrap.Server = field(init=False)
    database: Database = field(init=False)

    _numbers: ClassVar[Iterator[int]] = itertools.count(1)

    def __post_init__(self) -> None:
        number = next(self._numbers)
        tasks, callers = (self._create(name, f"{name}-{number}") for name in ("TasksTable", "CallersTable"))
        self.database = Database("the test's database", self.client, tasks, callers)
        environ = {"A2A_AGENT": AGENT, "AUTH": "api-key", "TASKS_TABLE": tasks, "CALLERS_TABLE": callers}
        self.server = bootstrap.rpc_server({**environ, "RATE_PER_SECOND": "10000", "RATE_BURST": "100000"})

    def _create(self, described_as: str, name: str) -> str:
        self.client.create_table(**{**described()[described_as], "TableName": name})
        return name

    def caller(self, name: str) -> Caller:
        """A caller with a new key."""
        key, _ = TableKeys(self.database.callers, clock=timestamps.now).make(name)
        return Caller(self.server, key)

    def items_of(self, owner: str) -> list[Item]:
        """All that an owner has in both tables, in a fixed order; of a caller's, the keys too."""
        return sorted((item for item in self._items() if _owner(item) == owner), key=str)

    def _items(self) -> Iterator[Item]:
        for table in (self.database.tasks_table, self.database.callers_table):
            yield from self.client.get_paginator("scan").paginate(TableName=table).search("Items[]")

    def before_call(self, number: int, act: Callable[[], object]) -> None:
        """Do something before the client's call of this number from now on, counted from 1."""
        left = itertools.count(number - 1, -1)

        def count(**_call: Any) -> None:
            if next(left) == 0:
                act()

        self.client.meta.events.register("before-call.dynamodb", count, unique_id="count")

    def calls_of(self, action: Callable[[], object]) -> int:
        """How many calls of the client an action makes."""
        calls: list[str] = []
        self.client.meta.events.register(
            "before-call.dynamodb", lambda model, **_call: calls.append(model.name), unique_id="count"
        )
        action()
        self.undisturbed()
        return len(calls)

    def undisturbed(self) -> None:
        """Let all calls be as they are from now on."""
        self.client.meta.events.unregister("before-call.dynamodb", unique_id="count")


def _owner(item: Item) -> str:
    if "owner" in item:
        return str(item["owner"]["S"])
    if "caller" in item:
        return f"key:{item['caller']['S']}"
    return str(item["subject"]["S"])
