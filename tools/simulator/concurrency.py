"""How many calls were in a provider's hands at the same time, now and at worst?

Gauges: every route while a call is open, `ROUTE:MODEL` the same by model, and
`openai.responses.running` for background responses that have not ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .shapes import Json, now_ms

_MOST_SAMPLES = 2000


@dataclass(slots=True)
class _Gauge:
    current: int = 0
    highest: int = 0
    highest_at_ms: int = 0
    samples: list[tuple[int, int]] = field(default_factory=list)

    def move(self, step: int) -> None:
        self.current += step
        at = now_ms()
        if self.current > self.highest:
            self.highest, self.highest_at_ms = self.current, at
        self.samples.append((at, self.current))
        del self.samples[:-_MOST_SAMPLES]


class Concurrency:
    """Gauges by name; a gauge exists once it has moved."""

    def __init__(self) -> None:
        """Start with none."""
        self._gauges: dict[str, _Gauge] = {}

    def enter(self, route: str, model: str = "") -> None:
        """Count one more in work."""
        self._move(route, model, 1)

    def leave(self, route: str, model: str = "") -> None:
        """Count one less in work."""
        self._move(route, model, -1)

    @contextmanager
    def inside(self, route: str, model: str) -> Iterator[None]:
        """Count one more for as long as the block runs."""
        self.enter(route, model)
        try:
            yield
        finally:
            self.leave(route, model)

    def report(self) -> Json:
        """Tell current and highest value of each gauge, and its most recent changes."""
        return {
            name: {
                "current": gauge.current,
                "max": gauge.highest,
                "max_at_ms": gauge.highest_at_ms,
                "samples": gauge.samples,
            }
            for name, gauge in self._gauges.items()
        }

    def reset(self) -> None:
        """Forget the past; what is in work now stays counted."""
        self._gauges = {
            name: _Gauge(gauge.current, gauge.current, now_ms())
            for name, gauge in self._gauges.items()
            if gauge.current
        }

    def _move(self, route: str, model: str, step: int) -> None:
        for name in (route, f"{route}:{model}" if model else ""):
            if name:
                self._gauges.setdefault(name, _Gauge()).move(step)
