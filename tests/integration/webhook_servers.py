"""Webhooks on this machine that do what they are told, well or badly, and a CA that vouches for some of them."""

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Final, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

MACHINE: Final = "127.0.0.1"
ACCEPTED: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"

Behavior = Callable[[socket.socket, Event], None]
"""What is done with a connection on which a request has come, until it breaks or the test is over."""


class Webhook:
    """A server that notes the requests and does the same with each connection."""

    def __init__(self, behavior: Behavior, tls: ssl.SSLContext | None = None, *, reads: bool = True) -> None:
        """Args: a server that does not read leaves the request in the connection."""
        self.requests: list[bytes] = []
        self.connections = 0
        self._behavior = behavior
        self._tls = tls
        self._reads = reads
        self._listener = socket.create_server((MACHINE, 0))
        self.port: int = self._listener.getsockname()[1]
        self._over = Event()
        self._thread = Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                with connection, suppress(OSError):
                    self._attend(connection)

    def _attend(self, connection: socket.socket) -> None:
        if self._tls is None:
            self._answer(connection)
            return
        with self._tls.wrap_socket(connection, server_side=True) as secured:
            self._answer(secured)

    def _answer(self, connection: socket.socket) -> None:
        if self._reads:
            self.requests.append(_request(connection))
        self._behavior(connection, self._over)


def answers(*pieces: bytes) -> Behavior:
    """Send this and close."""

    def behave(connection: socket.socket, _over: Event) -> None:
        for piece in pieces:
            connection.sendall(piece)

    return behave


def keeps_open(*pieces: bytes) -> Behavior:
    """Send this and close nothing."""

    def behave(connection: socket.socket, over: Event) -> None:
        for piece in pieces:
            connection.sendall(piece)
        over.wait()

    return behave


def streams(start: bytes, piece: bytes) -> Behavior:
    """Send the start, and the piece again and again for as long as somebody takes it."""

    def behave(connection: socket.socket, _over: Event) -> None:
        connection.sendall(start)
        while True:
            connection.sendall(piece)

    return behave


def drips(start: bytes, piece: bytes) -> Behavior:
    """Send the start, and the piece every now and then."""

    def behave(connection: socket.socket, over: Event) -> None:
        connection.sendall(start)
        while not over.wait(0.02):
            connection.sendall(piece)

    return behave


def sips(connection: socket.socket, over: Event) -> None:
    """Take a little of the request every now and then."""
    while connection.recv(4096) and not over.wait(0.02):
        pass


def _request(connection: socket.socket) -> bytes:
    """Return a request that says how long its body is. Raises OSError if it breaks off."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += _some(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    (length,) = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length")]
    while len(body) < length:
        body += _some(connection)
    return head + b"\r\n\r\n" + body


def _some(connection: socket.socket) -> bytes:
    received = connection.recv(65536)
    if not received:
        raise ConnectionError
    return received


class Authority:
    """A certificate authority of the tests' own."""

    def __init__(self, folder: Path) -> None:
        """Args: the folder is where certificates are put for the `ssl` module to read."""
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tests")])
        self._certificate = (
            _unsigned(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signing=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def trusted(self) -> ssl.SSLContext:
        """Return what a client has that trusts this authority and no other."""
        return ssl.create_default_context(cadata=self._certificate.public_bytes(serialization.Encoding.PEM).decode())

    def server(self, host: str, *, days: int = 1) -> ssl.SSLContext:
        """Return what a server has whose certificate is for this host, valid from two days ago for days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        certificate = (
            _unsigned(subject, self._name, key.public_key(), days)
            .add_extension(x509.SubjectAlternativeName([_general_name(host)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        file = self._folder / f"{x509.random_serial_number()}.pem"
        file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int = 1
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signing: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signing,
        crl_sign=signing,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
