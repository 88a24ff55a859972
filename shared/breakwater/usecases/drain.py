"""What does a queue's own dead-letter queue mean? Handlers crashed on a nudge; the job decides how often is too often.

A drained nudge is counted on its job first and deleted then. Three without a transition in between end in a dead
letter. What belongs to no job is kept as a reference for people; nothing disappears and nothing circles.
"""

from __future__ import annotations

import hashlib
from collections import Counter

from breakwater.domain import events as ev
from breakwater.domain.errors import CorruptItem, Unavailable
from breakwater.domain.job import Job
from breakwater.domain.machine import Step, advance, amend, may
from breakwater.domain.nudges import parse_nudge
from breakwater.domain.obligations import Nudge, Queue, queue_of, queues_for
from breakwater.domain.records import Child, effect_child_key
from breakwater.domain.states import Reason
from breakwater.usecases import evidence
from breakwater.usecases.change import change
from breakwater.usecases.deps import Deps
from breakwater.usecases.notify import notify_key

MOST_CRASHES = 3
MOST_MESSAGES = 100


def drain(deps: Deps, most: int = MOST_MESSAGES) -> Counter[str]:
    """Count and delete what the queues' DLQs hold, at most `most` each; what was done, by kind.

    What can't be counted now stays in its queue, and keeps nobody else from being drained or swept.
    """
    told: Counter[str] = Counter()
    for queue in Queue:
        try:
            for receipt, body in deps.queues.drain(queue, most):
                told[_drained(deps, queue, receipt, body)] += 1
        except Unavailable:
            told["unavailable"] += 1
    if told:
        deps.log.note("drained", **told)
    return told


def _drained(deps: Deps, queue: Queue, receipt: str, body: str) -> str:
    """One message. One that can't be counted, for whatever reason, stays, and keeps nobody else from being seen to."""
    try:
        told = _one(deps, queue, body)
    except Unavailable:
        raise
    except Exception as error:  # noqa: BLE001 - the sweep that follows must run
        deps.log.note("drain_failed", queue=queue.value, error=type(error).__name__)
        return "failed"
    deps.queues.drained(queue, receipt)
    return told


def _one(deps: Deps, queue: Queue, body: str) -> str:
    parsed = parse_nudge(body)
    if parsed is None:
        return _keep(deps, queue, body)
    kind, item_id = parsed
    if kind != "job":
        return f"{kind}_left_to_sweep"  # its own due_at brings it back, for as long as it matters
    try:
        job = deps.store.get(item_id)
    except CorruptItem:
        return _keep(deps, queue, body)
    if job is None:
        return _keep(deps, queue, body)
    step = change(deps, job, lambda standing: _count(deps, standing, queue))
    return "counted" if step else "moved_on"


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


def _count(deps: Deps, job: Job, queue: Queue) -> Step | None:
    """One crash more, or the end of what crashes: the job's, or only of the debt whose delivery does."""
    if queue not in queues_for(job):
        return None
    now = deps.now()
    crashes = job.crashes + 1
    if crashes < MOST_CRASHES:
        step = amend(job, now, why="CrashCounted", crashes=crashes)
        nudges = step.nudges or (Nudge(queue, now),)
        return Step(step.before, step.job, step.event, nudges if job.locked_until is None else ())
    if queue is Queue.EFFECTS or not may(job, ev.DeadLettered):
        return _give_up(deps, job, queue)
    if job.execution is not None:
        evidence.put_unheard(deps, job, job.execution, "crashed")
    return advance(job, ev.DeadLettered(reason=Reason.CRASHED_REPEATEDLY), now)


def _give_up(deps: Deps, job: Job, queue: Queue) -> Step:
    """Debts whose delivery crashes again and again are recorded as given up; the job itself stands."""
    now = deps.now()
    stuck = {key for key, owed in job.owed.items() if owed.next_at <= now and queue_of(key) is queue}
    for key in sorted(stuck):
        record = {"at": now, "tries": job.owed[key].tries + MOST_CRASHES, "given_up": "crashed"}
        deps.store.put_child(job.job_id, Child(sk=effect_child_key(key), data=record), job.ttl)
        deps.log.note("effect_given_up", job_id=job.job_id, effect=key, why="crashed")
    owed = {key: one for key, one in job.owed.items() if key not in stuck}
    told = "crashed" if notify_key(job) in stuck else job.notify_reason
    return amend(job, now, why="EffectsGivenUp", owed=owed, crashes=0, notify_reason=told)
