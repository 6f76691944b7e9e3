"""A server in front of a gateway that passes everything on, but for one fault."""

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = Any

HOP = {"host", "connection", "content-length", "transfer-encoding", "date", "server"}
"""Headers that each server and each client makes itself."""


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def call(self) -> str:
        """The JSON-RPC method, "" where there is none."""
        try:
            request = json.loads(self.body)
        except ValueError:
            return ""
        return str(request.get("method", "")) if isinstance(request, dict) else ""

    @property
    def params(self) -> Json:
        return json.loads(self.body).get("params", {})


@dataclass(frozen=True)
class Given:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        return json.loads(self.body)

    def with_json(self, value: Json) -> "Given":
        return replace(self, body=json.dumps(value).encode())


PassOn = Callable[[Asked], Given]
Fault = Callable[[Asked, PassOn], Given]


def none(asked: Asked, pass_on: PassOn) -> Given:
    """Nothing is wrong."""
    return pass_on(asked)


class FaultyServer(ThreadingHTTPServer):
    """Listens at once; has a gateway to pass on to once that has started."""

    daemon_threads = True
    gateway = ""
    fault: Fault = staticmethod(none)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def pass_on(self, asked: Asked) -> Given:
        headers = {name: value for name, value in asked.headers.items() if name.lower() not in HOP}
        sent = urllib.request.Request(  # noqa: S310 - the gateway's own address
            self.gateway + asked.path, asked.body or None, headers, method=asked.method
        )
        try:
            with urllib.request.urlopen(sent, timeout=60) as response:  # noqa: S310 - the same
                return Given(response.status, dict(response.headers), response.read())
        except urllib.error.HTTPError as error:
            with error:
                return Given(error.code, dict(error.headers), error.read())


class _Handler(BaseHTTPRequestHandler):
    server: FaultyServer

    def handle_request(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        given = self.server.fault(Asked(self.command, self.path, dict(self.headers), body), self.server.pass_on)
        self.send_response(given.status)
        for name, value in given.headers.items():
            if name.lower() not in HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(given.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(given.body)

    do_GET = do_HEAD = do_POST = do_OPTIONS = handle_request  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def listening() -> Iterator[FaultyServer]:
    """A server that has no gateway yet."""
    with FaultyServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
