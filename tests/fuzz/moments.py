"""Moments worth going to, and those to stay away from: where more than one answer is right."""

from typing import Final

from tests.fuzz.knowledge import MESSAGE_DAYS, RETENTION, SECOND, TOKEN_LIFETIME, WINDOW, Task
from tests.fuzz.matching import Json
from tests.fuzz.reference import Reference

IN_DOUBT: Final = 12 * SECOND
"""Longer than a request takes."""


def sure_from(reference: Reference, owner: str, message: Json) -> int:
    """Return from when on it is sure whether a copy of a message is one: now, unless it is between two promises."""
    key, spans = repr(message), []
    if "taskId" in message:
        task = reference.tasks.get(message["taskId"])
        taken = [turn for turn in task.turns if turn.sent.key == key] if task else []
        if task and task.deadline and task.turns[-1] in taken:
            return reference.now
        spans = [(turn.taken + WINDOW, turn.last + WINDOW) for turn in taken]
        if task:
            spans.append((task.created + MESSAGE_DAYS, task.created_late + MESSAGE_DAYS))
    elif (begun := reference.begun.get((owner, key))) and not reference.is_open(begun):
        spans = [(begun.early + WINDOW, begun.late + WINDOW)]
    doubtful = [end for start, end in spans if start < end and start - IN_DOUBT <= reference.now < end]
    return max([reference.now, *doubtful])


def is_unclear(reference: Reference, owner: str, message: Json) -> bool:
    """Tell whether a first message's task is open otherwise than in the turn that it began the first time."""
    begun = reference.begun.get((owner, repr(message)))
    if begun is None:
        return False
    if begun.first is None:
        task = begun.answer
        return isinstance(task, Task) and task.deadline is not None and len(task.turns) > 1
    tasks = [each.answer for each in (begun, begun.first) if isinstance(each.answer, Task)]
    return any(task.deadline is not None for task in tasks)


def counted_from(reference: Reference) -> int:
    """Return from when on no task is counted that is gone."""
    gone = [task for task in reference.tasks.values() if reference.now >= reference.expiry(task)]
    return max((task.since + RETENTION for task in gone), default=0)


def deadlines(reference: Reference) -> list[int]:
    """Return until when turns may wait or run."""
    return sorted(
        {task.deadline for task in reference.tasks.values() if task.deadline and task.deadline > reference.now}
    )


def edges(reference: Reference) -> list[int]:
    """Return the times at which something else ends that is there now."""
    ends = [begun.early + WINDOW for begun in reference.begun.values()]
    for task in reference.tasks.values():
        ends += [task.since + WINDOW, task.created + MESSAGE_DAYS, reference.expiry(task)]
    ends += [token.walk.issued + TOKEN_LIFETIME for token in reference.tokens]
    return sorted({end for end in ends if end > reference.now})
