"""Lists as the bench makes and counts them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from botocore.session import get_session

from bench import counts
from bench.lists import copy_items, copy_rows, count

if TYPE_CHECKING:
    from pathlib import Path

TASK = {"task_id": {"S": "a"}, "entry": {"S": "head"}, "status_order": {"S": "2026-09-26T20:37:31.000Z#a"}}


class OneTask:
    """A DynamoDB client of a table with one task, which keeps what is written."""

    def __init__(self) -> None:
        self.batches: list[list[dict[str, Any]]] = []

    def scan(self, **_: Any) -> dict[str, Any]:
        return {"Items": [TASK]}

    def batch_write_item(self, **arguments: Any) -> None:
        self.batches.append([request["PutRequest"]["Item"] for request in arguments["RequestItems"]["T"]])


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("botocore.session.Session.create_client", lambda *_, **__: Answered())
    counts.leave_aside()
    return get_session().create_client("dynamodb")


class Answered:
    """A client that has nothing but events."""

    def __init__(self) -> None:
        self.meta = self.events = self
        self.handlers: dict[str, Any] = {}

    def register(self, event: str, handler: Any) -> None:
        self.handlers[event] = handler


def test_each_copy_is_a_task_of_its_own_in_its_own_place() -> None:
    client = OneTask()
    copy_items(client, "T", 30)

    copies = [item for batch in client.batches for item in batch]
    assert [len(batch) for batch in client.batches] == [25, 5]
    assert len({item["task_id"]["S"] for item in copies}) == 30
    assert all(item["status_order"]["S"].endswith(f"Z#{item['task_id']['S']}") for item in copies)


def test_each_copied_row_differs_in_its_id_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "sdk")) as connection, connection:
        connection.execute("CREATE TABLE tasks (id TEXT, owner TEXT)")
        connection.execute("INSERT INTO tasks VALUES ('a', 'o')")
    copy_rows(tmp_path / "sdk", 4)

    with closing(sqlite3.connect(tmp_path / "sdk")) as connection:
        assert connection.execute("SELECT count(DISTINCT id), count(DISTINCT owner) FROM tasks").fetchall() == [(5, 1)]


def test_a_count_is_charged_by_the_size_of_the_index() -> None:
    assert count({"a": {"S": "x" * 1023}}, 2048) == {"calls": 2, "read_units": 256}


def test_a_query_that_counts_is_answered_with_nothing(client: Any) -> None:
    answer = client.handlers["before-call.dynamodb.Query"]

    _, parsed = answer(params={"url": "http://127.0.0.1", "body": json.dumps({"Select": "COUNT"})})

    assert parsed == {"Count": 0, "ScannedCount": 0}
    assert answer(params={"url": "http://127.0.0.1", "body": "{}"}) is None
