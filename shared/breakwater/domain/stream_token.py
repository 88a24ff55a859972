"""May this reader see this job's stream? A signed text that names one job, its owner and an end.

`EventSource` can't send headers, so the token travels in the URL: it lives shortly, opens nothing but one stream, and
is checked in constant time, against the present secret and the one before it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from breakwater.domain.timing import MINUTE

LIFE_MS = 15 * MINUTE
_VERSION = "v1"
_LONGEST = 1_024
_SHORTEST_SECRET = 16


def secrets_of(entries: Mapping[str, Any]) -> tuple[str, ...]:
    """What tokens are signed with, the present one first. One that is too short is none."""
    found = (entries.get("current"), entries.get("previous"))
    return tuple(one for one in found if isinstance(one, str) and len(one) >= _SHORTEST_SECRET)


def sign(secret: str, job_id: str, owner_key: str, expires_at: int) -> str:
    """A token that opens one job's stream until `expires_at`."""
    owner = base64.urlsafe_b64encode(owner_key.encode()).rstrip(b"=").decode()
    return f"{_VERSION}.{expires_at}.{owner}.{_mac(secret, job_id, owner, str(expires_at))}"


def opened_by(secrets: tuple[str, ...], token: str, job_id: str, now: int) -> str | None:
    """The owner a token speaks for; None for one that is not ours, not for this job, or over. Never raises."""
    parts = token.split(".") if len(token) <= _LONGEST and token.isascii() else []
    if len(parts) != 4 or parts[0] != _VERSION or not secrets:  # noqa: PLR2004 - the parts of `sign`
        return None
    _, until, owner, given = parts
    genuine = False
    for secret in secrets:  # all of them, so that time tells nothing
        genuine |= hmac.compare_digest(_mac(secret, job_id, owner, until), given)
    if not genuine or int(until) <= now:
        return None
    return base64.urlsafe_b64decode(owner + "=" * (-len(owner) % 4)).decode()  # as `sign` wrote it


def _mac(secret: str, job_id: str, owner: str, until: str) -> str:
    said = f"breakwater stream\n{_VERSION}\n{job_id}\n{owner}\n{until}".encode()
    digest = hmac.new(secret.encode(), said, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
