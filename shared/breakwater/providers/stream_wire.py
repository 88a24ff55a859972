"""How do the bytes of a stream come in while somebody else keeps the time?

A thread of its own opens the connection and reads it into a short queue. When the queue is full the thread waits, so a
slow table slows the provider and memory stays bounded; when the reader hangs up, the socket is shut down under the
thread, so that a stalled provider is left at once and not at its time-out.
"""

from __future__ import annotations

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from breakwater.domain.signals import Reply
from breakwater.domain.values import dataclass
from breakwater.providers import transport

_WAITING = 32  # chunks; one is at most 64 KB
_LARGEST_STREAM = 64 * 1024 * 1024
_PATIENCE = 1.0  # seconds that a hang-up waits for the thread
_LOOK = 0.2


@dataclass(frozen=True, slots=True)
class Line:
    """An open answer. `hang_up` may be called from any thread, `close` only from the one that reads."""

    status: int
    headers: Mapping[str, str]
    chunks: Iterator[bytes]
    close: Callable[[], None]
    hang_up: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Head:
    """The answer began."""

    status: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class End:
    """The answer is over; `reply` says how where it was no clean end, or no stream at all."""

    reply: Reply | None = None


Item = Head | bytes | End


class Pump:
    """One answer, read by a thread. `take` and `stop` belong to one other thread."""

    def __init__(self, open_line: Callable[[], Line | Reply]) -> None:
        self._open = open_line
        self._queue: queue.Queue[Item] = queue.Queue(_WAITING)
        self._stopped = threading.Event()
        self._line: Line | None = None
        self._thread: threading.Thread | None = None

    def take(self, wait_ms: int) -> Item | None:
        """The next piece; None where none came in time. The first call opens the connection."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="provider stream", daemon=True)
            self._thread.start()
        try:
            return self._queue.get(timeout=max(wait_ms, 1) / 1000)
        except queue.Empty:
            return None

    def stop(self) -> None:
        """Hang up. A connection that has no answer yet is left as soon as it gets one."""
        self._stopped.set()
        line, thread = self._line, self._thread
        if line is not None:
            line.hang_up()
        if thread is not None and line is not None:
            thread.join(_PATIENCE)

    def _run(self) -> None:
        opened = self._open()
        if isinstance(opened, Reply):
            self._put(End(opened))
            return
        self._line = opened
        try:
            self._put(End(self._read(opened)))
        finally:
            with suppress(Exception):
                opened.close()

    def _read(self, line: Line) -> Reply | None:
        size = 0
        try:
            self._put(Head(line.status, line.headers))
            for chunk in line.chunks:
                size += len(chunk)
                if self._stopped.is_set() or size > _LARGEST_STREAM:
                    return transport.failed(transport.BodyTooLarge(), line.status, line.headers)
                self._put(chunk)
        except Exception as error:  # noqa: BLE001 - the library's own, or whatever a socket shut down under it gives
            return transport.failed(error, line.status, line.headers)
        return None

    def _put(self, item: Item) -> None:
        while not self._stopped.is_set():
            with suppress(queue.Full):
                self._queue.put(item, timeout=_LOOK)
                return


def line_of(response: Any) -> Line:
    """An open response of httpx or of the OpenAI SDK's own httpx."""

    def hang_up() -> None:
        stream = response.extensions.get("network_stream")
        line = stream.get_extra_info("socket") if stream is not None else None
        if line is not None:
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    return Line(response.status_code, response.headers, response.iter_bytes(), response.close, hang_up)


def within(wait_ms: int) -> Callable[[], int]:
    """How much of a wait is left, in ms; never less than nothing."""
    until = time.monotonic() + wait_ms / 1000
    return lambda: max(0, int((until - time.monotonic()) * 1000))
