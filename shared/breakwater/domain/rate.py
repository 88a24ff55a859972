"""How much of a rate per minute may be used now? A token bucket as one number (GCRA), in microseconds.

Each unit takes its share of time; what is reserved may run ahead of the clock by `BURST`. The share is a little larger
than a minute divided by the limit, so that no minute, wherever it begins, grants more than the limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from breakwater.domain.job import Job
from breakwater.domain.routes import Route
from breakwater.domain.signals import LimitDimension

MINUTE_US = 60_000_000
BURST_US = 10_000_000
_US = 1_000


def cost_us(units: int, per_minute: int) -> int:
    """The time that so many units take, rounded up."""
    return -(-max(units, 0) * (MINUTE_US + BURST_US) // per_minute)


def rate_key(route_key: str, dimension: LimitDimension) -> str:
    """The name of one rate of a route."""
    return f"{route_key}#{dimension.value}"


def reservations(job: Job, route: Route) -> Iterator[tuple[str, int]]:
    """What one attempt reserves: (rate, cost) for each rate that the route has."""
    limits = route.limits
    if limits.requests_per_minute is not None:
        yield rate_key(route.route_key, LimitDimension.REQUESTS), cost_us(1, limits.requests_per_minute)
    if limits.tokens_per_minute is not None:
        tokens = cost_us(job.estimated_tokens or 0, limits.tokens_per_minute)
        yield rate_key(route.route_key, LimitDimension.INPUT_TOKENS), tokens


def fits(reserved_until: int | None, now: int, cost: int) -> int:
    """How many reservations of `cost` a rate takes now; of those above its burst one, when nothing is reserved."""
    ahead = max((reserved_until or 0) - now, 0)
    return 1 if not ahead and cost > BURST_US else max(BURST_US - ahead, 0) // max(cost, 1)


def correction(job: Job, route: Route, used_tokens: int) -> tuple[str, int] | None:
    """By how much the reserved tokens were wrong, once the answer says what it used."""
    if route.limits.tokens_per_minute is None:
        return None
    by = cost_us(used_tokens, route.limits.tokens_per_minute)
    by -= cost_us(job.estimated_tokens or 0, route.limits.tokens_per_minute)
    return (rate_key(route.route_key, LimitDimension.INPUT_TOKENS), by) if by else None


def to_us(at_ms: int) -> int:
    """Milliseconds as microseconds."""
    return at_ms * _US


def to_ms(at_us: int) -> int:
    """Microseconds as milliseconds, rounded up: asking too early would only be refused again."""
    return -(-at_us // _US)
