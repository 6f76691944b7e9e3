"""What must be true of a world that has come to rest, whoever died in it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from a2a_lambda.task import MAX_RUNS, OUTCOME_UNKNOWN
from a2a_lambda.timestamps import format_timestamp
from tests.deaths.flows import CANCELED, COMPLETED, FAILED, Flow
from tests.deaths.world import TERMINAL, World

RUN_AGENTS: Final = frozenset({"rpc", "worker"})
"""The functions that run agents."""

UNSUPPORTED: Final = -32004
NOT_CANCELABLE: Final = -32002

Json = Any


def problems(flow: Flow, world: World) -> Iterator[str]:
    """Yield what is wrong."""
    # Who looks lives.
    world.deaths = frozenset()
    tasks = [world.task(head["task_id"]["S"]) for head in world.heads()]
    yield from world.errors
    yield from _of_answers(world, tasks)
    yield from _of_cancels(world, tasks)
    yield from _of_runs(flow, world, tasks)
    yield from _of_queues(world)
    for task in tasks:
        yield from _of_state(flow, world, task)
        yield from _of_webhook(world, task)
    if flow.insists and not world.answers:
        yield "nothing was answered"


def _of_answers(world: World, tasks: Sequence[Json]) -> Iterator[str]:
    """A message that was answered with a task is in it, and in no other, once; one that was refused is in none."""
    places = Counter((task["id"], message["messageId"]) for task in tasks for message in task["history"])
    for (task_id, message_id), count in places.items():
        if count > 1:
            yield f"{message_id} is {count} times in {task_id}"
    for message_id, answer in world.answers.items():
        expected = {answer["result"]["task"]["id"]} if "task" in answer.get("result", {}) else set()
        if expected != {task_id for task_id, each in places if each == message_id}:
            yield f"{message_id} is in {places}, and was answered with {answer}"
        if "error" in answer and not (world.died and answer["error"]["code"] == UNSUPPORTED):
            yield f"{message_id} was answered with {answer}"
    if len(tasks) > 1:
        yield f"there are {len(tasks)} tasks"


def _of_cancels(world: World, tasks: Sequence[Json]) -> Iterator[str]:
    """A cancellation that was answered with a task lasts; one that was not came too late, or was a second one."""
    for answer in world.cancels:
        if answer.get("error", {}).get("code", NOT_CANCELABLE) != NOT_CANCELABLE:
            yield f"CancelTask was answered with {answer}"
        if "result" in answer and any(task["status"]["state"] != CANCELED for task in tasks):
            yield "a cancellation did not last"


def _of_runs(flow: Flow, world: World, tasks: Sequence[Json]) -> Iterator[str]:
    """An acting agent runs once on a message, at most; a reading one as often as it takes, but not for ever."""
    runs = Counter(world.acts)
    for message_id, count in runs.items():
        if count > (1 if flow.acts else MAX_RUNS):
            yield f"the agent ran {count} times on {message_id}"
    for task in tasks:
        asked = [message["messageId"] for message in task["history"] if message["role"] == "ROLE_USER"]
        if task["status"]["state"] == COMPLETED and not all(runs[message_id] for message_id in asked):
            yield f"the agent ran on {dict(runs)}, and not on all of {asked}"


def _of_queues(world: World) -> Iterator[str]:
    """Nothing is left."""
    for queue in world.aws.queues.values():
        if queue.messages:
            yield f"{queue.name} holds {[message.body for message in queue.messages]}"


def _of_state(flow: Flow, world: World, task: Json) -> Iterator[str]:
    """A task ends as it should, or a death took an acting agent's turn with it: then nobody knows what came of it."""
    state = task["status"]["state"]
    said = " ".join(part["text"] for part in task["status"].get("message", {}).get("parts", []))
    is_given_up = flow.acts and state == FAILED and said == OUTCOME_UNKNOWN and RUN_AGENTS & set(world.died)
    if state not in flow.ends and not is_given_up:
        yield f"the task is {state}: {said}"


def _of_webhook(world: World, task: Json) -> Iterator[str]:
    """The webhook was told of each change since it was named, in order. After the last one it is forgotten."""
    if world.told_from is None:
        return
    posted = [msgspec.json.decode(text) for text in dict.fromkeys(map(msgspec.json.encode, world.webhook.accepted))]
    told = [post["statusUpdate"]["status"] for post in posted if "statusUpdate" in post]
    changes = list(_changes(world, task["id"]))
    due = [change for place, change in changes if place >= world.told_from]
    if [status for status in map(_bare, told) if status in due] != due:
        yield f"the webhook was told of {told}, and not of {due}"
    if not all(any(_bare(status) == change for _, change in changes) for status in told):
        yield f"the webhook was told of {told}, and there was only {changes}"
    if not told or told[-1] != task["status"]:
        yield f"the webhook was told of {told} at last, and the task is {task['status']}"
    artifacts = _folded(post["artifactUpdate"] for post in posted if "artifactUpdate" in post)
    if artifacts != task.get("artifacts", []):
        yield f"the webhook was told of {artifacts}, and the task has {task.get('artifacts')}"
    if task["status"]["state"] in TERMINAL and (left := list(_webhooks(world))):
        yield f"{left} outlive the task"


def _changes(world: World, task_id: str) -> Iterator[tuple[int, Json]]:
    """Yield each state that a task was in, or that something was said with: its place in the stream, and the state."""
    before = None
    for place, record in enumerate(world.aws.records):
        head = record["dynamodb"].get("NewImage", {})
        if record["dynamodb"]["Keys"] == {"task_id": {"S": task_id}, "entry": {"S": "head"}}:
            status = [head.get(name) for name in ("state", "status_at", "status_message")]
            if status != before:
                yield place, {"state": head["state"]["S"], "timestamp": format_timestamp(int(head["status_at"]["N"]))}
            before = status


def _bare(status: Json) -> Json:
    return {name: value for name, value in status.items() if name != "message"}


def _folded(updates: Iterable[Json]) -> list[Json]:
    """Return the artifacts that come of updates."""
    artifacts: dict[str, Json] = {}
    for update in updates:
        artifact = update["artifact"]
        if update.get("append"):
            artifacts[artifact["artifactId"]]["parts"] += artifact["parts"]
        else:
            artifacts[artifact["artifactId"]] = artifact
    return list(artifacts.values())


def _webhooks(world: World) -> Iterator[str]:
    """Yield where webhooks are kept; one that came with a write which did not count is nobody's."""
    writes = {record["dynamodb"].get("NewImage", {}).get("write", {}).get("S") for record in world.aws.records}
    for item in world.aws.items():
        kind, _, write = item["entry"]["S"].partition("#")
        if kind == "config" or (kind == "webhook" and write in writes):
            yield item["entry"]["S"]
