"""How do pieces of an answer become segments?

The first piece goes out at once, and with it the boundary; then at most every 250 ms or 4 KB. A segment is stored
before META can name it, so nobody sees what is not kept. A table that does not answer is asked again while little is
waiting; when too much waits or it takes too long, the holder gives up and recovery decides.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from breakwater.domain import events as ev
from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.job import Execution, Job
from breakwater.domain.machine import Step, advance
from breakwater.domain.segments import FLUSH_BYTES, FLUSH_MS, LARGEST_SEGMENT, Answer, Segment, merged, size_of
from breakwater.domain.states import Status
from breakwater.domain.stream_events import Delta
from breakwater.ports import Guard
from breakwater.usecases import stream_log
from breakwater.usecases.change import change
from breakwater.usecases.deps import Deps

_MOST_WAITING = 64 * 1024
_PATIENCE = 5_000
_AGAIN = 500


class Stop(StrEnum):
    """Why a holder stops in mid-stream."""

    LOST = "lease_lost"
    CANCELLED = "cancelled"
    IDLE = "idle"
    OUT_OF_TIME = "out_of_time"
    TOO_LARGE = "delta_too_large"


def holds(job: Job, execution: Execution) -> bool:
    """Whether the job is still this holder's."""
    own = job.execution
    return (
        job.status is Status.PROCESSING and own is not None and (own.id, own.epoch) == (execution.id, execution.epoch)
    )


class Writer:
    """The log of one holder. `answer` is all that was told, by earlier holders too."""

    def __init__(self, deps: Deps, job: Job, execution: Execution, before: stream_log.Log | None) -> None:
        self._deps, self._job, self._execution = deps, job, execution
        self.answer = before.answer if before is not None else Answer()
        self.sequence = before.sequence if before is not None else None
        self.committed = job.partial_output_committed and job.stream_epoch is not None
        self.segments = 0
        self._waiting: list[Delta] = []
        self._size = 0
        self._pending: Segment | None = None  # cut, and not known to be stored: it may be, so it never changes
        self._flushed_at: int | None = None
        self._failing_since: int | None = None
        self._again_at = 0

    def add(self, delta: Delta) -> None:
        """The next piece of the answer."""
        self.answer.add((delta,))
        self._waiting.append(replace(delta, sequence=None))
        self._size += size_of(delta)

    @property
    def waiting(self) -> bool:
        """Whether something is not stored or not visible yet."""
        hidden = self.segments > 0 and not self.committed
        return bool(self._waiting) or self._pending is not None or hidden

    def due_in(self, now: int) -> int | None:
        """How long what waits may still wait; None where nothing does. `now` never jumps."""
        if not self.waiting:
            return None
        wait = 0
        if self._flushed_at is not None and self._size < FLUSH_BYTES:
            wait = self._flushed_at + FLUSH_MS - now
        return max(0, wait, self._again_at - now)

    def flush(self, now: int) -> Stop | None:
        """Store what waits and make it visible; says so where this holder may write no more."""
        try:
            stop = self._put() or self._commit()
        except StoreUnavailable:
            self._failing_since = now if self._failing_since is None else self._failing_since
            if self._size > _MOST_WAITING or now - self._failing_since > _PATIENCE:
                raise
            self._again_at = now + _AGAIN
            return None
        self._failing_since, self._flushed_at = None, now
        return stop

    def _put(self) -> Stop | None:
        if self._size > LARGEST_SEGMENT:
            return Stop.TOO_LARGE
        if self._pending is None and self._waiting:
            self._pending = self._cut()
            self._waiting, self._size = [], 0
        if self._pending is None:
            return None
        if not stream_log.put(self._deps, self._job, self._pending):
            return Stop.LOST
        self._pending = None
        self.segments += 1
        return None

    def _cut(self) -> Segment:
        return Segment(
            epoch=self._execution.epoch, n=self.segments, deltas=merged(self._waiting), sequence=self.sequence
        )

    def _commit(self) -> Stop | None:
        """The boundary: one write under our epoch makes the log visible and forbids every repeat."""
        if self.committed or not self.segments:
            return None
        found: list[Stop] = [Stop.LOST]
        event = ev.OutputCommitted(epoch=self._execution.epoch)

        def plan(standing: Job) -> Step | None:
            if not holds(standing, self._execution):
                return None
            if standing.cancel_requested_at is not None:
                found[:] = [Stop.CANCELLED]
                return None
            return advance(standing, event, self._deps.now())

        guard = Guard(epoch=self._execution.epoch)
        self.committed = change(self._deps, self._job, plan, lambda _: guard) is not None
        return None if self.committed else found[0]
