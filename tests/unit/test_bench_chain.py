"""How the bench passes a task from function to function."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bench import calls
from bench.chain import PUSH, RELAY, RPC, WORKER, Chain, Place, queue_event, stream_event

PLACE = Place("http://127.0.0.1:1", "T", {WORKER: "work", PUSH: "push.fifo"})
MESSAGE = calls.background("m", "hello")
DONE: dict[str, Any] = {"batchItemFailures": []}


class Aws:
    """A stream and queues, and functions that leave something in them."""

    def __init__(self, left: dict[str, list[Any]]) -> None:
        """Args: what each function leaves behind, in the order of its invocations: changes, or messages by queue."""
        self.left = left
        self.changes: list[dict[str, Any]] = []
        self.queues: dict[str, list[str]] = {"work": [], "push.fifo": []}
        self.invoked: list[str] = []

    def client(self, _: str) -> Any:
        return self

    def describe_table(self, **_: Any) -> Any:
        return {"Table": {"LatestStreamArn": "arn"}}

    def describe_stream(self, **_: Any) -> Any:
        return {"StreamDescription": {"Shards": [{"ShardId": "one"}]}}

    def get_shard_iterator(self, **_: Any) -> Any:
        return {"ShardIterator": "0"}

    def get_records(self, **_: Any) -> Any:
        changes, self.changes = self.changes, []
        return {"NextShardIterator": "0", "Records": [{"dynamodb": {"NewImage": each}} for each in changes]}

    def receive_message(self, **arguments: Any) -> Any:
        waiting = self.queues[arguments["QueueUrl"]]
        found = [{"MessageId": body, "ReceiptHandle": body, "Body": body, "Attributes": {}} for body in waiting[:1]]
        return {"Messages": found} if found else {}

    def delete_message(self, **arguments: Any) -> None:
        self.queues[arguments["QueueUrl"]].remove(arguments["ReceiptHandle"])

    def invoke(self, function: str, _: calls.Event) -> Any:
        self.invoked.append(function)
        for what in self.left[function].pop(0):
            if isinstance(what, dict):
                self.changes.append(what)
            else:
                self.queues[what].append(f"{function} {len(self.invoked)}")
        return DONE


def test_a_change_with_an_outbox_goes_over_the_relay_to_the_worker() -> None:
    aws = Aws({RPC: [[{"outbox": {"S": "{}"}}]], RELAY: [["work"]], WORKER: [[{"state": {"S": "done"}}]]})

    Chain(PLACE, aws.client, aws.invoke).run(MESSAGE)

    assert aws.invoked == [RPC, RELAY, WORKER]
    assert aws.queues["work"] == []


def test_each_change_is_relayed_by_itself_and_each_message_handled_by_itself() -> None:
    change = {"outbox": {"S": "{}"}}
    aws = Aws({RPC: [[change, change]], RELAY: [["push.fifo"], ["push.fifo"]], PUSH: [[], []]})

    Chain(PLACE, aws.client, aws.invoke).run(MESSAGE)

    assert aws.invoked == [RPC, RELAY, RELAY, PUSH, PUSH]


def test_a_function_that_reports_a_failure_ends_the_measurement() -> None:
    aws = Aws({RPC: [[{"outbox": {"S": "{}"}}]], RELAY: [[]]})
    failed = {"batchItemFailures": [{"itemIdentifier": "1"}]}

    with pytest.raises(SystemExit, match="have failed"):
        Chain(PLACE, aws.client, lambda name, event: failed if name == RELAY else aws.invoke(name, event)).run(MESSAGE)


def test_bytes_of_a_record_are_base64_as_lambda_has_them() -> None:
    record = {"eventName": "INSERT", "dynamodb": {"ApproximateCreationDateTime": 1, "NewImage": {"a": {"B": b"\x00"}}}}

    (event,) = stream_event(record)["Records"]

    assert event["dynamodb"] == {"NewImage": {"a": {"B": "AA=="}}}


def test_a_message_is_an_event_with_its_body_and_attributes() -> None:
    message = {"MessageId": "1", "ReceiptHandle": "r", "Body": "{}", "Attributes": {"ApproximateReceiveCount": "1"}}

    (event,) = queue_event(message)["Records"]

    assert (event["body"], event["attributes"]["ApproximateReceiveCount"]) == ("{}", "1")


def test_a_message_with_another_id_is_the_same_message_otherwise() -> None:
    renamed = json.loads(calls.renamed(MESSAGE, "other")["body"])
    sent = json.loads(MESSAGE["body"])

    assert renamed["params"]["message"].pop("messageId") == "other"
    del sent["params"]["message"]["messageId"]
    assert renamed == sent
