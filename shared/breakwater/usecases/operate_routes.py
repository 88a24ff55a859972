"""How does an operator see, close and open routes? Everything said is in the audit; a closed route costs no attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from breakwater.domain.errors import NotFound
from breakwater.domain.replay import Text
from breakwater.domain.routes import Route
from breakwater.usecases.audit import Action, Desk, audited
from breakwater.usecases.deps import Deps
from breakwater.usecases.switch_state import close_route, open_route


class Closing(BaseModel):
    """Until when a route is closed, and why."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    until: Annotated[int, Field(ge=0)]
    why: Text


def listed(deps: Deps) -> list[dict[str, Any]]:
    """Every route with its state."""
    routes = [deps.catalogue.route(key) for key in deps.catalogue.route_keys()]
    return [shown(deps, route) for route in routes if route is not None]


def need_route(deps: Deps, route_key: str) -> Route:
    """A route of the catalogue; raises `NotFound`."""
    route = deps.catalogue.route(route_key)
    if route is None:
        fix = f"use one of: {', '.join(deps.catalogue.route_keys())}"
        raise NotFound("There is no route of this key.", field="route_key", rule="exists", fix=fix)
    return route


def shown(deps: Deps, route: Route) -> dict[str, Any]:
    """One route: what it is, whether it is open, and since when not."""
    state, now = deps.store.route(route.route_key), deps.now()
    found: dict[str, Any] = {
        "route_key": route.route_key,
        "provider": route.gateway or route.provider,
        "model": route.model,
        "credential": route.credential,
        "open": state is None or not state.closed(now),
        "configured_limit": route.limits.concurrency,
    }
    if state is not None:
        found["limit_now"] = state.limit
        if state.closed(now):
            found |= {"closed_until": state.closed_until, "because": state.reason, "closed_by": state.closed_by}
            found["since"] = state.since
    return {name: value for name, value in found.items() if value is not None}


def close(desk: Desk, route_key: str, wanted: Closing) -> dict[str, Any]:
    """Closed until then, for everybody. A later time that stands already is kept."""
    deps, route = desk.deps, need_route(desk.deps, route_key)

    def work() -> tuple[dict[str, Any], Mapping[str, Any]]:
        close_route(deps, route_key, until=wanted.until, why=wanted.why, by=desk.name)
        after = shown(deps, route)
        return after, after

    action = Action(what="close_route", target=f"route:{route_key}", why=wanted.why, before=shown(deps, route))
    return audited(desk, action, work)


def open_(desk: Desk, route_key: str, why: str) -> dict[str, Any]:
    """Open a route before its time; it starts slowly."""
    deps, route = desk.deps, need_route(desk.deps, route_key)

    def work() -> tuple[dict[str, Any], Mapping[str, Any]]:
        open_route(deps, route_key)
        after = shown(deps, route)
        return after, after

    action = Action(what="open_route", target=f"route:{route_key}", why=why, before=shown(deps, route))
    return audited(desk, action, work)
