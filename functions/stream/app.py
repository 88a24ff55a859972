"""Readers of streams: a signed token opens one job's answer, as far as it came."""

from __future__ import annotations

from typing import Any

from breakwater import wiring
from breakwater.entry.stream import stream


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answer one request of a reader."""
    return stream(wiring.for_stream(), wiring.stream_secrets, event)
