"""Who is woken when capacity is freed?

The first of the line by rank, round robin over owners, no more than there is room for: one `rev` write that leaves the
`ready` index, then the nudge. It runs when a slot is freed, when a route opens, when a waiter finds room but others
before it, and when a woken job does not take what it was woken for. A run that is lost is made up for by the waiters'
own slow recheck.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from breakwater.domain.errors import Unavailable
from breakwater.domain.job import Job
from breakwater.domain.limits import paused_scope, route_scope
from breakwater.domain.machine import Step, amend
from breakwater.domain.ramp import effective
from breakwater.domain.release import turns
from breakwater.domain.slots import Slot
from breakwater.domain.states import Status
from breakwater.domain.switches import paused
from breakwater.ports import Committed, Waiter
from breakwater.usecases import capacity
from breakwater.usecases.deps import Deps

LINE = 200  # how much of a line is looked at
BATCH = 25  # woken at once where nothing limits how many
_PAGE = 100
_owners: dict[str, str] = {}  # a job's owner never changes, so a warm process reads it once
_MOST_OWNERS = 10_000


def release(deps: Deps, scope: str, just_served: str | None = None) -> int:
    """Wake whom there is room for; how many that was. The owner whose job made room has had its turn."""
    line = deps.store.waiters(scope, LINE)
    free, taken = _room(deps, scope, line)
    if free <= 0:
        return 0
    chosen = [one.job_id for one in line] if free >= len(line) else _fairly(deps, line, taken, free, just_served)
    return sum(_wake(deps, job_id, scope) for job_id in chosen)


def _room(deps: Deps, scope: str, line: Sequence[Waiter]) -> tuple[int, list[Slot]]:
    """How many may be woken. The first of the line that still waits says which limit its scope stands for."""
    for waiter in line[:3]:
        job = deps.store.get(waiter.job_id)
        if job is not None and job.waiting_scope == scope:
            return _room_for(deps, scope, job)
    return 0, []


def _room_for(deps: Deps, scope: str, job: Job) -> tuple[int, list[Slot]]:
    policy, route, now = deps.catalogue.policy(job.workflow), deps.catalogue.route(job.route_key), deps.now()
    if policy is None or route is None:
        return BATCH, []  # its own gate tells it what is wrong
    if scope == paused_scope(job.workflow):
        held = paused(deps.control.switches(), now, job.workflow, job.priority)
        return (0 if held else BATCH), []
    state = deps.store.route(route.route_key)
    if scope == route_scope(route.route_key) and effective(state, route.limits.concurrency, now) == 0:
        return 0, []
    limits = capacity.limits(deps, job, policy, route, state, now)
    limit = next((one for one in limits if one.scope == scope), None)
    return capacity.room(deps, limit) if limit else (BATCH, [])


def _fairly(deps: Deps, line: Sequence[Waiter], taken: Sequence[Slot], most: int, just_served: str | None) -> list[str]:
    holders = [slot.job_id for slot in taken]
    _learn_owners(deps, [*(one.job_id for one in line), *holders])
    busy = Counter(_owners.get(job_id, "") for job_id in holders)
    if just_served is not None:
        busy[just_served] += 1
    return turns([(one.job_id, _owners.get(one.job_id, "")) for one in line], busy, most)


def _learn_owners(deps: Deps, job_ids: Iterable[str]) -> None:
    unknown = list(dict.fromkeys(one for one in job_ids if one not in _owners))
    if len(_owners) + len(unknown) > _MOST_OWNERS:
        _owners.clear()
    for start in range(0, len(unknown), _PAGE):
        for job_id, job in deps.store.get_many(unknown[start : start + _PAGE]).items():
            _owners[job_id] = job.owner_key


def _wake(deps: Deps, job_id: str, scope: str) -> bool:
    """Leave the line and be nudged; whoever was faster has seen to the job."""
    job = deps.store.get(job_id)
    if job is None or job.waiting_scope != scope:
        return False
    now = deps.now()
    step = amend(
        job,
        now,
        why="Woken",
        waiting_scope=None,
        waiting_rank=None,
        recheck_at=None,
        woken_for=scope,
        ready_at=min(job.ready_at, now),
    )
    answer = deps.store.commit(job, step.job)
    if not isinstance(answer, Committed):
        return False
    deps.log.step("Woken", job, answer.job)
    try:
        deps.queues.nudge("job", job_id, step.nudges, job.owner_key, now)
    except Unavailable:
        deps.log.note("nudge_lost", job_id=job_id, queues=[one.queue.value for one in step.nudges])
    return True


def capacity_freed(deps: Deps, step: Step) -> None:
    """After a write: give back what its execution held, and wake whom that makes room for.

    Only the fast way: a failure is made up for by the owed release, and by the waiters' recheck.
    """
    scopes = _given_back(step)
    if not scopes:
        return
    before = step.before
    assert before is not None  # noqa: S101 - a new job gives nothing back
    try:
        if before.slots and not step.job.slots and before.execution is not None:
            capacity.free(deps, before.job_id, before.execution.epoch, before.slots)
        for scope in scopes:
            release(deps, scope, before.owner_key)
    except Unavailable as error:
        deps.log.note("release_left_to_effects", job_id=step.job.job_id, why=type(error).__name__)


def _given_back(step: Step) -> tuple[str, ...]:
    """The scopes in which a write makes room: slots of an execution that ended, a wake that was not used."""
    before, after = step.before, step.job
    if before is None:
        return ()
    ended = [slot.scope for slot in before.slots] if not after.slots else []
    unused = before.woken_for is not None and after.woken_for is None and after.status is not Status.PROCESSING
    if unused and before.woken_for is not None and after.waiting_scope != before.woken_for:
        ended.append(before.woken_for)
    return tuple(dict.fromkeys(ended))
