"""What came back: deliveries, polls, lost leases, reviews, cancels at providers, routes that open, replays of many."""

from __future__ import annotations

from typing import Any

from breakwater import wiring
from breakwater.entry.queue import consume
from breakwater.usecases.circuit import reopen
from breakwater.usecases.complete import complete
from breakwater.usecases.deliver import deliver


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Work on the nudges of a batch; the answer names those that must come again."""
    deps = wiring.for_worker()

    def work(kind: str, item_id: str, _record: dict[str, Any]) -> None:
        if kind == "job":
            complete(deps, item_id)
        elif kind == "delivery":
            deliver(deps, item_id)
        elif kind == "route":
            reopen(deps, item_id)
        elif kind == "batch":
            from breakwater.usecases.batch import tick  # noqa: PLC0415 - brings pydantic, and is rare

            tick(deps, item_id)

    return consume(event, context, deps.log, work)
