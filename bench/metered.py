"""The rpc function with a meter on its DynamoDB client, going through the operations. Run as a script.

    python bench/metered.py WHAT RESULT

WHAT is `operations` or `list`. The result is JSON: for each operation its `Usage`.
"""

import importlib
import json
import os
import sys
import uuid
from dataclasses import asdict
from typing import Any

import botocore.session

from bench import calls
from bench.calls import Context, Event
from bench.counts import leave_aside
from bench.meter import Meter

COMPLETING = calls.kilobyte("Where is order A-1001?")
ASKING = calls.kilobyte("Where is my order?")
MEASURED_TURNS = (2, 10, 100, 400)


def meter_all_clients(endpoint: str) -> Meter:
    """Attach a meter to every client that is created from here on."""
    create_client = botocore.session.Session.create_client
    meter = Meter(create_client(botocore.session.get_session(), "dynamodb", endpoint_url=endpoint))

    def create_metered_client(session: botocore.session.Session, *args: Any, **kwargs: Any) -> Any:
        client = create_client(session, *args, **kwargs)
        meter.attach(client)
        return client

    botocore.session.Session.create_client = create_metered_client
    return meter


def operations(meter: Meter) -> dict[str, dict[str, float]]:
    """What each operation costs. The tasks of a conversation are followed by turns of their own."""
    handler = importlib.import_module("app").handler
    found: dict[str, dict[str, float]] = {}

    def call(name: str, event: Event) -> dict[str, Any]:
        if not name:
            return calls.result(handler(event, Context()))
        with meter.measuring() as usage:
            task = calls.result(handler(event, Context()))
        found[name] = asdict(usage)
        return task

    def send(name: str, text: str, task: str | None = None, history_length: int | None = None) -> str:
        event = calls.send(str(uuid.uuid4()), text, task=task, history_length=history_length)
        return str(call(name, event)["id"])

    completed = send("one-shot", COMPLETING)
    call("get one-shot", calls.get(completed))
    call("cancel", calls.cancel(send("", ASKING)))
    conversation, turn = send("", ASKING, history_length=2), 1
    for measured in MEASURED_TURNS:
        while turn < measured - 1:
            turn += 1
            send("", ASKING, conversation, history_length=2)
        turn = measured
        send(f"turn {measured}", ASKING, conversation, history_length=2)
    call("get at turn 400", calls.get(conversation, history_length=2))
    call("get at turn 400, default history", calls.get(conversation))
    send("turn 401, default history", ASKING, conversation)
    call("cancel at turn 401", calls.cancel(conversation))
    return found


def page(meter: Meter) -> dict[str, dict[str, float]]:
    """What the first page of a list costs, without its count."""
    leave_aside()
    handler = importlib.import_module("app").handler
    with meter.measuring() as usage:
        calls.page(handler(calls.list_tasks(), Context()))
    return {"page": asdict(usage)}


MEASUREMENTS = {"operations": operations, "list": page}


def main() -> None:
    """Measure, and leave the numbers in the result file."""
    what, result = sys.argv[1:]
    meter = meter_all_clients(os.environ["DYNAMODB_ENDPOINT"])
    with open(result, "w", encoding="utf-8") as file:  # noqa: PTH123 - as the other scripts
        json.dump(MEASUREMENTS[what](meter), file)


main()
