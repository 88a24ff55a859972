"""What must still happen to a job, and who has to look when?

One pure list of obligations; `due_at` is the earliest of them, except that a nudge on its way covers what was due when
it becomes visible, until its grace is over. A write leaves an earlier `due_at` alone (moving it costs index writes);
the sweep corrects it. So a job that waits for a worker is due when the lease of one that comes at once would end: on a
good day neither the claim nor what follows moves it, on a bad one the sweep looks once more.
"""

from __future__ import annotations

from enum import StrEnum

from breakwater.domain.job import Job
from breakwater.domain.states import EffectKind, Lane, Status
from breakwater.domain.timing import CLOCK_SKEW, LEASE, MAX_QUEUE_DELAY, NUDGED_POLL_WINDOW, nudge_grace
from breakwater.domain.values import dataclass


class Queue(StrEnum):
    """The nudge queues."""

    INTERACTIVE = "interactive"
    BACKGROUND = "background"
    COMPLETION = "completion"
    EFFECTS = "effects"


class Due(StrEnum):
    """Kinds of obligation."""

    READY = "ready"  # somebody should lease it
    RECHECK = "recheck"  # a waiter for capacity that nobody woke, or for a budget; left to the sweep
    EXPIRY = "expiry"  # its age limit
    REVIEW = "review"  # the review's own limit
    LEASE = "lease"  # the holder should be done
    POLL = "poll"  # the provider should be asked
    PROVIDER_DEADLINE = "provider_deadline"
    EFFECT = "effect"  # something owed outside
    CANCEL = "cancel"  # the provider must be told to stop


@dataclass(frozen=True, slots=True)
class Obligation:
    """Something that must happen at `at`, and the queue whose function does it."""

    kind: Due
    at: int
    queue: Queue


@dataclass(frozen=True, slots=True)
class Nudge:
    """A message to send: which queue, and when it should become visible."""

    queue: Queue
    at: int


# A lease that ends is the sweep's to find: nudging it would wake somebody for nothing on every good day.
_NUDGED = frozenset({Due.READY, Due.POLL, Due.EFFECT, Due.CANCEL})


_WORKERS = frozenset({Queue.INTERACTIVE, Queue.BACKGROUND})


def lane_queue(lane: Lane) -> Queue:
    """Which queue serves new work of a lane."""
    return Queue.INTERACTIVE if lane in (Lane.INTERACTIVE_ADMISSION, Lane.STREAM_RECOVERY) else Queue.BACKGROUND


def obligations(job: Job) -> tuple[Obligation, ...]:
    """Everything the job still owes; empty exactly when it is settled and owes nothing."""
    return (*_own(job), *_owed(job))


def _own(job: Job) -> tuple[Obligation, ...]:
    if job.final:
        return ()
    if job.status is Status.PROCESSING:
        return _in_process(job)
    if job.in_review:
        review = Obligation(Due.REVIEW, job.review_expires_at or job.updated_at, Queue.COMPLETION)
        look = () if job.recheck_at is None else (Obligation(Due.RECHECK, job.recheck_at, Queue.COMPLETION),)
        return (review, *look)
    queue = lane_queue(job.lane)
    waits = job.waiting_scope is not None and job.recheck_at is not None
    recheck = Obligation(Due.RECHECK, job.recheck_at or 0, queue)
    ready = (recheck if waits else Obligation(Due.READY, job.ready_at, queue),)
    return ready if job.expires_at is None else (*ready, Obligation(Due.EXPIRY, job.expires_at, queue))


def _in_process(job: Job) -> tuple[Obligation, ...]:
    if job.locked_until is not None:
        return (Obligation(Due.LEASE, job.locked_until + CLOCK_SKEW, Queue.COMPLETION),)
    poll: tuple[Obligation, ...] = (Obligation(Due.POLL, job.poll_at or job.updated_at, Queue.COMPLETION),)
    if job.resume_at is not None:
        poll = (*poll, Obligation(Due.READY, job.resume_at, lane_queue(job.lane)))
    if job.provider_deadline_at is None:
        return poll
    return (*poll, Obligation(Due.PROVIDER_DEADLINE, job.provider_deadline_at, Queue.COMPLETION))


def _owed(job: Job) -> tuple[Obligation, ...]:
    return tuple(
        Obligation(Due.CANCEL if queue_of(key) is Queue.COMPLETION else Due.EFFECT, owed.next_at, queue_of(key))
        for key, owed in job.owed.items()
    )


def queue_of(effect_key: str) -> Queue:
    """Whose business an owed effect is: the provider is told by those who know providers."""
    return Queue.COMPLETION if effect_key.startswith(EffectKind.PROVIDER_CANCEL + "#") else Queue.EFFECTS


def due_at(job: Job) -> int | None:
    """When somebody must look at the job again; None when nothing is owed."""
    return min((_effective(job, one.at) for one in obligations(job)), default=None)


def _effective(job: Job, at: int) -> int:
    if job.nudged_for is None or at > job.nudged_for:
        return at
    return job.nudged_for + nudge_grace(job.nudges)


def schedule(before: Job | None, after: Job, now: int) -> tuple[Job, tuple[Nudge, ...]]:
    """Plan the nudges of a write and set `due_at`, in the same write.

    A step at most 900 s away is nudged at once with its delay; later ones are left to the sweep.
    """
    nudges = _plan(after, now)
    sent = tuple(one for one in nudges if not _on_its_way(before, one, now))
    if sent:
        after = after.with_(nudged_at=now, nudges_total=after.nudges_total + 1)
    if nudges:
        after = after.with_(nudged_for=min(one.at for one in nudges), nudges=1)
    else:
        after = after.with_(nudged_for=None, nudges=0)
    after = after.with_(sweeps=0)
    wanted = due_at(after)
    if wanted is not None and any(nudge.queue in _WORKERS for nudge in nudges):
        wanted = min(wanted, max(nudge.at for nudge in nudges) + LEASE)
    standing = before.due_at if before else None
    if wanted is not None and standing is not None and standing <= wanted:
        wanted = standing
    return after.with_(due_at=wanted), sent


def _on_its_way(before: Job | None, nudge: Nudge, now: int) -> bool:
    """Whether the write that put off the work has told its queue already, for this very moment."""
    if before is None or nudge.at <= now or nudge.queue not in _WORKERS:
        return False
    ready = Obligation(Due.READY, nudge.at, nudge.queue)
    return ready in obligations(before) and nudge.at - before.updated_at <= MAX_QUEUE_DELAY


def _plan(job: Job, now: int) -> tuple[Nudge, ...]:
    """The earliest step within reach of a queue's delay, and whatever else is due by then, one nudge a queue.

    Work that is put off has its own nudge beside an earlier one: what is owed outside may be slow, and nobody's retry
    waits for it.
    """
    soon = [one for one in obligations(job) if one.kind in _NUDGED and one.at - now <= _reach(one.kind)]
    if not soon:
        return ()
    visible = max(now, min(one.at for one in soon))
    at = {one.queue: visible for one in soon if one.at <= visible}
    work = {one.queue: one.at for one in soon if one.kind is Due.READY}
    return tuple(Nudge(queue, when) for queue, when in (work | at).items())


def _reach(kind: Due) -> int:
    return NUDGED_POLL_WINDOW - 1 if kind is Due.POLL else MAX_QUEUE_DELAY


def swept(job: Job, now: int) -> tuple[Job, tuple[Nudge, ...]]:
    """What the sweep does with a job whose `due_at` has passed: move it forward, and nudge what is really due.

    The move comes first and is conditional on what was read; a nudge that is lost is sent again after its grace.
    """
    if (_covered := due_at(job)) is None or _covered > now:
        return job.with_(due_at=_covered), ()
    queues = dict.fromkeys(one.queue for one in obligations(job) if _effective(job, one.at) <= now)
    moved = job.with_(
        nudged_at=now,
        nudged_for=now,
        nudges=job.nudges + 1,
        nudges_total=job.nudges_total + 1,
        sweeps=job.sweeps + 1,
    )
    return moved.with_(due_at=due_at(moved)), tuple(Nudge(queue, now) for queue in queues)


def queues_for(job: Job) -> tuple[Queue, ...]:
    """Every queue whose function has something to do for this job, now or later."""
    return tuple(dict.fromkeys(one.queue for one in obligations(job)))
