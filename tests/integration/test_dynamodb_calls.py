"""What each operation costs in calls to DynamoDB, however long the conversation is."""

from collections.abc import Callable
from typing import Any, Final

import pytest
from msgspec.structs import replace

from a2a_lambda import agent as api
from tests.integration.tables import Tasks
from tests.unit.factories import Server, asking, begun, ended, message, texts, yielding

LATE: Final = 400


def long_conversation(tasks: Tasks, turns: int) -> str:
    """Return the id of a task of that many turns, each of which asks in the end."""
    head = begun()
    puts: list[Any] = []
    for turn in range(1, turns + 1):
        sent = message(f"said {turn}", task_id=head.task_id, context_id=head.context_id)
        head = replace(ended(head, api.input_required(f"{turn}?"), message_=sent), turn=turn)
        item = {
            "task_id": {"S": head.task_id},
            "entry": {"S": f"turn#{turn:06}"},
            "owner": {"S": head.owner},
            "expires_at": {"N": "4000000000"},
            "content": {"B": head.messages},
            "message_key": {"S": head.message_key},
            "write": {"S": f"write-{turn}"},
        }
        puts.append({"PutRequest": {"Item": item}})
    for at in range(0, turns - 1, 25):
        tasks.client.batch_write_item(RequestItems={tasks.name: puts[:-1][at : at + 25]})
    tasks.store().prepare(None, head)()
    tasks.clock.advance(1)
    return head.task_id


def test_a_one_shot_task_is_one_call(tasks: Tasks) -> None:
    served = tasks.serve(yielding(api.artifact("x"), api.completed("Done.")))

    assert tasks.calls_of(served.task) == ["PutItem"]


def test_a_one_shot_task_of_an_acting_agent_is_two_calls(tasks: Tasks) -> None:
    served = tasks.serve(yielding(api.artifact("x"), read_only=False))

    assert tasks.calls_of(served.task) == ["PutItem", "PutItem"]


def test_a_direct_reply_is_one_call(tasks: Tasks) -> None:
    served = tasks.serve(yielding(api.reply("Hi!")))

    assert tasks.calls_of(served.send) == ["PutItem"]


def test_a_direct_reply_of_which_no_copies_are_told_apart_is_no_call(tasks: Tasks) -> None:
    served = tasks.serve(yielding(api.reply("Hi!")), window_seconds=0)

    assert tasks.calls_of(served.send) == []


@pytest.mark.parametrize("turns", [1, 2, LATE])
def test_a_follow_up_costs_the_same_at_every_turn(tasks: Tasks, turns: int) -> None:
    served = tasks.serve(asking())
    task_id = long_conversation(tasks, turns)

    calls = tasks.calls_of(lambda: served.task("more", to=task_id, history_length=0))

    assert calls == ["BatchGetItem", "BatchWriteItem", "PutItem"]


@pytest.mark.parametrize("turns", [1, 2, LATE])
def test_a_follow_up_of_an_acting_agent_costs_one_call_more(tasks: Tasks, turns: int) -> None:
    served = tasks.serve(asking(read_only=False))
    task_id = long_conversation(tasks, turns)

    calls = tasks.calls_of(lambda: served.task("more", to=task_id, history_length=0))

    assert calls == ["BatchGetItem", "BatchWriteItem", "PutItem", "PutItem"]


@pytest.mark.parametrize(("length", "queries"), [(0, 0), (1, 0), (2, 0), (3, 1), (100, 1)])
def test_get_task_is_two_calls_at_most(tasks: Tasks, length: int, queries: int) -> None:
    served = tasks.serve(asking())
    task_id = long_conversation(tasks, LATE)

    calls = tasks.calls_of(lambda: served.get(task_id, history_length=length))

    assert calls == ["GetItem", *["Query"] * queries]


def test_the_tail_of_a_long_history_is_found_by_its_keys(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    task_id = long_conversation(tasks, LATE)

    assert texts(served.get(task_id, history_length=5).history) == ["398?", "said 399", "399?", "said 400", "400?"]


def test_only_the_tail_of_a_long_history_is_read(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    task_id = long_conversation(tasks, LATE)
    read: list[int] = []
    tasks.client.meta.events.register(
        "after-call.dynamodb.Query", lambda parsed, **_rest: read.append(parsed["ScannedCount"])
    )
    served.get(task_id, history_length=5)

    assert read == [3]


def test_cancel_is_two_calls(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    task_id = long_conversation(tasks, 1)

    assert tasks.calls_of(lambda: served.cancel(task_id)) == ["GetItem", "UpdateItem"]


def refused(served: Server, task_id: str) -> Callable[[], object]:
    def attempt() -> None:
        with pytest.raises(Exception, match="finished"):
            served.send(message("more", task_id=task_id))

    return attempt


def test_a_message_that_is_refused_is_one_read(tasks: Tasks) -> None:
    served = tasks.serve(yielding(api.completed()))
    task_id = served.task().id
    tasks.clock.advance(1)

    assert tasks.calls_of(refused(served, task_id)) == ["BatchGetItem"]


def test_every_read_by_task_id_is_consistent(tasks: Tasks) -> None:
    served = tasks.serve(yielding(api.artifact("x" * 9000), api.input_required("?")))
    task_id = served.task("x" * 9000).id
    served.task("more", to=task_id)
    weak: list[str] = []

    def note(params: dict[str, bytes], model: object, **_rest: object) -> None:
        if b'"ConsistentRead": true' not in params["body"]:
            weak.append(str(model))

    for operation in ("GetItem", "Query", "BatchGetItem"):
        tasks.client.meta.events.register(f"before-call.dynamodb.{operation}", note)
    served.get(task_id)

    assert weak == []


def test_a_history_of_large_messages_is_read_in_few_calls(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    task_id = served.task("x" * 9000).id
    for _ in range(40):
        served.task("x" * 9000, to=task_id, history_length=0)

    calls = tasks.calls_of(lambda: served.get(task_id))

    assert len(calls) <= 10
