"""How is a dead letter put to rest? A person says so, and why; it stays readable and leaves the list."""

from __future__ import annotations

from breakwater.domain import events as ev
from breakwater.domain.errors import TooLate
from breakwater.domain.job import Job
from breakwater.domain.machine import Step, advance
from breakwater.domain.states import Status
from breakwater.usecases.change import change
from breakwater.usecases.deps import Deps


def close(deps: Deps, job: Job, by: str) -> Job:
    """The closed job. Closing twice is harmless; raises `TooLate` for a job that is not dead."""

    def plan(standing: Job) -> Step | None:
        dead = standing.status is Status.DEAD_LETTER and standing.closed_at is None
        return advance(standing, ev.Closed(by=by), deps.now()) if dead else None

    step = change(deps, job, plan)
    after = step.job if step else deps.store.get(job.job_id) or job
    if after.closed_at is None:
        raise TooLate(
            "Only a dead letter is closed.",
            field="job_id",
            rule="dead_letter",
            fix="cancel a job that is still on its way",
            job=after.job_id,
            job_status=after.status.value,
        )
    return after
