"""How long does a job stay readable? Expiry is read, never waited for: cleaning lags by days."""

from __future__ import annotations

from breakwater.domain.job import Job


def retained(job: Job, now: int) -> bool:
    """Whether a job is still within its retention."""
    return job.ttl is None or job.ttl * 1000 > now
