"""May a notification go there? Only to hosts the owner approved, only over TLS, only to public addresses.

The URL comes from a caller and the address from a resolver, and neither is trusted: a name can point into our own
network, and can do so only at the moment of connecting. So the address that was checked is the one to connect to.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address
from urllib.parse import SplitResult, urlsplit

from breakwater.domain.values import dataclass

HTTPS_PORT = 443
MAX_URL_CHARS = 2_048
_DEFAULT_PORTS = {"https": HTTPS_PORT, "http": 80}
_URL = re.compile(r"[!-\[\]-~]+")  # printable ASCII without blanks and backslashes
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|[0-9a-f:.]+")

_NOT_PUBLIC_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",
            "100.64.0.0/10",  # carrier-grade NAT
            "127.0.0.0/8",
            "169.254.0.0/16",  # link-local; the metadata service
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved and broadcast
        ),
    )
)
# Everything else outside it is local, multicast, or another address in disguise (mapped IPv4, NAT64).
_UNICAST_V6 = IPv6Network("2000::/3")
_NOT_PUBLIC_V6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocols, Teredo among them
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4: an IPv4 address inside
            "3fff::/20",  # documentation
        ),
    )
)


class Because(StrEnum):
    """Why nothing is sent there."""

    UNREADABLE_URL = "unreadable_url"
    NOT_HTTPS = "not_https"
    CREDENTIALS_IN_URL = "credentials_in_url"
    HOST_NOT_ALLOWED = "host_not_allowed"
    ADDRESS_NOT_PUBLIC = "address_not_public"


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect, once its name is resolved. `loopback`: a host of this machine, for local use only."""

    scheme: str
    host: str
    port: int
    path: str
    loopback: bool = False

    @property
    def authority(self) -> str:
        """The `Host` header."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == _DEFAULT_PORTS[self.scheme] else f"{name}:{self.port}"


@dataclass(frozen=True, slots=True)
class Forbidden:
    """Nothing goes there."""

    because: Because


def target_of(
    url: str, allowed_hosts: Collection[str], loopback_hosts: Collection[str] = frozenset()
) -> Target | Forbidden:
    """Read a callback URL. An owner allows `host`, `*.host` (not the host itself) and `host:port`; 443 else.

    Hosts in `loopback_hosts` may be spoken to without TLS, on any port; their addresses must then be loopback.
    """
    parts = _split(url)
    if parts is None or parts.hostname is None:
        return Forbidden(Because.UNREADABLE_URL)
    host = parts.hostname.rstrip(".")
    if parts.scheme not in _DEFAULT_PORTS or not _HOST.fullmatch(host) or parts.port == 0:
        return Forbidden(Because.UNREADABLE_URL)
    if parts.username is not None or parts.password is not None:
        return Forbidden(Because.CREDENTIALS_IN_URL)
    loopback = host in loopback_hosts
    if parts.scheme != "https" and not loopback:
        return Forbidden(Because.NOT_HTTPS)
    port = parts.port or _DEFAULT_PORTS[parts.scheme]
    if not any(_allows(entry, host, port, loopback) for entry in allowed_hosts):
        return Forbidden(Because.HOST_NOT_ALLOWED)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port, path, loopback)


def checked(target: Target, addresses: Iterable[str]) -> tuple[str, ...] | Forbidden:
    """The addresses as they may be connected to, or nothing: one that is not public forbids them all."""
    found = tuple(dict.fromkeys(addresses))
    allowed = is_loopback if target.loopback else is_public
    if not found or not all(allowed(address) for address in found):
        return Forbidden(Because.ADDRESS_NOT_PUBLIC)
    return found


def is_public(address: str) -> bool:
    """Whether this is an ordinary address of the public internet."""
    try:
        one = ip_address(address)
    except ValueError:
        return False
    if isinstance(one, IPv4Address):
        return one.is_global and not any(one in network for network in _NOT_PUBLIC_V4)
    in_disguise = one.scope_id is not None or one not in _UNICAST_V6
    return one.is_global and not in_disguise and not any(one in network for network in _NOT_PUBLIC_V6)


def is_loopback(address: str) -> bool:
    """Whether this is this machine itself."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _split(url: str) -> SplitResult | None:
    """The parts of a URL in plain printable characters, None where it is none. Its port is readable."""
    if len(url) > MAX_URL_CHARS or not _URL.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _allows(entry: str, host: str, port: int, any_port: bool) -> bool:
    name, _, number = entry.strip().lower().rpartition(":")
    if not name or not number.isdecimal():
        name, number = entry.strip().lower(), str(HTTPS_PORT)
    if not any_port and int(number) != port:
        return False
    if name.startswith("*."):
        return host.endswith(name[1:]) and len(host) > len(name) - 1
    return host == name.rstrip(".").strip("[]")
