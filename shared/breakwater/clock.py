"""What time is it? The one place that asks the machine, and waits for it."""

from __future__ import annotations

import time


class SystemClock:
    """`ports.Clock` over the machine's clocks."""

    def now(self) -> int:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> int:
        """Milliseconds that never jump."""
        return time.monotonic_ns() // 1_000_000

    def sleep(self, ms: int) -> None:
        """Let so many milliseconds pass."""
        time.sleep(ms / 1000)
