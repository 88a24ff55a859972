"""When is new work turned away? When it would only wait until it is too old, or take from people what they wait for.

How long work waits is noticed by the workers that take it: one small item per lane, and per lane and owner, written
only while waits are noticeable and at most every ten seconds a process. So a quiet system writes nothing, and admission
knows the backlog's age from one cached read. A route that is closed for longer than a job may wait says the same. How
much stands in a lane is counted only where the policy limits that (`depth.py`).
"""

from __future__ import annotations

from urllib.parse import quote

from breakwater.domain.errors import Overloaded, TooMany, Unavailable
from breakwater.domain.job import Job
from breakwater.domain.policy import Policy
from breakwater.domain.priority import sheds
from breakwater.domain.records import RouteState
from breakwater.domain.states import Lane
from breakwater.domain.timing import MINUTE, SECOND
from breakwater.usecases.deps import Deps
from breakwater.usecases.depth import drains_in
from breakwater.usecases.noticed import route_lately

NOTICEABLE = 5 * SECOND
FRESH = MINUTE  # an older notice says nothing about now
_EVERY = 10 * SECOND
_KEEP = 5 * SECOND


def backlog_key(lane: Lane, owner_key: str | None = None) -> str:
    """Where a lane's wait is noticed, or that of one owner in it."""
    return f"LANE#{lane.value}" + ("" if owner_key is None else f"#{quote(owner_key, safe='')}")


def notice_wait(deps: Deps, job: Job, now: int) -> None:
    """A worker takes a job: tell how long it had been ready, if that is worth telling."""
    wait = now - max(job.ready_at, job.round_started_at)
    if wait < NOTICEABLE:
        return
    for key in (backlog_key(job.lane), backlog_key(job.lane, job.owner_key)):
        if now - deps.noticed.written.get(key, 0) < _EVERY:
            continue
        deps.noticed.written[key] = now
        try:
            deps.store.put_latest(key, now, {"wait_ms": wait})
        except Unavailable:
            return  # the next job tells


def waited(deps: Deps, lane: Lane, owner_key: str | None = None) -> int:
    """How long work of a lane lately waited, in ms; 0 where nothing noticeable was told."""
    key, now = backlog_key(lane, owner_key), deps.now()
    kept = deps.noticed.read.get(key)
    if kept is None or now - kept[0] > _KEEP:
        kept = (now, deps.store.latest(key))
        deps.noticed.read[key] = kept
    found = kept[1]
    return int(found["wait_ms"]) if found is not None and now - int(found["at"]) <= FRESH else 0


def check(deps: Deps, job: Job, policy: Policy) -> None:
    """Raise `Overloaded` (503) or `TooMany` (429), with an honest time to come again, or let the job in."""
    now, most = deps.now(), policy.lane(job.lane).max_queue_age_ms
    state = route_lately(deps, job.route_key, _KEEP)
    in_lane, opens_in = waited(deps, job.lane), _opens_in(state, now)
    if sheds(policy, job.lane, job.priority) and (in_lane > policy.lane(job.lane).max_wait_ms or opens_in):
        raise _refusal(
            policy,
            Overloaded,
            "Work of this priority is turned away while capacity is short.",
            "shed_priority_below",
            max(in_lane, opens_in, NOTICEABLE),
            field="priority",
            fix="come again later, or submit it as a background job",
        )
    if opens_in >= most and not policy.may_fall_back:
        why = f"The route is closed ({state.reason if state else ''}) for longer than the work may wait."
        raise _refusal(policy, Overloaded, why, "route_closed", max(SECOND, opens_in - most))
    if in_lane >= most:
        why = "The work ahead would take longer than this may wait."
        raise _refusal(policy, Overloaded, why, "backlog_age", max(in_lane - most, NOTICEABLE))
    own = waited(deps, job.lane, job.owner_key)
    if own >= most:
        why = "Your own work ahead would take longer than this may wait."
        raise _refusal(policy, TooMany, why, "owner_backlog_age", max(own - most, NOTICEABLE))
    _deep(deps, job, policy, in_lane, own, opens_in)


def _deep(deps: Deps, job: Job, policy: Policy, in_lane: int, own: int, opens_in: int) -> None:
    """Turn away what would make a lane, or its owner's part of it, deeper than the policy lets it be."""
    limit = policy.depth(job.lane)
    wait = None if limit.lane is None else drains_in(deps, job.lane, None, limit.lane, in_lane)
    if wait is not None:
        why = f"As many jobs as may ({limit.lane}) stand in the lane already."
        raise _refusal(policy, Overloaded, why, "backlog_depth", max(wait, opens_in))
    wait = None if limit.owner is None else drains_in(deps, job.lane, job.owner_key, limit.owner, own)
    if wait is not None:
        why = f"As many of your own jobs as may ({limit.owner}) stand in the lane already."
        raise _refusal(policy, TooMany, why, "owner_backlog_depth", max(wait, opens_in))


def _refusal(
    policy: Policy,
    kind: type[Overloaded | TooMany],
    why: str,
    rule: str,
    retry_after_ms: int,
    *,
    field: str = "workflow",
    fix: str = "come again after the time given",
) -> Overloaded | TooMany:
    """The last result, if the policy keeps one, is a member of the problem."""
    latest = {"latest": f"/v1/workflows/{policy.workflow}/latest"} if policy.serve_latest else {}
    return kind(why, field=field, rule=rule, fix=fix, retry_after_ms=retry_after_ms, **latest)


def _opens_in(state: RouteState | None, now: int) -> int:
    return (state.closed_until or now) - now if state is not None and state.closed(now) else 0
