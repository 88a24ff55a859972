"""Which concurrency limits bind one attempt? One scope for each number that somebody configured, none for the others.

Numbers come from the route (`limits`), the policy (`limits` and `backpressure.concurrency_key`), the owner's settings
and those of everybody (owner `*`) in the control table. Scope names hold no blank and no `#`: owners and users are
quoted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from breakwater.domain.job import Job
from breakwater.domain.policy import Policy
from breakwater.domain.ramp import effective, since
from breakwater.domain.records import RouteState
from breakwater.domain.routes import Route
from breakwater.domain.slots import UNBOUNDED, ScopeLimit

_RATE = "rate:"
EVERYBODY = "*"  # the owner whose settings hold for all


def route_scope(route_key: str) -> str:
    """The scope of a route as a whole: its limit, and its closure."""
    return f"route:{route_key}"


def rate_scope(route_key: str) -> str:
    """Where those wait whom a rate of the route refused."""
    return _RATE + route_key


def is_rate(scope: str) -> bool:
    """Whether those who wait there wait for a rate."""
    return scope.startswith(_RATE)


def paused_scope(workflow: str) -> str:
    """Where the jobs of a paused workflow wait."""
    return f"paused:{workflow}"


def of_one_owner(scope: str) -> bool:
    """Whether all who wait under a scope are the same owner's."""
    return any(part.startswith("owner:") for part in scope.split("|"))


def scopes(
    job: Job,
    policy: Policy,
    route: Route,
    state: RouteState | None,
    owner: Mapping[str, Any],
    everybody: Mapping[str, Any],
    now: int,
) -> tuple[ScopeLimit, ...]:
    """Every limit of this attempt, the narrowest first; a scope named twice gets its smaller number."""
    found: dict[str, ScopeLimit] = {}
    plain = (*_people(job, policy, route, owner), *_shared(job, policy, route), *_everybody(route, everybody))
    for scope, limit in plain:
        if limit is not None:
            known = found.get(scope)
            found[scope] = ScopeLimit(scope=scope, limit=min(limit, known.limit if known else limit))
    own = route_limit(route, state, now)
    if own is not None:
        found[own.scope] = own
    return tuple(found.values())


def route_limit(route: Route, state: RouteState | None, now: int) -> ScopeLimit | None:
    """The route's own limit: what is configured, narrowed by its ramp; None where neither says anything."""
    configured = route.limits.concurrency
    number = effective(state, configured, now)
    if number is None:
        return None
    scope = route_scope(route.route_key)
    if state is None or state.limit is None or number == configured:
        return ScopeLimit(scope=scope, limit=number)
    return ScopeLimit(scope=scope, limit=configured or UNBOUNDED, ramp=number, since=since(state))


def _people(
    job: Job,
    policy: Policy,
    route: Route,
    owner: Mapping[str, Any],
) -> Iterator[tuple[str, int | None]]:
    who = f"owner:{_quoted(job.owner_key)}"
    on_route, in_workflow = f"{route_scope(route.route_key)}|{who}", f"workflow:{job.workflow}|{who}"
    if job.user_ref is not None:
        user = f"user:{_quoted(job.user_ref)}"
        yield f"{who}|{user}", _number(owner.get("per_user"))
        yield f"{in_workflow}|{user}", policy.limits.per_user
        yield f"{on_route}|{user}", route.limits.per_user
    yield in_workflow, policy.limits.per_owner
    yield on_route, route.limits.per_owner
    yield on_route, _number(_within(owner, "per_route", route.route_key))
    yield who, _number(owner.get("concurrency"))


def _shared(job: Job, policy: Policy, route: Route) -> Iterator[tuple[str, int | None]]:
    keys = policy.ai_api_queueing_strategy.backpressure.concurrency_key
    yield "|".join(_key(one, job, route) for one in keys), policy.limits.concurrency if keys else None
    yield f"workflow:{job.workflow}", policy.limits.per_workflow


def _key(name: str, job: Job, route: Route) -> str:
    """One part of the scope that a policy shares its `concurrency` in."""
    values = {
        "owner_key": f"owner:{_quoted(job.owner_key)}",
        "user_ref": f"user:{_quoted(job.user_ref or '')}",
        "workflow": f"workflow:{job.workflow}",
        "route_key": route_scope(route.route_key) + "|any",  # not the route's own scope, which its ramp narrows
        "gateway": f"gateway:{_quoted(route.gateway or route.provider)}",
        "provider": f"provider:{route.provider}",
        "requested_model": f"model:{_quoted(route.model)}",
        "endpoint_type": f"endpoint:{route.endpoint}",
        "credential": f"credential:{_quoted(route.credential)}",
    }
    return values[name]


def _everybody(route: Route, settings: Mapping[str, Any]) -> Iterator[tuple[str, int | None]]:
    """What the account as a whole may do at once: per endpoint family, model, provider, and in all."""
    for kind, value in (("endpoint", route.endpoint), ("model", route.model), ("provider", route.provider)):
        yield f"all|{kind}:{_quoted(value)}", _number(_within(settings, f"per_{kind}", value))
    yield "all", _number(settings.get("concurrency"))


def _within(settings: Mapping[str, Any], name: str, key: str) -> Any:
    found = settings.get(name)
    return found.get(key) if isinstance(found, Mapping) else None


def _number(value: Any) -> int | None:
    """A limit from the control table; what is no positive number limits nothing."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _quoted(text: str) -> str:
    return quote(text, safe="@.-_")
