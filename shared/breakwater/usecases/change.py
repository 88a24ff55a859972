"""How does a planned step become a fact?

Plan over the item as read, commit under its `rev`, and when someone else was faster plan again over what stands there:
at most five times. Then one log line, then the nudges. A nudge that can't be sent is no failure: the item's `due_at`
makes the sweep repeat it.
"""

from __future__ import annotations

from collections.abc import Callable

from breakwater.domain.errors import QueueUnavailable, StaleVersion
from breakwater.domain.job import Job
from breakwater.domain.machine import Step
from breakwater.ports import AS_READ, Conflicted, Guard
from breakwater.usecases.deps import Deps
from breakwater.usecases.releaser import capacity_freed

TRIES = 5

Plan = Callable[[Job], Step | None]


def change(deps: Deps, job: Job, plan: Plan, guard: Callable[[Job], Guard] = lambda _: AS_READ) -> Step | None:
    """Commit what `plan` makes of the job. None: the plan found nothing (more) to do, or the job is gone.

    Raises `StaleVersion` when five others were faster in a row.
    """
    standing: Job | None = job
    for _ in range(TRIES):
        step = plan(standing) if standing is not None else None
        if step is None or step.before is None:
            return None
        _keep_input(deps, step)
        answer = deps.store.commit(step.before, step.job, guard(step.before))
        if isinstance(answer, Conflicted):
            standing = answer.current
            continue
        return landed(deps, Step(step.before, answer.job, step.event, step.nudges))
    raise StaleVersion(job=job.job_id)


def _keep_input(deps: Deps, step: Step) -> None:
    """A job that is kept longer than was meant needs its input as long; first, for it may be the last minute."""
    before, ttl = step.before, step.job.ttl
    if before is not None and before.ttl is not None and ttl is not None and ttl > before.ttl:
        deps.store.keep_child(step.job.job_id, step.job.input_ref, ttl)


def landed(deps: Deps, step: Step) -> Step:
    """Tell and nudge, after the write; and give back the capacity that it frees."""
    deps.log.step(step.event, step.before, step.job)
    send(deps, step)
    capacity_freed(deps, step)
    return step


def send(deps: Deps, step: Step) -> None:
    """Send the step's nudges; a lost one is repeated by the sweep."""
    if not step.nudges:
        return
    try:
        deps.queues.nudge("job", step.job.job_id, step.nudges, step.job.owner_key, deps.now())
    except QueueUnavailable:
        deps.log.note("nudge_lost", job_id=step.job.job_id, queues=[one.queue.value for one in step.nudges])
