"""How long may a worker believe that the job is its own?

A lease is the shorter of 60 s and the function's remaining time plus a margin. Longer work renews it every third from
a thread of its own, so a blocking call does not starve it. The renewal stops for good when the work is over, when the
function nears its end, or when a renewal fails past the lease: then `lost` is set and the worker must stop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.timing import LEASE, LEASE_MARGIN, RENEW_TIMEOUT
from breakwater.ports import Clock, JobStore


def lease_ms(remaining_ms: int) -> int:
    """The length of a lease taken now."""
    return min(LEASE, max(remaining_ms, 0) + LEASE_MARGIN)


class LeaseKeeper:
    """Renews one lease while the block runs. No renewal starts after the block is left."""

    def __init__(
        self,
        store: JobStore,
        clock: Clock,
        job_id: str,
        epoch: int,
        locked_until: int,
        remaining_ms: Callable[[], int],
        every_ms: int = LEASE // 3,
    ) -> None:
        self._store, self._clock, self._job_id, self._epoch = store, clock, job_id, epoch
        self._remaining, self._every = remaining_ms, every_ms
        # Lengths are measured on the clock that never jumps; a wall clock set back must not shorten a lease.
        self._wall = clock.now() - clock.monotonic()
        self._end = locked_until - self._wall
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self.lost = False

    def __enter__(self) -> Self:
        if self._remaining() > LEASE - LEASE_MARGIN:
            self._thread = threading.Thread(target=self._keep, name=f"lease {self._job_id}", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(RENEW_TIMEOUT / 1000 + 1)

    def _keep(self) -> None:
        while not self._over.wait(self._every / 1000):
            if not self._renew():
                return

    def _renew(self) -> bool:
        """One renewal; False when there is nothing left to renew, or nothing any more."""
        left = self._end - self._clock.monotonic()
        if self._over.is_set():
            return False
        if left <= RENEW_TIMEOUT or self._remaining() <= 0:
            self.lost = left <= 0
            return False
        length = lease_ms(self._remaining())
        begun = self._clock.monotonic()
        try:
            now = self._wall + begun
            held = self._store.renew(self._job_id, self._epoch, now, now + length)
        except StoreUnavailable:
            return True  # tried again at the next third, until the lease itself runs out
        if held:
            self._end = begun + length
        self.lost = not held
        return held
