"""When may a user ask for a dead job again, and what does it cost them? The user's own manual retry.

It starts a new generation with a fresh budget and keeps all history. It is refused where a repeat could double an
effect, where the answer would be the same, and beyond the policy's number.
"""

from __future__ import annotations

from breakwater.domain import events as ev
from breakwater.domain.errors import TooLate, TooMany
from breakwater.domain.job import Job
from breakwater.domain.machine import Step, advance, may
from breakwater.domain.policy import Policy
from breakwater.domain.records import Child, audit_key, generation_key
from breakwater.domain.states import Reason, Status
from breakwater.domain.switches import SwitchName, in_force
from breakwater.usecases.change import change
from breakwater.usecases.deps import Deps

# Asking the same question again can't give another answer.
_POINTLESS = frozenset(
    {
        Reason.CALLER_FAULT,
        Reason.CONTENT_REFUSED,
        Reason.DATA_BOUNDARY_MISMATCH,
        Reason.INPUT_MISSING,
        Reason.ANSWER_TRUNCATED,
    }
)
# The provider may have done the work, or the user has seen part of it.
_DOUBLING = frozenset({Reason.PARTIAL_OUTPUT_COMMITTED, Reason.NOT_IDEMPOTENT, Reason.PROVIDER_DEADLINE_EXCEEDED})


def again(deps: Deps, job: Job, policy: Policy, by: str) -> Job:
    """The job in its new generation; raises `TooLate` or `TooMany` with the reason."""
    now = deps.now()
    _check(job, _allowed(deps, job, policy, now))
    lane, own = policy.start_lane(interactive=False), deps.catalogue.route(policy.route)
    event = ev.Replayed(
        by=by,
        at=now,
        max_attempts=policy.total_attempts(lane),
        lane=lane,
        expires_at=now + policy.lane(lane).max_queue_age_ms,
        route_key=own.route_key if own is not None else None,
    )
    archive(deps, job)
    deps.store.put_child(
        job.job_id,
        Child(
            sk=audit_key(now, f"retry.{job.generation}"),
            data={"what": "retry", "by": by, "generation": job.generation},
        ),
        job.ttl,
    )

    def plan(standing: Job) -> Step | None:
        if not may(standing, ev.Replayed) or standing.generation != job.generation:
            return None
        step = advance(standing, event, deps.now())
        return Step(step.before, step.job.with_(manual_retries=standing.manual_retries + 1), step.event, step.nudges)

    step = change(deps, job, plan)
    return step.job if step else deps.store.get(job.job_id) or job


def _allowed(deps: Deps, job: Job, policy: Policy, now: int) -> int:
    """How often: the policy's number, unless an operator's switch says another."""
    thrown = in_force(deps.control.switches(), now).get(SwitchName.MANUAL_RETRY)
    if thrown is None or thrown.limit is None or not thrown.concerns(job.workflow, job.priority):
        return policy.manual_retries
    return thrown.limit


def _check(job: Job, allowed: int) -> None:
    if job.status is not Status.DEAD_LETTER or job.closed_at is not None:
        raise _late(job, "The job is not in a dead letter that can be retried.", "only dead letters are retried")
    if job.reason in _POINTLESS:
        raise _late(job, "The same request would be refused again.", "submit a corrected request with a new key")
    unsafe = job.side_effects != "none" and (job.possible_duplicate or job.attempt > 0)
    if job.reason in _DOUBLING or job.partial_output_committed or unsafe:
        raise _late(job, "A repeat could double an effect.", "ask the operator for a reviewed replay")
    if job.manual_retries >= allowed:
        raise TooMany(
            f"Manual retries allowed now: {allowed}.",
            field="job_id",
            rule="manual_retries",
            fix="ask the operator for a replay",
            job=job.job_id,
        )


def _late(job: Job, message: str, fix: str) -> TooLate:
    return TooLate(message, field="job_id", rule="retryable", fix=fix, job=job.job_id, job_status=job.status.value)


def archive(deps: Deps, job: Job) -> None:
    """Keep the outcome of the generation that ends, before META forgets it."""
    data = {
        "generation": job.generation,
        "status": job.status.value,
        "reason": job.reason.value,
        "attempts": job.attempt,
        "waits": job.waits,
        "polls": job.polls,
        "completed_at": job.completed_at or 0,
        "route_key": job.route_key,
        "last_error_class": job.last_error_class or "",
        "last_error_type": job.last_error_type or "",
        "result_ref": job.result_ref or "",
        "cost_micros": job.cost_micros,
        "replay_id": job.replay_id or "",
    }
    child = Child(sk=generation_key(job.created_at, job.generation), data=data)
    deps.store.put_child(job.job_id, child, job.ttl)
