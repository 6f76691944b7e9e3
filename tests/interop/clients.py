"""The official clients, Python's and JavaScript's, as one: what differs between them is in here."""

import asyncio
import fcntl
import json
import shutil
import subprocess
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import httpx
import pytest
from a2a.client import A2ACardResolver, AuthInterceptor, Client, ClientCallContext, ClientConfig, ClientFactory
from a2a.client.auth import CredentialService
from a2a.types import a2a_pb2
from a2a.utils.errors import A2AError
from google.protobuf.empty_pb2 import Empty
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message

Json = Any

JAVASCRIPT: Final = Path(__file__).parent / "javascript"
LOCK: Final = JAVASCRIPT / "package-lock.json"
INSTALLED: Final = JAVASCRIPT / "node_modules" / ".package-lock.json"
NODE_VERSION: Final = 20
NO_NETWORK: Final = ("EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "ENOTCACHED", "ENOTFOUND", "ETIMEDOUT")


class RefusedError(Exception):
    """What the client raised: the name of its exception, its message, and the details that it kept."""

    def __init__(self, name: str, message: str, details: Json) -> None:
        self.name = name
        self.message = message
        self.details = details
        super().__init__(f"{name}: {message}")


class Caller(Protocol):
    """A connected client."""

    card: Json
    """The card that the client fetched, as it wrote it again."""

    def call(self, operation: str, params: Json) -> Json:
        """What the client makes of the answer, or RefusedError."""


class Connect(Protocol):
    """Opens a client for an agent: fetches the card, and then uses its interface."""

    def __call__(
        self, origin: str, *, interface: Mapping[str, str] = ..., headers: Mapping[str, str] = ..., api_key: str = ...
    ) -> Caller:
        """Connect; `interface` changes the card's, `headers` go with each call."""


class OneKey(CredentialService):
    """The same key for whatever scheme the card declares."""

    def __init__(self, key: str) -> None:
        self._key = key

    async def get_credentials(self, security_scheme_name: str, context: ClientCallContext | None) -> str | None:
        del security_scheme_name, context
        return self._key or None


async def _send(client: Client, request: a2a_pb2.SendMessageRequest) -> Message:
    (response,) = [each async for each in client.send_message(request)]
    return response


async def _delete_config(client: Client, request: a2a_pb2.DeleteTaskPushNotificationConfigRequest) -> Message:
    await client.delete_task_push_notification_config(request)
    return Empty()


PYTHON_OPERATIONS: Final[Mapping[str, tuple[type[Message], Callable[[Client, Any], Coroutine[Any, Any, Message]]]]] = {
    "SendMessage": (a2a_pb2.SendMessageRequest, _send),
    "GetTask": (a2a_pb2.GetTaskRequest, lambda client, request: client.get_task(request)),
    "ListTasks": (a2a_pb2.ListTasksRequest, lambda client, request: client.list_tasks(request)),
    "CancelTask": (a2a_pb2.CancelTaskRequest, lambda client, request: client.cancel_task(request)),
    "CreateTaskPushNotificationConfig": (
        a2a_pb2.TaskPushNotificationConfig,
        lambda client, request: client.create_task_push_notification_config(request),
    ),
    "GetTaskPushNotificationConfig": (
        a2a_pb2.GetTaskPushNotificationConfigRequest,
        lambda client, request: client.get_task_push_notification_config(request),
    ),
    "ListTaskPushNotificationConfigs": (
        a2a_pb2.ListTaskPushNotificationConfigsRequest,
        lambda client, request: client.list_task_push_notification_configs(request),
    ),
    "DeleteTaskPushNotificationConfig": (a2a_pb2.DeleteTaskPushNotificationConfigRequest, _delete_config),
}


class PythonCaller:
    """The client of a2a-sdk."""

    def __init__(self, loop: asyncio.Runner, client: Client, card: a2a_pb2.AgentCard) -> None:
        self._loop = loop
        self._client = client
        self.card = MessageToDict(card)

    def call(self, operation: str, params: Json) -> Json:
        request_type, method = PYTHON_OPERATIONS[operation]
        request = ParseDict(params, request_type())
        try:
            return MessageToDict(self._loop.run(method(self._client, request)))
        except A2AError as error:
            raise RefusedError(type(error).__name__, error.message, error.data) from error


@contextmanager
def python_clients() -> Iterator[Connect]:
    """What connects the Python client."""
    with asyncio.Runner() as loop:
        opened: list[httpx.AsyncClient] = []

        def connect(
            origin: str,
            *,
            interface: Mapping[str, str] = {},
            headers: Mapping[str, str] = {},
            api_key: str = "",
        ) -> Caller:
            http = httpx.AsyncClient(headers=dict(headers))
            opened.append(http)
            card = loop.run(A2ACardResolver(http, origin).get_agent_card())
            changed = MessageToDict(card)
            changed["supportedInterfaces"][0] |= interface
            factory = ClientFactory(ClientConfig(httpx_client=http))
            client = factory.create(ParseDict(changed, a2a_pb2.AgentCard()), [AuthInterceptor(OneKey(api_key))])
            return PythonCaller(loop, client, card)

        yield connect
        for http in opened:
            loop.run(http.aclose())


class JavaScriptCaller:
    """The client of @a2a-js/sdk, in a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]", connection: Json) -> None:
        self._process = process
        self.card = self._exchange(connection)

    def call(self, operation: str, params: Json) -> Json:
        return self._exchange({"operation": operation, "params": params})

    def _exchange(self, request: Json) -> Json:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the client has ended; what it said is in the test's output"
        answer = json.loads(line)
        if "error" in answer:
            error = answer["error"]
            raise RefusedError(error["name"], error["message"], error.get("data"))
        return answer["result"]


@contextmanager
def javascript_clients() -> Iterator[Connect]:
    """What connects the JavaScript client. Skips where there is no Node, or no network to install it from."""
    node = _node_with_sdk()
    opened: list[subprocess.Popen[str]] = []

    def connect(
        origin: str,
        *,
        interface: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        api_key: str = "",
    ) -> Caller:
        process = subprocess.Popen(
            [node, "client.mjs"], cwd=JAVASCRIPT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        opened.append(process)
        return JavaScriptCaller(
            process, {"origin": origin, "interface": interface, "headers": headers, "apiKey": api_key}
        )

    yield connect
    for process in opened:
        process.communicate()  # the end of its input ends it


def _node_with_sdk() -> str:
    """Return Node's path, once `npm ci` has installed the SDK."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("needs Node and npm")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.lstrip("v").partition(".")[0]) < NODE_VERSION:
        pytest.skip(f"needs Node {NODE_VERSION} or newer, and this is {version.strip()}")
    with LOCK.open() as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)  # several processes may test at once
        _install(npm)
    return node


def _install(npm: str) -> None:
    if INSTALLED.exists() and INSTALLED.stat().st_mtime >= LOCK.stat().st_mtime:
        return
    installation = subprocess.run([npm, "ci"], cwd=JAVASCRIPT, capture_output=True, text=True, check=False)
    if installation.returncode and any(code in installation.stderr for code in NO_NETWORK):
        pytest.skip("needs a network to install @a2a-js/sdk from")
    assert installation.returncode == 0, installation.stderr


CLIENTS: Final = {"Python": python_clients, "JavaScript": javascript_clients}
