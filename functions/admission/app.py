"""The users' API: jobs are admitted, read, listed, cancelled and retried here. The work is done elsewhere."""

from __future__ import annotations

from typing import Any

from breakwater import wiring
from breakwater.entry.api import api


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answer one request of the HTTP API."""
    return api(wiring.for_admission(), event)
