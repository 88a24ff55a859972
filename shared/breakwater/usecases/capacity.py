"""How does an attempt get its slots, and who gives them back?

A scope this process saw half empty a moment ago is not looked at again: a number that was free then is asked for in
all such scopes at once, and the condition of the write is what keeps two from holding it. The others are looked at one
after the other, the narrowest first; the first refusal gives back what was taken. A number whose holder is gone is
taken away only after META said so (`domain/slots.py`). A scope nobody configured is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from zlib import crc32

from breakwater.domain.budget import PEOPLE_WAIT
from breakwater.domain.job import Job, SlotRef
from breakwater.domain.limits import EVERYBODY, scopes
from breakwater.domain.policy import Policy
from breakwater.domain.records import RouteState
from breakwater.domain.release import turn_name
from breakwater.domain.routes import Route
from breakwater.domain.slots import VERIFY_AFTER, ScopeLimit, Slot, Standing, free_numbers, roomy, standing
from breakwater.domain.timing import SECOND
from breakwater.domain.values import dataclass
from breakwater.ports import Committed
from breakwater.usecases.deps import Deps

CLAIM_WITHIN = 20 * SECOND  # a claim later than this leaves its numbers to whoever verifies them
_LOOKS = 4
_STAMPS = 10**9


@dataclass(frozen=True, slots=True)
class Taken:
    """The numbers of one attempt, and when they were taken."""

    slots: tuple[SlotRef, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Full:
    """The scope that refused. `in_line`: it has room, but others came first. `given_back`: these have room again."""

    scope: str
    in_line: bool = False
    given_back: tuple[str, ...] = ()


def limits(
    deps: Deps, job: Job, policy: Policy, route: Route, state: RouteState | None, now: int
) -> tuple[ScopeLimit, ...]:
    """Every configured limit of one attempt."""
    owner, everybody = deps.control.owner(job.owner_key), deps.control.owner(EVERYBODY)
    return scopes(job, policy, route, state, owner, everybody, now)


def take(deps: Deps, job: Job, wanted: Sequence[ScopeLimit], rank: int, now: int) -> Taken | Full:
    """A number in every scope, or the scope that has none."""
    held = _take_at_once(deps, job, wanted, now)
    for limit in wanted:
        if limit.scope in held:
            continue
        got = _take_one(deps, job, limit, rank, now)
        if isinstance(got, Full):
            return replace(got, given_back=give_back(deps, job, Taken(tuple(held.values()), now)))
        held[limit.scope] = got
    return Taken(tuple(held.values()), now)


def _take_at_once(deps: Deps, job: Job, wanted: Sequence[ScopeLimit], now: int) -> dict[str, SlotRef]:
    """A number in every scope that was roomy a moment ago, by scope; those that were not had are looked at."""
    asked = []
    for limit in wanted:
        free = deps.noticed.scopes.free(limit, now)
        if free:
            asked.append(_slot(deps, job, limit.scope, _from(free, job.job_id)[0], now))
    held = {}
    for slot, taken in zip(asked, deps.store.take_slots(asked) if asked else (), strict=True):
        if taken or deps.store.take_slot(slot):  # a repeat of a request that landed was refused: one alone can tell
            deps.noticed.scopes.took(slot.ref)
            held[slot.scope] = slot.ref
        else:
            deps.noticed.scopes.forget(slot.scope)
    return held


def _take_one(deps: Deps, job: Job, limit: ScopeLimit, rank: int, now: int) -> SlotRef | Full:
    for _ in range(_LOOKS):
        taken = deps.store.slots(limit.scope)
        free = free_numbers(limit, taken)
        if not free:
            if not _reclaim(deps, taken, now):
                return Full(limit.scope)
            continue
        if not _first_in_line(deps, job, limit, len(taken), rank):
            return Full(limit.scope, in_line=True)
        for n in _from(free, job.job_id):
            slot = _slot(deps, job, limit.scope, n, now)
            if deps.store.take_slot(slot):
                deps.noticed.scopes.saw(limit, taken, now)
                deps.noticed.scopes.took(slot.ref)
                return slot.ref
    return Full(limit.scope)


def _slot(deps: Deps, job: Job, scope: str, n: int, now: int) -> Slot:
    return Slot(
        scope=scope,
        n=n,
        job_id=job.job_id,
        epoch=job.lease_epoch + 1,
        taken_at=now,
        verify_at=now + VERIFY_AFTER,
        stamp=int(deps.draw() * _STAMPS),
        owner=turn_name(job.owner_key),
    )


def _from(free: Sequence[int], job_id: str) -> Sequence[int]:
    """All free numbers, begun where no two jobs are likely to begin."""
    start = crc32(job_id.encode()) % len(free)
    return [*free[start:], *free[:start]]


def _first_in_line(deps: Deps, job: Job, limit: ScopeLimit, in_use: int, rank: int) -> bool:
    """Whether nobody who waits here comes first. Where somebody waits for an answer, lanes keep capacity apart."""
    if job.woken_for == limit.scope or job.lane in PEOPLE_WAIT:
        return True
    most = limit.limit if limit.ramp is None else limit.ramp
    if roomy(most, in_use):
        return True
    first = next(iter(deps.store.waiters(limit.scope, 1)), None)
    return first is None or first.job_id == job.job_id or rank < first.rank


def _reclaim(deps: Deps, taken: Iterable[Slot], now: int) -> bool:
    """Ask META about numbers held for long; whether one was freed."""
    freed = False
    for slot in taken:
        if slot.verify_at <= now:
            freed |= _verify(deps, slot, now)
    return freed


def _verify(deps: Deps, slot: Slot, now: int) -> bool:
    job = deps.store.get(slot.job_id)
    found = standing(job, slot)
    if found is Standing.HELD:
        deps.store.keep_slot(slot, now + VERIFY_AFTER)
        return False
    if found is Standing.UNCLAIMED:
        assert job is not None  # noqa: S101 - a job that is gone holds nothing
        if not isinstance(deps.store.commit(job, job), Committed):  # a claim on its way now fails
            return False
    freed = deps.store.free_slot(slot.scope, slot.n, slot.job_id, slot.epoch)
    if freed:
        deps.log.note("slot_recovered", scope=slot.scope, n=slot.n, job_id=slot.job_id, held_ms=now - slot.taken_at)
    return freed


def room(deps: Deps, limit: ScopeLimit) -> tuple[int, list[Slot]]:
    """How many numbers a scope has free, and which are in use."""
    taken = deps.store.slots(limit.scope)
    return len(free_numbers(limit, taken)), taken


def give_back(deps: Deps, job: Job, taken: Taken) -> tuple[str, ...]:
    """Return numbers that no claim named; the scopes in which that made room.

    After a while that is left to whoever verifies them.
    """
    if deps.now() - taken.at >= CLAIM_WITHIN:
        return ()
    return free(deps, job.job_id, job.lease_epoch + 1, taken.slots)


def free(deps: Deps, job_id: str, epoch: int, slots: Iterable[SlotRef]) -> tuple[str, ...]:
    """Return the numbers of a lease epoch that is over; the scopes in which that made room."""
    named = tuple(slots)
    freed = deps.store.free_slots(named, job_id, epoch) if named else []
    for slot in freed:
        deps.noticed.scopes.freed(slot)
    return tuple(slot.scope for slot in freed)
