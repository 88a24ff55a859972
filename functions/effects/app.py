"""What is owed outside a job: usage, dead-letter references, bus events."""

from __future__ import annotations

from typing import Any

from breakwater import wiring
from breakwater.entry.queue import consume
from breakwater.usecases.effects import effects


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Work on the nudges of a batch; the answer names those that must come again."""
    deps = wiring.for_effects()

    def work(kind: str, item_id: str, _record: dict[str, Any]) -> None:
        if kind == "job":
            effects(deps, item_id)

    return consume(event, context, deps.log, work)
