"""Outside schedulers: the job of the planned window, made once."""

from __future__ import annotations

from typing import Any

from breakwater import wiring
from breakwater.entry.cron import cron


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answer one call of the HTTP API."""
    return cron(wiring.for_schedules(), wiring.schedules(), wiring.cron_secrets, event)
