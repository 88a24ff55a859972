"""What does every use case get? One value with the ports in it, built once by `wiring`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from breakwater.domain.routes import Catalogue
from breakwater.ports import Bus, Clock, Control, JobStore, Log, Payloads, Providers, Queues


@dataclass(frozen=True, slots=True, kw_only=True)
class Deps:
    """The outside, as ports. `draw` gives a number in [0, 1) for jitter."""

    store: JobStore
    queues: Queues
    payloads: Payloads
    control: Control
    catalogue: Catalogue
    clock: Clock
    log: Log
    draw: Callable[[], float]
    providers: Providers | None = None
    bus: Bus | None = None
    code_version: str = ""

    def now(self) -> int:
        """The time in ms since the epoch."""
        return self.clock.now()
