"""Sends a notification to a webhook that a client named, and to nothing else (§4.3.3, §13.2).

    resolve the name ── check every address ── connect to one of them ── TLS for the name ── POST ── read the status

The name is resolved once, and what is connected to is what was checked: a name that leads elsewhere a moment later
changes nothing. No redirect is followed, and the environment's proxies are not asked. Of an answer the first 1,024
bytes are read and no more. All of it together ends within the seconds that were given, however slow the other side
is. Which URLs and addresses there may be is `addresses`' business.
"""

import io
import re
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final

from a2a_lambda.addresses import Destination, Policy, UnsafeUrlError, check_address, destination, header_rule

MAX_ANSWER_BYTES: Final = 1024

LINGER_SECONDS: Final = 0.5
"""How long the rest of an answer is waited for once its status is known: a server to which the connection breaks
while it answers may take that for an error."""

STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})(?: [^\n]*)?\r?\n")
FIRST_FINAL_STATUS: Final = 200
"""Those below are interim: another answer follows (RFC 9110 §15.2)."""

HEADER_NAME: Final = re.compile(r"[A-Za-z0-9-]+")

Resolve = Callable[..., Sequence[tuple[Any, ...]]]
"""As socket.getaddrinfo."""
Connect = Callable[[tuple[str, int], float], socket.socket]
"""Connects to an IP address and a port within seconds; raises OSError."""


class DeliveryError(Exception):
    """A webhook could not be asked, or gave no answer. The text goes on after "The webhook", and names nothing."""


FAILURES: Final[tuple[tuple[type[OSError], str], ...]] = (
    (TimeoutError, "took too long"),
    (ssl.SSLCertVerificationError, "has a certificate that cannot be verified"),
    (ssl.SSLError, "does not speak TLS as it should"),
    (ConnectionRefusedError, "refused the connection"),
    (OSError, "could not be reached, or broke the connection"),
)
"""What each kind of failure is called: the first that fits. The errors' own texts name hosts."""


class Deadline:
    """When everything must be over."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left.

        Raises:
            TimeoutError: there are none.
        """
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    def at_most(self, seconds: float) -> "Deadline":
        """Return the earlier one of this deadline and one in so many seconds."""
        return Deadline(min(seconds, self._end - time.monotonic()))


class Webhooks:
    """The webhooks that a policy lets in."""

    def __init__(
        self,
        policy: Policy,
        *,
        resolve: Resolve = socket.getaddrinfo,
        connect: Connect = socket.create_connection,
        trust: Callable[[], ssl.SSLContext] = ssl.create_default_context,
        seconds: float = 10.0,
    ) -> None:
        """Args: trust is asked once, before the first POST over TLS. Seconds are for a check or a POST as a whole."""
        self._policy = policy
        self._resolve = resolve
        self._connect = connect
        self._trust = trust
        self._seconds = seconds

    def check(self, url: str) -> None:
        """Let a webhook pass to which something could be posted now.

        Raises:
            UnsafeUrlError: its URL breaks a rule, an address of its host does, or the host has none.
        """
        where = destination(url, self._policy)
        try:
            self._addresses(where, Deadline(self._seconds))
        except DeliveryError:
            raise UnsafeUrlError("must have a host name that can be resolved") from None

    def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> int:
        """Post to a webhook and return the status of its answer, whatever that is.

        Args:
            url: where to.
            content: the body.
            headers: what is sent beside the headers that belong to the connection.

        Raises:
            UnsafeUrlError: the URL or an address of its host breaks a rule; nothing was connected to.
            ValueError: a header cannot be sent as it is; nothing was connected to.
            DeliveryError: there was no answer, or none in time.
        """
        deadline = Deadline(self._seconds)
        where = destination(url, self._policy)
        request = _head(where, len(content), headers) + content
        addresses = self._addresses(where, deadline)
        try:
            with (
                self._connected(addresses, where.port, deadline) as plain,
                self._secured(plain, where, deadline) as connection,
            ):
                _send(connection, request, deadline)
                return _status(connection, deadline)
        except OSError as error:
            raise DeliveryError(next(text for kind, text in FAILURES if isinstance(error, kind))) from None

    def _addresses(self, where: Destination, deadline: Deadline) -> list[str]:
        """Return the addresses that a host has at this moment, in the order to try them; all of them are right."""
        addresses = self._resolved(where, deadline)
        for address in addresses:
            check_address(address, self._policy, where.host)
        return addresses

    def _resolved(self, where: Destination, deadline: Deadline) -> list[str]:
        """Ask for a name's addresses in a thread of its own: the system's resolver knows no deadline."""
        answers: SimpleQueue[Sequence[tuple[Any, ...]]] = SimpleQueue()

        def look_up() -> None:
            try:
                answers.put(self._resolve(where.host, where.port, type=socket.SOCK_STREAM))
            except (OSError, UnicodeError):
                answers.put([])

        Thread(target=look_up, daemon=True).start()
        try:
            found = answers.get(timeout=deadline.left())
        except (Empty, TimeoutError):
            found = []
        if not found:
            raise DeliveryError("has a host name that cannot be resolved")
        return list(dict.fromkeys(str(place[0]) for *_, place in found))

    def _connected(self, addresses: Sequence[str], port: int, deadline: Deadline) -> socket.socket:
        """Connect to the first address that takes it. None may use up the time of those after it."""
        failure = OSError()
        for tried, address in enumerate(addresses):
            try:
                return self._connect((address, port), deadline.left() / (len(addresses) - tried))
            except OSError as error:
                failure = error
        raise failure

    def _secured(self, plain: socket.socket, where: Destination, deadline: Deadline) -> socket.socket:
        plain.settimeout(deadline.left())
        return self._tls.wrap_socket(plain, server_hostname=where.host) if where.scheme == "https" else plain

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._trust()


class _Answer(io.RawIOBase):
    """What comes in over a connection: at most MAX_ANSWER_BYTES, and until the deadline."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._connection = connection
        self._room = MAX_ANSWER_BYTES
        self.deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._room:
            return 0
        self._connection.settimeout(self.deadline.left())
        received = self._connection.recv_into(buffer, min(len(buffer), self._room))
        self._room -= received
        return received


def _head(where: Destination, length: int, headers: Mapping[str, str]) -> bytes:
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name) or header_rule(value):
            raise ValueError("a header cannot be sent as it is")
    fields = {
        "Host": where.authority,
        "User-Agent": "a2a-lambda",
        **headers,
        "Content-Length": str(length),
        "Connection": "close",
    }
    lines = [f"POST {where.target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("ascii")


def _send(connection: socket.socket, content: bytes, deadline: Deadline) -> None:
    """Send all of it. Not by `sendall`, which over TLS takes its timeout for each piece anew."""
    rest = memoryview(content)
    while rest:
        connection.settimeout(deadline.left())
        rest = rest[connection.send(rest) :]


def _status(connection: socket.socket, deadline: Deadline) -> int:
    """Return the status of the final answer."""
    answer = _Answer(connection, deadline)
    lines = io.BufferedReader(answer, MAX_ANSWER_BYTES)
    while True:
        match = STATUS_LINE.fullmatch(lines.readline())
        if match is None:
            raise DeliveryError("gave no answer in HTTP")
        status = int(match[1])
        if status >= FIRST_FINAL_STATUS:
            break
        while lines.readline().strip():
            pass
    answer.deadline = deadline.at_most(LINGER_SECONDS)
    with suppress(OSError):
        lines.read()
    return status
