"""The world of the functions: AWS, the event sources, a client and its webhook, the time.

One process with one thread. It carries out what an instance asks for, one thing at a time, and counts: before each
the instance may die. So what an instance has done when it dies is exactly what it has asked for so far. It dies
between any two steps, also before the first and with its answer on its lips.

While an instance pauses, and at any step of an agent that a flow names, others go on.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pipe
from typing import Any, Final

import msgspec

from tests.deaths.aws import Aws, Queue, Record
from tests.deaths.deployment import FUNCTIONS
from tests.deaths.instances import KILLED, Event, Handler, line, live
from tests.deaths.webhook import Webhook

LONG_PAUSE: Final = 10_000
"""How long a pause is in which nothing else goes on, in milliseconds."""

MAX_STEPS: Final = 150
"""What it may take to come to rest."""

TRIES: Final = 4
PATIENCE: Final = 2_000
"""How often a client sends a request, and how long it waits in between, in milliseconds."""

NAMED: Final = frozenset({"call", "step"})
"""Steps that are called after what they are about."""

LAST: Final = frozenset({"return", "raise"})
"""Steps after which an instance is free."""

TERMINAL: Final = frozenset(f"TASK_STATE_{state}" for state in ("COMPLETED", "FAILED", "CANCELED", "REJECTED"))

Json = Any


def rpc_event(method: str, params: Json) -> Event:
    """Return API Gateway's event for a JSON-RPC request."""
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).decode()
    return {
        "headers": {"a2a-version": "1.0"},
        "requestContext": {"requestId": "gateway-1", "http": {"method": "POST", "sourceIp": "192.0.2.7"}},
        "body": body,
        "isBase64Encoded": False,
    }


class Instance:
    """An instance of a function, as the world has it."""

    def __init__(self, handler: Handler, seconds: float) -> None:
        self.line, theirs = Pipe()
        self.process = os.fork()
        if not self.process:
            self.line.close()
            live(handler, seconds, theirs)
        theirs.close()

    def kill(self) -> None:
        """Have it die, and wait until it is gone."""
        self.line.send(None)
        self.line.close()
        _, status = os.waitpid(self.process, 0)
        assert os.waitstatus_to_exitcode(status) == KILLED


class Instances:
    """The instances of the functions: as many as work at a time, and those that have nothing to do."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._free: dict[str, list[Instance]] = {name: [] for name in handlers}

    def take(self, function: str) -> Instance:
        """Return one that is free, or a new one."""
        free = self._free[function]
        return free.pop() if free else Instance(self._handlers[function], FUNCTIONS[function].timeout)

    def give_back(self, function: str, instance: Instance) -> None:
        """Have one back that is done."""
        self._free[function].append(instance)

    def close(self) -> None:
        """End those that are free, and wait for them."""
        ending = [instance for free in self._free.values() for instance in free]
        for instance in ending:
            instance.line.close()
        for instance in ending:
            os.waitpid(instance.process, 0)


class UnrestError(Exception):
    """It does not come to rest, or not in time."""


@dataclass
class World:
    """All that outlives an instance."""

    aws: Aws
    webhook: Webhook
    instances: Instances
    deaths: frozenset[int] = frozenset()
    """The steps before which an instance dies, counted from 0."""

    steps: list[str] = field(default_factory=list)
    """What was asked for, or would have been, in order."""
    died: list[str] = field(default_factory=list)
    """The functions whose instances died."""
    acts: list[str] = field(default_factory=list)
    """The messages on which the agent began to act."""
    answers: dict[str, Json] = field(default_factory=dict)
    """What they were answered with."""
    cancels: list[Json] = field(default_factory=list)
    """What CancelTask was answered with."""
    told_from: int | None = None
    """From which record of the stream on the webhook is to be told, once a client has been promised so."""
    fatal: dict[str, int] = field(default_factory=dict)
    """How often an instance dies of a step of its agent in any case."""
    errors: list[str] = field(default_factory=list)
    """What handlers raised."""
    meanwhile: dict[str, Callable[[], object]] = field(default_factory=dict)
    """What else happens at a step, the first time: by the step's name."""

    # The client

    def call(self, method: str, params: Json) -> Json | None:
        """Send a request, and return the answer; None where there is none."""
        answer = self.invoke("rpc", rpc_event(method, params))
        return msgspec.json.decode(answer["body"]) if answer else None

    def insist(self, method: str, params: Json) -> Json:
        """Send a request until it is answered."""
        for _ in range(TRIES):
            answer = self.call(method, params)
            if answer is not None:
                return answer
            line.now += PATIENCE
        raise UnrestError("no answer")

    def send(
        self,
        text: str = "Go",
        *,
        message_id: str = "m-1",
        task_id: str = "",
        insists: bool = True,
        **configuration: Json,
    ) -> Json | None:
        """Send a message, and return the answer."""
        message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}]}
        if task_id:
            message["taskId"] = task_id
        params = {"message": message, "configuration": configuration}
        answer = (self.insist if insists else self.call)("SendMessage", params)
        if answer is not None:
            self.answers[message_id] = answer
            if "taskPushNotificationConfig" in configuration and "task" in answer.get("result", {}):
                self.told_from = 0
        return answer

    def configure(self) -> None:
        """Have the webhook told of the task's updates from now on."""
        answer = self.insist("CreateTaskPushNotificationConfig", {"taskId": self.task_id, "url": self.webhook.url})
        if "result" in answer and not self.is_over:
            self.told_from = len(self.aws.records)

    def cancel(self) -> None:
        """Cancel the task."""
        self.cancels.append(self.insist("CancelTask", {"id": self.task_id}))

    def task(self, task_id: str) -> Json:
        """Return a task as GetTask has it."""
        return self.insist("GetTask", {"id": task_id})["result"]

    def heads(self) -> list[Record]:
        """Return the items that are tasks."""
        return [item for item in self.aws.items() if item["entry"]["S"] == "head" and "state" in item]

    @property
    def task_id(self) -> str:
        """The only task's id."""
        (head,) = self.heads()
        task_id: str = head["task_id"]["S"]
        return task_id

    @property
    def is_over(self) -> bool:
        """Whether the task is finished."""
        return all(head["state"]["S"] in TERMINAL for head in self.heads())

    # The event sources

    def carry_on(self) -> None:
        """Let the event sources deliver until nothing is left, however long that takes."""
        for _ in range(MAX_STEPS):
            if self.deliver():
                continue
            due = [at for queue in (self.aws.work, self.aws.push) if (at := queue.due_at()) is not None]
            if not due:
                return
            line.now = max(line.now, min(due))
        raise UnrestError("it does not come to rest")

    def redrive(self) -> None:
        """Put the dead letters back into the push queue."""
        for message in self.aws.push_dead_letters.empty():
            self.aws.push.send(message)

    def deliver(self) -> bool:
        """Deliver what there is to deliver now, once, and tell whether there was anything."""
        delivered = self._relay()
        delivered |= self._receive("worker", self.aws.work)
        return self._receive("push", self.aws.push) or delivered

    def _relay(self) -> bool:
        records = self.aws.unrelayed()
        if not records:
            return False
        result = self.invoke("relay", {"Records": records})
        if result is not None:
            failed = {failure["itemIdentifier"] for failure in result["batchItemFailures"]}
            numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
            self.aws.relayed(next((at for at, number in enumerate(numbers) if number in failed), len(records)))
        return True

    def _receive(self, function: str, queue: Queue) -> bool:
        due = queue.due_at()
        record = queue.receive() if due is not None and due <= line.now else None
        if record is None:
            return False
        result = self.invoke(function, {"Records": [record]})
        if result is not None and not result["batchItemFailures"]:
            queue.delete(record)
        return True

    # The instances

    def invoke(self, function: str, event: Event) -> Any:
        """Have an event handled by an instance, a new one where none is free, and return the result.

        None where the instance died or raised: then there is no result.
        """
        instance = self.instances.take(function)
        instance.line.send((line.now, event))
        while True:
            what, details = instance.line.recv()
            self.steps.append(f"{function}: {details[0] if what in NAMED else what}")
            if len(self.steps) - 1 in self.deaths or (what == "step" and self._is_fatal(details[0])):
                instance.kill()
                self.died.append(function)
                self.webhook.attend()
                return None
            line.now += 1
            content = self._carry_out(what, details)
            instance.line.send((line.now, content))
            if what in LAST:
                self.instances.give_back(function, instance)
                return content

    def _carry_out(self, what: str, details: Sequence[Any]) -> Any:
        match what:
            case "return":
                return details[0]
            case "raise":
                self.errors.append(details[0])
            case "call":
                return self.aws.answer(*details[1:])
            case "pause":
                self._pass(details[0])
            case "receive":
                self.webhook.attend()
            case "act":
                self.acts.append(details[0])
                self._meanwhile("act")
            case "step":
                self._meanwhile(details[0])
        return None

    def _pass(self, seconds: float) -> None:
        """Let time pass, in which others go on."""
        if not self.deliver():
            line.now += max(round(seconds * 1000), LONG_PAUSE)

    def _is_fatal(self, step: str) -> bool:
        self.fatal[step] = left = self.fatal.get(step, 0) - 1
        return left >= 0

    def _meanwhile(self, step: str) -> None:
        """Have happen what happens at a step of the agent."""
        self.meanwhile.pop(step, int)()
