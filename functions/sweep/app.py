"""Every minute: repeat what was lost, find what ran out, count what crashed."""

from __future__ import annotations

from typing import Any

from breakwater import wiring
from breakwater.usecases.drain import drain
from breakwater.usecases.sweep import sweep


def handler(_event: dict[str, Any], context: Any) -> dict[str, Any]:
    """One bounded run; what was repaired, by kind."""
    deps = wiring.for_sweep()
    drained = drain(deps)
    return {"drained": dict(drained), "swept": dict(sweep(deps, context.get_remaining_time_in_millis))}
