"""A client's webhook: it notes what is posted, and answers when it is looked after."""

import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

MACHINE: Final = "127.0.0.1"
ACCEPTED: Final = 200


@dataclass(frozen=True)
class Post:
    """What was posted, and what it was answered with."""

    headers: Mapping[str, str]
    content: Any
    status: int


class Webhook:
    """A server without a thread."""

    def __init__(self) -> None:
        self.posts: list[Post] = []
        self.status: Callable[[], int] = lambda: ACCEPTED
        """Says what the next post is answered with."""
        self._listener = socket.create_server((MACHINE, 0))
        self._listener.settimeout(0)
        self.url = f"http://{MACHINE}:{self._listener.getsockname()[1]}/"

    @property
    def accepted(self) -> list[Any]:
        """The contents of the posts that were taken, in order."""
        return [post.content for post in self.posts if post.status == ACCEPTED]

    def attend(self) -> None:
        """Answer what has been posted since. What broke off on its way is nothing."""
        for connection in self._connections():
            with connection:
                connection.settimeout(None)
                head, content = _request(connection)
                if content is not None:
                    self.posts.append(Post(head, content, self.status()))
                    # The caller may have died.
                    connection.send(f"HTTP/1.1 {self.posts[-1].status} x\r\n\r\n".encode(), socket.MSG_NOSIGNAL)

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()

    def _connections(self) -> Iterator[socket.socket]:
        while True:
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            yield connection


def _request(connection: socket.socket) -> tuple[dict[str, str], Any]:
    """Return a request's headers and its content; None where it broke off."""
    received = b""
    while more := connection.recv(65_536):
        received += more
        head, end, body = received.partition(b"\r\n\r\n")
        lines = (line.partition(":") for line in head.decode().split("\r\n")[1:])
        headers = {name.lower(): value.strip() for name, _, value in lines}
        if end and len(body) == int(headers["content-length"]):
            return headers, msgspec.json.decode(body)
    return {}, None
