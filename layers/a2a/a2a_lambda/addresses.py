"""Where a notification may be sent: rules for a webhook's URL, its addresses and its headers (§13.2).

A client names the URL, and the server is what connects to it; so it must lead out of the network that the server
stands in. Nothing here asks the network: `webhooks` resolves names, and connects. The texts of the errors are for
the client.
"""

import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

from msgspec import Struct

Address = IPv4Address | IPv6Address

MAX_URL_LENGTH: Final = 2048
MAX_HOST_LENGTH: Final = 253
MAX_PORT: Final = 65535
DEFAULT_PORTS: Final = {"https": 443, "http": 80}

URL: Final = re.compile(r"(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?", re.IGNORECASE | re.ASCII)
"""Scheme, authority, path, query. Without ASCII, IGNORECASE takes other letters (U+017F) for an s."""
AUTHORITY: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
"""Host, port."""
FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f-\xa0\\]")
"""Control characters and spaces, and what some readers take for a slash."""
LABEL: Final = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
HOST: Final = re.compile(rf"{LABEL}(?:\.{LABEL})*")
NUMERIC: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)")
"""A host that ends in a number is an IPv4 address to many who read it: 127.1, 0x7f.1, 0177.0.0.1, 2130706433."""
HEADER: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?|")

LOCALHOST: Final = "localhost"
LOOPBACK: Final = (ip_network("127.0.0.0/8"), ip_network("::1/128"))

IPV4_REFUSED: Final = tuple(
    ip_network(network)
    for network in (
        "0.0.0.0/8",  # this network; 0.0.0.0 is this host
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # behind a carrier's NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local: metadata and credentials of instances
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
IPV6_GLOBAL: Final = ip_network("2000::/3")
"""All that is given out for unicast. Outside are loopback, link-local, site-local, unique local and multicast
addresses, and those that hold an IPv4 address: mapped, compatible, NAT64 (64:ff9b::/96, 64:ff9b:1::/48)."""
IPV6_REFUSED: Final = tuple(
    ip_network(network)
    for network in (
        "2001::/23",  # protocol assignments, among them Teredo, which holds an IPv4 address
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which holds an IPv4 address
        "3fff::/20",  # documentation
    )
)


class UnsafeUrlError(Exception):
    """Nothing is sent to this URL. The text is the rule that it breaks: "must be an https URL"."""


class Policy(Struct, frozen=True):
    """Which webhooks a deployment takes."""

    allow_local: bool = False
    """Whether webhooks may be on this machine: at localhost, 127.0.0.0/8 and ::1, also over http."""
    allowed_hosts: tuple[str, ...] = ()
    """The hosts that there may be, or none for any: names and addresses without a port, names in ASCII;
    `*.example.com` is all names below example.com, and not example.com itself."""


class Destination(Struct, frozen=True):
    """What a URL says, ready to connect and to ask."""

    scheme: str
    """https or http."""
    host: str
    """A name in ASCII and lower case without a final dot, or an IP address without brackets."""
    port: int
    target: str
    """Path and query as they were given."""

    @property
    def authority(self) -> str:
        """The Host header (RFC 9110 §7.2): the port is left out where it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def destination(url: str, policy: Policy) -> Destination:
    """Return what a URL says, if its form and its host are such as the policy takes. A fragment is dropped.

    Raises:
        UnsafeUrlError: they are not. Where the host leads is not known yet: see `check_address`.
    """
    if len(url) > MAX_URL_LENGTH:
        raise UnsafeUrlError(f"must have at most {MAX_URL_LENGTH} characters")
    if FORBIDDEN.search(url):
        raise UnsafeUrlError("must not hold spaces, control characters or backslashes")
    match = URL.fullmatch(url)
    if match is None:
        raise UnsafeUrlError("must be an https URL")
    scheme, authority, path, query = match.groups(default="")
    host, port = _host_and_port(authority, scheme.lower())
    if scheme.lower() == "http" and not (policy.allow_local and _is_local(host)):
        raise UnsafeUrlError("must be an https URL")
    if not (path + query).isascii():
        raise UnsafeUrlError("must have what is not ASCII percent-encoded")
    if policy.allowed_hosts and not any(_matches(host, allowed) for allowed in policy.allowed_hosts):
        raise UnsafeUrlError("must be at a host that this server sends notifications to")
    return Destination(scheme.lower(), host, port, (path or "/") + query)


def check_address(address: str, policy: Policy, host: str) -> None:
    """Look at an address that a host, as `Destination` has it, resolved to.

    Raises:
        UnsafeUrlError: it is not a public one; or, where the policy lets this machine's own hosts in and the host
            is one of them, it is not this machine's own.
    """
    ip = _address(address, ip_address)
    if policy.allow_local and _is_local(host):
        if not _is_loopback(ip):
            raise UnsafeUrlError("must be at an address of this machine")
    elif not _is_public(ip):
        raise UnsafeUrlError("must be at a public address")


def header_rule(value: str) -> str | None:
    """Say what is wrong with a text that shall be sent in a header, or None. Nothing at all is right."""
    if HEADER.fullmatch(value):
        return None
    return "must be of visible ASCII characters, with spaces only between them"


def _host_and_port(authority: str, scheme: str) -> tuple[str, int]:
    if "@" in authority:
        raise UnsafeUrlError("must not hold credentials")
    match = AUTHORITY.fullmatch(authority)
    if match is None:
        raise UnsafeUrlError(f"must have a host, and a port from 1 to {MAX_PORT} or none")
    host, port = match[1], int(match[2] or DEFAULT_PORTS[scheme])
    if not 1 <= port <= MAX_PORT:
        raise UnsafeUrlError(f"must have a port from 1 to {MAX_PORT} or none")
    if host.startswith("["):
        return str(_address(host[1:-1], IPv6Address)), port
    return _name(host), port


def _name(host: str) -> str:
    """Return a host that is no IPv6 address as it is looked up: a name, or an IPv4 address in its usual form."""
    name = _ascii(host).lower().removesuffix(".")
    if len(name) > MAX_HOST_LENGTH or not HOST.fullmatch(name):
        raise UnsafeUrlError("must have a valid host name")
    return str(_address(name, IPv4Address)) if NUMERIC.fullmatch(name) else name


def _ascii(host: str) -> str:
    """Return a name with its labels in Punycode where they need it.

    The standard library knows IDNA 2003, which turns some names into others (ß into ss, full-width digits into
    digits). A name that does not come back the same is refused, so that nothing is sent to another host than the
    one that was read.
    """
    if host.isascii():
        return host
    try:
        name = host[: MAX_HOST_LENGTH + 1].encode("idna")
        same = name.decode("idna") == host.lower()
    except UnicodeError:
        same = False
    if not same:
        raise UnsafeUrlError("must have its host name in ASCII (xn--…)")
    return name.decode("ascii")


def _address(text: str, read: Callable[[str], Address]) -> Address:
    try:
        address = read(text)
    except ValueError:
        raise UnsafeUrlError("must have its IP address in the usual form") from None
    if "%" in text:
        raise UnsafeUrlError("must have its IP address without a zone")
    return address


def _is_local(host: str) -> bool:
    try:
        return host == LOCALHOST or _is_loopback(ip_address(host))
    except ValueError:
        return False


def _is_loopback(ip: Address) -> bool:
    return any(ip in network for network in LOOPBACK)


def _is_public(ip: Address) -> bool:
    if isinstance(ip, IPv4Address):
        return not any(ip in network for network in IPV4_REFUSED)
    return ip in IPV6_GLOBAL and not any(ip in network for network in IPV6_REFUSED)


def _matches(host: str, allowed: str) -> bool:
    allowed = allowed.lower()
    return host.endswith(allowed[1:]) if allowed.startswith("*.") else host == allowed
