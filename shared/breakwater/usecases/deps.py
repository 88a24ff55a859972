"""What does every use case get? One value with the ports in it, built once by `wiring`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from breakwater.domain.bounded import Bounded
from breakwater.domain.records import RouteState
from breakwater.domain.routes import Catalogue
from breakwater.domain.scopes import Scopes
from breakwater.domain.states import Lane
from breakwater.domain.values import dataclass
from breakwater.ports import (
    Backlog,
    Bus,
    Clock,
    Control,
    JobStore,
    Log,
    Notifier,
    Payloads,
    Providers,
    Queues,
    Spending,
)


class Noticed:
    """What this process lately told and read; see `protect.py`, `depth.py`, `noticed.py` and `capacity.py`."""

    def __init__(self) -> None:
        self.written: Bounded[str, int] = Bounded()
        self.read: Bounded[str, tuple[int, Mapping[str, Any] | None]] = Bounded()
        self.routes: Bounded[str, tuple[int, RouteState | None]] = Bounded()
        self.scopes = Scopes()
        self.callbacks: Bounded[str, tuple[int, Mapping[str, Any]]] = Bounded()
        self.depths: Bounded[tuple[Lane, str | None, int], tuple[int, Backlog | None]] = Bounded()


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
    notifier: Notifier | None = None
    notify_secrets: Callable[[], Mapping[str, Any]] = dict  # by owner, and `default`
    loopback_hosts: frozenset[str] = frozenset()  # callbacks on this machine, for local use only
    spending: Spending | None = None
    stream_secrets: Callable[[], Mapping[str, Any]] = dict  # `current` and `previous`, for stream tokens
    code_version: str = ""
    noticed: Noticed = field(default_factory=Noticed)

    def now(self) -> int:
        """The time in ms since the epoch."""
        return self.clock.now()
