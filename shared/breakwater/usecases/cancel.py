"""What does a cancel do? It stops the job now, or marks it for the worker that holds it."""

from __future__ import annotations

from breakwater.domain import events as ev
from breakwater.domain.errors import TooLate
from breakwater.domain.job import Job
from breakwater.domain.machine import Step, advance
from breakwater.domain.records import result_key
from breakwater.domain.states import Reason, Status
from breakwater.usecases import evidence
from breakwater.usecases.change import change
from breakwater.usecases.conclude import settlement
from breakwater.usecases.deps import Deps


def cancel(deps: Deps, job: Job, by: str, reason: Reason = Reason.CANCELLED_BY_USER) -> Job:
    """The job after the cancel. Repeating it is harmless; raises `TooLate` when the job ended another way."""

    def plan(standing: Job) -> Step | None:
        now = deps.now()
        if standing.final or (standing.cancel_requested_at is not None and standing.lease_live(now)):
            return None
        if standing.status is Status.PROCESSING and standing.lease_live(now):
            return advance(standing, ev.CancelRequested(by=by, reason=reason), now)
        if standing.execution is not None:
            result = deps.store.child(standing.job_id, result_key(standing.execution.id))
            if result is not None:  # paid for and stored, only not told yet
                return settlement(deps, standing, result)
            evidence.put_unheard(deps, standing, standing.execution, "cancelled")
        return advance(standing, ev.Cancelled(by=by, reason=reason), now)

    step = change(deps, job, plan)
    after = step.job if step else deps.store.get(job.job_id) or job
    if after.final and after.status is not Status.CANCELLED:
        raise TooLate(
            f"The job is already {after.status.value}; its outcome stands.",
            field="job_id",
            rule="not_final",
            fix="read the job: nothing was changed",
            job=after.job_id,
            job_status=after.status.value,
        )
    return after
