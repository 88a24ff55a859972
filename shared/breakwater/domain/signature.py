"""Did this delivery come from who it says, unchanged and just now?

Standard Webhooks, version 1: HMAC-SHA256 over `id.timestamp.body`, several signatures in one header and several secrets
on our side, so that either side can rotate first. The answer agrees with the official `openai` verifier wherever that
one returns or says "invalid signature"; where it leaks another exception, this one answers 4xx. Stricter on purpose are
headers that differ only in case, an id that is blank or longer than a key may be, and what counts as a secret
(`signing_keys.py`); more lenient is only a secret without its prefix, which may also be base64.

Everything is compared as bytes and entry by entry, so one bad entry never blocks a good one. The library's own `verify`
is not used: it splits the whole header first, reads only text bodies and takes the time from the wall.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from standardwebhooks.webhooks import hmac_data

from breakwater.domain.errors import SecretUnavailable
from breakwater.domain.signing_keys import VERSION, keys_of, strict_base64, utf8
from breakwater.domain.values import dataclass

TOLERANCE_S = 300
MAX_ID_CHARS = 256

Headers = Mapping[str, str] | Iterable[tuple[str, str]]


class Because(StrEnum):
    """Why a delivery is refused; the name of a metric, too."""

    NO_USABLE_SECRET = "no_usable_secret"  # noqa: S105 - a reason
    NO_BODY = "no_body"
    BODY_NOT_BASE64 = "body_not_base64"
    BODY_NOT_TEXT = "body_not_text"
    BODY_NOT_JSON = "body_not_json"
    NO_HEADERS = "no_headers"
    AMBIGUOUS_HEADERS = "ambiguous_headers"
    MISSING_ID = "missing_id"
    UNREADABLE_ID = "unreadable_id"
    MISSING_TIMESTAMP = "missing_timestamp"
    UNREADABLE_TIMESTAMP = "unreadable_timestamp"
    MISSING_SIGNATURE = "missing_signature"
    TOO_OLD = "too_old"
    TOO_NEW = "too_new"
    WRONG_SIGNATURE = "wrong_signature"


_STATUS = {
    Because.NO_USABLE_SECRET: 503,  # ours to repair; the sender tries again
    Because.NO_HEADERS: 401,
    Because.MISSING_SIGNATURE: 401,
    Because.TOO_OLD: 401,
    Because.TOO_NEW: 401,
    Because.WRONG_SIGNATURE: 401,
}


@dataclass(frozen=True, slots=True)
class HeaderNames:
    """What a sender calls the three headers, in lower case."""

    id: str = "webhook-id"
    timestamp: str = "webhook-timestamp"
    signature: str = "webhook-signature"


STANDARD = HeaderNames()


@dataclass(frozen=True, slots=True)
class Verified:
    """It is genuine. `webhook_id` is the same over all attempts of one delivery, `timestamp` (s) is not."""

    webhook_id: str
    timestamp: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """It is not taken, and why."""

    because: Because

    @property
    def status(self) -> int:
        """The HTTP status to answer with: 4xx for the sender's faults, 503 for our missing secret."""
        return _STATUS.get(self.because, 400)

    @property
    def reason(self) -> str:
        """The reason as a word for logs and metrics."""
        return self.because.value


def verify(
    body: bytes,
    headers: Headers | None,
    secrets: Sequence[str | None],
    now_ms: int,
    *,
    tolerance_s: int = TOLERANCE_S,
    names: HeaderNames = STANDARD,
) -> Verified | Refusal:
    """Check a delivery against every secret; never raises, whatever the headers hold."""
    keys = [key for secret in secrets for key in keys_of(secret)]
    sent = _read(headers, names) if keys else Refusal(Because.NO_USABLE_SECRET)
    if isinstance(sent, Refusal):
        return sent
    timestamp = _timestamp(sent.stamp, now_ms // 1000, tolerance_s)
    if isinstance(timestamp, Refusal):
        return timestamp
    if not _any_matches(keys, sent.prefix + body, sent.signatures):
        return Refusal(Because.WRONG_SIGNATURE)
    return Verified(sent.webhook_id, timestamp)


def sign(secrets: Sequence[str | None], webhook_id: str, timestamp_s: int, body: bytes) -> str:
    """The signature header of a delivery of ours: one entry per current secret, so that receivers can rotate.

    Raises `SecretUnavailable` when none of the secrets is usable.
    """
    keys = [candidates[0] for secret in secrets if (candidates := keys_of(secret))]
    if not keys:
        raise SecretUnavailable("no usable signing secret")
    signed = f"{webhook_id}.{timestamp_s}.".encode() + body
    return " ".join(VERSION + _entry(key, signed).decode() for key in keys)


def raw_body(event_body: Any, is_base64: bool) -> bytes | Refusal:
    """The bytes that were signed, from the body of a gateway's event. Nothing is parsed, trimmed or re-encoded."""
    if not isinstance(event_body, str):
        return Refusal(Because.NO_BODY)
    if is_base64:
        decoded = strict_base64(event_body)
        return Refusal(Because.BODY_NOT_BASE64) if decoded is None else decoded
    encoded = utf8(event_body)
    return Refusal(Because.BODY_NOT_TEXT) if encoded is None else encoded


@dataclass(frozen=True, slots=True)
class Parsed:
    """The JSON value of a body: anything JSON can be."""

    value: Any


def parse(body: bytes) -> Parsed | Refusal:
    """The JSON in a verified body. Genuine senders can still send what is none: other bytes, too deep, too long."""
    try:
        return Parsed(json.loads(body.decode()))
    except UnicodeDecodeError:
        return Refusal(Because.BODY_NOT_TEXT)
    except (ValueError, RecursionError):
        return Refusal(Because.BODY_NOT_JSON)


# --- headers ---


@dataclass(frozen=True, slots=True)
class _Sent:
    """What the three headers say. `prefix` is what is signed before the body: the timestamp as sent, not as read."""

    webhook_id: str
    stamp: str
    signatures: str
    prefix: bytes


def _read(headers: Headers | None, names: HeaderNames) -> _Sent | Refusal:
    if headers is None:
        return Refusal(Because.NO_HEADERS)
    values = _by_name(headers)
    sought = [values.get(name.lower(), [""]) for name in (names.id, names.timestamp, names.signature)]
    if any(len(found) > 1 for found in sought):
        return Refusal(Because.AMBIGUOUS_HEADERS)
    webhook_id, stamp, signatures = (found[0] for found in sought)
    wrong = _missing(webhook_id, stamp, signatures)
    prefix = utf8(f"{webhook_id}.{stamp}.")
    if wrong is None and (prefix is None or len(webhook_id) > MAX_ID_CHARS):
        wrong = Because.UNREADABLE_ID
    return Refusal(wrong) if wrong else _Sent(webhook_id, stamp, signatures, prefix or b"")


def _by_name(headers: Headers) -> dict[str, list[str]]:
    """All values under each lower-case name; what is no text is not there."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        if isinstance(name, str) and isinstance(value, str):
            values.setdefault(name.lower(), []).append(value)
    return values


def _missing(webhook_id: str, stamp: str, signatures: str) -> Because | None:
    sought = (
        (webhook_id, Because.MISSING_ID),
        (stamp, Because.MISSING_TIMESTAMP),
        (signatures, Because.MISSING_SIGNATURE),
    )
    return next((because for value, because in sought if not value.strip()), None)


def _timestamp(text: str, now_s: int, tolerance_s: int) -> int | Refusal:
    """Whole seconds, not further than the tolerance from now, on either side and inclusive."""
    try:
        timestamp = int(text)
    except ValueError:
        return Refusal(Because.UNREADABLE_TIMESTAMP)
    if now_s - timestamp > tolerance_s:
        return Refusal(Because.TOO_OLD)
    return Refusal(Because.TOO_NEW) if timestamp - now_s > tolerance_s else timestamp


# --- keys and bytes ---


def _entry(key: bytes, signed: bytes) -> bytes:
    return base64.b64encode(hmac_data(key, signed))


def _any_matches(keys: Sequence[bytes], signed: bytes, signatures: str) -> bool:
    """Whether any entry is the signature of any key. An entry without a version is tried as version 1."""
    entries = [entry.removeprefix(VERSION).encode("utf-8", "surrogatepass") for entry in signatures.split()]
    expected = [_entry(key, signed) for key in keys]
    return any(hmac.compare_digest(one, entry) for one in expected for entry in entries)
