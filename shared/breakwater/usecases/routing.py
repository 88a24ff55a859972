"""Which route does a job take, when is its provider asked, and who closes a route?"""

from __future__ import annotations

from breakwater.domain.decide import CloseRoute, Decision
from breakwater.domain.policy import Policy
from breakwater.domain.records import RouteState
from breakwater.domain.routes import Route
from breakwater.domain.timing import HOUR, SECOND
from breakwater.usecases.deps import Deps

_TRIES = 5
_FIRST_POLL = 5 * SECOND


def polling(policy: Policy | None, route: Route | None, now: int) -> tuple[int, int]:
    """When to ask the provider first, and by when it must be done.

    Where a webhook comes, the poll is only the safety net after its grace; elsewhere polls are how results arrive.
    """
    if policy is None:
        return now + _FIRST_POLL, now + 24 * HOUR
    deadline = now + policy.provider_deadline_ms
    webhook = route is not None and route.capabilities.webhook is not None
    first = policy.webhook_grace_ms if webhook else min(policy.expected_duration_ms or _FIRST_POLL, _FIRST_POLL)
    return min(now + first, deadline), deadline


def close_route(deps: Deps, decision: Decision) -> None:
    """Write a closure once, for everybody: of one route, or of all that share a credential which was refused."""
    closure = decision.close
    if closure is None:
        return
    for route_key in _affected(deps, closure):
        _close_one(deps, route_key, closure)


def _affected(deps: Deps, closure: CloseRoute) -> list[str]:
    if closure.credential is None:
        return [closure.route_key]
    routes = [deps.catalogue.route(key) for key in deps.catalogue.route_keys()]
    return [one.route_key for one in routes if one is not None and one.credential == closure.credential]


def _close_one(deps: Deps, route_key: str, closure: CloseRoute) -> None:
    """A later release time wins over an earlier one; one line (and so one alert) for each closure, not each job."""
    for _ in range(_TRIES):
        before = deps.store.route(route_key)
        if before is not None and before.closed(closure.until):
            return
        known = before is not None and before.closed(deps.now()) and before.reason == closure.reason
        after = RouteState(
            route_key=route_key,
            closed_until=closure.until,
            reason=closure.reason,
            closed_by="provider",
            since=before.since if known and before else deps.now(),
            rev=before.rev if before else 0,
        )
        if deps.store.put_route(before, after):
            if not known:
                deps.log.note("route_closed", route_key=route_key, until=closure.until, reason=closure.reason)
            return
