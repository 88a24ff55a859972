"""Rates per minute: no minute, wherever it begins, grants more than the limit, and nothing that fits waits for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.rate import BURST_US, MINUTE_US, correction, cost_us, fits, rate_key, reservations, to_ms, to_us
from breakwater.domain.signals import LimitDimension
from tests.fakes.store import FakeJobStore
from tests.support.builders import make_job
from tests.support.catalogue import route


@given(
    limit=st.integers(10, 2_000),
    asks=st.lists(st.tuples(st.integers(0, 3_000_000), st.integers(1, 3)), min_size=1, max_size=200),
)
def test_no_minute_grants_more_than_the_limit(limit, asks):
    """Counted over every window that begins with a grant."""
    store, now, granted = FakeJobStore(), 10_000_000, []
    for passes, units in asks:
        now += passes
        if store.spend_rate("r", now, cost_us(units, limit), BURST_US) is None:
            granted.append((now, units))

    for at, _ in granted:
        inside = sum(units for when, units in granted if at <= when < at + MINUTE_US)
        assert inside <= max(limit, 3) + 3


@given(limit=st.integers(1, 1_000), units=st.integers(0, 5_000))
def test_the_time_it_names_is_when_it_is_granted(limit, units):
    """Whoever comes at that moment, and nobody before, gets it."""
    store, now = FakeJobStore(), 1_000_000
    cost = cost_us(units, limit)
    store.spend_rate("r", now, cost_us(1, limit), BURST_US)

    until = store.spend_rate("r", now, cost, BURST_US)

    if until is not None:
        assert until > now or cost == 0
        assert store.spend_rate("r", until + 1, cost, BURST_US) is None


@given(reserved=st.integers(0, 30_000_000) | st.none(), cost=st.integers(1, 20_000_000))
def test_as_many_fit_as_are_granted(reserved, cost):
    """Neither one more nor one less."""
    store, now = FakeJobStore(), 5_000_000
    if reserved is not None:
        store.rates["r"] = reserved

    granted = 0
    while store.spend_rate("r", now, cost, BURST_US) is None:
        granted += 1

    assert fits(reserved, now, cost) == granted


def test_a_route_reserves_what_its_limits_name():
    """A rate nobody configured is not asked."""
    job = make_job(estimated_tokens=700)

    assert list(reservations(job, route("plain"))) == []
    found = dict(reservations(job, route("r", limits={"requests_per_minute": 60, "tokens_per_minute": 7_000})))
    assert found == {
        rate_key("r", LimitDimension.REQUESTS): cost_us(1, 60),
        rate_key("r", LimitDimension.INPUT_TOKENS): cost_us(700, 7_000),
    }


def test_the_estimate_is_corrected_by_what_was_used():
    """Up or down; nothing where it was right or where no such rate is."""
    job = make_job(estimated_tokens=700)
    limited = route("r", limits={"tokens_per_minute": 7_000})

    assert correction(job, limited, 700) is None
    assert correction(job, limited, 200)[1] < 0 < correction(job, limited, 900)[1]
    assert correction(job, route("plain"), 900) is None


def test_times_round_up():
    """Asking a moment too early would only be refused."""
    assert (to_us(5), to_ms(5_000), to_ms(5_001)) == (5_000, 5, 6)
