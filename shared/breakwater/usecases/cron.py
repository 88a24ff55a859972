"""What does an outside scheduler get? The job of the window that is planned now, made by whoever came first.

The window is the planned one, whenever the call arrives: a late, early or repeated call finds the same job.
"""

from __future__ import annotations

from breakwater.domain.errors import TooLate
from breakwater.domain.schedules import Schedule
from breakwater.domain.timing import CLOCK_SKEW
from breakwater.domain.values import dataclass
from breakwater.domain.windows import planned_window
from breakwater.usecases.deps import Deps
from breakwater.usecases.tick import look, window_job


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What became of a call: `created`, `exists`, `running`, `paused`, `passed_over`, `nothing_planned`."""

    result: str
    window: str | None = None
    job_id: str | None = None


def run(deps: Deps, schedule: Schedule) -> Ran:
    """Make or find the job of the planned window; raises `TooLate` for a schedule that is switched off."""
    window = planned_window(schedule, deps.now(), CLOCK_SKEW)
    if window is None:
        return Ran(result="nothing_planned")
    job_id = window_job(schedule, window)
    if deps.store.get(job_id) is not None:
        return Ran(result="exists", window=window.utc, job_id=job_id)
    if not schedule.enabled:
        raise TooLate("The schedule is switched off.", field="schedule", rule="enabled", fix="enable it and deploy")
    done = look(deps, schedule, window)
    if job_id not in done.jobs:
        return Ran(result=done.held or "passed_over", window=window.utc)
    return Ran(result="created" if done.created else "exists", window=window.utc, job_id=job_id)
