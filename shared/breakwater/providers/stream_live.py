"""How is one attempt streamed? A pump that brings bytes, a reading that makes events of them, one at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from breakwater.domain.results import Call
from breakwater.domain.signals import ErrorClass, Reply
from breakwater.domain.stream_events import Failed, Resume, StreamEvent
from breakwater.providers.conversation import BadPayload
from breakwater.providers.stream_dialects import DIALECTS, resumed
from breakwater.providers.stream_reading import Reading
from breakwater.providers.stream_wire import End, Head, Item, Line, Pump, within

if TYPE_CHECKING:
    from breakwater.providers.base import Adapter


class LiveStream:
    """`ports.ProviderStream` over a connection."""

    def __init__(self, reading: Reading, open_line: Callable[[], Line | Reply]) -> None:
        self._reading, self._pump = reading, Pump(open_line)
        self._ready: deque[StreamEvent] = deque()

    def next(self, wait_ms: int) -> StreamEvent | None:
        """The next event; None where none came within `wait_ms`."""
        left = within(wait_ms)
        while not self._ready:
            item = self._pump.take(left())
            if item is not None:
                self._ready.extend(self._read(item))
            elif left() == 0:
                return None
        return self._ready.popleft()

    def _read(self, item: Item) -> list[StreamEvent]:
        if isinstance(item, Head):
            return self._reading.head(item.status, item.headers)
        if isinstance(item, End):
            return self._reading.end(item.reply)
        return self._reading.feed(item)

    def close(self) -> None:
        """Hang up."""
        self._pump.stop()


class NoStream:
    """A stream that could not even be asked for: it says so, once."""

    def __init__(self, failed: Failed) -> None:
        self._failed = failed

    def next(self, wait_ms: int) -> StreamEvent | None:
        """Why there is none."""
        del wait_ms
        return self._failed

    def close(self) -> None:
        """There is nothing to close."""


def open_stream(adapter: Adapter, call: Call, resume: Resume | None) -> LiveStream | NoStream:
    """Ready to send one attempt, or to go on with one. Sends nothing yet."""
    dialect = DIALECTS.get(call.endpoint)
    if dialect is None:
        return NoStream(Failed(signal=adapter.signal(ErrorClass.CALLER_FAULT, "adapter.no_stream")))
    try:
        request = dialect.ask(adapter.request(call)) if resume is None else resumed(resume)
    except BadPayload:
        return NoStream(Failed(signal=adapter.signal(ErrorClass.CALLER_FAULT, "adapter.unsendable")))
    reading = Reading(adapter, dialect.assembler(call), call)
    return LiveStream(reading, lambda: adapter.session.open(request, call.timeout_ms))
