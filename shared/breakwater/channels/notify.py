"""How does a notification reach its receiver? A signed Standard Webhook, posted to a callback URL.

The standard library's HTTP client does it, since it lets us open the connection: the name is resolved once, every
address is checked, and the socket goes to one of those checked addresses while TLS still verifies the name. A client
that resolves again while connecting could be led elsewhere. It follows no redirects and reads no proxy settings. Of the
answer only the status line and the headers are read, within one deadline for everything, however slowly bytes drip.
"""

from __future__ import annotations

import http.client
import io
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from typing import Any, cast

from breakwater.domain.address import Forbidden, Target, checked, target_of
from breakwater.domain.callbacks import Notified, Refused, Retry, answered
from breakwater.domain.errors import SecretUnavailable
from breakwater.domain.signature import sign
from breakwater.domain.values import dataclass

USER_AGENT = "Breakwater-Webhook/1"
_CHUNK = 16_384

Resolve = Callable[[str, int], Sequence[str]]
Connect = Callable[[str, int, float], socket.socket]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most a receiver may cost: seconds for everything and for connecting, bytes of its answer."""

    total_s: float = 15.0
    connect_s: float = 5.0
    answer_bytes: int = 65_536


BOUNDS = Bounds()


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, as the system knows them."""
    return [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def connect(address: str, port: int, seconds: float) -> socket.socket:
    """A connection to this very address; no name is looked up."""
    return socket.create_connection((address, port), timeout=seconds)


class Notifier:
    """Sends notifications. `loopback_hosts` may be spoken to without TLS: for receivers on this machine only."""

    def __init__(
        self,
        *,
        loopback_hosts: Collection[str] = frozenset(),
        bounds: Bounds = BOUNDS,
        resolve: Resolve = resolve,
        connect: Connect = connect,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._loopback_hosts, self._bounds = frozenset(loopback_hosts), bounds
        self._resolve, self._connect, self._tls = resolve, connect, tls

    def send(
        self,
        url: str,
        secrets: Sequence[str | None],
        webhook_id: str,
        payload: bytes,
        now_ms: int,
        *,
        allowed_hosts: Collection[str],
    ) -> Notified:
        """Post once, under an id that is the same over all tries; says how it went, whatever the receiver does."""
        target = target_of(url, allowed_hosts, self._loopback_hosts)
        if isinstance(target, Forbidden):
            return Refused(target.because.value)
        try:
            headers = _headers(target, secrets, webhook_id, payload, now_ms // 1000)
        except SecretUnavailable:
            return Refused("no_usable_secret")
        deadline = time.monotonic() + self._bounds.total_s
        try:
            return self._post(target, headers, payload, now_ms, deadline)
        except (OSError, http.client.HTTPException, _TooLargeError) as error:
            return Retry(_reason(error))

    def _post(
        self, target: Target, headers: Mapping[str, str], payload: bytes, now_ms: int, deadline: float
    ) -> Notified:
        addresses = checked(target, self._addresses(target, deadline))
        if isinstance(addresses, Forbidden):
            return Refused(addresses.because.value)
        with closing(self._connected(target, addresses, deadline)) as opened:
            wire = _Wire(opened, deadline, self._bounds.answer_bytes)
            connection = http.client.HTTPConnection(target.host)
            connection.sock = cast(socket.socket, wire)
            connection.request("POST", target.path, payload, headers)
            with closing(connection.getresponse()) as answer:
                return answered(answer.status, dict(answer.getheaders()), now_ms)

    def _addresses(self, target: Target, deadline: float) -> Sequence[str]:
        """Resolved once, within the deadline: the system's resolver knows no time-out of its own."""
        found: queue.SimpleQueue[Sequence[str] | OSError] = queue.SimpleQueue()

        def look_up() -> None:
            try:
                found.put(self._resolve(target.host, target.port))
            except (OSError, UnicodeError) as error:
                found.put(_ResolveError(str(error)))

        threading.Thread(target=look_up, name="resolve", daemon=True).start()
        try:
            answer = found.get(timeout=min(self._bounds.connect_s, _left(deadline)))
        except queue.Empty:
            answer = _ResolveError()
        if isinstance(answer, OSError):
            raise answer
        return answer

    def _connected(self, target: Target, addresses: Sequence[str], deadline: float) -> socket.socket:
        """A connection to the first address that answers, with TLS for the host's name."""
        failure: OSError = _ConnectError()
        until = min(deadline, time.monotonic() + self._bounds.connect_s)
        for number, address in enumerate(addresses):
            share = (until - time.monotonic()) / (len(addresses) - number)
            try:
                opened = self._connect(address, target.port, max(share, 0.001))
            except OSError as error:
                failure = _ConnectError(str(error))
                continue
            return self._secured(target, opened, deadline)
        raise failure

    def _secured(self, target: Target, opened: socket.socket, deadline: float) -> socket.socket:
        if target.scheme != "https":
            return opened
        self._tls = self._tls or ssl.create_default_context()
        try:
            opened.settimeout(_left(deadline))
            return self._tls.wrap_socket(opened, server_hostname=target.host)
        except OSError:
            opened.close()
            raise


def _headers(
    target: Target, secrets: Sequence[str | None], webhook_id: str, payload: bytes, timestamp: int
) -> dict[str, str]:
    return {
        "Host": target.authority,
        "User-Agent": USER_AGENT,
        "Content-Type": "application/json",
        "Connection": "close",
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(secrets, webhook_id, timestamp, payload),
    }


# --- what can go wrong, most specific first ---


class _ResolveError(OSError):
    """The name has no address, or none was found in time."""


class _ConnectError(OSError):
    """No address took the connection."""


class _TooLargeError(Exception):
    """The answer's head is longer than any receiver needs."""


_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (_ResolveError, "dns"),
    (_ConnectError, "connect"),
    (_TooLargeError, "answer_too_large"),
    (ssl.SSLCertVerificationError, "certificate"),
    (ssl.SSLError, "tls"),
    (TimeoutError, "timeout"),
    (OSError, "cut"),
)


def _reason(error: Exception) -> str:
    return next((reason for kind, reason in _REASONS if isinstance(error, kind)), "no_http")


# --- one deadline for everything that travels over the socket ---


def _left(deadline: float) -> float:
    """Seconds until the deadline; raises TimeoutError when it has passed."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Wire:
    """What the HTTP client sees of a socket: every operation gets only what is left of the time."""

    def __init__(self, opened: socket.socket, deadline: float, answer_bytes: int) -> None:
        self._opened, self._deadline, self._answer_bytes = opened, deadline, answer_bytes

    def sendall(self, data: bytes) -> None:
        for start in range(0, len(data), _CHUNK):
            self._opened.settimeout(_left(self._deadline))
            self._opened.sendall(data[start : start + _CHUNK])

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Answer(self._opened, self._deadline, self._answer_bytes))

    def close(self) -> None:
        """The socket belongs to who opened it."""


class _Answer(io.RawIOBase):
    """The bytes of an answer, up to a number and a deadline."""

    def __init__(self, opened: socket.socket, deadline: float, limit: int) -> None:
        self._opened, self._deadline, self._left = opened, deadline, limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._left <= 0:
            raise _TooLargeError
        self._opened.settimeout(_left(self._deadline))
        read = self._opened.recv_into(memoryview(buffer)[: self._left])
        self._left -= read
        return read
