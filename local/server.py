"""Sockets and the WSGI server that both the gateway and the embedded DynamoDB run on."""

from __future__ import annotations

import logging
import socket
import threading
from typing import TYPE_CHECKING, cast

from waitress.channel import HTTPChannel
from waitress.server import create_server
from waitress.task import ErrorTask

from local import answers, console
from local.errors import PortError

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from waitress.parser import HTTPRequestParser
    from waitress.server import BaseWSGIServer
    from waitress.utilities import Error

HOST = "127.0.0.1"
MAX_HEADER_BYTES = 10_240
# Above API Gateway's 10 MB, so that the gateway itself can say so.
MAX_BODY_BYTES = 64 * 1024 * 1024
CONNECTIONS = 1_000


class _RefusalTask(ErrorTask):
    """Answers what is no proper HTTP request in API Gateway's form."""

    def execute(self) -> None:
        error = cast("Error", cast("HTTPRequestParser", self.request).error)
        answer = answers.message(error.code, error.reason)
        self.status = f"{error.code} {error.reason}"
        self.response_headers = list(answer.headers)
        self.content_length = len(answer.body)
        self.set_close_on_finish()
        console.say(self.status)
        self.write(answer.body)


class _Channel(HTTPChannel):
    error_task_class = _RefusalTask


def listen(port: int, host: str = HOST) -> socket.socket:
    """A listening socket on this machine's own address, or on another host; port 0 is any free one.

    Raises PortError.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        place = f"port {port}" if host == HOST else f"port {port} of {host}"
        raise PortError(f"{place}: {error.strerror}") from error
    listener.listen(CONNECTIONS)
    return listener


def port_of(listener: socket.socket) -> int:
    """The port that the socket listens on."""
    return int(listener.getsockname()[1])


def serve_in_background(application: WSGIApplication, listener: socket.socket, threads: int) -> None:
    """Answer requests on the socket, `threads` at a time, until the process ends."""
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    server = cast(
        "BaseWSGIServer",
        create_server(
            application,
            sockets=[listener],
            threads=threads,
            connection_limit=CONNECTIONS,
            max_request_header_size=MAX_HEADER_BYTES + 1,
            max_request_body_size=MAX_BODY_BYTES,
            asyncore_use_poll=True,
            server_name=HOST,
            clear_untrusted_proxy_headers=False,
        ),
    )
    server.channel_class = _Channel
    threading.Thread(target=server.run, daemon=True).start()
