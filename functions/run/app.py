"""The interactive path: one request, attempts within its deadline, one controlled answer."""

from __future__ import annotations

from typing import Any

from breakwater import wiring
from breakwater.entry.run import run_api


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one request of the HTTP API."""
    return run_api(wiring.for_worker(), event, context)
