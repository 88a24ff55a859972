"""Jobs that agree with their state."""

from __future__ import annotations

import itertools
from typing import Any

from breakwater.domain.job import Execution, Job, execution_id
from breakwater.domain.obligations import due_at
from breakwater.domain.states import Lane, Reason, Status

NOW = 1_800_000_000_000
_numbers = itertools.count(1)


def make_execution(job_id: str = "job_a", *, attempt: int = 1, epoch: int = 1, **more: Any) -> Execution:
    """One open attempt."""
    return Execution(
        id=execution_id(job_id, NOW, 1, attempt),
        generation=1,
        attempt=attempt,
        epoch=epoch,
        route_key="plain",
        requested_model="gpt-5.2",
        opened_at=NOW,
        **more,
    )


def make_job(status: str = "pending", **more: Any) -> Job:
    """A job whose fields agree with `status`; `review`, `at_provider` and `closed` are statuses of this builder too."""
    job_id = more.pop("job_id", f"job_t{next(_numbers)}")
    base: dict[str, Any] = {
        "job_id": job_id,
        "owner_key": "acme",
        "workflow": "sync",
        "idempotency_key": "k",
        "fingerprint": "f",
        "created_at": NOW,
        "round_started_at": NOW,
        "updated_at": NOW,
        "ready_at": NOW,
        "expires_at": NOW + 900_000,
        "max_attempts": 3,
        "route_key": "plain",
        "requested_model": "gpt-5.2",
        "input_ref": "INPUT#x",
        "rev": 1,
    }
    job = Job(**{**base, **_fields(status, job_id), **more})
    return job if "due_at" in more else job.with_(due_at=due_at(job))


def _fields(status: str, job_id: str) -> dict[str, Any]:
    execution = make_execution(job_id)
    table: dict[str, dict[str, Any]] = {
        "pending": {},
        "review": {
            "lane": Lane.OWNER_REVIEW,
            "reason": Reason.APPROVAL_REQUIRED,
            "review_expires_at": NOW + 86_400_000,
        },
        "processing": {
            "status": Status.PROCESSING,
            "execution": execution,
            "lease_epoch": 1,
            "attempt": 1,
            "locked_until": NOW + 60_000,
            "reason": Reason.LEASED,
        },
        "at_provider": {
            "status": Status.PROCESSING,
            "execution": execution,
            "lease_epoch": 1,
            "attempt": 1,
            "provider_job_id": "resp_1",
            "poll_at": NOW + 60_000,
            "provider_deadline_at": NOW + 3_600_000,
            "reason": Reason.AT_PROVIDER,
        },
        "failed": {"status": Status.FAILED, "attempt": 1, "lease_epoch": 1, "reason": Reason.BACKOFF},
        "succeeded": {
            "status": Status.SUCCEEDED,
            "attempt": 1,
            "lease_epoch": 1,
            "reason": Reason.COMPLETED,
            "result_ref": "RESULT#x",
            "completed_at": NOW,
        },
        "dead_letter": {
            "status": Status.DEAD_LETTER,
            "lane": Lane.DEAD_LETTER,
            "reason": Reason.MAX_ATTEMPTS_EXHAUSTED,
            "attempt": 3,
            "lease_epoch": 3,
            "completed_at": NOW,
        },
        "closed": {
            "status": Status.DEAD_LETTER,
            "lane": Lane.DEAD_LETTER,
            "reason": Reason.CALLER_FAULT,
            "attempt": 1,
            "completed_at": NOW,
            "closed_at": NOW,
            "closed_by": "ops",
        },
        "cancelled": {"status": Status.CANCELLED, "reason": Reason.CANCELLED_BY_USER, "completed_at": NOW},
    }
    return table[status]
