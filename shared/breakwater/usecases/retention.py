"""How long does a job stay readable? Expiry is read, never waited for: cleaning lags by days."""

from __future__ import annotations

from typing import TYPE_CHECKING

from breakwater.domain.job import Job
from breakwater.domain.timing import DAY

if TYPE_CHECKING:
    from breakwater.domain.policy import Policy


def keep_until(policy: Policy, expires_at: int, now: int) -> int:
    """When a new job may be cleaned away, in seconds: by its policy, and never within a day of its age limit."""
    return max(now + policy.retention_days * DAY, expires_at + DAY) // 1000


def retained(job: Job, now: int) -> bool:
    """Whether a job is still within its retention."""
    return job.ttl is None or job.ttl * 1000 > now
