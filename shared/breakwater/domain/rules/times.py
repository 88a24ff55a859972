"""How long is it until the time a provider wrote down?

Every function takes text (and `now_ms` where the text is an instant) and returns a delay in exact milliseconds,
or None where the text can't be read that way. Zero and negative delays are returned as they are: what they are
worth is decided in `hints.py`. Text is checked with ASCII patterns before it reaches `int` or `Decimal`, which
accept underscores, other scripts' digits, `nan` and `inf`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import ROUND_CEILING, Context, Decimal

MAX_DELAY_MS = 100 * 365 * 86_400_000
"""A hundred years: longer delays are read as this one, so that `now + delay` is always a date."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PRECISE = Context(prec=60)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = f"(?P<month>{'|'.join(_MONTHS)})"
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"

_PLAIN = r"\d{1,300}(?:\.\d{1,300})?"  # more digits than that are no time
_NUMBER = re.compile(_PLAIN, re.ASCII)
_DURATION = re.compile(rf"(?:{_PLAIN}(?:ns|us|µs|μs|ms|s|m|h)){{1,20}}", re.ASCII)
_DURATION_PART = re.compile(rf"({_PLAIN})(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNIT_MS = {
    "ns": Decimal("0.000001"),
    "us": Decimal("0.001"),
    "µs": Decimal("0.001"),  # U+00B5, micro sign
    "μs": Decimal("0.001"),  # U+03BC, Greek letter mu
    "ms": Decimal(1),
    "s": Decimal(1_000),
    "m": Decimal(60_000),
    "h": Decimal(3_600_000),
}
_HTTP_DATES = tuple(
    re.compile(pattern, re.ASCII | re.IGNORECASE)
    for pattern in (
        # IMF-fixdate, and its relatives with a numeric zone
        rf"[a-z]{{3}}, (?P<day>\d\d?) {_MONTH} (?P<year>\d{{4}}) {_CLOCK} (?P<zone>gmt|utc|[+-]\d{{4}})",
        # RFC 850, with two digits of the year
        rf"[a-z]{{6,9}}, (?P<day>\d\d)-{_MONTH}-(?P<year>\d\d) {_CLOCK} (?P<zone>gmt|utc)",
        # asctime, always UTC
        rf"[a-z]{{3}} {_MONTH} (?P<day>[ \d]\d) {_CLOCK} (?P<year>\d{{4}})(?P<zone>)",
    )
)
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_YEARS_AHEAD = 50  # RFC 9110, 5.6.7: a two-digit year further ahead means the past century
_LATEST_SECONDS = Decimal(10**9)  # a larger bare number is an instant, not a wait of 31 years
_LATEST_EPOCH_SECONDS = Decimal(10**11)


def number_ms(text: str, unit_ms: int) -> int | None:
    """A plain non-negative number, whole or decimal, of units of `unit_ms`."""
    return _whole_ms(_PRECISE.multiply(Decimal(text), Decimal(unit_ms))) if _NUMBER.fullmatch(text) else None


def wait_ms(text: str, now_ms: int) -> int | None:
    """A wait in seconds, as a plain number; one that would be 31 years is an instant: seconds or ms since the epoch."""
    return _bare_number_ms(text, now_ms) if _NUMBER.fullmatch(text) else None


def duration_ms(text: str) -> int | None:
    """A duration as Go and protobuf write it: `6m0s`, `1h2m3.5s`, `12ms`, `45.837906927s`."""
    if not _DURATION.fullmatch(text):
        return None
    total = Decimal(0)
    for amount, unit in _DURATION_PART.findall(text):
        total = _PRECISE.add(total, _PRECISE.multiply(Decimal(amount), _UNIT_MS[unit]))
    return _whole_ms(total)


def http_date_ms(text: str, now_ms: int) -> int | None:
    """The time until an HTTP date in any of its three forms; all of them are UTC unless a zone is written."""
    instant = http_instant(text, now_ms)
    return None if instant is None else instant - now_ms


def http_instant(text: str, now_ms: int) -> int | None:
    """An HTTP date as milliseconds since the epoch; `now_ms` only tells the century of a two-digit year."""
    for pattern in _HTTP_DATES:
        if match := pattern.fullmatch(text):
            return _from_parts(match.groupdict(), now_ms)
    return None


def reset_ms(text: str, now_ms: int) -> int | None:
    """The time until a reset: a duration, seconds, seconds or milliseconds since the epoch, or a date."""
    if _NUMBER.fullmatch(text):
        return _bare_number_ms(text, now_ms)
    duration = duration_ms(text)
    if duration is not None:
        return duration
    return _rfc3339_ms(text, now_ms) if _INSTANT.fullmatch(text) else http_date_ms(text, now_ms)


def _whole_ms(amount: Decimal) -> int:
    return MAX_DELAY_MS if amount > MAX_DELAY_MS else int(amount.to_integral_value(ROUND_CEILING, _PRECISE))


def _bare_number_ms(text: str, now_ms: int) -> int | None:
    amount = Decimal(text)
    if amount < _LATEST_SECONDS:
        return number_ms(text, 1_000)
    instant = number_ms(text, 1_000 if amount < _LATEST_EPOCH_SECONDS else 1)
    return None if instant is None or instant >= MAX_DELAY_MS else instant - now_ms


def _rfc3339_ms(text: str, now_ms: int) -> int | None:
    try:
        instant = datetime.fromisoformat(text.upper())
    except ValueError:
        return None
    return _since_epoch(instant if instant.tzinfo else instant.replace(tzinfo=UTC)) - now_ms


def _from_parts(parts: dict[str, str], now_ms: int) -> int | None:
    year = int(parts["year"])
    try:
        instant = _date(parts, year if len(parts["year"]) > len("26") else _full_year(year, parts, now_ms))
    except (ValueError, OverflowError):
        return None
    return _since_epoch(instant)


def _full_year(two_digits: int, parts: dict[str, str], now_ms: int) -> int:
    """The latest year that ends in these digits and whose date does not lie more than fifty years ahead."""
    now = _EPOCH + timedelta(milliseconds=now_ms)
    latest = now.year + _YEARS_AHEAD
    year = latest - (latest - two_digits) % 100
    in_year = (_MONTHS.index(parts["month"].lower()) + 1, int(parts["day"]), int(parts["hour"]), int(parts["minute"]))
    too_far = year == latest and in_year > (now.month, now.day, now.hour, now.minute)
    return year - 100 if too_far else year


def _date(parts: dict[str, str], year: int) -> datetime:
    month = _MONTHS.index(parts["month"].lower()) + 1
    clock = timedelta(seconds=int(parts["second"]))  # 60, a leap second, is allowed
    if clock > timedelta(seconds=60):
        raise ValueError("no such second")
    hour, minute = int(parts["hour"]), int(parts["minute"])
    return datetime(year, month, int(parts["day"]), hour, minute, tzinfo=_zone(parts["zone"])) + clock


def _zone(text: str) -> timezone:
    if not text.startswith(("+", "-")):
        return UTC
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[3:5]))
    return timezone(-offset if text.startswith("-") else offset)


def _since_epoch(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(milliseconds=1)
