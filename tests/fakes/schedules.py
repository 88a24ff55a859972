"""Where schedules stand, in memory; a part of `FakeJobStore`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from breakwater.ports import Scheduled
from breakwater.store.schedules import schedule_attributes, scheduled_of
from breakwater.store.wire import to_wire


class FakeSchedules:
    """`ports.ScheduleStore`, over the items of the store it is part of."""

    items: dict[tuple[str, str], dict[str, Any]]
    _hook: Callable[[str, str], None]

    def scheduled(self, name: str) -> Scheduled | None:
        self._hook("scheduled", "before")
        item = self.items.get((f"SCHEDULE#{name}", "META"))
        return scheduled_of(item) if item else None

    def put_scheduled(self, before: Scheduled | None, after: Scheduled) -> bool:
        self._hook("put_scheduled", "before")
        key = (f"SCHEDULE#{after.name}", "META")
        standing = scheduled_of(self.items[key]) if key in self.items else None
        rev = before.rev if before else 0
        if (standing.rev if standing else 0) != rev:
            return False
        self.items[key] = to_wire(schedule_attributes(replace(after, rev=rev + 1)))
        self._hook("put_scheduled", "after")
        return True
