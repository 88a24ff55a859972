"""May this job be leased now? Everything is asked before the claim: after it an attempt is spent.

In order: its own limits, switches, the route, slots, rates. Slots come before rates (a refused slot costs one read, a
refused rate would have spent what others could use), and are given back when the rate refuses. Whom a rate refuses
stands in line for it, and who comes later stands behind, asking nothing: only people who wait try for themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from breakwater.domain import events as ev
from breakwater.domain.budget import PEOPLE_WAIT, current_fallback
from breakwater.domain.errors import Unavailable
from breakwater.domain.job import Job, SlotRef
from breakwater.domain.limits import paused_scope, rate_scope, route_scope
from breakwater.domain.policy import Policy
from breakwater.domain.priority import rank, sheds
from breakwater.domain.ramp import PROBE
from breakwater.domain.rate import BURST_US, reservations, to_ms, to_us
from breakwater.domain.records import RouteState
from breakwater.domain.release import FIRST_RECHECK, recheck_at
from breakwater.domain.routes import Route
from breakwater.domain.states import Lane, Reason
from breakwater.domain.switches import SwitchName, concerning, paused
from breakwater.domain.timing import DAY, SECOND
from breakwater.domain.values import dataclass
from breakwater.usecases import capacity
from breakwater.usecases.alternative import alternative
from breakwater.usecases.budgets import over_budget
from breakwater.usecases.circuit import pace
from breakwater.usecases.deps import Deps
from breakwater.usecases.noticed import route_now
from breakwater.usecases.releaser import ONE_FOR_ONE, release

_SPREAD = 2 * SECOND  # those whom a rate refused don't all come back at once


@dataclass(frozen=True, slots=True)
class Held:
    """The event that keeps a job from being leased. `in_line`: there is room, but others came first."""

    event: ev.Event
    in_line: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """The way is free: these numbers are ours."""

    taken: capacity.Taken

    @property
    def slots(self) -> tuple[SlotRef, ...]:
        """As META will name them."""
        return self.taken.slots


def gate(deps: Deps, job: Job, policy: Policy | None, route: Route | None, now: int) -> Held | Grant:
    """What the claim needs, or the event that keeps a job from being leased."""
    if policy is None or route is None:
        return Held(ev.HeldForReview(reason=Reason.POLICY_MISSING, review_expires_at=now + 3 * DAY))
    held = _own_limits(job, policy, now) or _paused(deps, job, policy, now) or over_budget(deps, job, policy, now)
    if held is not None:
        return Held(held)
    state = route_now(deps, route.route_key)
    held = (
        _moved(deps, job, policy, route, state, now)
        or _closed(job, policy, route, state, now)
        or _behind_others(job, policy, route, state, now)
    )
    return Held(held) if held is not None else _capacity(deps, job, policy, route, state, now)


def _own_limits(job: Job, policy: Policy, now: int) -> ev.Event | None:
    if job.expires_at is not None and job.expires_at <= now:
        return ev.Expired(reason=Reason.MAX_QUEUE_AGE_EXCEEDED)
    if job.lane in PEOPLE_WAIT and job.deadline_at is not None and job.deadline_at <= now:
        return to_background(job, policy, Reason.DEADLINE_EXCEEDED, now) or ev.Expired(reason=Reason.DEADLINE_EXCEEDED)
    if job.attempt >= job.max_attempts:
        return ev.DeadLettered(reason=Reason.MAX_ATTEMPTS_EXHAUSTED)
    if policy.requires_approval and job.approved_by is None:
        return ev.HeldForReview(
            reason=Reason.APPROVAL_REQUIRED,
            review_expires_at=now + policy.review_max_age_ms,
        )
    return None


def to_background(job: Job, policy: Policy, reason: Reason, now: int) -> ev.Waiting | None:
    """Nobody waits any longer, the work may: where the policy has that lane and it has attempts left there."""
    lane = policy.lanes.background_retry
    if lane is None or (lane.require_idempotency_key and not job.key_given):
        return None
    most = policy.total_attempts(Lane.BACKGROUND_RETRY)
    if job.attempt >= most:
        return None
    return ev.Waiting(at=now, reason=reason, lane=Lane.BACKGROUND_RETRY, max_attempts=most)


def _paused(deps: Deps, job: Job, policy: Policy, now: int) -> ev.Event | None:
    if paused(deps.control.switches(), now, job.workflow, job.priority) is None:
        return None
    held = paused(deps.control.switches_now(), now, job.workflow, job.priority)
    if held is None:  # lifted a moment ago: whoever stands in line now is woken by nobody
        return None
    again = recheck_at(now, job.waits)
    return ev.Waiting(
        at=job.ready_at,
        reason=Reason.PAUSED,
        scope=paused_scope(job.workflow),
        rank=rank(policy, job.priority, job.ready_at),
        recheck_at=again if held.until is None else min(again, held.until),
    )


def _moved(
    deps: Deps, job: Job, policy: Policy, route: Route, state: RouteState | None, now: int
) -> ev.FellBack | None:
    """Off to the approved other route: a person said so, or this one opens too late for the job."""
    thrown = current_fallback(job, policy) is None and any(
        one.name is SwitchName.ALTERNATIVE_ROUTE
        for one in concerning(deps.control.switches(), now, job.workflow, job.priority, route.route_key)
    )
    opens = state.closed_until if state is not None and state.closed(now) else None
    too_late = opens is not None and job.expires_at is not None and opens >= job.expires_at
    if not (thrown or too_late):
        return None
    return alternative(deps, job, policy, route, now)


def _closed(job: Job, policy: Policy, route: Route, state: RouteState | None, now: int) -> ev.Waiting | None:
    if state is None or state.closed_until is None or not state.closed(now):
        return None
    return ev.Waiting(
        at=state.closed_until,
        reason=Reason.ROUTE_CLOSED,
        scope=route_scope(route.route_key),
        rank=rank(policy, job.priority, job.ready_at),
        recheck_at=state.closed_until + FIRST_RECHECK,
    )


def _capacity(deps: Deps, job: Job, policy: Policy, route: Route, state: RouteState | None, now: int) -> Held | Grant:
    """Slots, then rates."""
    place = rank(policy, job.priority, job.ready_at)
    taken = capacity.take(deps, job, capacity.limits(deps, job, policy, route, state, now), place, now)
    if isinstance(taken, capacity.Full):
        pass_on(deps, job, taken.given_back)
        if sheds(policy, job.lane, job.priority):
            return Held(ev.Shed())
        return Held(_in_line(job, policy, Reason.NO_CAPACITY, taken.scope, now), taken.in_line)
    held = _closed_meanwhile(deps, job, policy, route, state, now)
    if held is not None:
        give_back(deps, job, taken)
        return Held(held)
    until = _rates(deps, job, route, now)
    if until is None:
        return Grant(taken)
    give_back(deps, job, taken)
    if job.lane in PEOPLE_WAIT:  # it asks again itself, for as long as somebody waits
        return Held(ev.Waiting(at=until + int(deps.draw() * _SPREAD), reason=Reason.RATE_LIMITED))
    pace(deps, route, until)
    return Held(_in_line(job, policy, Reason.RATE_LIMITED, rate_scope(route.route_key), now))


def give_back(deps: Deps, job: Job, taken: capacity.Taken) -> None:
    """Numbers that no claim will name: whoever found none while they were ours has a try."""
    pass_on(deps, job, capacity.give_back(deps, job, taken))


def pass_on(deps: Deps, job: Job, scopes: Iterable[str]) -> None:
    """Bookkeeping: what fails here is made up for by the waiters' recheck."""
    with suppress(Unavailable):
        for scope in scopes:
            release(deps, scope, job.owner_key, ONE_FOR_ONE)


def _closed_meanwhile(
    deps: Deps, job: Job, policy: Policy, route: Route, state: RouteState | None, now: int
) -> ev.Waiting | None:
    """The one slot of a probe is free when its provider said no: then the route closed after we had read it."""
    probing = state is not None and state.limit is not None and state.limit <= PROBE
    return _closed(job, policy, route, route_now(deps, route.route_key), now) if probing else None


def _behind_others(job: Job, policy: Policy, route: Route, state: RouteState | None, now: int) -> ev.Waiting | None:
    """Others stand in line for the route's rates: no look, no try, until a line that this one stood in wakes it.

    Whoever was woken for another limit stood here before, or came first: sent back, it would bounce between two lines.
    """
    if job.lane in PEOPLE_WAIT or job.woken_for is not None or state is None or not state.paced(now):
        return None
    return _in_line(job, policy, Reason.RATE_LIMITED, rate_scope(route.route_key), now)


def _in_line(job: Job, policy: Policy, reason: Reason, scope: str, now: int) -> ev.Waiting:
    """It keeps its age, and is woken when the scope has room."""
    return ev.Waiting(
        at=job.ready_at,
        reason=reason,
        scope=scope,
        rank=rank(policy, job.priority, job.ready_at),
        recheck_at=recheck_at(now, job.waits),
    )


def look_again(deps: Deps, job: Job) -> None:
    """After a job stands in a line that somebody may have ended meanwhile: seen before, it would be woken by nobody.

    A pause that was lifted is ended here; a line for a rate gets its clock, unless it has one.
    """
    route, now = deps.catalogue.route(job.route_key), deps.now()
    with suppress(Unavailable):
        if job.waiting_scope == paused_scope(job.workflow):
            if paused(deps.control.switches_now(), now, job.workflow, job.priority) is None:
                release(deps, job.waiting_scope)
        elif route is not None and job.waiting_scope == rate_scope(route.route_key):
            pace(deps, route, now)


def _rates(deps: Deps, job: Job, route: Route, now: int) -> int | None:
    """Reserve in every rate of the route; None when all had room, else when to ask again."""
    reserved: list[tuple[str, int]] = []
    for key, cost in reservations(job, route):
        until = deps.store.spend_rate(key, to_us(now), cost, BURST_US)
        if until is not None:
            for name, spent in reserved:
                deps.store.adjust_rate(name, -spent)
            return max(to_ms(until), now + 1)
        reserved.append((key, cost))
    return None
