"""The checks of tasks, with messages that any agent may be sent (§3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from smoke.errors import NotCheckedError, WrongError
from smoke.expectations import FINISHED, INTERRUPTED, RUNNING, Code, Json, shown
from smoke.visit import describe, short, spoken, state

if TYPE_CHECKING:
    from smoke.visit import Visit

INDEX_LOOKS: Final = 10
INDEX_SECONDS: Final = 0.5
"""How often, and after what pause, a list is looked at: DynamoDB's index follows its table after a moment."""

LAST_MOMENT: Final = "9999-12-31T23:59:59Z"


def a_message_is_answered(visit: Visit) -> str:
    """SendMessage is answered with a task or with a message (§3.1.1)."""
    params = visit.message(contextId=visit.context)
    reply = visit.caller.result("SendMessage", params)
    visit.request, visit.reply = params, reply
    if "message" in reply:
        return f"a message, without a task: {spoken(reply['message'])}"
    task = reply["task"]
    visit.tasks[task["id"]], visit.openings[task["id"]] = task, params
    if task.get("contextId") != visit.context:
        raise WrongError(f"the task's contextId is {shown(task.get('contextId'))}, not the message's")
    return f"task {shown(task['id'])}: {visit.settle(task)}"


def the_same_message_is_the_same_task(visit: Visit) -> str:
    """A copy of a message begins nothing (§3.3.1)."""
    if visit.reply is None:
        raise NotCheckedError("no message was answered")
    before = visit.reply
    again = visit.caller.result("SendMessage", visit.request)
    kind, name = ("message", "messageId") if "message" in before else ("task", "id")
    if again.get(kind, {}).get(name) != before[kind][name]:
        raise WrongError(f"another answer: {shown(again)} (expected where IDEMPOTENCY_SECONDS is 0)")
    return f"the same {kind}"


def the_history_is_as_long_as_asked(visit: Visit) -> str:
    """GetTask gives the newest messages, as many as it is asked for (§3.2.4)."""
    task_id = visit.first()["id"]
    whole = visit.caller.result("GetTask", {"id": task_id}).get("history", [])
    none = visit.caller.result("GetTask", {"id": task_id, "historyLength": 0})
    one = visit.caller.result("GetTask", {"id": task_id, "historyLength": 1}).get("history", [])
    _expect_message(whole, visit.openings[task_id])
    if "history" in none:
        raise WrongError(f"historyLength 0 gives {shown(none['history'])}")
    if one != whole[-1:]:
        raise WrongError(f"historyLength 1 gives {shown(one)}, not the newest")
    return f"{len(whole)} messages, none with 0, the newest with 1"


def a_task_is_begun_at_once(visit: Visit) -> str:
    """With returnImmediately a task is answered as soon as it is there, and comes to rest (§3.2.2)."""
    params = visit.message(contextId=visit.context)
    configuration = {"returnImmediately": True, "historyLength": 0}
    reply = visit.caller.result("SendMessage", {**params, "configuration": configuration})
    if "message" in reply:
        return f"a message, without a task: {spoken(reply['message'])}"
    task = reply["task"]
    if task["id"] in visit.tasks:
        raise WrongError(f"another message is the same task, {task['id']}")
    visit.tasks[task["id"]], visit.openings[task["id"]] = task, params
    if "history" in task:
        raise WrongError("historyLength 0 gives a history")
    return f"task {shown(task['id'])}: {visit.settle(task)}"


def tasks_are_listed(visit: Visit) -> str:
    """ListTasks gives a context's tasks, the newest first, without messages and artifacts (§3.1.4)."""
    listed = _all_listed(visit)
    times = [task["status"].get("timestamp", "") for task in listed["tasks"]]
    if times != sorted(times, reverse=True):
        raise WrongError(f"not the newest first: {times}")
    extra = {"history", "artifacts"} & {name for task in listed["tasks"] for name in task}
    if extra:
        raise WrongError(f"tasks are listed with {', '.join(sorted(extra))}, which nobody asked for")
    if listed["nextPageToken"]:
        raise WrongError("one page of all has a page behind it")
    return f"{len(listed['tasks'])} of this walk's context, the newest first"


def lists_are_paged(visit: Visit) -> str:
    """Page by page every task is met once (§3.1.4)."""
    expected = [task["id"] for task in _all_listed(visit)["tasks"]]
    met: list[str] = []
    token = ""
    while len(met) <= len(expected):
        page = visit.caller.result("ListTasks", {"contextId": visit.context, "pageSize": 1, "pageToken": token})
        if page["pageSize"] != 1 or page["totalSize"] != len(expected):
            raise WrongError(f"pageSize is {page['pageSize']}, totalSize {page['totalSize']} of {len(expected)}")
        met += [task["id"] for task in page["tasks"]]
        token = page["nextPageToken"]
        if not token:
            break
    if met != expected:
        raise WrongError(f"pages of one task give {shown(met)}, one page {shown(expected)}")
    return f"{len(met)} pages of one"


def lists_are_filtered(visit: Visit) -> str:
    """ListTasks keeps to a state and to a time (§3.1.4)."""
    tasks = _all_listed(visit)["tasks"]
    if any(state(task) in RUNNING for task in tasks):
        raise NotCheckedError("a task is still running")
    newest = tasks[0]
    same = [task["id"] for task in tasks if state(task) == state(newest)]
    _expect_listed(visit, same, status=state(newest))
    other = next(each for each in sorted(FINISHED | INTERRUPTED) if each not in {state(task) for task in tasks})
    _expect_listed(visit, [], status=other)
    _expect_listed(visit, [], statusTimestampAfter=LAST_MOMENT)
    if timestamp := newest["status"].get("timestamp"):
        since = [task["id"] for task in tasks if task["status"].get("timestamp", "") >= timestamp]
        _expect_listed(visit, since, statusTimestampAfter=timestamp)
    return f"{len(same)} {short(state(newest))}, 0 {short(other)}, 0 after {LAST_MOMENT}"


def lists_have_artifacts_for_the_asking(visit: Visit) -> str:
    """With includeArtifacts every listed task has its artifacts, as GetTask gives them (§3.1.4)."""
    _all_listed(visit)
    listed = visit.caller.result("ListTasks", {"contextId": visit.context, "includeArtifacts": True})["tasks"]
    for task in listed:
        if "artifacts" not in task:
            raise WrongError("includeArtifacts gives a task without artifacts")
        read = visit.caller.result("GetTask", {"id": task["id"]}).get("artifacts", [])
        if state(task) not in RUNNING and task["artifacts"] != read:
            raise WrongError(f"the list has {shown(task['artifacts'])}, GetTask {shown(read)}")
    return f"{sum(len(task['artifacts']) for task in listed)} artifacts, as GetTask gives them"


def another_context_is_refused(visit: Visit) -> str:
    """A message to a task, in another context, is -32602 (§3.4.3)."""
    params = visit.message(taskId=visit.first()["id"], contextId=f"{visit.context}-other")
    named = visit.caller.refusal(Code.INVALID_PARAMS, "SendMessage", params)
    if "message.contextId" not in named:
        raise WrongError(f"it names {named}, and not message.contextId")
    return f"{Code.INVALID_PARAMS.value} with message.contextId"


def an_interrupted_task_goes_on(visit: Visit) -> str:
    """A message to an interrupted task is its next turn (§3.4.3)."""
    visit.first()
    waiting = [task for task in visit.tasks.values() if state(task) in INTERRUPTED]
    if not waiting:
        raise NotCheckedError("no task waits for a message")
    task_id = waiting[0]["id"]
    params = visit.message(taskId=task_id)
    reply = visit.caller.result("SendMessage", params)
    if reply.get("task", {}).get("id") != task_id:
        raise WrongError(f"not this task: {shown(reply)}")
    became = visit.settle(reply["task"])
    history = visit.caller.result("GetTask", {"id": task_id}).get("history", [])
    _expect_message(history, params)
    return f"{became}, {len(history)} messages"


def an_unfinished_task_is_canceled(visit: Visit) -> str:
    """CancelTask ends every task that has not ended, at once (§3.1.5)."""
    visit.first()
    unfinished = [task for task in visit.tasks.values() if state(task) not in FINISHED]
    if not unfinished:
        raise NotCheckedError("all tasks have ended")
    for task in unfinished:
        canceled = visit.caller.result("CancelTask", {"id": task["id"]})
        read = visit.caller.result("GetTask", {"id": task["id"]})
        visit.tasks[task["id"]] = read
        for seen in (canceled, read):
            if (seen["id"], state(seen)) != (task["id"], "TASK_STATE_CANCELED"):
                raise WrongError(f"task {shown(seen['id'])} is {describe(seen)}")
    return f"{len(unfinished)} CANCELED"


def a_finished_task_stays_as_it_is(visit: Visit) -> str:
    """A finished task takes no message (-32004) and no cancellation (-32002) (§3.1.1, §3.1.5)."""
    before = visit.finished()
    task_id = before["id"]
    visit.caller.refusal(Code.UNSUPPORTED_OPERATION, "SendMessage", visit.message(taskId=task_id))
    visit.caller.refusal(Code.TASK_NOT_CANCELABLE, "CancelTask", {"id": task_id})
    after = visit.caller.result("GetTask", {"id": task_id})
    if after["status"] != before["status"]:
        raise WrongError(f"its status was {shown(before['status'])} and is {shown(after['status'])}")
    return f"{Code.UNSUPPORTED_OPERATION.value} for a message, {Code.TASK_NOT_CANCELABLE.value} for CancelTask"


def _all_listed(visit: Visit) -> Json:
    """The list of this walk's tasks, once it has them all."""
    visit.first()
    listed = None
    for look in range(INDEX_LOOKS):
        if look:
            visit.pause(INDEX_SECONDS)
        listed = visit.caller.result("ListTasks", {"contextId": visit.context})
        if {task["id"] for task in listed["tasks"]} >= visit.tasks.keys():
            break
    ids = [task["id"] for task in listed["tasks"]] if listed else []
    if sorted(ids) != sorted(visit.tasks):
        raise WrongError(f"the context's list has {shown(ids)}, and these were begun: {shown([*visit.tasks])}")
    return listed


def _expect_listed(visit: Visit, ids: list[str], **filters: Json) -> None:
    listed = visit.caller.result("ListTasks", {"contextId": visit.context, **filters})
    met = [task["id"] for task in listed["tasks"]]
    if met != ids or listed["totalSize"] != len(ids):
        raise WrongError(f"{shown(filters)} gives {shown(met)} of {listed['totalSize']}, not {shown(ids)}")


def _expect_message(history: list[Json], params: Json) -> None:
    sent = params["message"]
    kept = [each for each in history if each["messageId"] == sent["messageId"]]
    if [each["parts"] for each in kept] != [sent["parts"]]:
        raise WrongError(f"the message is not in the history as it was sent: {shown(kept)}")
