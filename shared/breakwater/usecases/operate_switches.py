"""How does an operator throw a switch and take it back? `switch_state.py` does it; here it gets a name and an audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from breakwater.domain.errors import NotFound, TooLate
from breakwater.domain.replay import Short, Text
from breakwater.domain.states import Priority
from breakwater.domain.switches import MEANING, Switch, SwitchName
from breakwater.usecases.audit import Action, Desk, audited
from breakwater.usecases.deps import Deps
from breakwater.usecases.switch_state import lift, switches, throw


class Thrown(BaseModel):
    """What a switch is narrowed to, until when, and why."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    why: Text
    until: Annotated[int, Field(ge=0)] | None = None
    workflows: tuple[Short, ...] = ()
    priorities: tuple[Priority, ...] = ()
    routes: tuple[Short, ...] = ()
    limit: Annotated[int, Field(ge=0)] | None = None
    schedules: Literal["wait", "skip"] = "wait"


def listed(deps: Deps) -> list[dict[str, Any]]:
    """All six, in order of severity, with what each does and whether it is in force."""
    on = switches(deps)
    return [
        {"name": name.value, "meaning": MEANING[name], "on": name in on, **(on[name].stored() if name in on else {})}
        for name in SwitchName
    ]


def name_of(text: str) -> SwitchName:
    """A switch by name; raises `NotFound` naming all."""
    try:
        return SwitchName(text)
    except ValueError:
        known = ", ".join(one.value for one in SwitchName)
        raise NotFound("There is no such switch.", field="name", rule="exists", fix=f"use one of: {known}") from None


def put_on(desk: Desk, name: SwitchName, wanted: Thrown) -> dict[str, Any]:
    """Throw a switch, replacing what stood under its name."""
    switch = Switch(
        name=name,
        who=desk.name,
        why=wanted.why,
        since=desk.deps.now(),
        until=wanted.until,
        workflows=wanted.workflows,
        priorities=tuple(one.value for one in wanted.priorities),
        routes=wanted.routes,
        limit=wanted.limit,
        schedules=wanted.schedules,
    )

    def work() -> tuple[dict[str, Any], Mapping[str, Any]]:
        thrown = throw(desk.deps, switch).stored()
        return {"name": name.value, "on": True, **thrown}, thrown

    return audited(desk, _action(desk, "throw_switch", name, wanted.why), work)


def take_off(desk: Desk, name: SwitchName, why: str) -> dict[str, Any]:
    """Take a switch back; what it held goes on in its order."""

    def work() -> tuple[dict[str, Any], Mapping[str, Any]]:
        if lift(desk.deps, name) is None:
            raise TooLate("The switch is not on.", field="name", rule="in_force", fix="nothing was changed")
        return {"name": name.value, "on": False}, {"on": False}

    return audited(desk, _action(desk, "lift_switch", name, why), work)


def _action(desk: Desk, what: str, name: SwitchName, why: str) -> Action:
    standing = switches(desk.deps).get(name)
    return Action(what=what, target=f"switch:{name.value}", why=why, before=standing.stored() if standing else {})
