"""A provider's stream from a script: events, and pauses between them, on a clock that moves when told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from breakwater.domain.results import Call, Result
from breakwater.domain.stream_events import Done, Resume, StreamEvent, TextDelta
from tests.fakes.clock import FakeClock

Line = Sequence[StreamEvent | int | Callable[[], object]]
"""Events, pauses in ms, and things that happen meanwhile. After the last one nothing comes any more."""
StreamScript = Line | Callable[[Call, Resume | None], Line]


def told(result: Result, pieces: int = 2) -> list[StreamEvent]:
    """An answer in pieces, and its end."""
    size = max(1, -(-len(result.text) // pieces))
    cut = [result.text[at : at + size] for at in range(0, len(result.text), size)]
    return [*(TextDelta(text=one) for one in cut), Done(result=result)]


class FakeStream:
    """`ports.ProviderStream`."""

    def __init__(self, line: Line, clock: FakeClock, hook: Callable[[str, str], None]) -> None:
        self._line: list[Any] = list(line)
        self._clock, self._hook = clock, hook
        self.closed = False

    def next(self, wait_ms: int) -> StreamEvent | None:
        assert not self.closed
        assert wait_ms > 0
        self._hook("stream", "before")
        left = wait_ms
        while self._line and not isinstance(self._line[0], StreamEvent):
            item = self._line.pop(0)
            if callable(item):
                item()
            elif item > left:
                self._line.insert(0, item - left)
                break
            else:
                self._clock.advance(item)
                left -= item
        if not self._line or isinstance(self._line[0], int):
            self._clock.advance(left)
            return None
        event: StreamEvent = self._line.pop(0)
        return event

    def close(self) -> None:
        self.closed = True
