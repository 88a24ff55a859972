"""Waits without a hint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.backoff import delay_ms, window_ms
from breakwater.domain.strategy import INTERACTIVE_BACKOFF, Backoff

DRAWS = st.floats(min_value=0, max_value=1, exclude_max=True)


@pytest.mark.parametrize(
    ("failures", "window"),
    [
        (0, 1_000),
        (1, 1_000),
        (2, 2_000),
        (3, 4_000),
        (6, 32_000),
        (7, 60_000),
        (8, 60_000),
        (10_000, 60_000),
    ],
)
def test_the_window_doubles_up_to_its_cap(failures, window):
    """1 s, doubled by each failure after the first, at most 60 s."""
    assert window_ms(Backoff(), failures) == window


def test_interactive_work_waits_in_a_smaller_window():
    """500 ms doubling to 30 s."""
    assert [window_ms(INTERACTIVE_BACKOFF, failures) for failures in (1, 2, 7, 8)] == [500, 1_000, 30_000, 30_000]


@given(failures=st.integers(0, 1_000), draw=DRAWS)
def test_a_wait_lies_between_the_floor_and_the_window(failures, draw):
    """Never below min_ms, never at or above the window, whole ms."""
    delay = delay_ms(Backoff(), failures, draw)

    assert isinstance(delay, int)
    assert 250 <= delay < window_ms(Backoff(), failures)


def test_a_wait_is_spread_over_the_whole_window():
    """Full jitter: the floor plus the drawn part of the rest."""
    assert [delay_ms(Backoff(), 1, draw) for draw in (0.0, 0.5, 0.999)] == [250, 625, 999]


@pytest.mark.parametrize("draw", [-0.1, 1.0, 2.0, float("nan")])
def test_dice_outside_their_range_are_a_mistake(draw):
    """A wrong draw is never turned into a wait."""
    with pytest.raises(ValueError, match="draw must be"):
        delay_ms(Backoff(), 1, draw)
