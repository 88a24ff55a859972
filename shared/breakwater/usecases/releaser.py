"""Who is woken when capacity is freed?

Owners in turn, each owner's jobs by rank, no more than there is room for: one `rev` write that leaves the line, then
the nudge. It runs when a slot is freed, when a route opens, when a waiter finds room but others before it, and when a
woken job does not take what it was woken for. A run that is lost is made up for by the waiters' own slow recheck.

The line is read owner by owner (`turns` index), so one owner's ten thousand hide nobody. Who had the last turn of a
scope is one newest fact, written after the wakes and only where more wait than there is room for: a crash before it
repeats a turn and loses none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress

from breakwater.domain.budget import PEOPLE_WAIT
from breakwater.domain.errors import Unavailable
from breakwater.domain.job import Job
from breakwater.domain.limits import is_rate, of_one_owner, paused_scope, rate_scope, route_scope
from breakwater.domain.machine import Step, amend
from breakwater.domain.ramp import effective
from breakwater.domain.rate import fits, reservations, to_us
from breakwater.domain.release import turn_name, turns
from breakwater.domain.routes import Route
from breakwater.domain.slots import Slot
from breakwater.domain.states import Status
from breakwater.domain.switches import paused
from breakwater.ports import Committed, Waiter
from breakwater.usecases import capacity
from breakwater.usecases.deps import Deps

LINE = 100  # a line up to this long is read at once
PAGE = 25  # of a longer one, so much at each owner
BATCH = 25  # woken at once where nothing limits how many
ONE_FOR_ONE = 1  # where a person may wait for this process: the room it made, and nothing that was free before
_OWNERS = 3  # of a longer line, at least so many owners are looked at
_PAGES = 6  # and at most so often
_SPARE = 5  # tried beyond what there is room for: the index may list who has left


def release(deps: Deps, scope: str, just_served: str | None = None, most: int | None = None) -> int:
    """Wake whom there is room for, at most `most`; how many that was. `just_served` made the room: it had its turn."""
    line, more = deps.store.waiters_by_owner(scope, "", LINE)
    free, taken = _room(deps, scope, sorted(line, key=_by_rank)[:3])
    free = free if most is None else min(free, most)
    if free <= 0:
        return 0
    if not more and free >= len(line):
        return len(_wake_some(deps, scope, sorted(line, key=_by_rank), free))
    if of_one_owner(scope) or (not more and len({one.owner for one in line}) == 1):
        return len(_wake_some(deps, scope, line[: free + _SPARE], free))
    place = f"TURN#{scope}"
    known = deps.store.latest(place) or {"owner": "", "at": 0}
    seen = _stretch(deps, scope, line, str(known["owner"]), free) if more else line
    woken = _wake_some(deps, scope, _in_turn(seen, _busy(taken, just_served), str(known["owner"]), free), free)
    if woken:
        with suppress(Unavailable):  # the next run then begins where this one did
            deps.store.put_latest(place, max(deps.now(), int(known["at"]) + 1), {"owner": woken[-1].owner})
    return len(woken)


def _by_rank(waiter: Waiter) -> int:
    return waiter.rank


def _busy(taken: Iterable[Slot], just_served: str | None) -> Counter[str]:
    """How much each owner has in use."""
    busy = Counter(slot.owner for slot in taken)
    if just_served is not None:
        busy[turn_name(just_served)] += 1
    return busy


def _in_turn(seen: Sequence[Waiter], busy: Counter[str], last: str, free: int) -> list[Waiter]:
    """More wait than there is room for: the next owners around the circle."""
    by_id = {one.job_id: one for one in seen}
    order = turns([(one.job_id, one.owner) for one in seen], busy, last, free + _SPARE)
    return [by_id[job_id] for job_id in order]


def _stretch(deps: Deps, scope: str, first: Sequence[Waiter], last: str, free: int) -> list[Waiter]:
    """The heads of some owners of a long line, from behind the last turn on and around. `first` is how it begins."""
    seen, place, around = ([], last, False) if last else ([*first], first[-1].owner, True)
    for _ in range(_PAGES):
        if len({one.owner for one in seen}) >= max(free, _OWNERS):
            break
        page, more = deps.store.waiters_by_owner(scope, place, max(PAGE, free))
        seen += page
        if more:
            place = page[-1].owner
        elif around:
            break
        else:
            seen, place, around = [*seen, *first], first[-1].owner, True
        if around and last and place >= last:
            break
    return list({one.job_id: one for one in seen}.values())


def _wake_some(deps: Deps, scope: str, order: Sequence[Waiter], most: int) -> list[Waiter]:
    """Wake the first `most` that still wait."""
    woken: list[Waiter] = []
    for one in order:
        if len(woken) == most:
            break
        if _wake(deps, one.job_id, scope):
            woken.append(one)
    return woken


def _room(deps: Deps, scope: str, line: Sequence[Waiter]) -> tuple[int, list[Slot]]:
    """How many may be woken. The first of the line that still waits says which limit its scope stands for."""
    for waiter in line:
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
    if scope == rate_scope(route.route_key):
        return _rate_room(deps, job, route, now), []
    state = deps.store.route(route.route_key)
    if scope == route_scope(route.route_key) and effective(state, route.limits.concurrency, now) == 0:
        return 0, []
    limits = capacity.limits(deps, job, policy, route, state, now)
    limit = next((one for one in limits if one.scope == scope), None)
    return capacity.room(deps, limit) if limit else (BATCH, [])


def _rate_room(deps: Deps, job: Job, route: Route, now: int) -> int:
    """How many jobs like this one the rates of a route take now, and its slots soon.

    Where slots are what is short, those who wait for one are enough to fill each that is freed: woken all the same, the
    whole line would only move into theirs.
    """
    rooms = [fits(deps.store.rate(key), to_us(now), cost) for key, cost in reservations(job, route)]
    free = min([BATCH, *rooms])
    if free <= 0 or route.limits.concurrency is None:
        return free
    waits = len(deps.store.waiters(route_scope(route.route_key), free))
    return free - waits


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
    unused = _unused_wake(step)
    scopes = _given_back(step, unused)
    if not scopes:
        return
    before = step.before
    assert before is not None  # noqa: S101 - a new job gives nothing back
    try:
        if before.slots and not step.job.slots and before.execution is not None:
            capacity.free(deps, before.job_id, before.slots_epoch, before.slots)
        most = ONE_FOR_ONE if before.lane in PEOPLE_WAIT else None
        for scope in scopes:
            release(deps, scope, before.owner_key, ONE_FOR_ONE if scope == unused else most)
    except Unavailable as error:
        deps.log.note("release_left_to_effects", job_id=step.job.job_id, why=type(error).__name__)


def _given_back(step: Step, unused: str | None) -> tuple[str, ...]:
    """The scopes in which a write makes room: slots of an execution that ended, a wake that was not used."""
    before, after = step.before, step.job
    ended = [slot.scope for slot in before.slots] if before is not None and not after.slots else []
    return tuple(dict.fromkeys([*ended, unused] if unused is not None else ended))


def _unused_wake(step: Step) -> str | None:
    """What a job was woken for and left to the next one. A line for a rate has its own clock, and passes nothing on."""
    before, after = step.before, step.job
    if before is None or before.woken_for is None or after.woken_for is not None:
        return None
    taken = after.status is Status.PROCESSING or after.waiting_scope == before.woken_for
    return None if taken or is_rate(before.woken_for) else before.woken_for
