"""What does a queue message say? A kind and an id, and nothing that matters."""

from __future__ import annotations

import json
from typing import Any

KINDS = frozenset({"job", "delivery", "route", "batch"})
_MAX_ID = 512


def parse_nudge(body: Any) -> tuple[str, str] | None:
    """(kind, id) of a nudge; None for anything that is none. Never raises."""
    try:
        value = json.loads(body)
    except (ValueError, TypeError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    kind, item_id = value.get("kind"), value.get("id")
    if isinstance(kind, str) and kind in KINDS and isinstance(item_id, str) and 0 < len(item_id) <= _MAX_ID:
        return kind, item_id
    return None
