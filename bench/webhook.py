"""A webhook on this machine that takes everything, and knows how much that was."""

from __future__ import annotations

import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


class Webhook:
    """The webhook, and what it has received."""

    def __init__(self) -> None:
        """Listen on a free port."""
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                """Take an update."""
                content = self.rfile.read(int(self.headers["Content-Length"]))
                webhook.bodies.append(content)
                self.send_response(HTTPStatus.NO_CONTENT)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.bodies: list[bytes] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/updates"

    def __enter__(self) -> Self:
        """Answer from now on."""
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()

    def taken(self) -> list[bytes]:
        """What has come since this was asked last."""
        bodies, self.bodies = self.bodies, []
        return bodies
