"""Which six switches can an operator throw when a provider is down? In the order of severity, light to heavy.

Each says who threw it, why, since when and until when, and may be narrowed to workflows, priorities or routes; what
names nothing concerns everything. A switch whose time is over is off without anybody doing anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from enum import StrEnum
from typing import Any

from breakwater.domain.states import Priority
from breakwater.domain.values import dataclass


class SwitchName(StrEnum):
    """The six, in order of severity."""

    QUEUE_INSTEAD_OF_FAIL = "queue_instead_of_fail"  # answer with a job at once, work when there is capacity
    PAUSE = "pause"  # non-critical work stops, what is left goes to people
    SERVE_LAST_RESULT = "serve_last_result"  # the last successful result, with its age
    ALTERNATIVE_ROUTE = "alternative_route"  # the approved other route, where its contract holds
    CIRCUIT_OVERRIDE = "circuit_override"  # routes closed (or opened, with a slow start) by a person
    MANUAL_RETRY = "manual_retry"  # who may retry by hand, and how often


MEANING: Mapping[SwitchName, str] = {
    SwitchName.QUEUE_INSTEAD_OF_FAIL: "Requests become queued jobs at once: an id, a status, the time to look again.",
    SwitchName.PAUSE: "These workflows or priorities wait. Their backlog is kept and goes on, in its order and within "
    "the limits, when the pause ends; their age limits still count. Scheduled runs are skipped where `schedules` is "
    "`skip`, else they wait too.",
    SwitchName.SERVE_LAST_RESULT: "Where a policy allows it, the last successful result is served with its age.",
    SwitchName.ALTERNATIVE_ROUTE: "Jobs take their approved other route if its contract holds; each says that it did.",
    SwitchName.CIRCUIT_OVERRIDE: "These routes are closed until the time given; they reopen with a slow start.",
    SwitchName.MANUAL_RETRY: "Manual retries are limited to `limit` for each job; 0 forbids them.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """One switch as thrown."""

    name: SwitchName
    who: str = ""
    why: str = ""
    since: int = 0
    until: int | None = None
    workflows: tuple[str, ...] = ()
    priorities: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    limit: int | None = None  # manual_retry
    schedules: str = "wait"  # pause: `wait` or `skip`

    def concerns(self, workflow: str, priority: Priority | None = None, route_key: str | None = None) -> bool:
        """Whether it is about this workflow, priority and route."""
        return (
            (not self.workflows or workflow in self.workflows)
            and (not self.priorities or priority is None or priority.value in self.priorities)
            and (not self.routes or route_key is None or route_key in self.routes)
        )

    def stored(self) -> dict[str, Any]:
        """As plain data, without what says nothing."""
        plain = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "name"}
        lists = {name: list(value) for name, value in plain.items() if isinstance(value, tuple)}
        return {name: value for name, value in {**plain, **lists}.items() if value not in (None, [])}

    def shown(self) -> dict[str, Any]:
        """What an affected answer says of it."""
        told = {"name": self.name.value, "why": self.why, "since": self.since, "meaning": MEANING[self.name]}
        return told if self.until is None else {**told, "until": self.until}


def in_force(stored: Mapping[str, Any], now: int) -> dict[SwitchName, Switch]:
    """The switches that are on now, in order of severity."""
    found = ((name, _read(name, stored.get(name.value))) for name in SwitchName)
    return {name: one for name, one in found if one is not None and (one.until is None or one.until > now)}


def _read(name: SwitchName, plain: Any) -> Switch | None:
    if not isinstance(plain, Mapping):
        return None
    known = {one.name: plain[one.name] for one in fields(Switch) if one.name in plain}
    lists = {key: tuple(value) for key, value in known.items() if isinstance(value, list | tuple)}
    return Switch(**{**known, **lists, "name": name})


def concerning(
    stored: Mapping[str, Any],
    now: int,
    workflow: str,
    priority: Priority | None = None,
    route_key: str | None = None,
) -> Iterator[Switch]:
    """The switches in force for one piece of work, in order of severity."""
    for one in in_force(stored, now).values():
        if one.concerns(workflow, priority, route_key):
            yield one


def paused(stored: Mapping[str, Any], now: int, workflow: str, priority: Priority) -> Switch | None:
    """The pause that holds this work back, if one does. A pause that names nothing pauses nothing."""
    one = in_force(stored, now).get(SwitchName.PAUSE)
    named = one is not None and bool(one.workflows or one.priorities)
    return one if one is not None and named and one.concerns(workflow, priority) else None
