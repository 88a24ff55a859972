"""Who is calling? A key's hash is looked up; the gateway keeps the answer for a minute."""

from __future__ import annotations

import hashlib
from typing import Any

from breakwater import wiring

MAX_TOKEN_CHARS = 256


def handler(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    """Simple response of an HTTP API authorizer: the owner, the key's id and its scopes, or a plain no."""
    token = bearer(event)
    record = wiring.keys().api_key(hashlib.sha256(token.encode()).hexdigest()) if token else None
    if record is None or not record.usable(wiring.clock().now()):
        return {"isAuthorized": False}
    return {
        "isAuthorized": True,
        "context": {"owner_key": record.owner_key, "key_id": record.key_id, "scopes": " ".join(sorted(record.scopes))},
    }


def bearer(event: dict[str, Any]) -> str | None:
    """The token of an `Authorization: Bearer …` header, None for anything else."""
    headers = event.get("headers") or {}
    value = str(headers.get("authorization") or headers.get("Authorization") or "")
    scheme, _, token = value.strip().partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and 0 < len(token) <= MAX_TOKEN_CHARS else None
