"""May this job be leased now? Everything is asked before the claim: after it an attempt is spent."""

from __future__ import annotations

from breakwater.domain import events as ev
from breakwater.domain.job import Job
from breakwater.domain.policy import Policy
from breakwater.domain.routes import Route
from breakwater.domain.states import Reason
from breakwater.domain.timing import DAY, MINUTE
from breakwater.usecases.deps import Deps

_RECHECK_PAUSED = MINUTE


def gate(deps: Deps, job: Job, policy: Policy | None, route: Route | None, now: int) -> ev.Event | None:
    """The event that keeps a job from being leased, None when the way is free."""
    if policy is None or route is None:
        return ev.HeldForReview(reason=Reason.POLICY_MISSING, review_expires_at=now + 3 * DAY)
    return _own_limits(job, policy, now) or _paused(deps, job, now) or _route(deps, route, now)


def _own_limits(job: Job, policy: Policy, now: int) -> ev.Event | None:
    if job.expires_at is not None and job.expires_at <= now:
        return ev.Expired(reason=Reason.MAX_QUEUE_AGE_EXCEEDED)
    if job.deadline_at is not None and job.deadline_at <= now:
        return ev.Expired(reason=Reason.DEADLINE_EXCEEDED)
    if job.attempt >= job.max_attempts:
        return ev.DeadLettered(reason=Reason.MAX_ATTEMPTS_EXHAUSTED)
    if policy.requires_approval and job.approved_by is None:
        return ev.HeldForReview(
            reason=Reason.APPROVAL_REQUIRED,
            review_expires_at=now + policy.review_max_age_ms,
        )
    return None


def _paused(deps: Deps, job: Job, now: int) -> ev.Event | None:
    paused = deps.control.switches().get("pause") or {}
    named = paused.get("workflows", [])
    below = paused.get("priorities", [])
    until = paused.get("until") or now + _RECHECK_PAUSED
    hit = job.workflow in named or job.priority.value in below
    return ev.Waiting(at=max(int(until), now + 1), reason=Reason.PAUSED) if hit and until > now else None


def _route(deps: Deps, route: Route, now: int) -> ev.Event | None:
    state = deps.store.route(route.route_key)
    if state is None or not state.closed(now):
        return None
    return ev.Waiting(at=state.closed_until or now, reason=Reason.ROUTE_CLOSED)
