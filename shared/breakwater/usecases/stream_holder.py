"""What does the holder of a lease do with a provider's stream?

One loop: take what comes, store it in time, look at the job every second, mind the clocks. It ends in an outcome like
any other call's, or in none: then somebody else goes on with the same attempt. Only a job that runs at the provider
under a name of its own can be gone on with; every other stream that breaks ends under the boundary rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from breakwater.domain import events as ev
from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.job import Execution, Job
from breakwater.domain.machine import Step, advance
from breakwater.domain.results import Call, Completed, Outcome, Refused
from breakwater.domain.segments import remainder
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import Visibility
from breakwater.domain.stream_events import (
    Done,
    EffectBegun,
    Failed,
    Opened,
    Resume,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    UsageSeen,
)
from breakwater.domain.timing import RESPONSE_RESERVE, SECOND
from breakwater.domain.values import dataclass
from breakwater.ports import Guard, Provider, ProviderStream
from breakwater.usecases.change import change
from breakwater.usecases.deps import Deps
from breakwater.usecases.stream_cost import counted, partial_of
from breakwater.usecases.stream_handover import hand_over
from breakwater.usecases.stream_log import Log
from breakwater.usecases.stream_writer import Stop, Writer, holds

_LAST_TRIES = 3
LOOK_MS = SECOND  # a cancel is noticed within this
_CLASS = {Stop.CANCELLED: ErrorClass.CANCELLED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """What a holder knows of its time: `remaining_ms` of the function, and whether the lease is `lost`."""

    remaining_ms: Callable[[], int]
    lost: Callable[[], bool] = lambda: False
    idle_ms: int = 25 * SECOND  # the longest silence
    first_ms: int = 25 * SECOND  # and the longest before anything is visible
    provider_deadline_at: int = 0


class Holder:
    """One holder's reading of one stream."""

    def __init__(self, deps: Deps, job: Job, provider: Provider, call: Call, lease: Lease, before: Log | None) -> None:
        assert job.execution is not None  # noqa: S101 - the claim put it there
        self._deps, self._job, self._provider, self._call, self._lease = deps, job, provider, call, lease
        self._execution: Execution = job.execution
        self._writer = Writer(deps, job, job.execution, before)
        self._usage: UsageSeen | None = None
        self._source: ProviderStream | None = None
        self._begun = self._heard = self._looked = deps.clock.monotonic()
        self._first_token_at: int | None = None
        self._fresh = True  # something came since the connection was last opened

    def run(self) -> Outcome | None:
        """Read to the end. None: nothing is left to conclude here, another holder goes on."""
        self._source = self._open()
        try:
            while True:
                ended = self._turn(self._source)
                if ended is not None:
                    return ended.outcome
        finally:
            self._source.close()

    def _open(self) -> ProviderStream:
        name = self._execution.provider_job_id
        resume = None if name is None else Resume(provider_job_id=name, after=self._writer.sequence)
        return self._provider.stream(self._call, resume)

    def _turn(self, source: ProviderStream) -> _Ended | None:
        now = self._deps.clock.monotonic()
        stop = self._in_time(now) or self._looks(now)
        if stop is not None:
            return self._stopped(stop)
        event = source.next(self._wait(now))
        now = self._deps.clock.monotonic()
        if event is not None:
            self._heard = now
            ended = self._take(event)
            if ended is not None:
                return ended
        due = self._writer.due_in(now)
        stop = self._writer.flush(now) if due == 0 else None
        return self._stopped(stop) if stop is not None else None

    # --- the clocks

    def _wait(self, now: int) -> int:
        """Until the next thing that can't wait."""
        due = self._writer.due_in(now)
        ends = (
            self._looked + LOOK_MS - now,
            self._heard + self._silence() - now,
            self._lease.remaining_ms() - RESPONSE_RESERVE,
            LOOK_MS if due is None else due,
        )
        return max(1, min(ends))

    def _silence(self) -> int:
        return self._lease.idle_ms if self._writer.committed else self._lease.first_ms

    def _in_time(self, now: int) -> Stop | None:
        """Is it still ours as far as we know, and still in time?"""
        if self._lease.lost():
            return Stop.LOST
        if self._lease.remaining_ms() <= RESPONSE_RESERVE:
            return Stop.OUT_OF_TIME
        if now - self._heard >= self._silence():
            return Stop.IDLE
        return None

    def _looks(self, now: int) -> Stop | None:
        """Is it still ours and still wanted? META is asked once a second."""
        if now - self._looked < LOOK_MS:
            return None
        self._looked = now
        try:
            standing = self._deps.store.get(self._job.job_id)
        except StoreUnavailable:
            return None  # looked at again in a second; the lease keeper minds the rest
        if standing is None or not holds(standing, self._execution):
            return Stop.LOST
        return Stop.CANCELLED if standing.cancel_requested_at is not None else None

    # --- what comes

    def _take(self, event: StreamEvent) -> _Ended | None:
        if isinstance(event, Done):
            return self._done(event)
        if isinstance(event, Failed):
            return self._failed(event)
        self._fresh = True
        if isinstance(event, Opened):
            self._named(event)
        elif isinstance(event, UsageSeen):
            self._usage = event
        elif isinstance(event, TextDelta | ToolCallDelta | EffectBegun):
            self._first_token_at = self._first_token_at or self._deps.clock.monotonic()
            self._writer.add(event)
        if event.sequence is not None:
            self._writer.sequence = event.sequence
        return None

    def _named(self, event: Opened) -> None:
        """The provider's own name for the job, stored before anything else can be lost."""
        if self._execution.provider_job_id is not None:
            return
        named = ev.StreamOpened(
            provider_job_id=event.provider_job_id, provider_deadline_at=self._lease.provider_deadline_at
        )

        def plan(standing: Job) -> Step | None:
            return advance(standing, named, self._deps.now()) if holds(standing, self._execution) else None

        guard = Guard(epoch=self._execution.epoch)
        step = change(self._deps, self._job, plan, lambda _: guard)
        if step is not None and step.job.execution is not None:
            self._execution = step.job.execution

    def _done(self, event: Done) -> _Ended:
        """The provider's terminal event. What was told must be the beginning of what it says."""
        rest = remainder(self._writer.answer, event.result)
        if rest is None:
            return self._ended(Failed(signal=self._signal("other_answer", ErrorClass.UNKNOWN)))
        for delta in rest:
            self._writer.add(delta)
        self._flush()
        facts = {"stream_segments": self._writer.segments, "stream_epoch": self._execution.epoch}
        if self._writer.waiting:
            facts = {}
        if self._first_token_at is not None:
            facts["first_token_ms"] = self._first_token_at - self._begun
        result = event.result
        if not result.usage.units:  # it comes behind the model's last word, and may not come any more
            result = counted(result, self._call.payload)
        return _Ended(Completed(result=replace(result, evidence={**result.evidence, **facts})))

    def _failed(self, event: Failed) -> _Ended | None:
        """The provider's own word ends it; a broken connection may be opened again where the job has a name."""
        if event.told or self._execution.provider_job_id is None:
            return self._ended(event)
        if self._fresh and self._source is not None:
            self._fresh = False
            self._source.close()
            self._source = self._open()
            return None
        self._flush()
        hand_over(self._deps, self._job, self._execution, after_ms=SECOND)
        return _Ended(None)

    # --- the ends

    def _stopped(self, stop: Stop) -> _Ended:
        named = self._execution.provider_job_id is not None
        if stop is Stop.LOST and named:
            return _Ended(None)
        if stop in (Stop.OUT_OF_TIME, Stop.IDLE) and named:
            self._flush()
            hand_over(self._deps, self._job, self._execution, after_ms=0 if stop is Stop.OUT_OF_TIME else SECOND)
            return _Ended(None)
        return self._ended(Failed(signal=self._signal(stop.value, _CLASS.get(stop, ErrorClass.STREAM_INCOMPLETE))))

    def _ended(self, event: Failed) -> _Ended:
        """No answer, or not all of it: what came is kept, and what it cost."""
        self._flush()
        seen = self._usage.usage if self._usage is not None else None
        partial = partial_of(self._writer.answer, seen, event.partial, self._call.payload)
        visible = Visibility.PARTIAL_OUTPUT if self._writer.committed else Visibility.BEFORE_FIRST_TOKEN
        signal = replace(event.signal, visibility_state=visible)
        return _Ended(Refused(signal=signal, partial=partial, provider_job_id=self._execution.provider_job_id))

    def _flush(self) -> None:
        """What waits goes out before the end is told; what can't is in the result all the same."""
        for _ in range(_LAST_TRIES):
            if not self._writer.waiting or self._writer.flush(self._deps.clock.monotonic()) is not None:
                return

    def _signal(self, rule: str, error_class: ErrorClass) -> Signal:
        return Signal(error_class=error_class, route_key=self._execution.route_key, rule=f"stream.{rule}")


@dataclass(frozen=True, slots=True)
class _Ended:
    """The loop is over, with an outcome or without."""

    outcome: Outcome | None
