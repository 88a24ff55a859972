"""Which route does a job take, when is its provider asked, and who closes a route?"""

from __future__ import annotations

from breakwater.domain.decide import Decision
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
    """Write a route's closure once, for everybody; a later release time wins over an earlier one."""
    closure = decision.close
    if closure is None:
        return
    for _ in range(_TRIES):
        before = deps.store.route(closure.route_key)
        if before is not None and before.closed(closure.until):
            return
        after = RouteState(
            route_key=closure.route_key, closed_until=closure.until, reason=closure.reason, closed_by="provider",
            since=deps.now(), rev=before.rev if before else 0,
        )
        if deps.store.put_route(before, after):
            deps.log.note("route_closed", route_key=closure.route_key, until=closure.until, reason=closure.reason)
            return
