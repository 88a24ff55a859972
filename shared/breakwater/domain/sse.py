"""How is the text of an event stream cut into events?

By the WHATWG's own rules: lines end in LF, CRLF or CR and nowhere else (not at U+2028), one leading BOM is dropped,
a blank line dispatches, an event without data is none, and what stands unfinished at the end is thrown away. Bytes are
cut into lines before they are decoded, so a character that is split over two chunks is never torn.
"""

from __future__ import annotations

from breakwater.domain.values import dataclass

LARGEST_EVENT = 16 * 1024 * 1024  # a terminal event can carry the whole answer
_BOM = b"\xef\xbb\xbf"
_CR, _LF = 0x0D, 0x0A


class EventTooLarge(Exception):  # noqa: N818 - a fact about what was read
    """One event is larger than anything a provider sends."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One dispatched event. `id` is the last one seen on the stream, as the specification has it."""

    data: str
    name: str = "message"
    id: str = ""


class SseParser:
    """Takes bytes as they come, gives whole events. Holds one event at most; raises `EventTooLarge` beyond `limit`."""

    def __init__(self, limit: int = LARGEST_EVENT) -> None:
        self._limit = limit
        self._line = bytearray()  # of the line that is not finished
        self._data: list[str] = []
        self._size = 0  # of the data collected so far
        self._name = ""
        self._first = True  # the next line is the first of the stream
        self._after_cr = False  # a LF now belongs to the CR before it
        self.last_id = ""
        self.retry: int | None = None

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that this chunk completes."""
        events: list[SseEvent] = []
        start = 0
        if self._after_cr and chunk:
            start = 1 if chunk[0] == _LF else 0
            self._after_cr = False
        while (end := _line_end(chunk, start)) >= 0:
            self._line += chunk[start:end]
            event = self._complete_line()
            if event is not None:
                events.append(event)
            start = end + 1
            if chunk[end] == _CR:
                if start == len(chunk):
                    self._after_cr = True
                elif chunk[start] == _LF:
                    start += 1
        self._line += chunk[start:]
        self._check(len(self._line))
        return events

    def _complete_line(self) -> SseEvent | None:
        raw = bytes(self._line)
        self._line.clear()
        if self._first:
            raw, self._first = raw.removeprefix(_BOM), False
        if not raw:
            return self._dispatch()
        self._field(raw.decode("utf-8", "replace"))
        return None

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._check(len(value))
            self._size += len(value) + 1
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self.last_id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry = int(value)

    def _dispatch(self) -> SseEvent | None:
        data, name = self._data, self._name
        self._data, self._name, self._size = [], "", 0
        return SseEvent("\n".join(data), name or "message", self.last_id) if data else None

    def _check(self, more: int) -> None:
        if self._size + more > self._limit:
            raise EventTooLarge


def _line_end(chunk: bytes, start: int) -> int:
    """Where the next CR or LF stands, -1 where none does."""
    lf = chunk.find(b"\n", start)
    cr = chunk.find(b"\r", start, lf if lf >= 0 else len(chunk))
    return cr if cr >= 0 else lf


def frame(data: str, *, name: str | None = None, event_id: str | None = None) -> str:
    """One event as text; `data` may have several lines."""
    lines = [f"id: {event_id}"] if event_id is not None else []
    lines += [f"event: {name}"] if name else []
    lines += [f"data: {line}" for line in data.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    return "\n".join(lines) + "\n\n"
