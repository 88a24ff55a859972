"""The operators' API: diagnosis, dead letters, replay, review, keys, switches, routes, audit."""

from __future__ import annotations

from typing import Any

from breakwater import wiring
from breakwater.entry.ops import ops


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answer one request of the HTTP API."""
    return ops(wiring.for_operator, event)
