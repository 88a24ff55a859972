"""Every minute: a job for each window that is due. The jobs are worked on elsewhere."""

from __future__ import annotations

from typing import Any

from breakwater import wiring
from breakwater.usecases.tick import tick


def handler(_event: dict[str, Any], context: Any) -> dict[str, Any]:
    """One look at every schedule; what was made, by kind."""
    deps = wiring.for_schedules()
    return {"ticked": dict(tick(deps, wiring.schedules().values(), context.get_remaining_time_in_millis))}
