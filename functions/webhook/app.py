"""Providers' webhooks: verify, record, nudge. The work is done by the completion function."""

from __future__ import annotations

from typing import Any

from breakwater import wiring
from breakwater.entry.webhook import webhook


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Answer one delivery."""
    return webhook(wiring.for_intake(), wiring.endpoints(), wiring.webhook_secrets, event)
