"""Which route does a job take, when is its provider asked, and who closes a route?"""

from __future__ import annotations

from breakwater.domain.decide import CloseRoute, Decision
from breakwater.domain.policy import Policy
from breakwater.domain.routes import Route
from breakwater.domain.signals import ErrorClass
from breakwater.domain.timing import HOUR, SECOND
from breakwater.usecases.circuit import close
from breakwater.usecases.deps import Deps

_FIRST_POLL = 5 * SECOND


def polling(policy: Policy | None, route: Route | None, now: int, *, never: bool = False) -> tuple[int, int]:
    """When to ask the provider first, and by when it must be done.

    Where a webhook comes, the poll is only the safety net after its grace; elsewhere polls are how results arrive.
    `never`: the provider tells results itself and is not asked, so that somebody looks at the deadline only.
    """
    deadline = now + (policy.provider_deadline_ms if policy is not None else 24 * HOUR)
    if never:
        return deadline, deadline
    if policy is None:
        return now + _FIRST_POLL, deadline
    webhook = route is not None and route.capabilities.webhook is not None
    first = policy.webhook_grace_ms if webhook else min(policy.expected_duration_ms or _FIRST_POLL, _FIRST_POLL)
    return min(now + first, deadline), deadline


def close_route(deps: Deps, decision: Decision) -> None:
    """Write a closure once, for everybody: of one route, or of all that share a credential which was refused."""
    closure = decision.close
    if closure is None:
        return
    gently = closure.reason == ErrorClass.PACING.value
    for route in _affected(deps, closure):
        close(deps, route, until=closure.until, reason=closure.reason, by="provider", gently=gently)


def _affected(deps: Deps, closure: CloseRoute) -> list[Route]:
    keys = [closure.route_key] if closure.credential is None else deps.catalogue.route_keys()
    routes = [route for key in keys if (route := deps.catalogue.route(key)) is not None]
    return [one for one in routes if closure.credential is None or one.credential == closure.credential]
