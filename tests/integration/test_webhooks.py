"""Webhooks over real connections: which are connected to, what they are sent, how each comes to an end."""

import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from threading import Event
from typing import Any, Final

import pytest

from a2a_lambda.addresses import Policy, UnsafeUrlError
from a2a_lambda.webhooks import MAX_ANSWER_BYTES, DeliveryError, Webhooks
from tests.integration.webhook_servers import (
    ACCEPTED,
    MACHINE,
    Authority,
    Behavior,
    Webhook,
    answers,
    drips,
    keeps_open,
    sips,
    streams,
)

LOCAL: Final = Policy(allow_local=True)
PUBLIC: Final = "8.8.8.8"
OTHER_PUBLIC: Final = "2606:4700::1111"
URL: Final = "https://hooks.example/updates"
HEADERS: Final = {"Content-Type": "application/a2a+json", "X-A2A-Notification-Token": "of the caller"}
SHORT: Final = 0.3
"""Seconds for a webhook that will use all of them."""


def found(*addresses: str) -> Sequence[tuple[Any, ...]]:
    """Return addresses as socket.getaddrinfo does."""
    return [
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, 443, 0, 0))
        if ":" in address
        else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443))
        for address in addresses
    ]


class Names:
    """A resolver for which a name leads elsewhere each time that it is asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    def __call__(self, host: str, port: int, **_kwargs: Any) -> Sequence[tuple[Any, ...]]:
        self.asked.append((host, port))
        return found(*self._answers.pop(0))


class Network:
    """Connections that all lead to one port of this machine, wherever they were meant to go."""

    def __init__(self, port: int, unreachable: Sequence[str] = ()) -> None:
        self._port = port
        self._unreachable = unreachable
        self.places: list[tuple[str, int]] = []

    def __call__(self, place: tuple[str, int], seconds: float) -> socket.socket:
        self.places.append(place)
        if place[0] in self._unreachable:
            raise OSError
        return socket.create_connection((MACHINE, self._port), seconds)


def no_connection(place: tuple[str, int], _seconds: float) -> socket.socket:
    raise AssertionError(place)


def local_post(webhook: Webhook, content: bytes = b"{}", seconds: float = 10.0) -> int:
    return Webhooks(LOCAL, seconds=seconds).post(f"http://{MACHINE}:{webhook.port}/updates", content, HEADERS)


def refused(webhooks: Webhooks, url: str = URL) -> str:
    """Return the rule that a URL breaks, for a check and for a POST."""
    with pytest.raises(UnsafeUrlError) as checked:
        webhooks.check(url)
    with pytest.raises((UnsafeUrlError, DeliveryError)):
        webhooks.post(url, b"{}", {})
    return str(checked.value)


def failed(webhook: Webhook, content: bytes = b"{}") -> str:
    with pytest.raises(DeliveryError) as error:
        local_post(webhook, content, SHORT)
    return str(error.value)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def accepting() -> Iterator[Webhook]:
    with Webhook(answers(ACCEPTED)) as webhook:
        yield webhook


def test_a_webhook_is_sent_the_content_with_its_headers(accepting: Webhook) -> None:
    url = f"http://{MACHINE}:{accepting.port}/updates?of=task#part"

    status = Webhooks(LOCAL).post(url, b'{"a":1}', HEADERS)

    assert status == 200
    (request,) = accepting.requests
    assert request.decode().split("\r\n") == [
        "POST /updates?of=task HTTP/1.1",
        f"Host: {MACHINE}:{accepting.port}",
        "User-Agent: a2a-lambda",
        "Content-Type: application/a2a+json",
        "X-A2A-Notification-Token: of the caller",
        "Content-Length: 7",
        "Connection: close",
        "",
        '{"a":1}',
    ]


def test_localhost_is_reached_where_this_machine_is_allowed(accepting: Webhook) -> None:
    url = f"http://localhost:{accepting.port}/"
    webhooks = Webhooks(LOCAL)

    webhooks.check(url)

    assert webhooks.post(url, b"", {}) == 200


def test_two_megabytes_arrive_whole(accepting: Webhook) -> None:
    content = b"x" * 2_000_000

    assert local_post(accepting, content) == 200
    assert accepting.requests[0].endswith(b"\r\n\r\n" + content)


@pytest.mark.parametrize("status", [200, 204, 301, 400, 404, 429, 500, 503])
def test_the_status_is_told_whatever_it_is(status: int) -> None:
    with Webhook(answers(f"HTTP/1.1 {status} Whatever\r\n\r\n".encode())) as webhook:
        assert local_post(webhook) == status


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.1 202 Accepted\r\n\r\n"],
        [b"HTTP/1.0 202 Accepted\r\n\r\n"],
        [b"HTTP/1.1 202\r\n\r\n"],
        [b"HTTP/1.1 202 \r\n\r\n"],
        [b"HTTP/1.1 202 Accepted\n\n"],
        [bytes([byte]) for byte in b"HTTP/1.1 202 Accepted\r\n\r\n"],
        [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 202 Accepted\r\n\r\n"],
        [b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\n\r\n"],
    ],
)
def test_the_status_is_that_of_the_final_answer(pieces: list[bytes]) -> None:
    with Webhook(answers(*pieces)) as webhook:
        assert local_post(webhook) == 202


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_inwards_is_not_followed(status: int) -> None:
    with Webhook(answers(ACCEPTED)) as inside:
        location = f"Location: http://{MACHINE}:{inside.port}/admin"
        with Webhook(answers(f"HTTP/1.1 {status} Over there\r\n{location}\r\n\r\n".encode())) as webhook:
            assert local_post(webhook) == status
        assert inside.connections == 0


@pytest.mark.parametrize("variable", ["http_proxy", "https_proxy", "all_proxy"])
def test_a_proxy_of_the_environment_is_not_asked(
    variable: str, accepting: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Webhook(answers(b"HTTP/1.1 500 Proxy\r\n\r\n")) as proxy:
        for name in (variable, variable.upper()):
            monkeypatch.setenv(name, f"http://{MACHINE}:{proxy.port}")
        monkeypatch.setenv("no_proxy", "")

        assert local_post(accepting) == 200
        assert proxy.connections == 0


@pytest.mark.parametrize(
    ("behavior", "reason"),
    [
        (answers(), "gave no answer in HTTP"),
        (answers(b"HTTP/1.1 200"), "gave no answer in HTTP"),
        (answers(b"\r\nHTTP/1.1 200 OK\r\n\r\n"), "gave no answer in HTTP"),
        (answers(b"SSH-2.0-OpenSSH_9.6\r\n"), "gave no answer in HTTP"),
        (answers(b"HTTP/2 200 OK\r\n\r\n"), "gave no answer in HTTP"),
        (answers(b"HTTP/1.1 2000 OK\r\n\r\n"), "gave no answer in HTTP"),
        (answers(b"HTTP/1.1 -20 OK\r\n\r\n"), "gave no answer in HTTP"),
        (answers(b"HTTP/1.1 100 Continue\r\n\r\n"), "gave no answer in HTTP"),
        (answers(b"x" * 100_000), "gave no answer in HTTP"),
        (streams(b"", b"x" * 1000), "gave no answer in HTTP"),
        (streams(b"HTTP/1.1 200 ", b"x" * 1000), "gave no answer in HTTP"),
        (streams(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), "gave no answer in HTTP"),
        (streams(b"HTTP/1.1 100 Continue\r\n", b"X-Header: endless\r\n"), "gave no answer in HTTP"),
        (keeps_open(), "took too long"),
        (keeps_open(b"HTTP/1.1 200"), "took too long"),
        (drips(b"", b"x"), "took too long"),
        (drips(b"HTTP/1.1 100 Continue\r\n", b"X: y\r\n"), "took too long"),
    ],
)
def test_a_webhook_that_does_not_answer_is_left(behavior: Behavior, reason: str) -> None:
    with Webhook(behavior) as webhook:
        assert failed(webhook) == reason


@pytest.mark.parametrize("behavior", [keeps_open(), sips])
def test_a_webhook_that_does_not_take_the_request_is_left(behavior: Behavior) -> None:
    with Webhook(behavior, reads=False) as webhook:
        assert failed(webhook, b"x" * 20_000_000) == "took too long"


def test_a_webhook_that_closes_the_connection_at_once_is_left() -> None:
    with Webhook(answers(), reads=False) as webhook:
        assert failed(webhook, b"x" * 5_000_000) == "could not be reached, or broke the connection"


def test_a_port_where_nobody_listens_is_left() -> None:
    with socket.create_server((MACHINE, 0)) as listener:
        port = listener.getsockname()[1]

    with pytest.raises(DeliveryError, match=r"^refused the connection$"):
        Webhooks(LOCAL).post(f"http://{MACHINE}:{port}/", b"", {})


@pytest.mark.parametrize(
    "behavior",
    [
        streams(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1000),
        streams(b"HTTP/1.1 200 OK\r\n", b"X-Header: endless\r\n"),
        answers(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 100_000),
        keeps_open(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
        drips(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    ],
)
def test_an_answer_whose_status_is_known_counts_however_it_goes_on(behavior: Behavior) -> None:
    with Webhook(behavior) as webhook:
        assert local_post(webhook, seconds=SHORT) == 200


class Counted(socket.socket):
    """A socket that knows how much was taken from it."""

    taken = 0

    def recv_into(self, *args: Any) -> int:
        received = super().recv_into(*args)
        Counted.taken += received
        return received


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 100 Continue\r\n"])
def test_one_kilobyte_of_an_answer_is_read_and_no_more(start: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(place: tuple[str, int], seconds: float) -> socket.socket:
        return Counted(fileno=socket.create_connection(place, seconds).detach())

    monkeypatch.setattr(Counted, "taken", 0)
    with Webhook(streams(start, b"a: x\r\n" * 100)) as webhook, suppress(DeliveryError):
        Webhooks(LOCAL, connect=connect).post(f"http://{MACHINE}:{webhook.port}/", b"", {})

    assert Counted.taken == MAX_ANSWER_BYTES


def test_a_server_that_begins_no_tls_is_left() -> None:
    with Webhook(keeps_open(), reads=False) as webhook, pytest.raises(DeliveryError, match=r"^took too long$"):
        Webhooks(LOCAL, seconds=SHORT).post(f"https://{MACHINE}:{webhook.port}/", b"", {})


def test_a_server_that_speaks_no_tls_is_left() -> None:
    with (
        Webhook(answers(ACCEPTED), reads=False) as webhook,
        pytest.raises(DeliveryError, match=r"^(does not speak TLS as it should|could not be reached.*)$"),
    ):
        Webhooks(LOCAL).post(f"https://{MACHINE}:{webhook.port}/", b"", {})


@pytest.mark.parametrize("behavior", [keeps_open(), sips])
def test_a_webhook_that_does_not_take_the_request_over_tls_is_left(behavior: Behavior, authority: Authority) -> None:
    with Webhook(behavior, authority.server(MACHINE), reads=False) as webhook:
        webhooks = Webhooks(LOCAL, trust=authority.trusted, seconds=SHORT)
        with pytest.raises(DeliveryError, match=r"^took too long$"):
            webhooks.post(f"https://{MACHINE}:{webhook.port}/", b"x" * 20_000_000, {})


@pytest.mark.parametrize("host", [MACHINE, "localhost"])
def test_this_machine_is_reached_over_tls(host: str, authority: Authority) -> None:
    with Webhook(answers(ACCEPTED), authority.server(host)) as webhook:
        webhooks = Webhooks(LOCAL, trust=authority.trusted)

        assert webhooks.post(f"https://{host}:{webhook.port}/", b"", {}) == 200


def test_the_address_that_was_checked_is_connected_to_with_the_hosts_name_for_tls(authority: Authority) -> None:
    tls = authority.server("hooks.example")
    asked: list[str | None] = []
    tls.sni_callback = lambda _connection, name, _context: asked.append(name)
    names = Names([PUBLIC])
    with Webhook(answers(ACCEPTED), tls) as webhook:
        network = Network(webhook.port)
        webhooks = Webhooks(Policy(), resolve=names, connect=network, trust=authority.trusted)

        assert webhooks.post("https://HOOKS.example.:443/updates", b"{}", {}) == 200

    assert names.asked == [("hooks.example", 443)]
    assert network.places == [(PUBLIC, 443)]
    assert asked == ["hooks.example"]
    assert b"\r\nHost: hooks.example\r\n" in webhook.requests[0]


@pytest.mark.parametrize(
    "certified", ["evil.example", "example", "*.hooks.example", PUBLIC, "hooks.example.evil.example"]
)
def test_a_certificate_of_another_host_is_refused(certified: str, authority: Authority) -> None:
    with Webhook(answers(ACCEPTED), authority.server(certified)) as webhook:
        webhooks = Webhooks(Policy(), resolve=Names([PUBLIC]), connect=Network(webhook.port), trust=authority.trusted)
        with pytest.raises(DeliveryError, match=r"^has a certificate that cannot be verified$"):
            webhooks.post(URL, b"{}", HEADERS)

    assert webhook.requests == []


@pytest.mark.parametrize(("days", "trust"), [(-1, None), (1, ssl.create_default_context)])
def test_a_certificate_that_has_expired_or_that_nobody_vouches_for_is_refused(
    days: int, trust: Callable[[], ssl.SSLContext] | None, authority: Authority
) -> None:
    with Webhook(answers(ACCEPTED), authority.server("hooks.example", days=days)) as webhook:
        webhooks = Webhooks(
            Policy(), resolve=Names([PUBLIC]), connect=Network(webhook.port), trust=trust or authority.trusted
        )
        with pytest.raises(DeliveryError, match=r"^has a certificate that cannot be verified$"):
            webhooks.post(URL, b"{}", HEADERS)

    assert webhook.requests == []


@pytest.mark.parametrize(
    "inside",
    [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "fd00:ec2::254",
        "fe80::1%lo",
    ],
)
@pytest.mark.parametrize("policy", [Policy(), LOCAL])
def test_a_name_that_leads_inwards_is_refused(inside: str, policy: Policy) -> None:
    for addresses in ([inside], [PUBLIC, inside], [inside, PUBLIC], [PUBLIC, OTHER_PUBLIC, inside]):
        webhooks = Webhooks(policy, resolve=Names(addresses, addresses), connect=no_connection)

        assert refused(webhooks).startswith("must ")


def test_a_name_that_leads_inwards_the_second_time_is_refused_then() -> None:
    webhooks = Webhooks(Policy(), resolve=Names([PUBLIC], [MACHINE]), connect=no_connection)
    webhooks.check(URL)

    with pytest.raises(UnsafeUrlError, match=r"^must be at a public address$"):
        webhooks.post(URL, b"{}", {})


def test_a_name_is_asked_for_once_a_post() -> None:
    names = Names([PUBLIC], [MACHINE])
    network = Network(1, unreachable=[PUBLIC])

    with pytest.raises(DeliveryError):
        Webhooks(Policy(), resolve=names, connect=network).post(URL, b"{}", {})

    assert network.places == [(PUBLIC, 443)]


def test_localhost_that_leads_elsewhere_is_refused() -> None:
    webhooks = Webhooks(LOCAL, resolve=Names([PUBLIC], [PUBLIC]), connect=no_connection)

    assert refused(webhooks, "http://localhost/") == "must be at an address of this machine"


@pytest.mark.parametrize(
    "url",
    [
        "https://localhost/",
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://0177.0.0.1/",
        "https://0x7f.1/",
        "https://127.1/",
        "https://0/",
        "https://0.0.0.0/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://100.64.0.1/",
        "https://[::]/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[::127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[2002:7f00:1::]/",
        "https://[fd00:ec2::254]/",
        "https://[fe80::1]/",
        "https://[fe80::1%25lo]/",
        "http://localhost/",
        "https://user@8.8.8.8/",
        "https://8.8.8.8/" + "a" * 10_000,
        "",
    ],
)
def test_a_url_that_leads_inwards_is_refused_by_the_systems_own_resolver(url: str) -> None:
    assert refused(Webhooks(Policy(), connect=no_connection), url).startswith("must ")


def test_the_next_address_is_tried_where_one_is_not_reached(authority: Authority) -> None:
    with Webhook(answers(ACCEPTED), authority.server("hooks.example")) as webhook:
        network = Network(webhook.port, unreachable=[OTHER_PUBLIC])
        names = Names([OTHER_PUBLIC, OTHER_PUBLIC, PUBLIC])
        webhooks = Webhooks(Policy(), resolve=names, connect=network, trust=authority.trusted)

        assert webhooks.post(URL, b"{}", {}) == 200

    assert network.places == [(OTHER_PUBLIC, 443), (PUBLIC, 443)]


def test_no_address_may_use_up_the_time_of_the_next() -> None:
    given: list[float] = []

    def connect(_place: tuple[str, int], seconds: float) -> socket.socket:
        given.append(seconds)
        raise TimeoutError

    with pytest.raises(DeliveryError, match=r"^took too long$"):
        Webhooks(Policy(), resolve=Names([OTHER_PUBLIC, PUBLIC]), connect=connect).post(URL, b"{}", {})

    first, second = given
    assert first <= 5 < second


@pytest.mark.parametrize("error", [socket.gaierror(), OSError(), UnicodeError()])
def test_a_name_that_cannot_be_resolved_is_refused_when_it_is_checked(error: Exception) -> None:
    def resolve(*_args: Any, **_kwargs: Any) -> Sequence[tuple[Any, ...]]:
        raise error

    webhooks = Webhooks(Policy(), resolve=resolve, connect=no_connection)

    assert refused(webhooks) == "must have a host name that can be resolved"


def test_a_name_without_addresses_is_refused_when_it_is_checked() -> None:
    webhooks = Webhooks(Policy(), resolve=Names([], []), connect=no_connection)

    assert refused(webhooks) == "must have a host name that can be resolved"


def test_a_name_that_cannot_be_resolved_now_may_be_posted_to_later() -> None:
    with pytest.raises(DeliveryError, match=r"^has a host name that cannot be resolved$"):
        Webhooks(Policy(), resolve=Names([]), connect=no_connection).post(URL, b"{}", {})


def test_a_resolver_that_never_answers_is_left() -> None:
    over = Event()

    def resolve(*_args: Any, **_kwargs: Any) -> Sequence[tuple[Any, ...]]:
        over.wait()
        return []

    webhooks = Webhooks(Policy(), resolve=resolve, connect=no_connection, seconds=0.1)

    assert refused(webhooks) == "must have a host name that can be resolved"
    over.set()


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\nb", "a\rb", "a\0b", "a\tb", "\N{EURO SIGN}", "é", " a", "a "])
def test_a_header_that_is_not_one_line_of_ascii_never_leaves(value: str) -> None:
    webhooks = Webhooks(Policy(), resolve=Names([PUBLIC]), connect=no_connection)

    with pytest.raises(ValueError, match=r"^a header cannot be sent as it is$"):
        webhooks.post(URL, b"{}", {"Authorization": value})


@pytest.mark.parametrize("name", ["", "A:", "A B", "A\r\nB", "Ä"])
def test_a_header_with_such_a_name_never_leaves(name: str) -> None:
    webhooks = Webhooks(Policy(), resolve=Names([PUBLIC]), connect=no_connection)

    with pytest.raises(ValueError, match=r"^a header cannot be sent as it is$"):
        webhooks.post(URL, b"{}", {name: "a"})


def test_a_failure_says_nothing_of_the_url_or_the_token(authority: Authority) -> None:
    with Webhook(answers(ACCEPTED), authority.server("evil.example")) as webhook:
        webhooks = Webhooks(Policy(), resolve=Names([PUBLIC]), connect=Network(webhook.port), trust=authority.trusted)
        with pytest.raises(DeliveryError) as error:
            webhooks.post(URL, b"{}", HEADERS)

    assert "example" not in str(error.value)
    assert error.value.__suppress_context__
