"""A clock that moves when told."""

from __future__ import annotations


class FakeClock:
    """`ports.Clock` whose two faces move together; `skew` is what this process's wall clock is off by."""

    def __init__(self, now: int = 1_800_000_000_000, skew: int = 0) -> None:
        self._now = now
        self.skew = skew

    def now(self) -> int:
        return self._now + self.skew

    def monotonic(self) -> int:
        return self._now

    def advance(self, ms: int) -> None:
        assert ms >= 0
        self._now += ms

    def sleep(self, ms: int) -> None:
        self.advance(ms)

    def seen_by(self, skew: int) -> SkewedClock:
        """The same time, as a machine whose wall clock is off would read it."""
        return SkewedClock(self, skew)


class SkewedClock:
    """Another machine's view of one fake time."""

    def __init__(self, base: FakeClock, skew: int) -> None:
        self._base, self._skew = base, skew

    def now(self) -> int:
        return self._base.now() + self._skew

    def monotonic(self) -> int:
        return self._base.monotonic()

    def sleep(self, ms: int) -> None:
        self._base.advance(ms)
