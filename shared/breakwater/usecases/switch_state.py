"""How does an operator throw a switch, close a route, and take both back?

Switches are one item of the control table, replaced under its revision; everybody reads it through a cache of 5 s.
Closing a route is the fifth switch: the closure itself stands on the route's item, where every step sees it at once.
Who may do this, and its audit, are the operator's API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from breakwater.domain.errors import InvalidRequest, StaleVersion
from breakwater.domain.limits import paused_scope
from breakwater.domain.routes import Route
from breakwater.domain.switches import Switch, SwitchName, in_force
from breakwater.usecases import circuit
from breakwater.usecases.deps import Deps
from breakwater.usecases.releaser import BATCH, release

_TRIES = 5
_MOST_BATCHES = 40


def switches(deps: Deps) -> dict[SwitchName, Switch]:
    """What is in force, in order of severity, read now."""
    return in_force(deps.control.switches_now(), deps.now())


def throw(deps: Deps, switch: Switch) -> Switch:
    """Put a switch in force, replacing what stood under its name; raises `InvalidRequest` where it says too little."""
    _check(deps, switch)
    _change(deps, lambda stored: {**stored, switch.name.value: switch.stored()})
    if switch.name is SwitchName.CIRCUIT_OVERRIDE:
        for key in switch.routes:
            until = switch.until or deps.now()
            circuit.close(deps, _route(deps, key), until=until, reason=f"operator: {switch.why}", by=switch.who)
    return switch


def lift(deps: Deps, name: SwitchName) -> Switch | None:
    """Take a switch back; what it held goes on in its order. None: it was not thrown."""
    found = in_force(deps.control.switches_now(), 0).get(name)
    if found is None:
        return None
    _change(deps, lambda stored: {key: value for key, value in stored.items() if key != name.value})
    if name is SwitchName.PAUSE:
        resume(deps, found)
    if name is SwitchName.CIRCUIT_OVERRIDE:
        for key in found.routes:
            circuit.open_again(deps, _route(deps, key))
    return found


def resume(deps: Deps, pause: Switch) -> int:
    """Wake what a pause held, first come first; the limits say how much of it runs at once."""
    woken = 0
    for workflow in pause.workflows or deps.catalogue.workflows():
        for _ in range(_MOST_BATCHES):
            count = release(deps, paused_scope(workflow))
            woken += count
            if count < BATCH:
                break
    return woken


def close_route(deps: Deps, route_key: str, *, until: int, why: str, by: str) -> Switch:
    """Close a route until T because R, for everybody."""
    standing = switches(deps).get(SwitchName.CIRCUIT_OVERRIDE)
    others = standing.routes if standing else ()
    later = max(until, standing.until or 0) if standing else until
    _check_closing(deps, route_key, until)
    switch = Switch(
        name=SwitchName.CIRCUIT_OVERRIDE,
        who=by,
        why=why,
        since=deps.now(),
        until=later,
        routes=tuple(dict.fromkeys((*others, route_key))),
    )
    _check(deps, switch)
    _change(deps, lambda stored: {**stored, switch.name.value: switch.stored()})
    circuit.close(deps, _route(deps, route_key), until=until, reason=f"operator: {why}", by=by)
    return switch


def open_route(deps: Deps, route_key: str) -> None:
    """Open a route before its time, whoever closed it; it starts slowly."""
    route = _route(deps, route_key)

    def without(stored: Mapping[str, Any]) -> dict[str, Any]:
        kept = dict(stored)
        plain = dict(kept.get(SwitchName.CIRCUIT_OVERRIDE.value) or {})
        plain["routes"] = [key for key in plain.get("routes", []) if key != route_key]
        if plain["routes"]:
            kept[SwitchName.CIRCUIT_OVERRIDE.value] = plain
        else:
            kept.pop(SwitchName.CIRCUIT_OVERRIDE.value, None)
        return kept

    _change(deps, without)
    circuit.open_again(deps, route)


def _change(deps: Deps, plan: Callable[[Mapping[str, Any]], dict[str, Any]]) -> None:
    for _ in range(_TRIES):
        stored = deps.control.switches_now()
        plain = {key: value for key, value in stored.items() if key not in ("pk", "sk", "rev")}
        after = plan(plain)
        if after == plain or deps.control.put_switches(int(stored.get("rev", 0)), after):
            return
    raise StaleVersion(item="SWITCH")


def _check(deps: Deps, switch: Switch) -> None:
    if not switch.who or not switch.why.strip():
        raise InvalidRequest("A switch needs a reason.", field="why", rule="not_empty", fix="say why in a few words")
    if switch.until is not None and switch.until <= deps.now():
        raise InvalidRequest("The time is over.", field="until", rule="in_the_future", fix="send a later time")
    if switch.name is SwitchName.PAUSE and not (switch.workflows or switch.priorities):
        raise InvalidRequest(
            "A pause names what it holds.",
            field="workflows",
            rule="not_empty",
            fix="name workflows, priorities or both",
        )
    if switch.name is SwitchName.CIRCUIT_OVERRIDE and not (switch.routes and switch.until):
        raise InvalidRequest(
            "Closing routes needs their keys and a time.", field="routes", rule="not_empty", fix="send both"
        )
    unknown = [one for one in switch.workflows if deps.catalogue.policy(one) is None]
    if unknown:
        raise InvalidRequest(
            "There is no such workflow.",
            field="workflows",
            rule="known_workflow",
            fix="use " + ", ".join(deps.catalogue.workflows()),
        )
    for key in switch.routes:
        _route(deps, key)


def _check_closing(deps: Deps, route_key: str, until: int) -> None:
    _route(deps, route_key)
    if until <= deps.now():
        raise InvalidRequest("The time is over.", field="until", rule="in_the_future", fix="send a later time")


def _route(deps: Deps, route_key: str) -> Route:
    route = deps.catalogue.route(route_key)
    if route is None:
        raise InvalidRequest(
            "There is no such route.",
            field="route_key",
            rule="known_route",
            fix="use one of: " + ", ".join(deps.catalogue.route_keys()),
        )
    return route
