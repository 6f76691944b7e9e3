"""The same agent as a Lambda function on the official SDK, behind Mangum: what this server is measured beside.

TASK_STORE picks the SDK's store: `memory`, or a SQLAlchemy URL.
"""

import asyncio
import os
import re
import uuid
from typing import Any

from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, ListTasksRequest, Part
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from mangum import Mangum
from starlette.applications import Starlette

ORDERS = {
    "A-1001": "Shipped on 2026-09-24. Expected delivery 2026-09-29.",
    "A-1002": "Packed. Not shipped yet.",
}
ORDER_ID = re.compile(r"\b[A-Z]-\d{4}\b", re.ASCII)
QUESTION = os.environ.get("QUESTION", "Which order do you mean? Please give its number, for example A-1001.")
MODES = ["text/plain", "application/json"]


class OrderStatusExecutor(AgentExecutor):
    """Looks an order up, and asks for its number where the message has none."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Complete the task with the order's status, or ask for the order's number."""
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        order_id = find_order_id(context.message.parts)
        if order_id is None:
            await updater.requires_input(updater.new_agent_message([Part(text=QUESTION)]))
            return
        status = ORDERS.get(order_id, "There is no order with this number.")
        result = {"orderId": order_id, "found": order_id in ORDERS, "status": status}
        parts = [Part(text=f"{order_id}: {status}"), Part(data=ParseDict(result, Value()))]
        await updater.add_artifact(parts, name="order-status")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Cancel the task."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def find_order_id(parts: Any) -> str | None:
    """The first order number in a text part, or the `orderId` of a data part."""
    for part in parts:
        if part.HasField("text") and (match := ORDER_ID.search(part.text)):
            return match[0]
        if part.HasField("data"):
            data = MessageToDict(part.data)
            if isinstance(data, dict) and isinstance(order_id := data.get("orderId"), str):
                return order_id
    return None


def task_store(name: str) -> TaskStore:
    """The store of this name. What only the SQL one needs is imported with it."""
    if name == "memory":
        return InMemoryTaskStore()
    from a2a.server.tasks import DatabaseTaskStore  # noqa: PLC0415
    from sqlalchemy.ext.asyncio import create_async_engine  # noqa: PLC0415

    return DatabaseTaskStore(create_async_engine(name))


CARD = AgentCard(
    name="Order Status Demo",
    description="Tells where an order is. A demo agent with two made-up orders, A-1001 and A-1002.",
    version="0.1.0",
    supported_interfaces=[
        AgentInterface(url="https://agent.example/a2a", protocol_binding="JSONRPC", protocol_version="1.0")
    ],
    capabilities=AgentCapabilities(streaming=False, push_notifications=False),
    default_input_modes=MODES,
    default_output_modes=MODES,
    skills=[
        AgentSkill(
            id="order-status",
            name="Order status",
            description="Takes an order number, in a sentence or as data, and returns the order's status as text "
            "and as data.",
            tags=["orders", "shipping"],
            examples=["Where is order A-1001?", '{"orderId":"A-1002"}'],
        )
    ],
)

requests = DefaultRequestHandler(
    agent_executor=OrderStatusExecutor(), task_store=task_store(os.environ["TASK_STORE"]), agent_card=CARD
)
routes = [*create_agent_card_routes(CARD), *create_jsonrpc_routes(requests, "/a2a")]
handler = Mangum(Starlette(routes=routes), lifespan="off")


def copy(copies: int) -> None:
    """Copy the one task of a caller without a name so many times."""

    async def save() -> None:
        context = ServerCallContext()
        (task,) = (await requests.task_store.list(ListTasksRequest(), context)).tasks
        for _ in range(copies):
            task.id = str(uuid.uuid4())
            await requests.task_store.save(task, context)

    # In the loop that Mangum uses.
    asyncio.get_event_loop().run_until_complete(save())
