"""Each check of `make load` holds where nothing is wrong, and fails for each thing that may be."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from load import calls
from load.callers import NO_ANSWER, RATE_LIMITED, UNAVAILABLE, Answer, Seen
from load.calls import OK, Call
from load.checks import CHECKS, Evidence
from load.report import verdicts
from load.stored import read_entry, read_tasks

EARLIER, LATER, LATEST = "2026-09-26T20:37:30.000Z", "2026-09-26T20:37:31.121Z", "2026-09-26T20:37:32.000Z"
LATER_MS = 1_790_455_051_121
SUBMITTED, WORKING = "TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"
ASKING, COMPLETED, CANCELED = "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED", "TASK_STATE_CANCELED"

Item = dict[str, Any]


def content(*messages: tuple[str, str]) -> Item:
    return {"B": json.dumps([{"messageId": each, "role": f"ROLE_{role}", "parts": []} for each, role in messages])}


@dataclass
class World:
    """Two owners' tasks as they lie in the table and in the index, what was answered, and what was run.

    Ann's has two turns, of which the second was sent twice; Bob's waits for him.
    """

    table: dict[tuple[str, str], Item] = field(default_factory=dict)
    index: list[Item] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    runs: Counter[tuple[str, str]] = field(default_factory=Counter)

    def put(self, owner: str, task_id: str, entry: str, **attributes: Item) -> None:
        keys = {"task_id": {"S": task_id}, "entry": {"S": entry}, "owner": {"S": owner}}
        self.table[task_id, entry] = {**keys, **attributes}

    def head(self, owner: str, task_id: str, state: str, turn: int, count: int, messages: Item) -> None:
        place = {"context_id": {"S": "c"}, "state": {"S": state}, "status_order": {"S": f"{LATER}#{task_id}"}}
        numbers = {"status_at": LATER_MS, "turn": turn, "message_count": count}
        counted = {name: {"N": str(number)} for name, number in numbers.items()}
        self.put(owner, task_id, "head", messages=messages, **place, **counted)
        self.index.append({"task_id": {"S": task_id}, "owner": {"S": owner}, **place})

    def answer(self, owner: str, operation: str, kind: str, *tasks: Seen, message: str = "") -> None:
        self.answers.append(Answer(Call(operation, b"", frozenset({OK}), message), owner, kind, tasks))

    def evidence(self, *, acting: bool = True) -> Evidence:
        index = [read_entry(item) for item in self.index]
        return Evidence(acting, self.answers, read_tasks(self.table.values()), index, self.runs)

    def failed(self, *, acting: bool = True) -> set[str]:
        evidence = self.evidence(acting=acting)
        return {name for name, check in CHECKS.items() if [*check(evidence)]}


def sound() -> World:
    world = World()
    world.head("ann", "a", COMPLETED, 2, 3, content(("a-2", "USER")))
    world.put("ann", "a", "turn#000001", content=content(("a-1", "USER"), ("q-1", "AGENT")))
    world.put("ann", "a", "turn#000002", content=content(("lost", "USER")))
    world.put("ann", "a", "message#1", turn={"N": "2"})
    world.head("bob", "b", ASKING, 1, 2, content(("b-1", "USER"), ("q-2", "AGENT")))
    world.answer("ann", calls.NEW, OK, Seen("a", ASKING, EARLIER), message="a-1")
    world.answer("ann", calls.COPY, OK, Seen("a", COMPLETED, LATER), message="a-2")
    world.answer("ann", calls.COPY, OK, Seen("a", COMPLETED, LATER), message="a-2")
    world.answer("ann", calls.LIST, OK, Seen("a", COMPLETED, LATER))
    world.answer("bob", calls.NEW, OK, Seen("b", SUBMITTED, EARLIER), message="b-1")
    world.answer("bob", calls.GET, RATE_LIMITED)
    world.runs.update([("a", "a-1"), ("a", "a-2"), ("b", "b-1")])
    return world


def a_task_is_lost(world: World) -> None:
    del world.table["b", "head"]


def a_task_went_back(world: World) -> None:
    world.answer("bob", calls.GET, OK, Seen("b", ASKING, LATEST))


def a_finished_task_changed(world: World) -> None:
    world.answer("ann", calls.GET, OK, Seen("a", CANCELED, EARLIER))


def a_task_that_ran_was_never_begun(world: World) -> None:
    world.table["b", "head"]["state"] = world.index[1]["state"] = {"S": SUBMITTED}
    world.answer("bob", calls.GET, OK, Seen("b", WORKING, EARLIER))


def a_turn_is_lost(world: World) -> None:
    del world.table["a", "turn#000001"]


def a_refused_message_was_taken(world: World) -> None:
    world.answers = [replace(each, kind="-32004", tasks=()) for each in world.answers]
    world.answer("bob", calls.LIST, OK)


def a_message_is_nobodys(world: World) -> None:
    world.table["b", "head"]["messages"] = content(("b-1", "USER"), ("q-2", "AGENT"), ("x", "USER"))


def a_message_is_twice_in_a_history(world: World) -> None:
    world.table["a", "head"]["messages"] = content(("a-2", "USER"), ("a-2", "USER"))


def a_message_began_two_tasks(world: World) -> None:
    world.head("bob", "b2", ASKING, 1, 1, content(("b-1", "USER")))


def a_copy_was_answered_with_another_task(world: World) -> None:
    world.answer("bob", calls.COPY, OK, Seen("b2", ASKING, LATER), message="b-1")


def a_message_was_answered_with_nothing(world: World) -> None:
    world.answer("bob", calls.COPY, OK, message="b-1")


def a_history_counts_wrong(world: World) -> None:
    world.table["b", "head"]["message_count"] = {"N": "3"}


def a_turn_was_never_run(world: World) -> None:
    del world.runs["a", "a-1"]


def a_turn_was_run_twice(world: World) -> None:
    world.runs["a", "a-2"] += 1


def a_turn_of_no_task_was_run(world: World) -> None:
    world.runs["b2", "b-2"] += 1


def a_turn_is_stuck(world: World) -> None:
    world.table["b", "head"]["deadline"] = {"N": "1"}


def the_index_misses_a_task(world: World) -> None:
    world.index.pop()


def the_index_has_a_task_twice(world: World) -> None:
    world.index.append({**world.index[0], "status_order": {"S": f"{EARLIER}#a"}})


def the_index_has_an_old_state(world: World) -> None:
    world.index[0]["state"] = {"S": ASKING}


def the_index_has_an_old_place(world: World) -> None:
    world.index[0]["status_order"] = {"S": f"{EARLIER}#a"}


def the_index_has_another_context(world: World) -> None:
    world.index[0]["context_id"] = {"S": "d"}


def the_index_has_what_is_gone(world: World) -> None:
    world.index.append({**world.index[0], "task_id": {"S": "gone"}})


def a_head_is_at_the_wrong_place(world: World) -> None:
    for item in (world.table["a", "head"], world.index[0]):
        item["status_order"] = {"S": f"{EARLIER}#a"}


def another_owners_task_was_listed(world: World) -> None:
    world.answer("bob", calls.LIST, OK, Seen("a", COMPLETED, LATER))


def a_message_is_in_another_owners_task(world: World) -> None:
    world.answers = [replace(each, owner="bob") for each in world.answers if each.call.operation != calls.LIST]


def an_item_is_another_owners(world: World) -> None:
    world.table["a", "turn#000001"]["owner"] = {"S": "bob"}


def an_answer_is_an_internal_error(world: World) -> None:
    world.answer("bob", calls.GET, "-32603")


def an_answer_never_came(world: World) -> None:
    world.answer("bob", calls.GET, NO_ANSWER)


def nothing_was_answered(world: World) -> None:
    world.answers = [replace(each, kind=UNAVAILABLE, tasks=()) for each in world.answers]


FAULTS: dict[Callable[[World], None], set[str]] = {
    a_task_is_lost: {"tasks", "messages", "runs", "index"},
    a_task_went_back: {"tasks"},
    a_finished_task_changed: {"tasks"},
    a_task_that_ran_was_never_begun: {"tasks"},
    a_turn_is_lost: {"messages", "copies", "runs"},
    a_refused_message_was_taken: {"messages", "answers"},
    a_message_is_nobodys: {"messages", "copies", "runs"},
    a_message_is_twice_in_a_history: {"copies"},
    a_message_began_two_tasks: {"copies", "runs"},
    a_copy_was_answered_with_another_task: {"copies", "messages", "tasks"},
    a_message_was_answered_with_nothing: {"copies", "messages"},
    a_history_counts_wrong: {"copies"},
    a_turn_was_never_run: {"runs"},
    a_turn_was_run_twice: {"runs"},
    a_turn_of_no_task_was_run: {"runs"},
    a_turn_is_stuck: {"runs"},
    the_index_misses_a_task: {"index"},
    the_index_has_a_task_twice: {"index"},
    the_index_has_an_old_state: {"index"},
    the_index_has_an_old_place: {"index"},
    the_index_has_another_context: {"index"},
    the_index_has_what_is_gone: {"index"},
    a_head_is_at_the_wrong_place: {"index"},
    another_owners_task_was_listed: {"owners"},
    a_message_is_in_another_owners_task: {"owners"},
    an_item_is_another_owners: {"owners"},
    an_answer_is_an_internal_error: {"answers"},
    an_answer_never_came: {"answers"},
    nothing_was_answered: {"answers"},
}
"""What may be wrong, and the checks that must see it."""


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert sound().failed() == set()


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_fault_is_found(plant: Callable[[World], None]) -> None:
    world = sound()
    plant(world)
    assert world.failed() == FAULTS[plant]


def test_every_check_can_fail() -> None:
    assert set().union(*FAULTS.values()) == CHECKS.keys()


def test_a_read_only_agent_may_run_more_than_once() -> None:
    world = sound()
    a_turn_was_run_twice(world)
    a_turn_of_no_task_was_run(world)
    assert world.failed(acting=False) == set()


def test_a_turn_that_was_canceled_need_not_have_run() -> None:
    world = sound()
    world.table["b", "head"]["state"] = world.index[1]["state"] = {"S": CANCELED}
    del world.runs["b", "b-1"]
    assert world.failed() == set()


@pytest.mark.parametrize("kind", [UNAVAILABLE, NO_ANSWER])
def test_a_message_whose_answer_is_unknown_may_have_been_taken(kind: str) -> None:
    world = sound()
    world.answers[0] = replace(world.answers[0], kind=kind, tasks=())
    assert "messages" not in world.failed()


def test_a_check_that_fails_says_what_is_wrong_and_where() -> None:
    world = sound()
    a_turn_was_run_twice(world)
    lines = {line.split(":")[0]: (holds, line) for holds, line in verdicts(CHECKS, world.evidence())}
    holds, line = lines["FAILED  runs"]
    assert not holds
    assert "1 fault" in line
    assert "message a-2 of a was run 2 times" in line
    assert all(holds for name, (holds, _) in lines.items() if name != "FAILED  runs")
