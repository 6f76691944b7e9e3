"""How a task lies in the table: its items, their keys, owners and expiry, and what is split over several."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pytest
from msgspec.structs import replace

from a2a_lambda import agent as api
from a2a_lambda import items, task
from a2a_lambda.model import Artifact, Message, Part, TaskState
from a2a_lambda.outcome import ArtifactDelta
from a2a_lambda.tables import BATCH_GETS
from a2a_lambda.task import Head
from tests.integration.tables import RETENTION_DAYS, WINDOW_SECONDS, Item, Tasks
from tests.unit.factories import DAY, NOON, asking, begun, ended, followed, in_state, message, texts, yielding

NOON_SECONDS: Final = NOON // 1000
DAY_SECONDS: Final = DAY // 1000
ITEM_LIMIT: Final = 400 * 1024


def size(item: Item) -> int:
    """Return an item's size by DynamoDB's rules, lists and numbers estimated from above."""
    return sum(len(name.encode()) + _size(value) for name, value in item.items())


def _size(value: Item) -> int:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(content.encode())
        case "B":
            return len(content)
        case "L":
            return 3 + sum(1 + _size(each) for each in content)
        case _:
            return 21


def without_notes(items: Mapping[str, Item]) -> list[str]:
    """Return the items that stay: all but the notes of which messages were taken a short while ago."""
    return [entry for entry in items if not entry.startswith("message#")]


def asked_with(text: str, *, question: str = "?") -> Head:
    """Return a task whose first message is this text."""
    head = begun()
    sent = message(text, task_id=head.task_id, context_id=head.context_id)
    return ended(head, api.input_required(question), message_=sent)


def test_a_small_task_is_one_item(tasks: Tasks) -> None:
    head = ended(begun(), api.artifact("x"), api.failed("y"))
    tasks.store().prepare(None, head)()

    assert list(tasks.items(head.task_id)) == ["head"]


def test_a_head_has_what_rules_index_and_expiry_need(tasks: Tasks) -> None:
    head = in_state(TaskState.INPUT_REQUIRED)
    tasks.store().prepare(None, head)()
    item = tasks.items(head.task_id)["head"]
    write = item.pop("write")

    assert set(write) == {"S"}
    assert item == {
        "task_id": {"S": head.task_id},
        "entry": {"S": "head"},
        "owner": {"S": "anonymous"},
        "context_id": {"S": "context-1"},
        "state": {"S": "TASK_STATE_INPUT_REQUIRED"},
        "status_at": {"N": str(NOON)},
        "status_order": {"S": f"2026-09-21T14:13:20.000Z#{head.task_id}"},
        "created_at": {"N": str(NOON)},
        "expires_at": {"N": str(NOON_SECONDS + RETENTION_DAYS * DAY_SECONDS)},
        "retention": {"N": str(RETENTION_DAYS * DAY_SECONDS)},
        "revision": {"N": "2"},
        "turn": {"N": "1"},
        "message_key": {"S": head.message_key},
        "message_count": {"N": "2"},
        "artifact_turns": {"N": "0"},
        "artifact_bytes": {"N": "0"},
        "messages": {"B": head.messages},
    }


def test_a_running_turn_has_a_deadline_and_an_ended_one_has_none(tasks: Tasks) -> None:
    head = begun()
    store = tasks.store()
    store.prepare(None, head)()
    assert tasks.items(head.task_id)["head"]["deadline"] == {"N": str(head.deadline)}

    store.prepare(head, ended(head, api.input_required("?")))()
    assert "deadline" not in tasks.items(head.task_id)["head"]


def test_a_canceled_task_has_no_deadline_and_expires_anew(tasks: Tasks) -> None:
    head = begun()
    store = tasks.store()
    store.prepare(None, head)()
    kept = store.read(head.owner, head.task_id)
    assert kept is not None
    store.cancel(kept, NOON + DAY)
    item = tasks.items(head.task_id)["head"]

    assert "deadline" not in item
    assert item["expires_at"] == {"N": str(NOON_SECONDS + (RETENTION_DAYS + 1) * DAY_SECONDS)}
    assert item["status_order"] == {"S": f"2026-09-22T14:13:20.000Z#{head.task_id}"}


def test_earlier_turns_lie_beside_the_head(tasks: Tasks) -> None:
    served = tasks.serve(yielding(api.artifact("x", artifact_id="a"), api.input_required("?")))
    shown = served.task("1")
    for said in ("2", "3"):
        served.task(said, to=shown.id)

    assert without_notes(tasks.items(shown.id)) == [
        "artifacts#000001",
        "artifacts#000002",
        "head",
        "turn#000001",
        "turn#000002",
    ]


def test_artifacts_are_numbered_by_the_turns_that_left_some(tasks: Tasks) -> None:
    store = tasks.store()
    head = asked_with("1")
    store.prepare(None, head)()
    for updates in ([api.artifact("x"), api.input_required("?")], [api.input_required("?")], []):
        running, sent = followed(head)
        following = ended(running, *updates, message_=sent)
        store.prepare(head, following)()
        head = following

    assert without_notes(tasks.items(head.task_id)) == [
        "artifacts#000001",
        "head",
        "turn#000001",
        "turn#000002",
        "turn#000003",
    ]
    assert head.artifact_turns == 1


@pytest.mark.parametrize("length", [10, 9_000, 700_000])
def test_every_item_has_the_owner_and_its_expiry(tasks: Tasks, length: int) -> None:
    served = tasks.serve(yielding(api.artifact("x" * length), api.input_required("?")))
    shown = served.task("x" * length)
    served.clock.advance(DAY)
    served.task("more", to=shown.id)
    items = tasks.items(shown.id)
    beside = [items[entry] for entry in without_notes(items) if entry != "head"]

    assert {item["owner"]["S"] for item in items.values()} == {"anonymous"}
    assert {item["expires_at"]["N"] for item in beside} == {str(NOON_SECONDS + (30 + RETENTION_DAYS) * DAY_SECONDS)}


def test_a_follow_ups_message_is_noted_for_as_long_as_a_copy_may_come(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    shown = served.task("1")
    served.clock.advance(DAY)
    served.task("2", to=shown.id)
    items = tasks.items(shown.id)
    key = items["head"]["message_key"]["S"]
    expires_at = NOON_SECONDS + DAY_SECONDS + WINDOW_SECONDS

    assert items[f"message#{key}"] == {
        "task_id": {"S": shown.id},
        "entry": {"S": f"message#{key}"},
        "owner": {"S": "anonymous"},
        "turn": {"N": "2"},
        "expires_at": {"N": str(expires_at)},
    }


def test_without_a_window_nothing_is_noted(tasks: Tasks) -> None:
    served = tasks.serve(asking(), window_seconds=0)
    shown = served.task("1")
    served.task("2", to=shown.id)

    assert list(tasks.items(shown.id)) == ["head", "turn#000001"]


def test_only_heads_are_in_the_index(tasks: Tasks) -> None:
    served = tasks.serve(yielding(api.artifact("x" * 9000), api.input_required("?")))
    shown = served.task("1")
    served.task("2", to=shown.id)
    indexed = tasks.client.query(
        TableName=tasks.name,
        IndexName="tasks-by-owner",
        KeyConditionExpression="#owner = :owner",
        ExpressionAttributeNames={"#owner": "owner"},
        ExpressionAttributeValues={":owner": {"S": "anonymous"}},
    )

    assert [item["task_id"]["S"] for item in indexed["Items"]] == [shown.id]
    assert set(indexed["Items"][0]) == {"task_id", "entry", "owner", "status_order", "context_id", "state"}


# Sizes


def test_content_up_to_eight_kilobytes_rides_in_the_head(tasks: Tasks) -> None:
    head = asked_with("")
    assert isinstance(head.messages, bytes)
    room = items.RIDE_BYTES - len(head.messages)
    fitting, larger = asked_with("x" * room), asked_with("x" * (room + 1))
    for each in (fitting, larger):
        tasks.store().prepare(None, each)()

    assert [len(tasks.items(each.task_id)) for each in (fitting, larger)] == [1, 2]


def test_content_beside_the_head_is_named_after_the_write(tasks: Tasks) -> None:
    head = asked_with("x" * 9000)
    tasks.store().prepare(None, head)()
    items = tasks.items(head.task_id)
    key = f"content#{items['head']['write']['S']}#messages"

    assert set(items) == {"head", f"{key}#0"}
    size = len(items[f"{key}#0"]["content"]["B"])
    assert items["head"]["messages"] == {"L": [{"S": key}, {"N": str(size)}]}


@pytest.mark.parametrize("length", [290_000, 300_001, 600_001, 3_000_000])
def test_no_item_is_too_large_for_dynamodb(tasks: Tasks, length: int) -> None:
    content = b"x" * length
    head = replace(begun(), messages=content, artifacts=content, status_message=content)
    store = tasks.store()
    store.prepare(None, head)()
    kept = store.read(head.owner, head.task_id)
    assert kept is not None
    store.prepare(kept, followed(kept)[0])()

    assert "artifacts#000001" in tasks.items(head.task_id)
    assert max(size(item) for item in tasks.items(head.task_id).values()) < ITEM_LIMIT


def test_the_largest_head_is_far_below_dynamodbs_limit(tasks: Tasks) -> None:
    head = replace(begun(), context_id="😀" * 512)
    content = b"x" * items.RIDE_BYTES
    full = replace(head, messages=content, artifacts=content, status_message=content)
    tasks.store().prepare(None, full)()

    assert size(tasks.items(head.task_id)["head"]) < 32 * 1024


def test_large_content_is_not_copied_when_its_turn_is_put_aside(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    shown = served.task("x" * 50_000)
    before = set(tasks.items(shown.id))
    served.task("more", to=shown.id)

    assert set(without_notes(tasks.items(shown.id))) - before == {"turn#000001"}
    assert size(tasks.items(shown.id)["turn#000001"]) < 1000


def test_a_piece_may_end_in_the_middle_of_a_character(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    said = "x" + "😀" * 200_000
    shown = served.task(said)

    assert texts(served.get(shown.id).history) == [said, "Which one?"]


def test_more_pieces_than_one_call_takes_are_written_and_read(tasks: Tasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(items, "PIECE_BYTES", 100)
    artifact = Artifact("a", [Part(text="x" * 100 * BATCH_GETS)])
    head = replace(begun(), artifacts=msgspec.json.encode([ArtifactDelta(artifact)]))
    store = tasks.store()
    tasks.calls.clear()
    store.prepare(None, head)()
    stored = store.read(head.owner, head.task_id)
    assert stored is not None

    assert store.artifacts(stored) == [artifact]
    assert tasks.calls == ["BatchWriteItem"] * 5 + ["PutItem", "GetItem"] + ["BatchGetItem"] * 2


# Retention


def test_the_retention_can_be_set(tasks: Tasks) -> None:
    head = in_state(TaskState.INPUT_REQUIRED)
    store = tasks.store(retention_days=7)
    store.prepare(None, head)()
    following, _ = followed(head)
    store.prepare(head, following)()
    items = tasks.items(head.task_id)

    assert items["head"]["expires_at"] == {"N": str(NOON_SECONDS + 7 * DAY_SECONDS)}
    assert items["turn#000001"]["expires_at"] == {"N": str(NOON_SECONDS + 37 * DAY_SECONDS)}


def test_no_head_outlives_the_items_beside_it(tasks: Tasks) -> None:
    served = tasks.serve(asking())
    shown = served.task("1")
    served.clock.advance(29 * DAY)
    served.task("2", to=shown.id)
    served.clock.advance(29 * DAY)
    served.cancel(shown.id)
    items = tasks.items(shown.id)

    assert int(items["head"]["expires_at"]["N"]) <= int(items["turn#000001"]["expires_at"]["N"])


def test_an_expired_task_is_gone_though_its_items_are_there(tasks: Tasks) -> None:
    head = in_state(TaskState.INPUT_REQUIRED)
    store = tasks.store()
    store.prepare(None, head)()
    tasks.clock.advance(RETENTION_DAYS * DAY)

    assert store.read(head.owner, head.task_id) is None
    assert "head" in tasks.items(head.task_id)


# Owners


def test_the_items_beside_a_head_are_read_for_their_owner_alone(tasks: Tasks) -> None:
    served = tasks.serve(yielding(api.artifact("mine"), api.input_required("?")))
    shown = served.task("secret " * 2000)
    served.task("2", to=shown.id)
    head = served.store.read("anonymous", shown.id)
    assert head is not None
    stranger = replace(head, owner="stranger", messages=b"[]", artifacts=None)

    assert served.store.history(stranger) == []
    assert served.store.artifacts(stranger) == []


def test_numbers_are_kept_as_json_and_not_as_dynamodbs_own(tasks: Tasks) -> None:
    sent = Message("m", message().role, [Part(data=[1.10, 1e-320, 2**64])])
    head = replace(begun(), messages=task.encode_messages([sent]))
    tasks.store().prepare(None, head)()
    stored: Any = tasks.items(head.task_id)["head"]["messages"]

    assert b"[1.1,1e-320,18446744073709551616]" in stored["B"]
