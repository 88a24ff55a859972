"""When should a client look again? Later the older the job is, and never for a job that is final."""

from __future__ import annotations

from breakwater.domain.job import Job
from breakwater.domain.states import Status
from breakwater.domain.timing import MINUTE, SECOND

FIRST = SECOND
SLOWEST = MINUTE


def next_poll_after(job: Job, expected_ms: int, now: int) -> int | None:
    """Milliseconds until the next useful look, None when the job is final.

    Before the expected duration is over: a quarter of what is left, at least a second. After it: a tenth of the age.
    A known release time is never polled earlier than a client could learn something.
    """
    if job.final:
        return None
    age = max(0, now - job.created_at)
    left = expected_ms - age
    wait = left // 4 if left > 0 else max(expected_ms // 4, age // 10)
    if job.status is not Status.PROCESSING and job.ready_at > now:
        wait = max(wait, job.ready_at - now)
    return min(SLOWEST, max(FIRST, wait))
