"""What does the clock on the wall show, in a zone, at an instant? Instants are ms since the epoch (UTC)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


@lru_cache(maxsize=64)
def zone_of(name: str) -> ZoneInfo:
    """The zone of this IANA name; raises ValueError with a text for who wrote it."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"must be an IANA time zone such as Europe/Berlin, got {name!r}") from error


def utc(at_ms: int) -> datetime:
    """The instant as a datetime in UTC."""
    return _EPOCH + at_ms * _MS


def local(at_ms: int, zone: str) -> datetime:
    """The instant as the wall shows it; `fold` tells the second of two equal times."""
    return utc(at_ms).astimezone(zone_of(zone))


def offset_ms(zone: str, at_ms: int) -> int:
    """How far local time is ahead of UTC."""
    return (local(at_ms, zone).replace(tzinfo=UTC) - utc(at_ms)) // _MS


def instant(text: str) -> int:
    """The instant an ISO 8601 text names; without an offset it is UTC. Raises ValueError."""
    parsed = datetime.fromisoformat(text)
    return ((parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)) - _EPOCH) // _MS


def utc_text(at_ms: int) -> str:
    """`2026-12-01T07:00:00Z`; part of idempotency keys, so this form never changes."""
    return utc(at_ms).strftime("%Y-%m-%dT%H:%M:%SZ")


def local_text(at_ms: int, zone: str) -> str:
    """`2026-12-01T08:00:00+01:00`: what the wall shows, and how far that is from UTC."""
    return local(at_ms, zone).isoformat(timespec="seconds")
