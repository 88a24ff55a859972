"""Which fields does each event change? One short function an event; status and debts are `machine.py`'s."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from breakwater.domain import events as ev
from breakwater.domain.job import Job
from breakwater.domain.results import Usage
from breakwater.domain.signals import Signal
from breakwater.domain.states import Lane, Reason
from breakwater.domain.timing import DAY

_AT_REST: Mapping[str, Any] = {
    "execution": None,
    "slots": (),
    "slots_since": None,
    "locked_until": None,
    "provider_job_id": None,
    "poll_at": None,
    "provider_deadline_at": None,
    "resume_at": None,
    "waiting_scope": None,
    "waiting_rank": None,
    "recheck_at": None,
    "woken_for": None,
}


def _seen(signal: Signal | None) -> dict[str, Any]:
    """What stays readable of a provider's refusal; the last error survives later retries."""
    if signal is None:
        return {}
    return {
        "last_error_class": signal.error_class.value,
        "last_error_type": signal.provider_error_type,
        "last_error_code": signal.provider_error_code,
        "http_status": signal.http_status,
        "limit_dimension": signal.limit_dimension.value if signal.limit_dimension else None,
        "retry_after_ms": signal.retry_after_ms,
    }


def _spent(job: Job, usage: Usage | None, cost: int | None) -> dict[str, Any]:
    return {
        "usage_units": job.usage_units + (usage.units if usage else 0),
        "cost_micros": job.cost_micros + (cost or 0),
    }


def _kept(job: Job, until: int) -> int | None:
    """A job is never cleaned away while it is open: retention reaches a day beyond every limit it is given."""
    return None if job.ttl is None else max(job.ttl, (until + DAY) // 1000)


def _leased(job: Job, event: ev.Leased, _now: int) -> Job:
    return job.with_(
        **{**_AT_REST, "execution": event.execution, "slots": event.slots, "locked_until": event.locked_until},
        attempt=job.attempt + 1,
        lease_epoch=event.execution.epoch,
        reason=Reason.LEASED,
    )


def _waiting(job: Job, event: ev.Waiting, _now: int) -> Job:
    return job.with_(
        ready_at=event.at,
        reason=event.reason,
        waits=job.waits + 1,
        waiting_scope=event.scope,
        waiting_rank=event.rank,
        recheck_at=event.recheck_at,
        woken_for=None,
        lane=event.lane or job.lane,
        max_attempts=event.max_attempts or job.max_attempts,
        deadline_at=_deadline(job, event.lane),
    )


def _held(job: Job, event: ev.HeldForReview, _now: int) -> Job:
    return job.with_(
        **{**_AT_REST, "recheck_at": event.recheck_at},
        **_seen(event.signal),
        **_spent(job, event.usage, event.cost_micros),
        lane=Lane.OWNER_REVIEW,
        reason=event.reason,
        review_expires_at=event.review_expires_at,
        ttl=_kept(job, event.review_expires_at),
    )


def _dead(job: Job, reason: Reason, now: int, **more: Any) -> Job:
    return job.with_(**_AT_REST, **more, lane=Lane.DEAD_LETTER, reason=reason, completed_at=now)


def _expired(job: Job, event: ev.Expired, now: int) -> Job:
    return _dead(job, event.reason, now, **_spent(job, event.usage, event.cost_micros))


def _shed(job: Job, event: ev.Shed, now: int) -> Job:
    return _dead(job, event.reason, now)


def _dead_lettered(job: Job, event: ev.DeadLettered, now: int) -> Job:
    return _dead(
        job,
        event.reason,
        now,
        **_seen(event.signal),
        **_spent(job, event.usage, event.cost_micros),
        result_ref=event.result_ref or job.result_ref,
    )


def _cancelled(job: Job, event: ev.Cancelled, now: int) -> Job:
    return job.with_(
        **_AT_REST,
        **_spent(job, event.usage, event.cost_micros),
        reason=event.reason,
        cancelled_by=event.by,
        completed_at=now,
        cancel_requested_at=job.cancel_requested_at or now,
    )


def _cancel_requested(job: Job, event: ev.CancelRequested, now: int) -> Job:
    return job.with_(
        reason=Reason.CANCEL_REQUESTED,
        cancelled_by=event.by,
        cancel_requested_at=job.cancel_requested_at or now,
    )


def _accepted(job: Job, event: ev.ProviderAccepted, _now: int) -> Job:
    execution = job.execution and replace(
        job.execution,
        provider_job_id=event.provider_job_id,
        provider_request_id=event.provider_request_id,
    )
    return job.with_(
        execution=execution,
        provider_job_id=event.provider_job_id,
        poll_at=event.poll_at,
        provider_deadline_at=event.provider_deadline_at,
        locked_until=None,
        reason=Reason.CANCEL_REQUESTED if job.cancel_requested_at else Reason.AT_PROVIDER,
        ttl=_kept(job, event.provider_deadline_at),
    )


def _poll_again(job: Job, event: ev.PollAgain, _now: int) -> Job:
    return job.with_(poll_at=event.at, polls=job.polls + 1, locked_until=None)


def _succeeded(job: Job, event: ev.Succeeded, now: int) -> Job:
    return job.with_(
        **{**_AT_REST, "provider_job_id": event.provider_job_id or job.provider_job_id},
        **_spent(job, event.usage, event.cost_micros),
        reason=Reason.COMPLETED,
        result_ref=event.result_ref,
        served_model=event.served_model,
        finish_reason=event.finish_reason,
        completed_at=now,
    )


def _retry(job: Job, event: ev.RetryScheduled, _now: int) -> Job:
    return job.with_(
        **_AT_REST,
        **_seen(event.signal),
        **_spent(job, event.usage, event.cost_micros),
        ready_at=event.at,
        reason=event.reason,
        lane=event.lane or job.lane,
        max_attempts=event.max_attempts or job.max_attempts,
        deadline_at=_deadline(job, event.lane),
        possible_duplicate=job.possible_duplicate or event.possible_duplicate,
    )


def _deadline(job: Job, moves_to: Lane | None) -> int | None:
    """The client's deadline binds while a client waits, not after the job moved to the background."""
    return None if moves_to is Lane.BACKGROUND_RETRY else job.deadline_at


def _fell_back(job: Job, event: ev.FellBack, now: int) -> Job:
    return job.with_(
        **_AT_REST,
        **_seen(event.signal),
        **_spent(job, event.usage, event.cost_micros),
        ready_at=max(event.at, now),
        reason=Reason.FELL_BACK,
        route_key=event.route_key,
        fallback_allowed=event.fallback,
        fallback_reason=event.reason.value,
        contract_version=event.contract_version,
        fallbacks=job.fallbacks + 1,
        attempts_before_route=job.attempt,
        possible_duplicate=job.possible_duplicate or event.possible_duplicate,
    )


def _replayed(job: Job, event: ev.Replayed, now: int) -> Job:
    return _again(job, event, now).with_(
        generation=job.generation + 1,
        replay_id=event.request_id,
        attempt=0,
        max_attempts=event.max_attempts,
        waits=0,
        polls=0,
        fallbacks=0,
        attempts_before_route=0,
        round_started_at=now,
        reason=Reason.REPLAYED,
        result_ref=None,
        completed_at=None,
        deadline_at=None,
        partial_output_committed=False,
        stream_epoch=None,
    )


def _approved(job: Job, event: ev.Approved, now: int) -> Job:
    """An approval is worth at least one more call, and no caller waits any longer."""
    return _again(job, event, now).with_(
        round_started_at=now,
        reason=Reason.APPROVED,
        review_expires_at=None,
        approved_by=event.by,
        deadline_at=None,
        max_attempts=max(job.max_attempts, job.attempt + 1),
    )


def _budget_freed(job: Job, event: ev.BudgetFreed, now: int) -> Job:
    """As it would have gone on; nobody has said yes to any price, so its budget is asked again before the call."""
    return job.with_(
        **_AT_REST,
        lane=event.lane,
        reason=Reason.BUDGET_FREED,
        max_attempts=event.max_attempts,
        ready_at=event.at,
        round_started_at=now,
        expires_at=event.expires_at,
        ttl=_kept(job, event.expires_at),
        review_expires_at=None,
        deadline_at=None,
    )


def _again(job: Job, event: ev.Replayed | ev.Approved, _now: int) -> Job:
    """On its way again: an old cancel mark is overruled, another route has a budget of its own."""
    moved: dict[str, Any] = {}
    if event.route_key is not None and event.route_key != job.route_key:
        moved = {
            "route_key": event.route_key,
            "attempts_before_route": job.attempt,
            "fallback_allowed": event.fallback,
            "fallback_reason": job.reason.value if event.fallback else None,
            "contract_version": event.contract_version,
        }
    return job.with_(
        **_AT_REST,
        **moved,
        lane=event.lane,
        ready_at=event.at,
        expires_at=event.expires_at,
        ttl=_kept(job, event.expires_at),
        cancel_requested_at=None,
        cancelled_by=None,
    )


def _closed(job: Job, event: ev.Closed, now: int) -> Job:
    return job.with_(closed_at=now, closed_by=event.by)


def _rejected(job: Job, event: ev.Rejected, now: int) -> Job:
    return job.with_(**_AT_REST, reason=Reason.REJECTED_BY_OWNER, cancelled_by=event.by, completed_at=now)


def _stream_opened(job: Job, event: ev.StreamOpened, _now: int) -> Job:
    """The lease goes on: the holder reads the stream itself."""
    return job.with_(
        execution=job.execution and replace(job.execution, provider_job_id=event.provider_job_id),
        provider_job_id=event.provider_job_id,
        provider_deadline_at=event.provider_deadline_at,
    )


def _output_committed(job: Job, event: ev.OutputCommitted, _now: int) -> Job:
    return job.with_(partial_output_committed=True, stream_epoch=event.epoch)


def _handed_over(job: Job, event: ev.StreamHandedOver, _now: int) -> Job:
    return job.with_(
        locked_until=None,
        reason=Reason.AT_PROVIDER,
        poll_at=event.poll_at,
        polls=job.polls + 1,
        resume_at=event.resume_at,
    )


def _resumed(job: Job, event: ev.StreamResumed, _now: int) -> Job:
    """No attempt is spent: it is the same call, read on."""
    return job.with_(
        execution=event.execution,
        lease_epoch=event.execution.epoch,
        slots_since=job.slots_epoch if job.slots else None,  # they go on with the call
        locked_until=event.locked_until,
        reason=Reason.LEASED,
        poll_at=None,
        resume_at=None,
    )


APPLY: Mapping[type, Callable[[Job, Any, int], Job]] = {
    ev.Leased: _leased,
    ev.Waiting: _waiting,
    ev.HeldForReview: _held,
    ev.Expired: _expired,
    ev.Shed: _shed,
    ev.DeadLettered: _dead_lettered,
    ev.Cancelled: _cancelled,
    ev.CancelRequested: _cancel_requested,
    ev.ProviderAccepted: _accepted,
    ev.StreamOpened: _stream_opened,
    ev.OutputCommitted: _output_committed,
    ev.StreamHandedOver: _handed_over,
    ev.StreamResumed: _resumed,
    ev.PollAgain: _poll_again,
    ev.Succeeded: _succeeded,
    ev.RetryScheduled: _retry,
    ev.FellBack: _fell_back,
    ev.Replayed: _replayed,
    ev.Closed: _closed,
    ev.Approved: _approved,
    ev.BudgetFreed: _budget_freed,
    ev.Rejected: _rejected,
}
