"""Deleting what a caller has: all of it, nothing else, and whenever it is interrupted."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from a2a_lambda import items, timestamps
from a2a_lambda.keys import TableKeys
from a2a_lambda.tables import Table
from admin.errors import AdminError
from admin.forgetting import MAX_PAUSES, Forgetting, Forgotten, Tables
from tests.admin.deployment import Caller, Deployed

ALICE = "key:alice"
BOB = "key:bob"


class InterruptedByTestError(Exception):
    """What a Ctrl-C is here."""


class Pauses:
    """Pauses that take no time."""

    def __init__(self) -> None:
        self.taken = 0

    def __call__(self, _seconds: float) -> None:
        self.taken += 1


def tables(deployed: Deployed) -> Tables:
    database = deployed.database
    keys = TableKeys(database.callers, clock=timestamps.now)
    return Tables(database.tasks, database.scan_tasks, database.callers, keys)


def forget(deployed: Deployed, owner: str = ALICE) -> Forgotten:
    forgetting = Forgetting(owner, tables(deployed), Pauses())
    forgetting.run()
    return forgetting.forgotten


def settle(caller: Caller) -> None:
    """Leave two tasks, one of them of several turns with large content, and a direct reply."""
    caller.converse()
    caller.send("small")
    caller.send("hi")


def test_everything_goes_and_is_counted(deployed: Deployed) -> None:
    settle(deployed.caller("alice"))
    deployed.caller("alice")
    assert len(deployed.items_of(ALICE)) > 12
    # Of the markers two are the notes of the messages to the task, and one is the direct reply.
    assert forget(deployed) == Forgotten(tasks=2, keys=2, markers=3, rate_buckets=1)
    assert deployed.items_of(ALICE) == []
    assert forget(deployed) == Forgotten()


def test_nothing_of_others_goes(deployed: Deployed) -> None:
    settle(deployed.caller("alice"))
    settle(deployed.caller("bob"))
    deployed.caller("alice ")
    before = {owner: deployed.items_of(owner) for owner in (BOB, "key:alice ")}
    forget(deployed)
    assert {owner: deployed.items_of(owner) for owner in before} == before


def test_who_has_nothing_loses_nothing(deployed: Deployed) -> None:
    settle(deployed.caller("alice"))
    before = deployed.items_of(ALICE)
    assert forget(deployed, "key:nobody") == Forgotten()
    assert deployed.items_of(ALICE) == before


@pytest.mark.thorough
def test_hundreds_of_tasks_go(deployed: Deployed) -> None:
    for number in range(210):
        deployed.database.tasks.put_all(task(ALICE, f"alice-{number}"))
    deployed.database.tasks.put_all([item for number in range(50) for item in task(BOB, f"bob-{number}")])
    assert forget(deployed) == Forgotten(tasks=210)
    assert deployed.items_of(ALICE) == []
    assert len(deployed.items_of(BOB)) == 100


def task(owner: str, task_id: str) -> list[Mapping[str, Any]]:
    """The items of a task of two turns, as far as they matter here."""
    order = {"S": items.status_order(task_id, 0)}
    return [
        {**items.key(task_id, items.HEAD), "owner": {"S": owner}, "state": {"S": "x"}, "status_order": order},
        {**items.key(task_id, items.turn_entry(1)), "owner": {"S": owner}},
    ]


def test_a_key_stops_working_first(deployed: Deployed) -> None:
    alice = deployed.caller("alice")
    settle(alice)
    deployed.before_call(5, interrupt)
    with pytest.raises(InterruptedByTestError):
        forget(deployed)
    deployed.undisturbed()
    assert not any("key_hash" in item or "caller" in item for item in deployed.items_of(ALICE))


def interrupt() -> None:
    raise InterruptedByTestError


def settled_alice(deployed: Deployed) -> Caller:
    """A caller with all kinds of items: an instance that has tokens left would leave no rate bucket this time."""
    alice = deployed.caller("alice")
    settle(alice)
    deployed.database.callers.put({"subject": {"S": ALICE}, "entry": {"S": "rate"}, "full_at": {"N": "0"}})
    return alice


def calls(deployed: Deployed) -> range:
    """The numbers of the calls that it takes to forget a caller who has settled."""
    settled_alice(deployed)
    return range(1, deployed.calls_of(lambda: forget(deployed)) + 1)


@pytest.mark.thorough
def test_whenever_it_is_interrupted_another_run_finishes_it(deployed: Deployed) -> None:
    bob = deployed.caller("bob")
    settle(bob)
    kept = deployed.items_of(BOB)
    for number in calls(deployed):
        settled_alice(deployed)
        deployed.before_call(number, interrupt)
        with pytest.raises(InterruptedByTestError):
            forget(deployed)
        deployed.undisturbed()
        assert deployed.items_of(ALICE) or number > 1
        forget(deployed)
        assert deployed.items_of(ALICE) == []
    assert deployed.items_of(BOB) == kept


def test_a_task_that_is_begun_meanwhile_goes_too(deployed: Deployed) -> None:
    *early, last = calls(deployed)
    for number in [*early, last]:
        alice = settled_alice(deployed)
        deployed.before_call(number, alice.converse)
        forget(deployed)
        deployed.undisturbed()
        # After the last look at the index, another run finds it.
        assert deployed.items_of(ALICE) == [] or number > last - 2
        forget(deployed)
        assert deployed.items_of(ALICE) == []


def test_a_turn_that_is_taken_meanwhile_goes_too(deployed: Deployed) -> None:
    for number in calls(deployed):
        alice = deployed.caller("alice")
        task_id = alice.converse()

        # The task may be gone by then, which is an error to its caller and nothing else.
        deployed.before_call(number, partial(alice.try_to_send, "large", taskId=task_id))
        forget(deployed)
        deployed.undisturbed()
        forget(deployed)
        assert deployed.items_of(ALICE) == []


def test_what_a_request_left_that_died_goes_too(deployed: Deployed) -> None:
    orphan = {**items.key("t", items.turn_entry(1)), "owner": {"S": ALICE}}
    deployed.database.tasks.put(orphan)
    foreign = {**items.key("t", items.turn_entry(2)), "owner": {"S": BOB}}
    deployed.database.tasks.put(foreign)
    assert forget(deployed) == Forgotten()
    assert deployed.items_of(ALICE) == []
    assert deployed.items_of(BOB) == [foreign]


def test_other_kinds_of_owners_are_forgotten_alike(deployed: Deployed) -> None:
    owner = "jwt:https://issuer.example sub alice"
    deployed.database.tasks.put({**items.key("t", items.HEAD), "owner": {"S": owner}, "state": {"S": "x"}})
    settle(deployed.caller("alice"))
    before = deployed.items_of(ALICE)
    assert forget(deployed, owner) == Forgotten(tasks=1)
    assert deployed.items_of(ALICE) == before


class LateIndex(Table):
    """A table whose index goes on showing a task that is deleted, for a number of times."""

    def __init__(self, table: Table, times: int) -> None:
        vars(self).update(vars(table))
        self.times = times

    def pages(self, **arguments: Any) -> Iterator[Mapping[str, Any]]:
        if "IndexName" in arguments and self.times:
            self.times -= 1
            return iter([{"Items": [{"task_id": {"S": "deleted"}}]}])
        return super().pages(**arguments)


def test_an_index_that_is_late_is_waited_for(deployed: Deployed) -> None:
    pauses = Pauses()
    late = replace(tables(deployed), tasks=LateIndex(deployed.database.tasks, 3))
    Forgetting(ALICE, late, pauses).run()
    assert pauses.taken == 3


def test_an_index_that_never_catches_up_is_not_waited_for_for_ever(deployed: Deployed) -> None:
    late = replace(tables(deployed), tasks=LateIndex(deployed.database.tasks, 1000))
    pauses = Pauses()
    with pytest.raises(AdminError, match="run it again"):
        Forgetting(ALICE, late, pauses).run()
    assert pauses.taken == MAX_PAUSES
