"""Who closes and opens a route, and what do calls teach about it?

One item per route, written under its revision, only when something changes. Whatever gives a route room (it opens, its
ramp rises) wakes its waiters at once; a route that waits to open has a `due_at` like everything unfinished, and its own
nudge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from breakwater.domain import ramp
from breakwater.domain.errors import Unavailable
from breakwater.domain.limits import rate_scope, route_scope
from breakwater.domain.obligations import Nudge, Queue
from breakwater.domain.records import RouteState
from breakwater.domain.results import Completed, Outcome, Refused
from breakwater.domain.routes import Route, RouteView
from breakwater.domain.timing import CLOCK_SKEW, MAX_QUEUE_DELAY, MINUTE, SECOND
from breakwater.usecases.capacity import CLAIM_WITHIN
from breakwater.usecases.deps import Deps
from breakwater.usecases.releaser import BATCH, release

_TRIES = 5
_SLOW_PERCENT = 75  # of the route's time-out
_NEXT_BATCH = SECOND
EXHAUSTED = "limit_exhausted"
Plan = Callable[[RouteState | None], RouteState | None]


def watch(deps: Deps, route: Route | None, begun_at: int, outcome: Outcome) -> None:
    """Let the route's number follow one call's outcome. Bookkeeping: a failure here fails nobody's job."""
    if route is None:
        return
    try:
        if not _known(deps, route, begun_at, outcome):
            _move(deps, route, lambda state: _learned(deps, route, state, begun_at, outcome))
        if isinstance(outcome, Completed):
            _last_of_a_limit(deps, route, outcome)
    except Unavailable as error:
        deps.log.note("route_not_watched", route_key=route.route_key, why=type(error).__name__)


def _known(deps: Deps, route: Route, begun_at: int, outcome: Outcome) -> bool:
    """Whether the gate of this very call read a state that its outcome changes nothing of: most calls of most days."""
    kept = deps.noticed.routes.get(route.route_key)
    if kept is None or isinstance(outcome, Refused) or not begun_at - CLAIM_WITHIN <= kept[0] <= begun_at:
        return False
    return _learned(deps, route, kept[1], begun_at, outcome) is None


def _last_of_a_limit(deps: Deps, route: Route, outcome: Completed) -> None:
    """The answer's headers say that nothing remains: the next call would be refused, so none is made.

    A reset is when the limit is full again, later than need be; so nobody waits for it longer than a minute.
    """
    now = deps.now()
    resets = [one.resets_at for one in outcome.result.exhausted if one.resets_at is not None and one.resets_at > now]
    if resets:
        close(deps, route, until=min(max(resets), now + MINUTE), reason=EXHAUSTED, by="provider", gently=True)


def _learned(deps: Deps, route: Route, state: RouteState | None, begun_at: int, outcome: Outcome) -> RouteState | None:
    now, configured = deps.now(), route.limits.concurrency
    if isinstance(outcome, Refused):
        if outcome.signal.error_class not in ramp.FAULTS:
            return None
        return ramp.failed(state, route.route_key, configured, begun_at, now, deps.draw())
    slow = isinstance(outcome, Completed) and (now - begun_at) * 100 > route.timeout_ms * _SLOW_PERCENT
    if slow:
        return ramp.slowed(state, route.route_key, configured, begun_at, now)
    return ramp.succeeded(state, configured, begun_at, now)


def close(deps: Deps, route: Route, *, until: int, reason: str, by: str, gently: bool = False) -> None:
    """Closed until T because R, for everybody. A later release time that stands already is kept."""
    _move(
        deps,
        route,
        lambda state: ramp.closed(
            state,
            route.route_key,
            route.limits.concurrency,
            until=until,
            reason=reason,
            by=by,
            now=deps.now(),
            gently=gently,
        ),
    )


def open_again(deps: Deps, route: Route) -> None:
    """Open a route before its time; it starts slowly."""
    _move(deps, route, lambda state: ramp.opened(state, deps.now()) if state is not None else None)


def pace(deps: Deps, route: Route, until: int) -> None:
    """A rate of the route refused a job: the route's own time wakes who stands in line, one line for all."""
    _move(deps, route, lambda state: ramp.paced(state, route.route_key, until, deps.now()))


def reopen(deps: Deps, route_key: str) -> str:
    """What a route's own nudge asks for: if its time has come, open it and wake its waiters."""
    route, state, now = deps.catalogue.route(route_key), deps.store.route(route_key), deps.now()
    if state is None:
        return "nothing"
    if state.closed(now):
        _come_back(deps, route_key, state.closed_until, now, 0)
        return "nothing"
    if route is None:
        deps.store.put_route(state, replace(state, due_at=None))
        return "route_gone"
    if state.closed_until is not None:
        _move(deps, route, lambda read: _opened(read, now))
        return "opened"
    return _next_batch(deps, route, state)


def _come_back(deps: Deps, route_key: str, at: int | None, now: int, at_least: int) -> None:
    """Never before its time; but where our clock is behind the one that set it, the nudge must not be lost."""
    if at is not None and at_least < at - now <= CLOCK_SKEW:
        _nudge(deps, route_key, at)


def _opened(state: RouteState | None, now: int) -> RouteState | None:
    waits = state is not None and state.closed_until is not None and not state.closed(now)
    return ramp.opened(state, now) if state is not None and waits else None


def _next_batch(deps: Deps, route: Route, state: RouteState) -> str:
    """It is open: who waited for that leaves batch by batch, who stands in line for its rates leaves at their pace."""
    now = deps.now()
    paced = state.paced_until is not None and state.paced_until <= now + _NEXT_BATCH // 2
    if not paced:  # more than a turn early is no second nudge for the same turn
        _come_back(deps, route.route_key, state.paced_until, now, _NEXT_BATCH * 3 // 2)
    told = _next_of_line(deps, route, state) if paced else None
    if _woken(deps, route) >= BATCH:
        _move(deps, route, lambda read: replace(read, due_at=now + _NEXT_BATCH) if read else None)
        return "batch_woken"
    if told is not None:
        return told
    rest = ramp.timed(replace(state, due_at=None))
    if rest != state:  # a nudge before its time changes nothing
        deps.store.put_route(state, rest)
    return "drained"


def _next_of_line(deps: Deps, route: Route, state: RouteState) -> str:
    """Wake whom the rates have room for now, and say when to go on.

    First the clock, then the wakes: a crash between them costs one turn of it, and of two runs at once one wakes.
    """
    now, scope = deps.now(), rate_scope(route.route_key)
    waits = bool(deps.store.waiters(scope, 1))
    due = state.due_at if state.due_at is not None and state.due_at > now else None
    again = replace(state, paced_until=now + _NEXT_BATCH if waits else None, due_at=due)
    if not deps.store.put_route(state, ramp.timed(again)):
        return "moved_meanwhile"
    if not waits:
        return "drained"
    _nudge(deps, route.route_key, now + _NEXT_BATCH)
    try:
        release(deps, scope, most=BATCH)
    except Unavailable:
        return "release_lost"  # the next turn, in a second
    return "paced"


def _move(deps: Deps, route: Route, plan: Plan) -> None:
    """Write what `plan` makes of the state, if anything; others may be faster a few times, and then know better."""
    for _ in range(_TRIES):
        before = deps.store.route(route.route_key)
        planned = plan(before)
        if planned is None:
            return
        after = ramp.timed(planned)
        if deps.store.put_route(before, after):
            _tell(deps, route, before, after)
            if ramp.answers_again(before, after, deps.now()):
                _hurry(deps, route)
            return


def _hurry(deps: Deps, route: Route) -> None:
    """The provider is back: its other routes need not wait out a circuit that opened in the same outage."""
    for other in deps.catalogue.neighbours(route):
        _move(deps, other, lambda state: ramp.sooner(state, deps.now(), deps.draw()))


def _tell(deps: Deps, route: Route, before: RouteState | None, after: RouteState) -> None:
    """One line (and so one alert) for each closure; a nudge for when it opens; waiters where there is room now."""
    now = deps.now()
    known = before is not None and before.closed(now) and before.reason == after.reason
    if after.closed(now) and not known:
        deps.log.note("route_closed", route_key=route.route_key, until=after.closed_until, reason=after.reason)
    if after.due_at is not None and after.due_at - now <= MAX_QUEUE_DELAY:
        _nudge(deps, route.route_key, after.due_at)
    if _rose(route, before, after, now):
        deps.log.note("route_limit", route_key=route.route_key, limit=after.limit)
        if _woken(deps, route) >= BATCH and after.due_at is None:
            _move(deps, route, lambda read: replace(read, due_at=now + _NEXT_BATCH) if read else None)


def _rose(route: Route, before: RouteState | None, after: RouteState, now: int) -> bool:
    """Whether more calls fit than before."""
    if after.closed(now):
        return False
    unlimited = 10**6
    numbers = [ramp.effective(one, route.limits.concurrency, now) for one in (before, after)]
    old, new = (unlimited if one is None else one for one in numbers)
    return new > old or (before is not None and before.due_at is not None and after.due_at is None)


def _woken(deps: Deps, route: Route) -> int:
    try:
        return release(deps, route_scope(route.route_key))
    except Unavailable:
        return 0  # the waiters' own recheck


def _nudge(deps: Deps, route_key: str, at: int) -> None:
    try:
        deps.queues.nudge("route", route_key, [Nudge(Queue.COMPLETION, at)], route_key, deps.now())
    except Unavailable:
        deps.log.note("nudge_lost", route_key=route_key, queues=[Queue.COMPLETION.value])


def swept(state: RouteState, now: int) -> RouteState:
    """What the sweep does with a route whose time has come: move it forward, then nudge."""
    return replace(state, due_at=now + 2 * MINUTE)


def views(deps: Deps, route_keys: list[str]) -> dict[str, RouteView]:
    """What is known now about some routes, for a decision between them."""
    now = deps.now()
    found: dict[str, RouteView] = {}
    for key in route_keys:
        route, state = deps.catalogue.route(key), deps.store.route(key)
        if route is not None and state is not None:
            limit = None if state.closed(now) else ramp.effective(state, route.limits.concurrency, now)
            found[key] = RouteView(closed_until=state.closed_until, limit=limit)
    return found
