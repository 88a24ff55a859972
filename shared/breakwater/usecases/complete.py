"""What does the completion function do with a nudge about a job?

It takes no lease: a takeover, a poll, an overdue review and a cancel at the provider are each one write, conditional
on `rev` (and, for a takeover, on the lease end) as read.
"""

from __future__ import annotations

from breakwater.domain import events as ev
from breakwater.domain.errors import SecretUnavailable
from breakwater.domain.job import Execution, Job
from breakwater.domain.machine import Step, advance
from breakwater.domain.records import execution_key, late_key, result_key
from breakwater.domain.results import Accepted, Completed, Found, Refused, Running
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import Reason, Status
from breakwater.domain.telling import tells
from breakwater.domain.timing import CLOCK_SKEW
from breakwater.ports import Guard
from breakwater.usecases import evidence
from breakwater.usecases.budgets import recheck
from breakwater.usecases.cancel_at_provider import cancel_owed
from breakwater.usecases.change import change
from breakwater.usecases.conclude import adopt_refusal, conclude, decision_for, marked, mine, settle
from breakwater.usecases.deps import Deps
from breakwater.usecases.retention import retained
from breakwater.usecases.stream_handover import can_be_resumed, hand_over
from breakwater.usecases.stream_lost import shown_so_far


def complete(deps: Deps, job_id: str) -> str:
    """Do whatever is due for a job that no worker holds; says what it was."""
    job = deps.store.get(job_id)
    now = deps.now()
    if job is None or not retained(job, now):
        return "gone"
    job = cancel_owed(deps, job)
    if job.in_review:
        return _review(deps, job, now)
    if job.status is not Status.PROCESSING:
        return "nothing"
    if job.locked_until is not None:
        return _takeover(deps, job, now)
    return _poll(deps, job, now)


def _review(deps: Deps, job: Job, now: int) -> str:
    if (job.review_expires_at or 0) > now:
        due = job.recheck_at is not None and job.recheck_at <= now
        return recheck(deps, job) if due else "nothing"
    change(
        deps,
        job,
        lambda standing: (
            advance(
                standing,
                ev.Expired(reason=Reason.REVIEW_EXPIRED),
                now,
            )
            if standing.in_review and (standing.review_expires_at or 0) <= now
            else None
        ),
    )
    return "review_expired"


# --- takeover -------------------------------------------------------------------------------------------------------


def _takeover(deps: Deps, job: Job, now: int) -> str:
    """A lease ran out: look for what the worker left before anything is repeated."""
    if job.locked_until is None or job.locked_until + CLOCK_SKEW > now or job.execution is None:
        return "busy"
    execution, read = job.execution, job.locked_until

    deps.log.note(
        "lease_expired",
        job_id=job.job_id,
        execution_id=execution.id,
        epoch=execution.epoch,
        locked_until=read,
        workflow=job.workflow,
        lane=job.lane.value,
    )
    result = deps.store.child(job.job_id, result_key(execution.id))
    if result is not None:
        settle(deps, job, result)
        return "adopted_result"
    archived = deps.store.child(job.job_id, execution_key(execution.id))
    if archived is not None:
        adopt_refusal(deps, job, execution, archived)
        return "adopted_refusal"
    if can_be_resumed(job) and hand_over(deps, job, execution, guard=Guard(epoch=execution.epoch, locked_until=read)):
        return "handed_over"
    accepted = deps.store.child(job.job_id, late_key(execution.id, "accepted"))
    if accepted is not None:
        conclude(deps, job, execution, Accepted(provider_job_id=str(accepted.data["provider_job_id"])))
        return "adopted_provider_job"
    return _lost(deps, job, execution, read)


def _lost(deps: Deps, job: Job, execution: Execution, read: int) -> str:
    """Nothing was left behind: the call may have gone out, so the outcome is unknown."""
    signal = Signal(error_class=ErrorClass.OUTCOME_UNKNOWN, route_key=execution.route_key, rule="lease_expired")
    guard = Guard(epoch=execution.epoch, locked_until=read)
    if job.stream_epoch is not None:
        conclude(deps, job, execution, shown_so_far(deps, job, signal), lambda _: guard)
        return "stream_lost"

    def plan(standing: Job) -> Step | None:
        if not mine(standing, execution) or standing.locked_until != read:
            return None
        evidence.put_unheard(deps, standing, execution, "lost")
        event = decision_for(deps, standing, execution, signal).event
        return advance(standing, event, deps.now()) if event is not None else None

    step = change(deps, job, plan, lambda _: guard)
    return "outcome_unknown" if step else "overtaken"


# --- poll -----------------------------------------------------------------------------------------------------------


def _poll(deps: Deps, job: Job, now: int) -> str:
    """Ask the provider about its job, once it is time."""
    if job.cancel_requested_at is not None:
        change(deps, job, lambda standing: marked(deps, standing))
        return "cancelled"
    execution = job.execution
    overdue = job.provider_deadline_at is not None and job.provider_deadline_at <= now
    if execution is None or job.provider_job_id is None or not (overdue or (job.poll_at or 0) <= now + CLOCK_SKEW):
        return "nothing"
    found = _asked(deps, execution, job.provider_job_id)
    outcome = found.outcome
    if isinstance(outcome, Completed):
        conclude(deps, job, execution, outcome)
        return "settled_by_poll"
    if isinstance(outcome, Refused):
        return _poll_refused(deps, job, execution, outcome, ended=found.ended)
    if overdue:
        return _overdue(deps, job, execution, now)
    conclude(deps, job, execution, outcome)
    return "still_running"


def _asked(deps: Deps, execution: Execution, provider_job_id: str) -> Found:
    """The provider's word on its job; while nobody can ask, or it only tells by itself, it counts as running."""
    assert deps.providers is not None  # noqa: S101 - the completion function is wired with providers
    running = Found(outcome=Running(provider_job_id=provider_job_id))
    if tells(deps.catalogue, deps.catalogue.route(execution.route_key)):
        return running
    try:
        return deps.providers.for_route(execution.route_key).fetch(provider_job_id)
    except SecretUnavailable:
        return running


def _overdue(deps: Deps, job: Job, execution: Execution, now: int) -> str:
    """Its time is over, and nobody says that it ended."""

    def plan(standing: Job) -> Step | None:
        if not mine(standing, execution):
            return None
        evidence.put_unheard(deps, standing, execution, "provider_deadline")
        return advance(standing, ev.Expired(reason=Reason.PROVIDER_DEADLINE_EXCEEDED), now)

    change(deps, job, plan)
    return "provider_deadline"


def _poll_refused(deps: Deps, job: Job, execution: Execution, refused: Refused, *, ended: bool) -> str:
    """The provider's job failed, or only our question about it did."""
    if ended:
        conclude(deps, job, execution, refused)
        return "refused_by_poll"
    conclude(deps, job, execution, refused, asking=True)
    return "poll_refused"
