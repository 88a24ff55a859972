"""What time is it? The one place that asks the machine."""

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
