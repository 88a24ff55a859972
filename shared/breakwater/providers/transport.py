"""What came back over the wire, as a `Reply`?

Exceptions of httpx and of the OpenAI SDK's own httpx are told apart by the names of their classes, most specific
first, so that neither library is needed here. What matters is one question: can the request have arrived?
"""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from breakwater.domain.signals import Reply, TransportFailure

_FAILURES: Mapping[str, TransportFailure] = {
    "ConnectTimeout": TransportFailure.CONNECT,
    "ConnectError": TransportFailure.CONNECT,
    "ProxyError": TransportFailure.CONNECT,
    "UnsupportedProtocol": TransportFailure.CONNECT,
    "InvalidURL": TransportFailure.CONNECT,
    "LocalProtocolError": TransportFailure.CONNECT,  # our own library refused to send it
    "PoolTimeout": TransportFailure.POOL,
    "WriteTimeout": TransportFailure.WRITE,
    "WriteError": TransportFailure.WRITE,
    "ReadTimeout": TransportFailure.TIMEOUT,
    "DeadlinePassed": TransportFailure.TIMEOUT,
    "TimeoutException": TransportFailure.TIMEOUT,
    "RemoteProtocolError": TransportFailure.PROTOCOL,
    "ReadError": TransportFailure.READ,
    "CloseError": TransportFailure.READ,
    "DecodingError": TransportFailure.READ,
}
"""Where an exception is in none of them, the request may have arrived."""

_CAUSES: tuple[tuple[type[BaseException], TransportFailure], ...] = (
    (socket.gaierror, TransportFailure.DNS),
    (ssl.SSLError, TransportFailure.TLS),
)
_LARGEST_BODY = 64 * 1024 * 1024
_MILLION = 1_000_000
CONNECT_SECONDS = 5.0


class DeadlinePassed(Exception):  # noqa: N818 - as the libraries name theirs
    """The answer took longer than it was given, all in all."""


class BodyTooLarge(Exception):  # noqa: N818
    """The answer is larger than anything a provider sends."""


OURS = (DeadlinePassed, BodyTooLarge)


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // _MILLION


def deadline_in(timeout_ms: int) -> float:
    """The moment, on the monotonic clock, when a call that begins now is over."""
    return time.monotonic() + timeout_ms / 1000


def collect(chunks: Iterable[bytes], deadline: float) -> bytes:
    """The whole body. Gateways send blanks to keep a connection, so each read is in time and all together are not."""
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        if time.monotonic() > deadline:
            raise DeadlinePassed
        size += len(chunk)
        if size > _LARGEST_BODY:
            raise BodyTooLarge
        parts.append(chunk)
    return b"".join(parts)


def transport_failure(error: BaseException) -> TransportFailure:
    """How a connection failed; `READ`, the careful reading, where nothing more is known."""
    for one in _chain(error):
        for kind in type(one).__mro__:
            if (failure := _FAILURES.get(kind.__name__)) is not None:
                return _of_connecting(one) if failure is TransportFailure.CONNECT else failure
    return TransportFailure.READ


def failed(error: BaseException, status: int | None = None, headers: Mapping[str, str] | None = None) -> Reply:
    """The reply of a call that ended in an exception, with what had arrived before it."""
    return Reply(
        transport=transport_failure(error),
        status=status,
        headers=lower(headers or {}),
        received_at=now_ms(),
    )


def reply_of(status: int, headers: Mapping[str, str], content: bytes) -> Reply:
    """An HTTP answer. The body is JSON where it reads as such, whatever its content type says."""
    return Reply(status=status, headers=lower(headers), body=parsed(content), received_at=now_ms())


def lower(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers under lower-case names."""
    return {name.lower(): value for name, value in headers.items()}


def parsed(content: bytes) -> Any:
    """A body as JSON, else as text, else None where there is nothing."""
    if not content.strip():
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return content.decode("utf-8", "replace")


def _of_connecting(error: BaseException) -> TransportFailure:
    for one in _chain(error):
        for kind, failure in _CAUSES:
            if isinstance(one, kind):
                return failure
    return TransportFailure.CONNECT


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what led to it; each only once."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
