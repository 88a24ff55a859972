"""What did this process lately read about a route? Good enough where a moment's age does no harm.

Admission turns work away for minutes, so five seconds are nothing to it; and an outcome that would change nothing in
the state its own gate read changes nothing now: whoever changed the route since knows better than this older call.
"""

from __future__ import annotations

from breakwater.domain.records import RouteState
from breakwater.usecases.deps import Deps


def route_now(deps: Deps, route_key: str) -> RouteState | None:
    """The state of a route as it stands."""
    state = deps.store.route(route_key)
    deps.noticed.routes[route_key] = (deps.now(), state)
    return state


def route_lately(deps: Deps, route_key: str, within: int) -> RouteState | None:
    """The same, at most `within` ms old."""
    kept = deps.noticed.routes.get(route_key)
    if kept is not None and deps.now() - kept[0] <= within:
        return kept[1]
    return route_now(deps, route_key)
