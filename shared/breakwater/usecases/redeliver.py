"""How is a notification sent again? It becomes owed once more, under the id it always had.

The receiver knows the id, so one that did get it drops it. Asking also ends the rest of a callback that was disabled.
"""

from __future__ import annotations

from breakwater.domain.errors import InvalidRequest, TooLate
from breakwater.domain.job import Job, Owed
from breakwater.domain.machine import Step, amend
from breakwater.domain.records import Child, audit_key
from breakwater.usecases.change import change
from breakwater.usecases.deps import Deps
from breakwater.usecases.notify import callback_key, notify_key


def redeliver(deps: Deps, job: Job, by: str) -> Job:
    """The job with its notification owed now. Raises `InvalidRequest` without a callback, `TooLate` before the end."""
    if job.callback_url is None:
        raise InvalidRequest(
            "The job has no callback.",
            field="job_id",
            rule="callback_url",
            fix="submit jobs with a `callback_url`, or read the job",
            job=job.job_id,
        )
    now = deps.now()
    record = {"what": "redeliver", "by": by, "generation": job.generation, "reason": job.notify_reason or ""}
    deps.store.put_child(job.job_id, Child(sk=audit_key(now, f"redeliver.{job.generation}"), data=record), job.ttl)
    deps.store.put_latest(callback_key(job.owner_key, job.callback_url), now, {"asked_at": now})

    def plan(standing: Job) -> Step | None:
        if not standing.final or standing.generation != job.generation:
            return None
        owed = {**standing.owed, notify_key(standing): Owed(next_at=deps.now(), ref=str(now))}
        return amend(standing, deps.now(), why="RedeliveryAsked", owed=owed, notify_reason=None)

    step = change(deps, job, plan)
    if step is None:
        raise TooLate(
            "The job has not ended, so there is nothing to tell yet.",
            field="job_id",
            rule="final",
            fix="wait: the notification is sent when it ends",
            job=job.job_id,
            job_status=job.status.value,
        )
    return step.job
