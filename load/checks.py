"""What must be true of the answers and of the database, whatever came in between. Pure: a check yields faults."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from load.callers import NO_ANSWER, TURNED_AWAY, UNAVAILABLE
from load.calls import OK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from load.callers import Answer, Seen
    from load.stored import Entry, Stored

SUBMITTED: Final = "TASK_STATE_SUBMITTED"
CANCELED: Final = "TASK_STATE_CANCELED"
FINISHED: Final = frozenset({"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", CANCELED, "TASK_STATE_REJECTED"})
CUT_SHORT: Final = frozenset({CANCELED, "TASK_STATE_FAILED"})
"""In these states the newest turn may have ended before it began."""


@dataclass(frozen=True)
class Evidence:
    """What was answered, and what is there when all are done."""

    acting: bool
    """Whether the agent acts on the world."""
    answers: Sequence[Answer]
    tasks: Mapping[str, Stored]
    index: Sequence[Entry]
    runs: Counter[tuple[str, str]]
    """How often the agent ran, by task and message."""

    def shown(self) -> Iterator[tuple[Answer, Seen]]:
        """Each task that an answer showed."""
        return ((answer, seen) for answer in self.answers for seen in answer.tasks)

    def sendings(self) -> Mapping[str, list[Answer]]:
        """The answers to each message and its copies."""
        grouped = defaultdict(list)
        for answer in self.answers:
            if answer.call.message_id:
                grouped[answer.call.message_id].append(answer)
        return grouped

    def places(self) -> Mapping[str, list[str]]:
        """The task of each time that a message is in a history."""
        grouped = defaultdict(list)
        for task in self.tasks.values():
            for message_id in task.sent():
                grouped[message_id].append(task.entry.task_id)
        return grouped


def answers_are_allowed(evidence: Evidence) -> Iterator[str]:
    """Every answer is one that the protocol has for this, or turns the caller away."""
    if not any(answer.kind == OK for answer in evidence.answers):
        yield "nothing was answered"
    for answer in evidence.answers:
        if answer.kind not in answer.call.allowed | TURNED_AWAY:
            yield f"{answer.call.operation} of {answer.owner} was answered: {answer.kind}"


def tasks_are_kept(evidence: Evidence) -> Iterator[str]:
    """Every task that was shown is in the database, in that state or a later one."""
    for answer, seen in evidence.shown():
        task = evidence.tasks.get(seen.task_id)
        if task is None:
            yield f"{answer.call.operation} showed {seen.task_id}, which is not there"
        elif not _is_same_or_later(task, seen):
            now = f"{task.entry.state} since {task.time}"
            yield f"{seen.task_id} was shown {seen.state} since {seen.time}, and is {now}"


def _is_same_or_later(task: Stored, seen: Seen) -> bool:
    if seen.state in FINISHED:
        return (task.entry.state, task.time) == (seen.state, seen.time)
    return task.time >= seen.time and (task.entry.state != SUBMITTED or seen.state == SUBMITTED)


def messages_are_kept(evidence: Evidence) -> Iterator[str]:
    """Every message that was taken is in the history of the task that it was answered with. No other is anywhere."""
    places, sendings = evidence.places(), evidence.sendings()
    for message_id, answers in sendings.items():
        found = set(places.get(message_id, ()))
        taken = {_task_of(answer) for answer in answers if answer.kind == OK}
        if taken - found:
            yield f"message {message_id} was answered with {_listed(taken)}, and is in {_listed(found)}"
        unknown = any(answer.kind in {UNAVAILABLE, NO_ANSWER} for answer in answers)
        if found and not taken and not unknown:
            yield f"message {message_id} was refused, and is in {_listed(found)}"
    for message_id in places.keys() - sendings.keys():
        yield f"message {message_id} was sent by nobody"


def messages_are_single(evidence: Evidence) -> Iterator[str]:
    """A message is in one history, once; its copies are answered with one task; and no history is too long or short."""
    for message_id, found in evidence.places().items():
        if len(found) > 1:
            yield f"message {message_id} is {len(found)} times in {_listed(set(found))}"
    for message_id, answers in evidence.sendings().items():
        tasks = {_task_of(answer) for answer in answers if answer.kind == OK}
        if len(tasks) > 1:
            yield f"message {message_id} and its copies were answered with {_listed(tasks)}"
    for task_id, task in evidence.tasks.items():
        if len({message_id for message_id, _ in task.messages}) != task.message_count:
            yield f"{task_id} counts {task.message_count} messages, and has {len(task.messages)}"


def runs_are_right(evidence: Evidence) -> Iterator[str]:
    """Every turn was run; an acting agent ran once for each, and for nothing else. None is left waiting."""
    for task_id, task in evidence.tasks.items():
        if task.is_running:
            yield f"{task_id} is still waiting or running"
        for message_id in task.sent():
            may_be_cut_short = task.entry.state in CUT_SHORT and message_id == task.sent()[-1]
            if not evidence.runs[task_id, message_id] and not may_be_cut_short:
                yield f"message {message_id} of {task_id} was never run"
    for (task_id, message_id), count in evidence.runs.items() if evidence.acting else ():
        if count > 1:
            yield f"message {message_id} of {task_id} was run {count} times"
        if task_id not in evidence.tasks or message_id not in evidence.tasks[task_id].sent():
            yield f"message {message_id} was run in {task_id}, which does not have it"


def index_is_right(evidence: Evidence) -> Iterator[str]:
    """Each task has exactly one entry in the index, with its own state, time and context, and nothing else has one."""
    entries = defaultdict(list)
    for entry in evidence.index:
        entries[entry.task_id].append(entry)
    for task_id, task in evidence.tasks.items():
        if entries[task_id] != [task.entry]:
            yield f"{task_id} is {task.entry}, and in the index {entries[task_id]}"
        if task.place != task.entry.place:
            yield f"{task_id} says that it is at {task.place}, and belongs at {task.entry.place}"
    for task_id in entries.keys() - evidence.tasks.keys():
        yield f"{task_id} is in the index, and is no task"


def owners_are_apart(evidence: Evidence) -> Iterator[str]:
    """Nobody was shown another's task, has a message in one, or owns a piece of one."""
    for answer, seen in evidence.shown():
        task = evidence.tasks.get(seen.task_id)
        if task and task.entry.owner != answer.owner:
            yield f"{answer.owner} was shown {seen.task_id}, which is {task.entry.owner}'s"
    sendings = evidence.sendings()
    for task_id, task in evidence.tasks.items():
        owner = task.entry.owner
        senders = {answer.owner for message_id in task.sent() for answer in sendings.get(message_id, ())}
        if senders - {owner}:
            yield f"{task_id} is {owner}'s, and has messages of {_listed(senders)}"
        if task.owners != {owner}:
            yield f"{task_id} is {owner}'s, and has items of {_listed(task.owners)}"


def _task_of(answer: Answer) -> str:
    """The task that a message was answered with; "nothing" where it was not."""
    return answer.tasks[0].task_id if answer.tasks else "nothing"


def _listed(names: set[str] | frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "no task"


Checks: TypeAlias = "Mapping[str, Callable[[Evidence], Iterator[str]]]"

CHECKS: Final[Checks] = {
    "answers": answers_are_allowed,
    "tasks": tasks_are_kept,
    "messages": messages_are_kept,
    "copies": messages_are_single,
    "runs": runs_are_right,
    "index": index_is_right,
    "owners": owners_are_apart,
}
"""The name of each line, and what it checks."""
