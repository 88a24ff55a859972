"""What may happen to a job, and what does it change?

Theory of operation. `TRANSITIONS[row][event]` is the whole truth about moves: a row is a status, with two tagged rows
where one status makes two promises (pending in owner review, a dead letter that was closed). A missing cell is an
`IllegalTransition` naming both, and changes nothing. Final rows are empty, but for what a person may do with a dead
letter. No cell holds a condition: who decides picks another event. `advance` looks up the cell, lets `_APPLY` fill in
the fields, adds what becomes owed, and plans the next look (`obligations.schedule`) for the same single write.

What is unpleasant: `PROCESSING` covers both a live lease and a provider's own run, since the requirements fix six
statuses. `job.locked_until` tells them apart, and `obligations` is the only place that looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from breakwater.domain import events as ev
from breakwater.domain.apply import APPLY
from breakwater.domain.errors import IllegalTransition
from breakwater.domain.job import Job, Owed, execution_suffix
from breakwater.domain.obligations import Nudge, schedule
from breakwater.domain.slots import release_ref
from breakwater.domain.states import EffectKind, Reason, Status
from breakwater.domain.values import dataclass

REVIEW = "pending in owner_review"
CLOSED = "dead_letter, closed"


@dataclass(frozen=True, slots=True)
class Move:
    """Where an event leads, and which effects it makes owed once per generation."""

    to: str
    owes: tuple[EffectKind, ...] = ()


_TOLD = (EffectKind.BUS_EVENT, EffectKind.NOTIFY)
_DEAD = Move(Status.DEAD_LETTER, (EffectKind.DEAD_LETTER, *_TOLD))
_DONE = Move(Status.SUCCEEDED, _TOLD)
_CANCELLED = Move(Status.CANCELLED, _TOLD)

_WAITING_ROW: dict[type, Move] = {
    ev.Leased: Move(Status.PROCESSING),
    ev.HeldForReview: Move(REVIEW),
    ev.Expired: _DEAD,
    ev.Shed: _DEAD,
    ev.DeadLettered: _DEAD,
    ev.Cancelled: _CANCELLED,
    ev.Succeeded: _DONE,
}

TRANSITIONS: Mapping[str, Mapping[type, Move]] = {
    Status.PENDING: {**_WAITING_ROW, ev.Waiting: Move(Status.PENDING), ev.FellBack: Move(Status.PENDING)},
    REVIEW: {
        ev.Approved: Move(Status.PENDING),
        ev.BudgetFreed: Move(Status.PENDING),
        ev.Rejected: _CANCELLED,
        ev.Cancelled: _CANCELLED,
        ev.Expired: _DEAD,
        ev.Succeeded: _DONE,
    },
    Status.PROCESSING: {
        ev.ProviderAccepted: Move(Status.PROCESSING),
        ev.PollAgain: Move(Status.PROCESSING),
        ev.StreamOpened: Move(Status.PROCESSING),
        ev.OutputCommitted: Move(Status.PROCESSING),
        ev.StreamHandedOver: Move(Status.PROCESSING),
        ev.StreamResumed: Move(Status.PROCESSING),
        ev.Succeeded: _DONE,
        ev.RetryScheduled: Move(Status.FAILED),
        ev.FellBack: Move(Status.FAILED),
        ev.HeldForReview: Move(REVIEW),
        ev.DeadLettered: _DEAD,
        ev.Expired: _DEAD,
        ev.CancelRequested: Move(Status.PROCESSING),
        ev.Cancelled: _CANCELLED,
    },
    Status.FAILED: {**_WAITING_ROW, ev.Waiting: Move(Status.FAILED), ev.FellBack: Move(Status.FAILED)},
    Status.SUCCEEDED: {},
    Status.DEAD_LETTER: {ev.Replayed: Move(Status.PENDING), ev.Closed: Move(CLOSED)},
    CLOSED: {},
    Status.CANCELLED: {},
}

ROW_STATUS: Mapping[str, Status] = {
    **{status.value: status for status in Status},
    REVIEW: Status.PENDING,
    CLOSED: Status.DEAD_LETTER,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One planned write: the item as read, as it will be, why, and the nudges that follow it."""

    before: Job | None
    job: Job
    event: str
    nudges: tuple[Nudge, ...] = ()


def row_of(job: Job) -> str:
    """The row of `TRANSITIONS` that a job stands in."""
    if job.in_review:
        return REVIEW
    if job.status is Status.DEAD_LETTER and job.closed_at is not None:
        return CLOSED
    return job.status.value


def may(job: Job, event: type) -> bool:
    """Whether this kind of event may happen to the job now."""
    return event in TRANSITIONS[row_of(job)]


def advance(job: Job, event: ev.Event, now: int) -> Step:
    """Let an event happen. The input is unchanged; raises `IllegalTransition` where the table has no cell."""
    row = row_of(job)
    move = TRANSITIONS[row].get(type(event))
    if move is None:
        raise IllegalTransition(row, type(event).__name__, job=job.job_id)
    apply: Callable[[Job, Any, int], Job] = APPLY[type(event)]
    moved = apply(job, event, now).with_(status=ROW_STATUS[move.to], updated_at=now, crashes=0)
    moved = moved.with_(owed=_owed(job, moved, event, move, now))
    after, nudges = schedule(job, moved, now)
    return Step(job, after, type(event).__name__, nudges)


def amend(job: Job, now: int, *, why: str, **changes: Any) -> Step:
    """Change bookkeeping (what is owed, counters) without moving the job; the next look is planned anew."""
    after, nudges = schedule(job, job.with_(updated_at=now, **changes), now)
    return Step(job, after, why, nudges)


def _owed(before: Job, after: Job, event: ev.Event, move: Move, now: int) -> dict[str, Owed]:
    """What is owed after the move: the standing debts, the move's own, and those of the execution it ends."""
    owed = dict(before.owed)
    for kind in move.owes:
        if kind is not EffectKind.NOTIFY or after.callback_url:
            owed[f"{kind}#{after.generation}"] = Owed(next_at=now)
    owed.update(_of_execution(before, after, event, now))
    return owed


def _of_execution(before: Job, after: Job, event: ev.Event, now: int) -> dict[str, Owed]:
    owed: dict[str, Owed] = {}
    mine = getattr(event, "execution_id", None) or (before.execution.id if before.execution else None)
    if mine and getattr(event, "usage", None) is not None:
        owed[effect_key(EffectKind.USAGE, mine)] = Owed(next_at=now, ref=mine)
    ended = before.execution
    if ended is None or after.execution is not None:
        return owed
    if before.slots:
        owed[effect_key(EffectKind.RELEASE, ended.id)] = Owed(next_at=now, ref=release_ref(before))
    still_running = ended.provider_job_id and not isinstance(event, ev.ProviderAccepted)
    if still_running and _abandons(event, ended.id):
        owed[effect_key(EffectKind.PROVIDER_CANCEL, ended.id)] = Owed(next_at=now, ref=ended.provider_job_id)
    return owed


def _abandons(event: ev.Event, ended: str) -> bool:
    """Whether the event leaves the provider's own job running with nobody waiting for it."""
    if isinstance(event, ev.Succeeded):
        return event.execution_id != ended
    if isinstance(event, ev.DeadLettered):
        return event.reason is Reason.CRASHED_REPEATEDLY or event.execution_id not in (None, ended)
    return isinstance(event, ev.Cancelled | ev.Expired)


def effect_key(kind: EffectKind, execution: str) -> str:
    """The stable name of an effect owed for one execution."""
    return f"{kind}#{execution_suffix(execution)}"
