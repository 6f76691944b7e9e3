"""That a history which no order of the writes explains is found out."""

from dataclasses import replace
from typing import Final

import pytest

from tests.concurrency.explanations import Rules, explain
from tests.concurrency.histories import Kind, Operation, Refused, Seen, Worked

BEGUN: Final = Seen("INPUT_REQUIRED", ("first", "first?"), ("first",))
A: Final = Seen("INPUT_REQUIRED", (*BEGUN.history, "a", "a?"), ("first", "a"))
A_CLAIMED: Final = Seen("WORKING", (*BEGUN.history, "a"), ("first",))
AB: Final = Seen("INPUT_REQUIRED", (*A.history, "b", "b?"), ("first", "a", "b"))
LAST: Final = Seen("COMPLETED", (*BEGUN.history, "last"), ("first", "last"))
CANCELED: Final = replace(BEGUN, state="CANCELED")
FINISHED: Final = Refused(-32004, "TASK_STATE_CANCELED")
COMPLETED: Final = Refused(-32002, "TASK_STATE_COMPLETED")

READ_ONLY: Final = Rules(read_only=True)
ACTING: Final = Rules(read_only=False)
BACKGROUND: Final = Rules(read_only=False, background=True)


def at(start: int, end: int, kind: Kind, answer: Seen | Refused | Worked, said: str = "") -> Operation:
    return Operation(kind, start, end, answer, said)


EXPLAINED: Final = {
    "one after another": (READ_ONLY, [at(0, 1, "send", A, "a"), at(2, 3, "send", AB, "b"), at(4, 5, "get", AB)]),
    "at the same time": (READ_ONLY, [at(0, 9, "send", AB, "b"), at(0, 9, "send", A, "a"), at(0, 9, "get", BEGUN)]),
    "a copy": (READ_ONLY, [at(0, 9, "send", A, "a"), at(0, 9, "send", A, "a")]),
    "a claim that is seen": (
        ACTING,
        [at(0, 9, "send", A, "a"), at(1, 2, "get", A_CLAIMED), at(3, 4, "get", A_CLAIMED)],
    ),
    "busy": (ACTING, [at(0, 9, "send", A, "a"), at(1, 2, "send", Refused(-32004, "TASK_STATE_WORKING"), "b")]),
    "canceled in between": (
        ACTING,
        [
            at(0, 9, "send", replace(A_CLAIMED, state="CANCELED"), "a"),
            at(1, 2, "cancel", replace(A_CLAIMED, state="CANCELED")),
        ],
    ),
    "canceled too late": (ACTING, [at(0, 9, "send", LAST, "last"), at(0, 9, "cancel", COMPLETED)]),
    "two workers": (
        BACKGROUND,
        [
            at(0, 1, "send immediately", A_CLAIMED, "a"),
            at(2, 9, "work", Worked("ran", "TASK_STATE_INPUT_REQUIRED"), "a"),
            at(3, 4, "work", Worked("hidden"), "a"),
            at(10, 11, "work", Worked("dropped"), "a"),
        ],
    ),
}

UNEXPLAINED: Final = {
    "a lost update": (
        READ_ONLY,
        [at(0, 9, "send", A, "a"), at(0, 9, "send", replace(A, history=(*AB.history[:2], "b", "b?")), "b")],
    ),
    "an answered message that is not there": (READ_ONLY, [at(0, 1, "send", A, "a"), at(2, 3, "get", BEGUN)]),
    "a message twice": (
        READ_ONLY,
        [at(0, 9, "send", A, "a"), at(10, 11, "get", replace(A, history=(*A.history, "a", "a?")))],
    ),
    "a reader that goes back": (READ_ONLY, [at(0, 9, "send", A, "a"), at(1, 2, "get", A), at(3, 4, "get", BEGUN)]),
    "two readers that see two orders": (
        READ_ONLY,
        [
            at(0, 9, "send", A, "a"),
            at(0, 9, "send", replace(BEGUN, history=(*BEGUN.history, "b", "b?"), artifacts=("first", "b")), "b"),
        ],
    ),
    "half a turn": (READ_ONLY, [at(0, 9, "send", A, "a"), at(1, 2, "get", A_CLAIMED)]),
    "an artifact without its message": (
        READ_ONLY,
        [at(0, 9, "send", A, "a"), at(1, 2, "get", replace(BEGUN, artifacts=A.artifacts))],
    ),
    "two that win": (ACTING, [at(0, 9, "send", LAST, "last"), at(0, 9, "cancel", CANCELED)]),
    "nobody that wins": (ACTING, [at(0, 9, "send", CANCELED, "last"), at(0, 9, "cancel", COMPLETED)]),
    "a cancel that is told a lie": (
        ACTING,
        [at(0, 9, "send", LAST, "last"), at(0, 9, "cancel", Refused(-32002, "TASK_STATE_FAILED"))],
    ),
    "a change after the end": (READ_ONLY, [at(0, 1, "cancel", CANCELED), at(2, 3, "send", A, "a")]),
    "a refusal before the reason": (READ_ONLY, [at(0, 1, "send", FINISHED, "a"), at(2, 3, "cancel", CANCELED)]),
    "busy without a turn": (READ_ONLY, [at(0, 1, "send", Refused(-32004, "TASK_STATE_WORKING"), "a")]),
    "a copy that is answered too early": (ACTING, [at(0, 9, "send", A, "a"), at(1, 2, "send", A_CLAIMED, "a")]),
    "a turn that runs twice": (
        BACKGROUND,
        [
            at(0, 1, "send immediately", A_CLAIMED, "a"),
            at(2, 9, "work", Worked("ran", "TASK_STATE_INPUT_REQUIRED"), "a"),
            at(2, 9, "work", Worked("ran", "TASK_STATE_INPUT_REQUIRED"), "a"),
        ],
    ),
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_a_history_with_an_order_is_explained(name: str) -> None:
    rules, operations = EXPLAINED[name]
    order = explain(operations, BEGUN, rules)

    assert order is not None
    assert sorted(map(repr, (place.operation for place in order))) == sorted(map(repr, operations))


@pytest.mark.parametrize("name", UNEXPLAINED)
def test_a_history_without_an_order_is_found_out(name: str) -> None:
    rules, operations = UNEXPLAINED[name]

    assert explain(operations, BEGUN, rules) is None
