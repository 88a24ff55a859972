"""How long to wait when the provider names no time? Full jitter between a floor and a doubling, capped window."""

from __future__ import annotations

from breakwater.domain.strategy import Backoff

_DOUBLINGS = 40  # beyond this every window is at its cap


def window_ms(backoff: Backoff, failures: int) -> int:
    """The longest wait after so many failures: `base_ms`, doubled by each failure after the first, up to `cap_ms`."""
    doublings = min(max(failures - 1, 0), _DOUBLINGS)
    return min(backoff.cap_ms, backoff.base_ms << doublings)


def delay_ms(backoff: Backoff, failures: int, draw: float) -> int:
    """A wait in whole ms, drawn evenly from [min_ms, window). Raises ValueError where `draw` is not in [0, 1)."""
    if not 0 <= draw < 1:
        raise ValueError(f"draw must be in [0, 1), got {draw}")
    return backoff.min_ms + int(draw * (window_ms(backoff, failures) - backoff.min_ms))
