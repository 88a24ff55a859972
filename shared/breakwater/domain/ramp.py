"""How many calls does a route take at once right now?

Theory of operation. Circuit, half-open, slow start and adaptive concurrency are one number on the route's item:

    None   nothing is wrong: the configured limit
    0      open circuit until `closed_until`; after that 1 call, the probe
    1 … n  doubling on success until the configured limit is reached, halved on slowness and faults

Evidence counts only from calls that began after the last change: the others say nothing about the new number. So the
number moves once a round trip, as in TCP's slow start, and at most every `STEP`. Enough faults in a row open the
circuit, each time for twice as long until the ramp was climbed to its end, so that it does not flap. A fault of a
caller never gets here. What a provider's hint or an operator closes reopens through the same ramp. A provider that is
back on one route is asked sooner on its others. Only changes are written; a function that returns None found nothing to
change.

What is unpleasant: "in a row" is counted on one item by many workers, so a success in between may be seen a little
late. That makes the circuit open a call or two earlier or later, never not at all.
"""

from __future__ import annotations

from dataclasses import replace

from breakwater.domain.records import RouteState
from breakwater.domain.signals import ErrorClass
from breakwater.domain.timing import MINUTE, SECOND

OPEN_AFTER = 5  # faults in a row
FAULT_WINDOW = MINUTE  # faults further apart are not "in a row"
FIRST_OPEN = 15 * SECOND
LONGEST_OPEN = 2 * MINUTE
STEP = 2 * SECOND  # the number is doubled at most this often
SPREAD = 2 * SECOND  # probes that are brought forward together don't arrive together
CEILING = 32  # where a route without a configured limit counts as recovered
LAPSE = 10 * MINUTE
PROBE = 1
CIRCUIT, CIRCUIT_SELF = "circuit_open", "circuit"  # why, and by whom

FAULTS = frozenset(
    {
        ErrorClass.OVERLOAD,
        ErrorClass.SERVER_FAULT,
        ErrorClass.OUTCOME_UNKNOWN,
        ErrorClass.NOT_SENT,
        ErrorClass.STREAM_INCOMPLETE,
    }
)
"""What speaks against a provider. `UNKNOWN` does not: nobody has said whose fault it is."""


def effective(state: RouteState | None, configured: int | None, now: int) -> int | None:
    """Calls at once: 0 while closed, None without any limit."""
    if state is not None and state.closed(now):
        return 0
    if state is None or state.limit is None or _lapsed(state, now):
        return configured
    number = max(PROBE, state.limit)
    return number if configured is None else min(number, configured)


def _lapsed(state: RouteState, now: int) -> bool:
    """A lowered number that nothing confirmed for long says nothing; an open circuit still asks for a probe."""
    return state.limit != 0 and now - max(state.changed_at or 0, state.closed_until or 0) > LAPSE


def since(state: RouteState) -> int:
    """From when on calls count against the ramp: work that the provider took long before does not block a probe."""
    if state.ramp_since is not None:
        return state.ramp_since
    return (state.changed_at or 0) - MINUTE


def succeeded(state: RouteState | None, configured: int | None, begun_at: int, now: int) -> RouteState | None:
    """A call that began at `begun_at` went well."""
    if state is None or state.closed(now) or (state.limit is None and state.faults == 0):
        return None
    calm = replace(state, faults=0) if state.faults else None
    current = effective(state, configured, now)
    if state.limit is None or not _evidence(state, begun_at, now):
        return calm
    full = configured or CEILING
    if current is None or current * 2 >= full:
        return replace(
            state,
            limit=None,
            faults=0,
            opens=0,
            ramp_since=None,
            closed_until=None,
            reason=None,
            closed_by=None,
            since=None,
            due_at=None,
            changed_at=now,
        )
    return replace(state, limit=current * 2, faults=0, ramp_since=since(state), changed_at=now)


def _evidence(state: RouteState, begun_at: int, now: int) -> bool:
    changed = state.changed_at or 0
    opened = state.closed_until or 0
    return begun_at >= max(changed, opened) and now - max(changed, opened) >= STEP


def failed(
    state: RouteState | None,
    route_key: str,
    configured: int | None,
    begun_at: int,
    now: int,
    draw: float,
) -> RouteState | None:
    """The provider was at fault."""
    state = state or RouteState(route_key=route_key)
    if state.closed(now):
        return None
    in_a_row = state.faults + 1 if now - (state.fault_at or 0) <= FAULT_WINDOW else 1
    fresh = begun_at >= max(state.changed_at or 0, state.closed_until or 0)
    probing = fresh and state.limit is not None and state.limit <= PROBE and not _lapsed(state, now)
    if probing or in_a_row >= OPEN_AFTER:
        return _open(state, now, draw)
    counted = replace(state, faults=in_a_row, fault_at=now)
    return _halved(counted, configured, now) if fresh else counted


def _open(state: RouteState, now: int, draw: float) -> RouteState:
    """Closed for a while that doubles each time; the draw spreads the probes of several routes."""
    length = min(LONGEST_OPEN, FIRST_OPEN << min(state.opens, 10))
    until = now + int(length * (0.75 + draw / 4))
    return replace(
        state,
        limit=0,
        closed_until=until,
        reason=CIRCUIT,
        closed_by=CIRCUIT_SELF,
        since=now,
        ramp_since=until,
        faults=0,
        fault_at=now,
        opens=state.opens + 1,
        changed_at=now,
        due_at=until,
    )


def _halved(state: RouteState, configured: int | None, now: int) -> RouteState:
    current = effective(state, configured, now) or CEILING
    return replace(state, limit=max(PROBE, current // 2), changed_at=now)


def slowed(
    state: RouteState | None,
    route_key: str,
    configured: int | None,
    begun_at: int,
    now: int,
) -> RouteState | None:
    """The provider answered, but late: fewer calls at once, never none."""
    state = state or RouteState(route_key=route_key)
    if state.closed(now) or begun_at < max(state.changed_at or 0, state.closed_until or 0):
        return None
    lower = _halved(state, configured, now)
    return lower if lower.limit != effective(state, configured, now) else None


def closed(  # noqa: PLR0913 - a closure says all of this
    state: RouteState | None,
    route_key: str,
    configured: int | None,
    *,
    until: int,
    reason: str,
    by: str,
    now: int,
    gently: bool,
) -> RouteState | None:
    """Closed until T because R; a later release time stands. `gently`: reopens with half its calls, else with one."""
    state = state or RouteState(route_key=route_key)
    if state.closed_until is not None and state.closed_until >= until and state.closed(now):
        # A circuit may be asked sooner than it said, what a hint or a person closed may not: the later time stays.
        known_better = state.closed_by == CIRCUIT_SELF != by
        return replace(state, reason=reason, closed_by=by) if known_better else None
    known = state.closed(now) and state.reason == reason
    current = max(PROBE, state.limit) if state.limit is not None else (configured or CEILING)
    number = current if state.closed(now) else max(PROBE, current // 2)
    return replace(
        state,
        limit=number if gently and state.limit != 0 else 0,
        closed_until=until,
        reason=reason,
        closed_by=by,
        since=state.since if known and state.since else now,
        ramp_since=until,
        changed_at=now,
        due_at=until,
    )


def answers_again(before: RouteState | None, after: RouteState, now: int) -> bool:
    """Whether this change says that a provider whose circuit was open takes calls again: the probe went well."""
    if before is None or not before.opens or before.limit is None or after.closed(now):
        return False
    return before.limit <= PROBE and (after.limit is None or after.limit > PROBE)


def sooner(state: RouteState | None, now: int, draw: float) -> RouteState | None:
    """Its provider answers again on another route: probe now, not at the circuit's end; `FIRST_OPEN` apart at least.

    What a hint or an operator closed stays closed: they know better.
    """
    if state is None or state.closed_until is None or state.closed_by != CIRCUIT_SELF:
        return None
    until = max(now + int(draw * SPREAD), (state.fault_at or 0) + FIRST_OPEN)
    if until >= state.closed_until:
        return None
    return replace(state, closed_until=until, ramp_since=until, changed_at=now, due_at=until)


def paced(state: RouteState | None, route_key: str, until: int, now: int) -> RouteState | None:
    """A rate refused somebody, and has room again at `until`: from now on there is a line, unless there is one."""
    state = state or RouteState(route_key=route_key)
    return None if state.paced(now) else replace(state, paced_until=until)


def timed(state: RouteState) -> RouteState:
    """With the time at which somebody must look after it: when it opens, or when its line goes on."""
    times = [one for one in (state.due_at, state.paced_until) if one is not None]
    waits = state.closed_until is not None  # nobody goes before it opens
    return state if waits or not times else replace(state, due_at=min(times))


def opened(state: RouteState, now: int) -> RouteState:
    """Open again, from now on, at the start of its ramp."""
    return replace(
        state,
        limit=max(PROBE, state.limit or PROBE),
        closed_until=None,
        reason=None,
        closed_by=None,
        since=None,
        ramp_since=now if state.closed(now) else state.ramp_since,
        changed_at=now,
        due_at=None,
    )
