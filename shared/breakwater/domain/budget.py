"""What is left of a job's attempts and time? Budgets are the current lane's; a fallback route has its own small one."""

from __future__ import annotations

from breakwater.domain.job import Job
from breakwater.domain.policy import Fallback, Policy
from breakwater.domain.states import Lane

PEOPLE_WAIT = frozenset({Lane.INTERACTIVE_ADMISSION, Lane.STREAM_RECOVERY})


def current_fallback(job: Job, policy: Policy) -> Fallback | None:
    """The approved fallback whose route the job takes now."""
    fallback = policy.approved_fallback(job.fallback_allowed)
    return fallback if fallback is not None and fallback.route == job.route_key else None


def attempts_on_route(job: Job) -> int:
    """Calls made on the present route in this generation."""
    return max(0, job.attempt - job.attempts_before_route)


def attempts_left(job: Job, policy: Policy, lane: Lane | None = None) -> int:
    """Calls the job may still make on its present route, in its lane or another; never more than its generation has."""
    lane = lane or job.lane
    fallback = current_fallback(job, policy)
    allowed = fallback.max_attempts if fallback else policy.lane(lane).max_attempts
    total = policy.total_attempts(lane) - job.attempt
    return max(0, min(allowed - attempts_on_route(job), total))


def fits(job: Job, lane: Lane, at: int, call_ms: int) -> bool:
    """Whether a call at `at` begins before the age limit and, while a person waits, ends before the deadline."""
    if lane in PEOPLE_WAIT and job.deadline_at is not None and at + call_ms > job.deadline_at:
        return False
    return job.expires_at is None or at < job.expires_at
