"""When a client is told to look again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.polling import FIRST, SLOWEST, next_poll_after
from tests.support.builders import NOW, make_job


@pytest.mark.parametrize("built", ["succeeded", "dead_letter", "closed", "cancelled"])
def test_a_final_job_is_not_polled(built):
    """There is nothing more to learn."""
    assert next_poll_after(make_job(built), 30_000, NOW + 5) is None


@given(
    st.sampled_from(["pending", "review", "processing", "at_provider", "failed"]),
    st.integers(0, 100_000_000),
    st.integers(1, 10_000_000),
    st.integers(-10_000_000, 10_000_000),
)
def test_a_poll_is_never_too_soon_and_never_too_late(built, age, expected, ready_in):
    """Between a second and a minute, always."""
    job = make_job(built, ready_at=NOW + age + ready_in)

    assert FIRST <= next_poll_after(job, expected, NOW + age) <= SLOWEST


@given(st.integers(1, 10_000_000), st.integers(0, 10_000_000), st.integers(0, 10_000_000))
def test_an_overdue_job_is_polled_ever_less_often(expected, one, other):
    """Beyond its expected time, the older the slower."""
    early, late = sorted((expected + one, expected + other))
    job = make_job("processing")

    assert next_poll_after(job, expected, NOW + early) <= next_poll_after(job, expected, NOW + late)


def test_a_known_release_time_is_never_polled_earlier():
    """A client could learn nothing before."""
    job = make_job("failed", ready_at=NOW + 45_000)

    assert next_poll_after(job, 4_000, NOW) == 45_000


def test_a_job_that_runs_is_polled_by_its_expected_duration():
    """Twelve seconds left of twelve: a quarter."""
    assert next_poll_after(make_job("processing"), 12_000, NOW) == 3_000
