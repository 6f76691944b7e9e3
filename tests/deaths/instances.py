"""An instance of a function: a process of its own, which does nothing to the world without asking for it.

What is asked for is carried out by the parent (`world`), which also says when the instance dies: then nothing more of
it is carried out, and nobody hears what it was doing.
"""

import functools
import os
import signal
import socket
import time
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from multiprocessing.connection import Connection
from typing import Any, Final, Never
from unittest import mock

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from moto.core.models import botocore_stubber

from a2a_lambda import bootstrap, clients, timestamps

NOON: Final = 1_790_000_000_000
"""When it all begins, in milliseconds since the epoch."""

KILLED: Final = 137
LONGEST_SECONDS: Final = 120
"""What an event may take in real time: more is a fault of the tests."""

Event = Mapping[str, Any]
Handler = Callable[[Event, Any], Any]
Action = Callable[[], None]


class Line:
    """What this process has of the world: the time, and in an instance the line by which it asks."""

    def __init__(self) -> None:
        self.now = NOON
        self.connection: Connection | None = None
        self.waiting: list[Action] = []
        """What is to be carried out in a while."""


line: Final = Line()


def milliseconds() -> int:
    """Return the world's time, in milliseconds since the epoch."""
    return line.now


def seconds() -> float:
    """Return the world's time, in seconds since the epoch."""
    return line.now / 1000


def ask(what: str, *details: Any) -> Any:
    """Ask the world to do something, and return what comes of it, unless the instance is to die of it."""
    if line.connection is None:
        return None
    line.connection.send((what, details))
    return hear(line.connection)


def hear(connection: Connection) -> Any:
    """Hear what the world says and what time it is: end with the world, and die where it says so."""
    try:
        said = connection.recv()
    except EOFError:
        os._exit(0)
    if said is None:
        os._exit(KILLED)
    line.now, content = said
    return content


class Context:
    """What a handler is told beside its event: the time that it has."""

    aws_request_id = "request-1"

    def __init__(self, seconds: float) -> None:
        self._end = line.now + round(seconds * 1000)

    def get_remaining_time_in_millis(self) -> int:
        return self._end - line.now


def live(handler: Handler, seconds: float, connection: Connection) -> Never:
    """Handle events in this process, which has just been made for it, one after the other, until the world ends."""
    line.connection = connection
    botocore_stubber.enabled = False
    _watch_sockets()
    while True:
        event = hear(connection)
        signal.alarm(LONGEST_SECONDS)
        line.waiting.clear()
        try:
            result = handler(event, Context(seconds))
        except Exception as error:  # noqa: BLE001 - as Lambda, which tells what a handler raised
            ask("raise", repr(error))
        else:
            ask("return", result)


def commit_now() -> None:
    """Carry out what was to be carried out in a while."""
    due, line.waiting = line.waiting, []
    for action in due:
        action()


def take_over() -> None:
    """Have the library in this process go by the world's time and calls, for good."""
    mock.patch.object(timestamps, "now", milliseconds).start()
    mock.patch.object(time, "sleep", _pause).start()
    mock.patch.object(bootstrap, "later", _later).start()
    mock.patch.object(clients, "client", functools.cache(partial(_client, clients.client))).start()


def _pause(seconds: float) -> None:
    ask("pause", seconds)


def _later(_seconds: float, action: Action) -> Action:
    line.waiting.append(action)
    return lambda: line.waiting.remove(action) if action in line.waiting else None


def _client(make: Callable[..., Any], service: str, endpoint: str, config: Config) -> Any:
    """Return a client of an AWS service, the same for all functions: that is less to fork."""
    client = make(service, endpoint, config)
    client.meta.events.register_first("before-send", _send)
    return client


def _send(request: AWSPreparedRequest, event_name: str, **_rest: Any) -> AWSResponse | None:
    """Send an instance's request to AWS by way of the world. Others send theirs as ever."""
    if line.connection is None:
        return None
    content = request.method, request.url, dict(request.headers), request.body
    status, headers, body = ask("call", event_name.removeprefix("before-send."), *content)
    return AWSResponse(request.url, status, headers, _Raw(body))


class _Raw(BytesIO):
    def stream(self, **_rest: Any) -> Any:
        yield self.read()


def _watch_sockets() -> None:
    """Ask before an instance connects, before it sends, and before it first waits for an answer."""
    answered = weakref.WeakSet[socket.socket]()
    connect, send, receive = socket.socket.connect, socket.socket.send, socket.socket.recv_into

    def watched_connect(self: socket.socket, address: Any) -> None:
        ask("connect", str(address))
        connect(self, address)

    def watched_send(self: socket.socket, content: Any, *rest: Any) -> int:
        ask("send", len(content))
        return send(self, content, *rest)

    def watched_receive(self: socket.socket, *arguments: Any) -> int:
        if self not in answered:
            answered.add(self)
            ask("receive")
        return receive(self, *arguments)

    mock.patch.object(socket.socket, "connect", watched_connect).start()
    mock.patch.object(socket.socket, "send", watched_send).start()
    mock.patch.object(socket.socket, "recv_into", watched_receive).start()
