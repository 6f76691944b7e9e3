"""The embedded DynamoDB, SQS and KMS: moto's server in a process of its own.

moto is not made for parallel calls, so DynamoDB's and its streams' are let through one at a time. It
keeps a database for each account and region; here there is one, whoever asks.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from local.server import port_of, serve_in_background

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

ROOT = Path(__file__).parent.parent
THREADS = 16


def application() -> WSGIApplication:
    """The AWS of moto, with one shared database."""
    # Here, since it takes a second and only the database's own process needs it.
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app  # noqa: PLC0415

    from local import comparisons, kms, shards, sqs  # noqa: PLC0415 - the same

    _list_services_once()
    comparisons.make_fast()
    kms.correct()
    shards.correct()
    sqs.correct()
    return shared(DomainDispatcherApplication(create_backend_app))


def _list_services_once() -> None:
    """Keep moto from looking through its own folder for every call, which makes parallel ones wait for each other."""
    from moto import backends  # noqa: PLC0415 - as above

    services = tuple(backends.list_of_moto_modules())
    backends.list_of_moto_modules = lambda: services


def shared(aws: WSGIApplication) -> WSGIApplication:
    """The same AWS with a DynamoDB that takes one call at a time, and all callers for the same one."""
    dynamodb = threading.Lock()

    def serve(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        environ["HTTP_AUTHORIZATION"] = one_database(environ.get("HTTP_AUTHORIZATION", ""))
        if not environ.get("HTTP_X_AMZ_TARGET", "").startswith("DynamoDB"):
            return aws(environ, start_response)
        with dynamodb:
            return [*aws(environ, start_response)]

    return serve


def one_database(authorization: str) -> str:
    """The signature header as if every caller had the same credentials and region."""
    return re.sub(r"Credential=[^/,]*/([^/,]*)/[^/,]*/", r"Credential=local/\1/us-east-1/", authorization)


def serve_database(listener: socket.socket) -> None:
    """Serve the embedded DynamoDB on the socket until the process ends."""
    serve_in_background(application(), listener, THREADS)


def endpoint_of(listener: socket.socket) -> str:
    """The address of the DynamoDB behind the socket."""
    return f"http://{listener.getsockname()[0]}:{port_of(listener)}"


class DatabaseProcess:
    """The embedded DynamoDB as a child, which ends with its parent however that ends.

    It is given the listening socket, so calls may be made at once and wait for it. It
    reads its standard input, whose other end only this process holds and never writes
    to: the end of that input is the end of the parent. A session of its own keeps the
    terminal's Ctrl-C from it until the gateway is done.
    """

    def __init__(self, listener: socket.socket) -> None:
        self.endpoint = endpoint_of(listener)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "local", "database", "--socket", str(listener.fileno())],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        listener.close()

    def stop(self) -> None:
        """End the database and wait until its port is free."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
