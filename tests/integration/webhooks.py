"""Webhooks that note what they are sent, and a server that tells them of its tasks over real queues."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import msgspec
from msgspec.structs import replace

from a2a_lambda import items
from a2a_lambda.addresses import UnsafeUrlError
from a2a_lambda.agent import Agent
from a2a_lambda.calls import World
from a2a_lambda.delivering import Deliverer, Received
from a2a_lambda.jsonrpc import Endpoint
from a2a_lambda.model import TaskPushNotificationConfig
from a2a_lambda.notifications import Delivery, read_notification
from a2a_lambda.operations import Operations
from a2a_lambda.push_configs import TablePushConfigs
from a2a_lambda.queues import FifoMessage, Queue
from a2a_lambda.relaying import Relay
from a2a_lambda.tables import Table
from a2a_lambda.task import Head
from tests.integration.tables import WINDOW_SECONDS, Tasks, session
from tests.schema import check_rpc
from tests.unit.factories import GENEROUS, VALIDATOR, Ids, Json, Pause, call, new_message_id, send_params

HOOK: Final = "https://hook.example/updates"
WORD: Final = "hill"
"""What a webhook wants to hear, and nobody else may."""

CONFIG: Final = {"url": HOOK, "token": WORD, "authentication": {"scheme": "Bearer", "credentials": WORD}}
SHOWN: Final = {"url": HOOK, "authentication": {"scheme": "Bearer"}}

Answering = Callable[[str], int]


def well(_url: str) -> int:
    """Take an update."""
    return 200


@dataclass
class Webhooks:
    """Webhooks at every https address, and on this machine."""

    answering: Answering = well
    """Returns the status of a webhook's answer, or raises."""
    posts: list[tuple[str, Json]] = field(default_factory=list)
    """What came, and where to."""
    headers: list[Mapping[str, str]] = field(default_factory=list)

    def check(self, url: str) -> None:
        if not url.startswith(("https://", "http://127.0.0.1")):
            raise UnsafeUrlError("must be an https URL")

    def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> int:
        self.headers.append(headers)
        status = self.answering(url)
        self.posts.append((url, msgspec.json.decode(content)))
        return status

    def states(self, url: str = HOOK) -> list[str]:
        """Return the states that a webhook was told of."""
        updates = [content["statusUpdate"] for at, content in self.posts if at == url and "statusUpdate" in content]
        return [update["status"]["state"].removeprefix("TASK_STATE_") for update in updates]


@dataclass
class Pushed:
    """A server for an agent, its queues, and the relay and the push function behind it, all in this process."""

    tasks: Tasks
    agent: Agent
    webhooks: Webhooks = field(default_factory=Webhooks)
    sqs: Any = field(default_factory=lambda: session().create_client("sqs"))

    _numbers: ClassVar = itertools.count(1)

    def __post_init__(self) -> None:
        number = next(self._numbers)
        self.work = self._create(f"work-{number}")
        self.dead_letters = self._create(f"dead-{number}.fifo")
        arn = self.sqs.get_queue_attributes(QueueUrl=self.dead_letters, AttributeNames=["QueueArn"])
        policy = {"deadLetterTargetArn": arn["Attributes"]["QueueArn"], "maxReceiveCount": 100}
        self.push = self._create(f"push-{number}.fifo", RedrivePolicy=msgspec.json.encode(policy).decode())
        self.configs = TablePushConfigs(
            Table(self.tasks.client, self.tasks.name),
            clock=self.tasks.clock,
            new_id=Ids(),
        )
        self.relay = Relay(Queue(self.sqs, self.work), Queue(self.sqs, self.push), self.configs)
        self.deliverer = Deliverer(self.configs, self.webhooks, Queue(self.sqs, self.dead_letters))
        world = World(
            clock=self.tasks.clock,
            new_id=Ids(),
            pause=Pause(self.tasks.clock),
            later=lambda _seconds, _action: lambda: None,
        )
        operations = Operations(
            self.agent,
            self.tasks.store(),
            GENEROUS,
            world,
            window_seconds=WINDOW_SECONDS,
            push=(self.configs, self.webhooks),
        )
        self.endpoint = Endpoint(operations, VALIDATOR, max_body_bytes=65_536, push=True)

    def _create(self, name: str, **attributes: str) -> str:
        if name.endswith(".fifo"):
            attributes["FifoQueue"] = "true"
        url: str = self.sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return url

    # Callers

    def ask(self, method: str, params: Json, *, owner: str = "anonymous") -> Json:
        """Call a method, and return the response object, checked against the protocol."""
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        answer = self.endpoint.answer(body, version="1.0", admit=lambda: call(owner=owner))
        check_rpc(body, answer.status, answer.body)
        return msgspec.json.decode(answer.body)

    def result(self, method: str, params: Json, *, owner: str = "anonymous") -> Json:
        response = self.ask(method, params, owner=owner)
        assert "result" in response, response
        return response["result"]

    def refusal(self, method: str, params: Json, *, owner: str = "anonymous") -> Json:
        response = self.ask(method, params, owner=owner)
        assert "error" in response, response
        return response["error"]

    def send(self, text: str = "Hello", *, config: Json = None, to: str = "") -> str:
        """Send a message, and return the task's id."""
        params = send_params(messageId=new_message_id(), taskId=to or None, parts=[{"text": text}])
        if config:
            params["configuration"] = {"taskPushNotificationConfig": config}
        task_id: str = self.result("SendMessage", params)["task"]["id"]
        self.pass_on(task_id)
        return task_id

    def create(self, task_id: str, **changed: Json) -> Json:
        """Create a config."""
        return self.result("CreateTaskPushNotificationConfig", {**CONFIG, "taskId": task_id, **changed})

    def listed(self, task_id: str) -> list[Json]:
        """Return the configs that a list shows."""
        configs: list[Json] = self.result("ListTaskPushNotificationConfigs", {"taskId": task_id}).get("configs", [])
        return configs

    # What happens behind them

    def pass_on(self, task_id: str) -> None:
        """Pass on what the task's last change has left, as its stream would have."""
        head = self.tasks.items(task_id)[items.HEAD]
        if "outbox" in head:
            self.relay.pass_on(items.read_outbox(head), self.tasks.clock())

    def tell(self, task_id: str, state: str = "WORKING", *, sequence: int) -> None:
        """Put a state of a task on the queue, for all its webhooks, as the relay does."""
        head = self.head(task_id)
        outbox = items.KeptOutbox(state=f"TASK_STATE_{state}", at=self.tasks.clock())
        self.relay.pass_on(items.Outgoing(replace(head, push=True, sequence=sequence), outbox), self.tasks.clock())

    def head(self, task_id: str) -> Head:
        """Return a task."""
        return items.read_head(self.tasks.items(task_id)[items.HEAD])

    def waiting(self, url: str) -> list[Json]:
        """Return the messages of a queue, which nobody else receives from then on."""
        received = self.receive(url)
        return [msgspec.json.decode(message["Body"]) for message in received]

    def deliver_all(self) -> list[Delivery]:
        """Deliver what waits; what is tried again later stays hidden, and what goes on is received at once."""
        done: list[Delivery] = []
        while messages := self.receive(self.push, count=1):
            for message in messages:
                delivery = self.deliver(message)
                done.append(delivery)
                if delivery.is_done:
                    self.sqs.delete_message(QueueUrl=self.push, ReceiptHandle=message["ReceiptHandle"])
                elif delivery.hide_seconds == 0:
                    self.show(message)
        return done

    def show(self, message: Json) -> None:
        """Have a message received again."""
        self.sqs.change_message_visibility(
            QueueUrl=self.push, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
        )

    def wear_out(self) -> list[Delivery]:
        """Deliver what waits as often as it is tried, one message after the other."""
        done: list[Delivery] = []
        while messages := self.receive(self.push, count=1):
            for message in messages:
                while not (delivery := self.deliver(message)).is_done:
                    pass
                done.append(delivery)
                self.sqs.delete_message(QueueUrl=self.push, ReceiptHandle=message["ReceiptHandle"])
        return done

    def deliver(
        self, message: Json, *, receipts: int = 1, seconds_left: Callable[[], float] = lambda: 60.0
    ) -> Delivery:
        """Deliver a received message."""
        attributes = message["Attributes"]
        fifo = FifoMessage(message["Body"], attributes["MessageGroupId"], attributes["MessageDeduplicationId"])
        return self.deliverer.deliver(read_notification(message["Body"]), Received(fifo, receipts), seconds_left)

    def receive(self, url: str, *, count: int = 10, hidden_seconds: int = 600) -> list[Json]:
        """Receive messages, with their attributes."""
        received: list[Json] = self.sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=count,
            VisibilityTimeout=hidden_seconds,
            MessageSystemAttributeNames=["All"],
        ).get("Messages", [])
        return received


def config(url: str = HOOK, *, config_id: str = "") -> TaskPushNotificationConfig:
    """Return a config."""
    return TaskPushNotificationConfig(url, id=config_id)
