"""Which URLs, addresses and headers of webhooks there may be."""

import socket
import string
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from a2a_lambda.addresses import (
    MAX_URL_LENGTH,
    Destination,
    Policy,
    UnsafeUrlError,
    check_address,
    destination,
    header_rule,
)

ANY: Final = Policy()
LOCAL: Final = Policy(allow_local=True)
HOST: Final = "hooks.example"
PUBLIC_HOST: Final = "8.8.8.8"
UNSPECIFIED: Final = str(IPv4Address(0))


def refused(url: str, policy: Policy = ANY) -> str:
    """Return the rule that a URL breaks."""
    with pytest.raises(UnsafeUrlError) as error:
        destination(url, policy)
    return str(error.value)


def host_of(url: str, policy: Policy = ANY) -> str:
    return destination(url, policy).host


def is_taken(address: str, policy: Policy = ANY, host: str = HOST) -> bool:
    try:
        check_address(address, policy, host)
    except UnsafeUrlError:
        return False
    return True


def test_a_url_is_taken_apart() -> None:
    assert destination("https://hooks.example/a/b?c=d&e", ANY) == Destination(
        "https", "hooks.example", 443, "/a/b?c=d&e"
    )


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://hooks.example", "/"),
        ("https://hooks.example?a=b", "/?a=b"),
        ("https://hooks.example/a#b", "/a"),
        ("https://hooks.example#b?c", "/"),
        ("https://hooks.example//evil.example/", "//evil.example/"),
        ("https://hooks.example/a/../%2e%2e/b@c:d", "/a/../%2e%2e/b@c:d"),
    ],
)
def test_path_and_query_stay_as_they_were_given_and_a_fragment_is_dropped(url: str, target: str) -> None:
    assert destination(url, ANY).target == target


@pytest.mark.parametrize(
    ("url", "authority"),
    [
        ("https://hooks.example/", "hooks.example"),
        ("https://hooks.example:443/", "hooks.example"),
        ("https://hooks.example:8443/", "hooks.example:8443"),
        ("https://[2606:4700::1111]:8443/", "[2606:4700::1111]:8443"),
        ("http://localhost:80/", "localhost"),
        ("http://localhost:443/", "localhost:443"),
    ],
)
def test_the_host_header_has_the_port_where_it_is_not_the_schemes_own(url: str, authority: str) -> None:
    assert destination(url, LOCAL).authority == authority


@pytest.mark.parametrize(
    ("written", "host"),
    [
        ("HOOKS.Example", "hooks.example"),
        ("hooks.example.", "hooks.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example.", "xn--bcher-kva.example"),
        ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
        ("a_b.hooks.example", "a_b.hooks.example"),
        ("8.8.8.8.", "8.8.8.8"),
        ("[2606:4700:0:0::1111]", "2606:4700::1111"),
    ],
)
def test_a_host_has_one_form(written: str, host: str) -> None:
    assert host_of(f"https://{written}/") == host


def test_the_scheme_may_be_in_capitals() -> None:
    assert destination("HTTPS://hooks.example/", ANY).scheme == "https"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/hook",
        "hook",
        "//hooks.example/",
        "hooks.example/",
        "https:hooks.example",
        "https:/hooks.example/",
        "ftp://hooks.example/",
        "file:///etc/passwd",
        "gopher://hooks.example/",
        "javascript:alert(1)",
        "http://hooks.example/",
        "http://127.0.0.1/",
        "http\N{LATIN SMALL LETTER LONG S}://hooks.example/",
        "url:https://hooks.example/",
    ],
)
def test_anything_but_an_https_url_is_refused(url: str) -> None:
    assert refused(url) == "must be an https URL"


def test_a_url_of_10_kb_is_refused() -> None:
    assert refused("https://hooks.example/" + "a" * 10_000) == "must have at most 2048 characters"


def test_the_longest_url_is_taken() -> None:
    longest = "https://hooks.example/".ljust(MAX_URL_LENGTH, "a")

    assert host_of(longest) == "hooks.example"
    assert "2048" in refused(longest + "a")


@pytest.mark.parametrize(
    "url",
    [
        "https://user@hooks.example/",
        "https://user:password@hooks.example/",
        "https://@hooks.example/",
        "https://hooks.example@127.0.0.1/",
        "https://hooks.example:443@evil.example/",
    ],
)
def test_credentials_in_a_url_are_refused(url: str) -> None:
    assert refused(url) == "must not hold credentials"


@pytest.mark.parametrize("url", ["{}https://hooks.example/", "https://hooks{}.example/", "https://hooks.example/{}"])
def test_spaces_control_characters_and_backslashes_are_refused(url: str) -> None:
    for forbidden in (*map(chr, range(0x21)), *map(chr, range(0x7F, 0xA1)), "\\"):
        assert "backslashes" in refused(url.format(forbidden))


@pytest.mark.parametrize("port", ["0", "65536", "99999", "100000", "-1", "+1", "", "x", "0x50", "80:80", "٣"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    assert "port" in refused(f"https://hooks.example:{port}/")


@pytest.mark.parametrize(
    "host",
    [
        "",
        ".",
        "..",
        ".hooks.example",
        "hooks..example",
        "hooks.example..",
        "-hooks.example",
        "hooks-.example",
        "a" * 64 + ".example",
        ".".join(["a" * 49] * 6),
        "hooks.ex%61mple",
        "127.0.0.1%2f.hooks.example",
        "hooks.example,127.0.0.1",
        "hooks.example;a",
        "*.example",
        "hooks.example]",
        "[hooks.example",
        "[hooks.example]",
        "::1",
        "[::1",
        "[::1]a",
        "[v1.a]",
        "[]",
        "[8.8.8.8]",
    ],
)
def test_a_host_that_is_none_is_refused(host: str) -> None:
    assert "must have" in refused(f"https://{host}/")


@pytest.mark.parametrize(
    "host",
    [
        "faß.de",
        "ⓛocalhost",
        "localho\N{LATIN SMALL LETTER LONG S}t",
        "\N{FULLWIDTH DIGIT ONE}27.0.0.1",
        "127。0。0。1",
        "hooks\N{ZERO WIDTH SPACE}.example",
        "hooks\N{SOFT HYPHEN}.example",
        "hooks\N{FULLWIDTH SOLIDUS}.example",
        "hooks.example\N{FULLWIDTH COLON}80",
        "℀.example",
        "\ud800.example",
        "ü" * 64 + ".example",
        "ü." * 1000 + "example",
        "xn--bcher-kva.bücher。example",
    ],
)
def test_a_host_that_would_become_another_in_ascii_is_refused(host: str) -> None:
    assert refused(f"https://{host}/") == "must have its host name in ASCII (xn--…)"


def test_what_is_not_ascii_behind_the_host_must_be_encoded() -> None:
    assert "percent-encoded" in refused("https://hooks.example/bücher")
    assert "percent-encoded" in refused("https://hooks.example/?q=\ud800")


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0X7F.0.0.1",
        "0x7f.1",
        "017700000001",
        "0177.0.0.1",
        "0177.0.0.01",
        "127.1",
        "127.0.1",
        "127.0.0.1..",
        "127.0.0.0x1",
        "127.0.0.0x",
        "0",
        "0.0",
        "00.0.0.0",
        "256.256.256.256",
        "8.8.8.8.8",
        "8.8.8.008",
        "hooks.1",
        "1.2.3.4.5.example.0x1f",
    ],
)
def test_an_address_in_another_form_than_the_usual_one_is_refused(host: str) -> None:
    refused(f"https://{host}/")
    refused(f"https://{host}/", LOCAL)
    refused(f"http://{host}/", LOCAL)


@given(st.text("0123456789abfxX.", min_size=1, max_size=16))
@example("8.8.8.8")
def test_what_the_system_reads_as_an_address_is_the_same_address_here(host: str) -> None:
    try:
        name = host_of(f"https://{host}/")
        address = socket.inet_aton(name)
    except (UnsafeUrlError, OSError):
        return
    assert name == str(IPv4Address(address))


@pytest.mark.parametrize("host", ["[fe80::1%eth0]", "[fe80::1%25eth0]", "[2606:4700::1111%1]", "[::1%lo]"])
def test_an_address_with_a_zone_is_refused(host: str) -> None:
    refused(f"https://{host}/")
    refused(f"http://{host}/", LOCAL)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "127.0.0.1", "127.255.255.254", "[::1]", "[0:0::0:1]"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_this_machine_may_be_had_where_that_is_allowed(scheme: str, host: str) -> None:
    assert destination(f"{scheme}://{host}:8080/", LOCAL).port == 8080


@pytest.mark.parametrize(
    "host",
    [
        "localhost.example",
        "a.localhost",
        "localhost.localdomain",
        "hooks.example",
        "10.0.0.1",
        UNSPECIFIED,
        "169.254.169.254",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::127.0.0.1]",
    ],
)
def test_http_to_another_machine_is_refused_also_where_this_machine_is_allowed(host: str) -> None:
    assert refused(f"http://{host}/", LOCAL) == "must be an https URL"


@given(st.text())
@example("https://a")
@example("https://8.8.8.8:1?#")
def test_whatever_is_taken_is_fit_to_be_sent(text: str) -> None:
    for url in (text, f"https://{text}", f"https://hooks.example{text}", f"https://{text}.example/"):
        try:
            found = destination(url, ANY)
        except UnsafeUrlError:
            continue
        assert set(found.host) <= set(string.ascii_lowercase + string.digits + "-._:")
        assert found.target.startswith("/")
        assert all("!" <= character <= "~" for character in found.target)
        assert 1 <= found.port <= 65535
        assert found.scheme == "https"


ALLOWED: Final = Policy(allowed_hosts=("hooks.example", "*.partners.Example", "8.8.8.8", "2606:4700::1111"))


@pytest.mark.parametrize(
    "host",
    [
        "hooks.example",
        "Hooks.Example.",
        "a.partners.example",
        "a.b.partners.example",
        "8.8.8.8",
        "[2606:4700::1111]",
        "hooks.example:8443",
    ],
)
def test_an_allowed_host_is_taken(host: str) -> None:
    assert destination(f"https://{host}/", ALLOWED).scheme == "https"


@pytest.mark.parametrize(
    "host",
    [
        "a.hooks.example",
        "hooks.example.evil.example",
        "evilhooks.example",
        "partners.example",
        "evilpartners.example",
        "partners.example.evil.example",
        "8.8.4.4",
        "localhost",
    ],
)
def test_a_host_that_is_not_allowed_is_refused(host: str) -> None:
    assert "sends notifications to" in refused(f"https://{host}/", ALLOWED)


def test_this_machine_must_be_among_the_allowed_hosts_where_there_are_any() -> None:
    refused("http://localhost/", Policy(allow_local=True, allowed_hosts=("hooks.example",)))

    assert host_of("http://localhost/", Policy(allow_local=True, allowed_hosts=("localhost",))) == "localhost"


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.0.1.1", "223.255.255.255"],
)
def test_a_public_ipv4_address_is_taken(address: str) -> None:
    assert is_taken(address)


@pytest.mark.parametrize("address", ["2606:4700::1111", "2a00:1450:4001:80b::200e", "2001:4860:4860::8888", "2600::"])
def test_a_public_ipv6_address_is_taken(address: str) -> None:
    assert is_taken(address)


NOT_PUBLIC: Final = [
    ("this host", "0.0.0.0/8"),
    ("private", "10.0.0.0/8"),
    ("carriers' NAT", "100.64.0.0/10"),
    ("loopback", "127.0.0.0/8"),
    ("link-local", "169.254.0.0/16"),
    ("private", "172.16.0.0/12"),
    ("protocol assignments", "192.0.0.0/24"),
    ("documentation", "192.0.2.0/24"),
    ("6to4 relays", "192.88.99.0/24"),
    ("private", "192.168.0.0/16"),
    ("benchmarks", "198.18.0.0/15"),
    ("documentation", "198.51.100.0/24"),
    ("documentation", "203.0.113.0/24"),
    ("multicast", "224.0.0.0/4"),
    ("reserved", "240.0.0.0/4"),
    ("broadcast", "255.255.255.255/32"),
    ("unspecified", "::/128"),
    ("loopback", "::1/128"),
    ("IPv4-compatible", "::/96"),
    ("IPv4-mapped", "::ffff:0:0/96"),
    ("IPv4-translated", "::ffff:0:0:0/96"),
    ("NAT64", "64:ff9b::/96"),
    ("local NAT64", "64:ff9b:1::/48"),
    ("discard", "100::/64"),
    ("Teredo", "2001::/32"),
    ("benchmarks", "2001:2::/48"),
    ("ORCHID", "2001:10::/28"),
    ("ORCHIDv2", "2001:20::/28"),
    ("documentation", "2001:db8::/32"),
    ("6to4", "2002::/16"),
    ("documentation", "3fff::/20"),
    ("segment routing", "5f00::/16"),
    ("unique local", "fc00::/7"),
    ("link-local", "fe80::/10"),
    ("site-local", "fec0::/10"),
    ("multicast", "ff00::/8"),
]


@pytest.mark.parametrize(("kind", "network"), NOT_PUBLIC)
def test_a_network_that_is_not_public_is_refused_from_its_first_address_to_its_last(kind: str, network: str) -> None:
    refused_network = ip_network(network)

    assert not is_taken(str(refused_network[0])), kind
    assert not is_taken(str(refused_network[-1])), kind


@pytest.mark.parametrize("address", ["169.254.169.254", "169.254.170.2", "fd00:ec2::254", "100.100.100.200"])
def test_the_metadata_of_an_instance_is_refused(address: str) -> None:
    assert not is_taken(address)
    assert not is_taken(address, LOCAL)
    assert not is_taken(address, LOCAL, "localhost")


@given(st.ip_addresses())
def test_what_is_taken_is_public_to_the_standard_library_too(address: IPv4Address | IPv6Address) -> None:
    if is_taken(str(address)):
        assert address.is_global
        assert not any([address.is_multicast, address.is_reserved, address.is_link_local, address.is_unspecified])


@given(st.ip_addresses(v=4))
@example(IPv4Address("127.0.0.1"))
@example(IPv4Address("169.254.169.254"))
@example(IPv4Address(PUBLIC_HOST))
def test_no_ipv4_address_can_be_had_inside_of_an_ipv6_one(inner: IPv4Address) -> None:
    bits = int(inner)
    teredo = 0x2001 << 112 | bits ^ 0xFFFFFFFF
    for outer in (bits, 0xFFFF << 32 | bits, 0x64FF9B << 96 | bits, 0x2002 << 112 | bits << 80, teredo):
        assert not is_taken(str(IPv6Address(outer)))


@pytest.mark.parametrize("text", ["", "hooks.example", "127.1", "0x7f000001", "2130706433", "8.8.8.8 ", "8.8.8.08"])
def test_what_is_no_address_is_refused(text: str) -> None:
    assert not is_taken(text)


@pytest.mark.parametrize("address", ["fe80::1%eth0", "2606:4700::1111%eth0", "::1%lo"])
def test_a_zone_is_refused(address: str) -> None:
    assert not is_taken(address)
    assert not is_taken(address, LOCAL, "localhost")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "::1"])
@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1"])
def test_this_machines_addresses_are_for_its_own_hosts_where_that_is_allowed(host: str, address: str) -> None:
    assert is_taken(address, LOCAL, host)
    assert not is_taken(address, ANY, host)
    assert not is_taken(address, LOCAL, HOST)


@pytest.mark.parametrize("address", ["8.8.8.8", "10.0.0.1", UNSPECIFIED, "::", "::ffff:127.0.0.1", "2606:4700::1111"])
def test_localhost_is_this_machine_and_nothing_else(address: str) -> None:
    assert not is_taken(address, LOCAL, "localhost")


def test_a_public_host_is_taken_also_where_this_machine_is_allowed() -> None:
    assert is_taken(PUBLIC_HOST, LOCAL)


def test_a_refusal_names_no_address() -> None:
    with pytest.raises(UnsafeUrlError, match=r"^must be at a public address$"):
        check_address("10.1.2.3", ANY, HOST)


@pytest.mark.parametrize("value", ["", "a", "token", "Bearer a.b-c_d~e+f/g==", "a b", "!", "~", "x" * 4096])
def test_a_header_may_be_of_visible_ascii(value: str) -> None:
    assert header_rule(value) is None


@pytest.mark.parametrize("value", ["{}", "{}a", "a{}", "a{}b", "a{} b", "a\r\n{}b"])
def test_a_header_of_anything_else_is_refused(value: str) -> None:
    for forbidden in (*map(chr, range(0x20)), *map(chr, range(0x7F, 0x101)), "€", "\u2028", "\ud800"):
        rule = header_rule(value.format(forbidden))

        assert rule == "must be of visible ASCII characters, with spaces only between them"


@pytest.mark.parametrize("value", [" ", " a", "a ", "  "])
def test_a_header_with_spaces_around_it_is_refused(value: str) -> None:
    assert header_rule(value)


@given(st.text())
def test_a_header_that_is_taken_is_one_line_of_ascii(value: str) -> None:
    if header_rule(value) is None:
        assert value.encode("ascii") == value.encode("ascii").strip()
        assert len(value.splitlines()) <= 1
