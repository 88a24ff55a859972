"""Which job is this? The key is the identity.

`job_id` is derived from (owner, user_ref, workflow, idempotency key), so the same intent twice is the same primary key
and one conditional put is the unique constraint. The fingerprint of the canonical payload stands beside it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any


def canonical(value: Any) -> bytes:
    """One byte form per JSON value: sorted keys, no blanks, UTF-8. Raises ValueError for NaN and infinities."""
    return json.dumps(
        _plain(value),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    ).encode("utf-8", "surrogatepass")


def _plain(value: Any) -> Any:
    """JSON has one kind of number: 1.0 and 1 are the same value and must give the same bytes."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def encode(value: Any) -> bytes:
    """JSON as stored: UTF-8, keys in order; lone surrogates are kept as escapes so that it always encodes."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def digest(*parts: str | bytes | None) -> bytes:
    """SHA-256 over length-prefixed parts, so that no two lists of parts collide; None differs from empty."""
    hashed = hashlib.sha256()
    for part in parts:
        if part is None:
            hashed.update(b"-;")
            continue
        raw = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hashed.update(f"{len(raw)}:".encode())
        hashed.update(raw)
    return hashed.digest()


def job_id(owner: str, user_ref: str | None, workflow: str, key: str) -> str:
    """The id of the job behind one intent: `job_` and 32 lower-case base32 characters (160 bits)."""
    raw = digest("job", owner, user_ref, workflow, key)[:20]
    return "job_" + base64.b32encode(raw).decode().lower()


def fingerprint(payload: Any) -> str:
    """What a repeated key must match: hex SHA-256 of the canonical payload."""
    return hashlib.sha256(canonical(payload)).hexdigest()


def derived_key(
    *,
    owner: str,
    user_ref: str | None,
    workflow: str,
    payload: Any,
    target: str | None,
    window_ms: int,
    now: int,
) -> str:
    """The key of an intent that brought none: same input, same side-effect target, same time bucket, same job."""
    bucket = now // window_ms if window_ms > 0 else now
    raw = digest("derived", owner, user_ref, workflow, canonical(payload), target, str(bucket))
    return "auto-" + raw.hex()[:40]


def input_sha(body: bytes) -> str:
    """The content address of an input child."""
    return hashlib.sha256(body).hexdigest()
