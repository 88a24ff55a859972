"""What became of a notification, and when is it tried again? For up to three days, then it is given up for good."""

from __future__ import annotations

from collections.abc import Mapping

from breakwater.domain.hints import retry_after_ms
from breakwater.domain.timing import DAY, HOUR, MINUTE, SECOND
from breakwater.domain.values import dataclass

GIVE_UP_AFTER = 3 * DAY
LONGEST_HINT = 12 * HOUR  # a receiver may slow us down, not silence us
_DELAYS = (
    10 * SECOND,
    MINUTE,
    5 * MINUTE,
    30 * MINUTE,
    *(hours * HOUR for hours in (2, 5, 10, 14, 18, 22)),
)  # 71 h 36 min in all
_JITTER = 0.2

_GONE = 410
_ASKS_TO_WAIT = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Delivered:
    """The receiver took it."""

    status: int


@dataclass(frozen=True, slots=True)
class Retry:
    """It may work later. `retry_after_ms` is what the receiver asked for."""

    reason: str
    retry_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Disabled:
    """The receiver wants no more of them."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """We do not send it: the URL, its host, its address or our secret is not in order. Trying again can't help."""

    reason: str


Notified = Delivered | Retry | Disabled | Refused
"""The closed set of answers of a notifier."""


def answered(status: int, headers: Mapping[str, str], now_ms: int) -> Delivered | Retry | Disabled:
    """What an HTTP answer means. Redirects are not followed, so they are failures like any other."""
    if 200 <= status < 300:  # noqa: PLR2004 - the class of successes
        return Delivered(status)
    if status == _GONE:
        return Disabled("gone")
    hint = None
    if status in _ASKS_TO_WAIT:
        lower = {name.lower(): value for name, value in headers.items()}
        hint = retry_after_ms(lower.get("retry-after", ""), now_ms, lower.get("date"))
    return Retry(f"http_{status}", hint)


def notify_delay(tries: int, draw: float) -> int | None:
    """The wait after so many failed tries (1: the first): up to a fifth shorter by chance, None: given up."""
    if tries > len(_DELAYS):
        return None
    return int(_DELAYS[max(tries, 1) - 1] * (1 - _JITTER * draw))


def next_try(first_at: int, tries: int, now: int, draw: float, hint_ms: int | None = None) -> int | None:
    """When to try again; None: it has failed for three days and is given up."""
    delay = notify_delay(tries, draw)
    if delay is None:
        return None
    at = now + max(delay, min(hint_ms or 0, LONGEST_HINT))
    return at if at - first_at <= GIVE_UP_AFTER else None
