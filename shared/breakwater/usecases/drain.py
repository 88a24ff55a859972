"""What does a queue's own dead-letter queue mean? Handlers crashed on a nudge; the job decides how often is too often.

A drained nudge is counted on its job first and deleted then. Three without a transition in between end in a dead
letter. What belongs to no job is kept as a reference for people; nothing disappears and nothing circles.
"""

from __future__ import annotations

import hashlib
from collections import Counter

from breakwater.domain import events as ev
from breakwater.domain.job import Job
from breakwater.domain.machine import Step, advance, amend, may
from breakwater.domain.nudges import parse_nudge
from breakwater.domain.obligations import Nudge, Queue, queues_for
from breakwater.domain.states import Reason
from breakwater.usecases import evidence
from breakwater.usecases.change import change
from breakwater.usecases.deps import Deps

MOST_CRASHES = 3
MOST_MESSAGES = 100


def drain(deps: Deps, most: int = MOST_MESSAGES) -> Counter[str]:
    """Count and delete what the queues' DLQs hold, at most `most` each; what was done, by kind."""
    told: Counter[str] = Counter()
    for queue in Queue:
        for receipt, body in deps.queues.drain(queue, most):
            told[_one(deps, queue, body)] += 1
            deps.queues.drained(queue, receipt)
    if told:
        deps.log.note("drained", **told)
    return told


def _one(deps: Deps, queue: Queue, body: str) -> str:
    parsed = parse_nudge(body)
    if parsed is None:
        return _keep(deps, queue, body)
    kind, item_id = parsed
    if kind != "job":
        return "delivery_left_to_sweep"  # its own due_at brings it back
    job = deps.store.get(item_id)
    if job is None:
        return _keep(deps, queue, body)
    change(deps, job, lambda standing: _count(deps, standing))
    return "counted"


def _keep(deps: Deps, queue: Queue, body: str) -> str:
    """An unreadable or ownerless message: a person finds its digest and origin, not its content."""
    raw = body.encode("utf-8", "replace")
    deps.queues.dead_letter(
        {
            "kind": "unreadable",
            "queue": queue.value,
            "body_sha256": hashlib.sha256(raw).hexdigest(),
            "body_bytes": len(raw),
            "seen_at": deps.now(),
        }
    )
    deps.log.note("unreadable_message", queue=queue.value, body_bytes=len(raw))
    return "kept_for_people"


def _count(deps: Deps, job: Job) -> Step | None:
    now = deps.now()
    if (job.final and not job.owed) or job.in_review:
        return None
    crashes = job.crashes + 1
    if crashes >= MOST_CRASHES and may(job, ev.DeadLettered):
        if job.execution is not None:
            evidence.put_lost(deps, job, job.execution, "crashed")
        return advance(job, ev.DeadLettered(reason=Reason.CRASHED_REPEATEDLY), now)
    step = amend(job, now, why="CrashCounted", crashes=crashes)
    nudges = step.nudges or tuple(Nudge(queue, now) for queue in queues_for(job)[:1])
    return Step(step.before, step.job, step.event, nudges if job.locked_until is None else ())
