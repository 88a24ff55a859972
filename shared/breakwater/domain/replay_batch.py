"""How does a replay of many go on, stop by itself, and survive its operator? A frozen value and what may become of it.

A batch item holds counts, a cursor into its frozen selection, and the few jobs that are open now; the selection and
the outcomes are children. First the batch says which jobs it opens, then it replays them: after a crash the next tick
finds them open and goes on. A job counts when its own generation is over, not when it was sent off.

How many are open at once starts small: never more than may still fail before the threshold, plus what has succeeded.
So a provider that fails again costs at most `error_threshold` jobs beyond those that went well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from breakwater.domain.timing import MINUTE, NUDGE_GRACE, SECOND
from breakwater.domain.values import dataclass

TICK = 15 * SECOND
SLOWEST_TICK = 10 * MINUTE
CHUNK = 100  # refs in one selection child


class BatchStatus(StrEnum):
    """Where a batch is. Only `running` opens jobs; the others let what is open end."""

    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"  # by its own threshold
    ABORTED = "aborted"
    DONE = "done"


OVER = frozenset({BatchStatus.STOPPED, BatchStatus.ABORTED, BatchStatus.DONE})


class Outcome(StrEnum):
    """What became of one job."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"  # dead again, or held again for a person
    REFUSED = "refused"  # the checklist said no at its turn
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"  # somebody else replayed or closed it meanwhile
    SKIPPED = "skipped"  # opened, and the batch ended before it was replayed


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """One job of the selection, in the generation that was dead."""

    job_id: str
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One replay of many."""

    id: str
    created_at: int
    created_by: str
    owner_key: str  # names the nudges' group
    terms: Mapping[str, Any]
    total: int
    rate_per_minute: int
    at_once: int
    error_threshold: int
    status: BatchStatus = BatchStatus.RUNNING
    why: str = ""  # of a pause, an abort, a stop
    next: int = 0
    open: tuple[Ref, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    start_at: int = 0  # the next job may start from here on
    tick_at: int | None = None
    due_at: int | None = None
    nudges: int = 0
    idle: int = 0  # ticks in a row that found nothing new
    rev: int = 0
    ttl: int | None = None

    def count(self, outcome: Outcome) -> int:
        """How many ended this way."""
        return self.counts.get(outcome.value, 0)


def room(batch: Batch, now: int) -> int:
    """How many jobs may be opened now: by what is left, at once, by rate, and by what may still fail."""
    if batch.status is not BatchStatus.RUNNING:
        return 0
    may_fail = batch.error_threshold - batch.count(Outcome.FAILED)
    window = min(batch.at_once, max(1, may_fail) + batch.count(Outcome.SUCCEEDED))
    free = min(window - len(batch.open), batch.total - batch.next)
    gap = MINUTE / batch.rate_per_minute
    behind = now - max(batch.start_at, now - TICK)
    by_rate = int(behind / gap) + 1 if batch.start_at <= now else 0
    return max(0, min(free, by_rate))


def opened(batch: Batch, refs: Sequence[Ref], now: int) -> Batch:
    """These jobs are the batch's to replay from now on."""
    if not refs:
        return batch
    gap = MINUTE // batch.rate_per_minute
    start = max(batch.start_at, now - TICK) + gap * len(refs)
    return replace(batch, open=(*batch.open, *refs), next=batch.next + len(refs), start_at=start, idle=0)


def ended(batch: Batch, outcomes: Mapping[Ref, Outcome]) -> Batch:
    """Count what is over; stop at the threshold, and be done when nothing is left."""
    counts = Counter(batch.counts) + Counter(one.value for one in outcomes.values())
    left = tuple(ref for ref in batch.open if ref not in outcomes)
    after = replace(batch, counts=dict(counts), open=left, idle=0 if outcomes else batch.idle + 1)
    if after.status is BatchStatus.RUNNING and after.count(Outcome.FAILED) >= batch.error_threshold:
        why = f"{after.count(Outcome.FAILED)} replays failed: the threshold is {batch.error_threshold}"
        return replace(after, status=BatchStatus.STOPPED, why=why)
    if after.status is BatchStatus.RUNNING and not left and after.next >= after.total:
        return replace(after, status=BatchStatus.DONE)
    return after


def planned(batch: Batch, now: int) -> Batch:
    """When to look again: soon while there is something to open, slower while it only waits, never when it is over."""
    waits_for_nothing = not batch.open and batch.status is not BatchStatus.RUNNING
    if waits_for_nothing:
        return replace(batch, tick_at=None, due_at=None)
    wait = min(SLOWEST_TICK, TICK << min(batch.idle, 6))
    if batch.status is BatchStatus.RUNNING and batch.next < batch.total:
        wait = max(SECOND, min(wait, batch.start_at - now)) if batch.start_at > now else min(wait, TICK)
    return replace(batch, tick_at=now + wait, due_at=now + wait + NUDGE_GRACE, nudges=0)


def turned(batch: Batch, status: BatchStatus, why: str, now: int) -> Batch | None:
    """A batch after its operator paused, resumed or aborted it; None where that is not possible any more."""
    if batch.status in OVER or batch.status is status:
        return None
    after = replace(batch, status=status, why=why, idle=0)
    return replace(after, tick_at=now, due_at=now + NUDGE_GRACE)


def shown(batch: Batch) -> dict[str, Any]:
    """What an operator sees."""
    return {
        "batch_id": batch.id,
        "status": batch.status.value,
        "why": batch.why,
        "created_at": batch.created_at,
        "created_by": batch.created_by,
        "total": batch.total,
        "opened": batch.next,
        "open": [one.job_id for one in batch.open],
        "counts": {one.value: batch.count(one) for one in Outcome},
        "rate_per_minute": batch.rate_per_minute,
        "at_once": batch.at_once,
        "error_threshold": batch.error_threshold,
        "next_look_at": batch.tick_at,
        "terms": dict(batch.terms),
    }
