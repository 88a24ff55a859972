"""How does a stream pass from one holder to the next?

Only where the provider runs the job under a name of its own and can tell its events again. The next holder is a worker
that is nudged at once; polls and the webhook stand behind it, so an answer is never lost for want of a reader.
"""

from __future__ import annotations

from breakwater.domain import events as ev
from breakwater.domain.job import Execution, Job
from breakwater.domain.machine import Step, advance
from breakwater.domain.timing import SECOND
from breakwater.ports import Guard
from breakwater.usecases.change import change
from breakwater.usecases.conclude import marked
from breakwater.usecases.deps import Deps
from breakwater.usecases.stream_writer import holds

MOST_HOLDERS = 20  # after so many only polls are left
POLL_AFTER = 30 * SECOND


def hand_over(
    deps: Deps, job: Job, execution: Execution, *, after_ms: int = 0, guard: Guard | None = None
) -> Step | None:
    """Let somebody else go on. None: it was not ours any more. A cancel that was asked for is carried out instead."""

    def plan(standing: Job) -> Step | None:
        if not holds(standing, execution):
            return None
        if guard is not None and standing.locked_until != guard.locked_until:
            return None
        now = deps.now()
        resume = now + (after_ms << min(standing.polls, 5)) if standing.polls < MOST_HOLDERS else None
        event = ev.StreamHandedOver(poll_at=now + POLL_AFTER, resume_at=resume)
        return marked(deps, standing) or advance(standing, event, now)

    held = guard or Guard(epoch=execution.epoch)
    return change(deps, job, plan, lambda _: held)


def can_be_resumed(job: Job) -> bool:
    """Whether a stream that lost its holder goes on at the provider."""
    return job.stream and job.execution is not None and job.execution.provider_job_id is not None
