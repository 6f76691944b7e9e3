"""A caller's webhooks: a server on this machine that takes every update, and remembers in which order."""

import json
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class Webhooks:
    """Any number of webhooks, one for each name."""

    def __init__(self) -> None:
        self._posted: dict[str, list[Any]] = defaultdict(list)
        posted = self._posted

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                posted[self.path].append(json.loads(body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)

    def url(self, name: str) -> str:
        return f"http://localhost:{self._server.server_port}/{name}"

    def updates(self, name: str) -> list[Any]:
        """What has been posted to a webhook: StreamResponses, in the order in which they came."""
        return self._posted[f"/{name}"]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
