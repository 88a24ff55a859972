"""How long does the provider ask us to wait?

A hint is a floor for the next attempt. It becomes a release time on the job and on the route, so it is kept
exactly, however long, apart from being rounded up to whole seconds (queues know nothing finer, and waking early
breaks the hint). A hint that is absent, zero, negative or unreadable is None: our own back-off applies.

Order: `retry-after-ms`, `Retry-After`, what the body says, then the reset of a limit whose headers say that
nothing remains. A reset is when a bucket is full again, which is later than need be, so it comes last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from breakwater.domain.rules import times
from breakwater.domain.rules.bodies import error_objects
from breakwater.domain.signals import LimitDimension, Reply
from breakwater.domain.values import dataclass

_SECOND_MS = 1_000
_REMAINING = "remaining"
_NOTHING_LEFT = re.compile(r"0+(?:\.0+)?", re.ASCII)

_LIMIT_HEADER = re.compile(
    r"(?:x-|anthropic-)?ratelimit-(?:remaining-(?P<after>.+)|(?P<before>.+)-remaining|remaining)", re.ASCII
)
"""`x-ratelimit-remaining-tokens` (OpenAI), `anthropic-ratelimit-tokens-remaining`, `ratelimit-remaining`."""

_NUMBER = r"\d{1,12}(?:\.\d{1,12})?"
_IN_A_SENTENCE = re.compile(
    rf"\b(?:retry|try again) (?:in|after) (?:(?P<duration>(?:{_NUMBER}(?:ms|s|m|h)){{1,6}})\b"
    rf"|(?P<amount>{_NUMBER}) (?P<unit>second|minute|hour)s?\b)",
    re.ASCII | re.IGNORECASE,
)
_SPOKEN_MS = {"second": 1_000, "minute": 60_000, "hour": 3_600_000}
_LONGEST_SENTENCE = 2_000

_DIMENSIONS = (
    ("output", LimitDimension.OUTPUT_TOKENS),
    ("token", LimitDimension.INPUT_TOKENS),
    ("", LimitDimension.REQUESTS),
)
"""What a limit's header name says it counts; the first that is contained in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExhaustedLimit:
    """A limit of which nothing remains, and when the provider says it is full again (ms since the epoch)."""

    dimension: LimitDimension
    resets_at: int | None


def hint_ms(reply: Reply, *, limited: bool = True) -> int | None:
    """The wait a reply asks for, from when it was received, in whole seconds as milliseconds.

    `limited`: it is about a limit. Else the reset of an empty bucket has nothing to do with what went wrong.
    """
    return next(_hints(reply, limited=limited), None)


def retry_after_ms(value: str, now_ms: int, date: str | None = None) -> int | None:
    """`Retry-After`: seconds (decimals too) or an HTTP date, counted from the answer's own `Date` if it is one."""
    text = value.strip(" \t")
    wait = times.wait_ms(text, now_ms)
    if wait is not None:
        return usable(wait)
    sent_at = None if date is None else times.http_instant(date.strip(" \t"), now_ms)
    return usable(times.http_date_ms(text, now_ms if sent_at is None else sent_at))


def exhausted_limits(headers: Mapping[str, str], now_ms: int) -> tuple[ExhaustedLimit, ...]:
    """The limits of which the headers (lower-case names) say that nothing remains."""
    return tuple(
        ExhaustedLimit(
            dimension=_dimension(match["after"] or match["before"] or ""),
            resets_at=_reset_at(name, headers, now_ms),
        )
        for name, value in headers.items()
        if (match := _LIMIT_HEADER.fullmatch(name))
        and _NOTHING_LEFT.fullmatch(value.strip(" \t"))
        and _is_limit(headers.get(name.replace(_REMAINING, "limit")))
    )


def _is_limit(value: str | None) -> bool:
    """A limit of nothing, or of less, is a place-holder: nothing is measured there. Many name no limit at all."""
    text = "" if value is None else value.strip(" \t")
    return not (_NOTHING_LEFT.fullmatch(text) or text.startswith("-"))


def usable(delay_ms: int | None) -> int | None:
    """A delay as it may be kept: positive, in whole seconds, never longer than the calendar lasts."""
    if delay_ms is None or delay_ms <= 0:
        return None
    return min(-(-delay_ms // _SECOND_MS) * _SECOND_MS, times.MAX_DELAY_MS)


def _hints(reply: Reply, *, limited: bool) -> Iterator[int]:
    yield from _from_headers(reply.headers, reply.received_at)
    yield from _from_body(reply.body, reply.received_at)
    if limited:
        yield from _from_resets(reply)
    yield from _from_text(reply.body)


def _from_resets(reply: Reply) -> Iterator[int]:
    if times.wait_ms(reply.headers.get("retry-after", "").strip(" \t"), reply.received_at) is not None:
        return  # it has been said how long, if at all
    resets = [limit.resets_at for limit in exhausted_limits(reply.headers, reply.received_at)]
    delays = [delay for at in resets if at is not None and (delay := usable(at - reply.received_at)) is not None]
    if delays:
        yield max(delays)


def _from_headers(headers: Mapping[str, str], now_ms: int) -> Iterator[int]:
    exact = usable(times.number_ms(headers.get("retry-after-ms", "").strip(" \t"), 1))
    if exact is not None:
        yield exact
    plain = retry_after_ms(headers.get("retry-after", ""), now_ms, headers.get("date"))
    if plain is not None:
        yield plain


def _from_body(body: Any, now_ms: int) -> Iterator[int]:
    """The longest wait a body asks for: several limits can be reported at once."""
    found = [delay for error in error_objects(body) if (delay := usable(_said_by(error, now_ms))) is not None]
    if found:
        yield max(found)


def _from_text(body: Any) -> Iterator[int]:
    """A wait that stands in a sentence only, as with OpenAI, Azure and Gemini; of the sentence nothing is kept."""
    texts = [_text(error.get("message"))[:_LONGEST_SENTENCE] for error in error_objects(body)]
    found = [delay for text in texts for match in _IN_A_SENTENCE.finditer(text) if (delay := _spoken_ms(match))]
    if found:
        yield max(found)


def _spoken_ms(match: re.Match[str]) -> int | None:
    if match["duration"]:
        return usable(times.duration_ms(match["duration"]))
    return usable(times.number_ms(match["amount"], _SPOKEN_MS[match["unit"].lower()]))


def _said_by(error: Mapping[str, Any], now_ms: int) -> int | None:
    """Gemini's `retryDelay` of a RetryInfo, OpenRouter's `retry_after` and `resets_at`."""
    if error.get("retryDelay") is not None:
        return _protobuf_duration_ms(error["retryDelay"])
    wait = times.wait_ms(_text(error.get("retry_after")), now_ms)
    return wait if wait is not None else times.reset_ms(_text(error.get("resets_at")), now_ms)


def _protobuf_duration_ms(value: Any) -> int | None:
    """As JSON `"45.8s"`, as the fields of the message `{"seconds": 45, "nanos": 800000000}`."""
    if not isinstance(value, Mapping):
        return times.duration_ms(_text(value))
    seconds = times.number_ms(_text(value.get("seconds", 0)), _SECOND_MS)
    nanos = times.duration_ms(_text(value.get("nanos", 0)) + "ns")
    return None if seconds is None or nanos is None else seconds + nanos


def _text(value: Any) -> str:
    return str(value).strip() if isinstance(value, str | int | float) else ""


def _dimension(name: str) -> LimitDimension:
    return next(dimension for part, dimension in _DIMENSIONS if part in name)


def _reset_at(remaining_header: str, headers: Mapping[str, str], now_ms: int) -> int | None:
    delay = times.reset_ms(headers.get(remaining_header.replace(_REMAINING, "reset"), "").strip(" \t"), now_ms)
    return None if delay is None or delay <= 0 else now_ms + min(delay, times.MAX_DELAY_MS)
