"""What does this provider answer mean?

`classify` reads a reply into facts and takes the first row that matches: `FIRST`, the provider's own rows, then the
defaults, whose last row is unknown. It is total and never keeps a provider's message. A gateway passes on what the
provider behind it said, so its chain holds the rows of all of them beneath its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from breakwater.domain.hints import exhausted_limits, hint_ms
from breakwater.domain.rules.anthropic import ANTHROPIC
from breakwater.domain.rules.default import DEFAULT, FIRST, LOOKUP
from breakwater.domain.rules.endings import End
from breakwater.domain.rules.facts import Facts, facts_of, is_identifier
from breakwater.domain.rules.gateway import GATEWAY, THROTTLED
from breakwater.domain.rules.gemini import GEMINI
from breakwater.domain.rules.openai import OPENAI
from breakwater.domain.rules.rows import Row, Rows
from breakwater.domain.signals import ErrorClass, LimitDimension, Reply, Signal
from breakwater.domain.states import Visibility

_MONEY = frozenset({ErrorClass.SPEND, ErrorClass.QUOTA})
_BY_SENTENCE = "openai.quota_text"  # Gemini's per-minute limits say the same, and mean no money


def _gateway_chain() -> Rows:
    """Money before pace across all providers: their words stand side by side in what a gateway passes on."""
    rest = (*GATEWAY[1:], *GEMINI, *ANTHROPIC, *OPENAI, *THROTTLED)
    money = tuple(row for row in rest if row.error_class in _MONEY and row.name != _BY_SENTENCE)
    return (GATEWAY[0], *money, *(row for row in rest if row not in money))


CHAINS: Mapping[str, Rows] = {
    "openai": OPENAI,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "gateway": _gateway_chain(),
}
"""Each provider's rows, in order. A provider without an entry is read by the defaults alone."""

_LIMITS = frozenset({ErrorClass.PACING, ErrorClass.QUOTA})
_DAILY = {
    LimitDimension.REQUESTS: LimitDimension.DAILY_REQUESTS,
    LimitDimension.INPUT_TOKENS: LimitDimension.DAILY_TOKENS,
    LimitDimension.OUTPUT_TOKENS: LimitDimension.DAILY_TOKENS,
}
_SAID = (
    ("output tokens per", LimitDimension.OUTPUT_TOKENS),
    ("tokens per", LimitDimension.INPUT_TOKENS),
    ("requests per", LimitDimension.REQUESTS),
    ("concurrent", LimitDimension.CONCURRENCY),
)
"""Where a limit is named in a message only. It describes; nothing is decided by it."""
_FIRST_ERROR = 300


def classify(
    provider: str,
    reply: Reply,
    *,
    route_key: str = "",
    visibility: Visibility = Visibility.BACKGROUND_ONLY,
    lookup: bool = False,
) -> Signal:
    """The signal of a reply that is no success. `lookup`: the reply answers a question about a provider job."""
    facts = facts_of(reply)
    row = matching_row(provider, facts, lookup=lookup)
    return Signal(
        error_class=row.error_class,
        http_status=_status(facts, row),
        provider_error_type=facts.error_type or _ending_type(facts),
        provider_error_code=facts.error_code or _ending_code(facts),
        retry_after_ms=hint_ms(reply, limited=row.error_class in _LIMITS),
        limit_dimension=row.limit_dimension or _dimension(facts, row, reply),
        route_key=route_key,
        visibility_state=visibility,
        provider_request_id=facts.request_id,
        rule=row.name,
    )


def matching_row(provider: str, facts: Facts, *, lookup: bool = False) -> Row:
    """The first row that matches; there always is one."""
    rows = (*FIRST, *(LOOKUP if lookup else ()), *CHAINS.get(provider, ()), *DEFAULT)
    return next(row for row in rows if row.when.holds(facts))


def succeeded(reply: Reply) -> bool:
    """Whether the reply is a finished answer: a success outside, and a completed answer inside."""
    return facts_of(reply).ending.end is End.COMPLETED


def running(reply: Reply) -> bool:
    """Whether the reply says that the provider still works on it."""
    return facts_of(reply).ending.end is End.RUNNING


def _status(facts: Facts, row: Row) -> int | None:
    """An error in place of an answer counts as the status it would have had; a job that failed was read with a 200."""
    in_place_of_an_answer = facts.ending.end is End.ERROR and facts.status is not None and facts.status < _FIRST_ERROR
    return row.implies or facts.status if in_place_of_an_answer else facts.status


def _ending_type(facts: Facts) -> str | None:
    return facts.ending.end.value if facts.ending.word else None


def _ending_code(facts: Facts) -> str | None:
    word = facts.ending.word
    return word if word and is_identifier(word) else None


def _dimension(facts: Facts, row: Row, reply: Reply) -> LimitDimension | None:
    """Which limit was hit: the quota's name, the error's own word, an exhausted header, then the message."""
    if row.error_class not in _LIMITS:
        return None
    if facts.quotas:
        return _of_quotas(facts.quotas)
    counted = _counted(facts, reply)
    return _DAILY.get(counted, counted) if counted and "per day" in facts.text else counted


def _counted(facts: Facts, reply: Reply) -> LimitDimension | None:
    named = next((item for item in LimitDimension if item.value in facts.words), None)
    if named or "tokens" in facts.words:
        return named or LimitDimension.INPUT_TOKENS
    empty = exhausted_limits(reply.headers, reply.received_at)
    return empty[0].dimension if empty else next((item for part, item in _SAID if part in facts.text), None)


def _of_quotas(quotas: tuple[str, ...]) -> LimitDimension:
    daily = [quota for quota in quotas if "perday" in quota]
    named = " ".join(daily or quotas)
    counted = LimitDimension.INPUT_TOKENS if "token" in named else LimitDimension.REQUESTS
    counted = LimitDimension.OUTPUT_TOKENS if "outputtoken" in named else counted
    return _DAILY[counted] if daily else counted
