"""What a receiver's answer means, and when a notification is tried again."""

from __future__ import annotations

import pytest

from breakwater.domain.callbacks import Delivered, Disabled, Retry, answered, next_try, notify_delay
from breakwater.domain.timing import DAY, HOUR, MINUTE, SECOND

NOW = 1_760_000_000_000  # 2025-10-09T08:53:20Z


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_any_success_is_delivered(status):
    """The class decides, not the number."""
    assert answered(status, {}, NOW) == Delivered(status)


def test_gone_means_stop():
    """410 is the receiver's way to say: no more."""
    assert answered(410, {"Retry-After": "5"}, NOW) == Disabled("gone")


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_wait_that_is_asked_for_is_kept(status):
    """Seconds or a date, whatever the case of the header."""
    assert answered(status, {"Retry-After": "7"}, NOW) == Retry(f"http_{status}", 7 * SECOND)
    date = {"RETRY-AFTER": "Thu, 09 Oct 2025 08:54:20 GMT", "Date": "Thu, 09 Oct 2025 08:53:20 GMT"}
    assert answered(status, date, NOW) == Retry(f"http_{status}", MINUTE)
    assert answered(status, {"retry-after": "soon"}, NOW) == Retry(f"http_{status}")


@pytest.mark.parametrize("status", [101, 301, 302, 307, 400, 401, 404, 500, 501])
def test_everything_else_is_tried_again_in_our_own_time(status):
    """A redirect is not followed, and a fault may be repaired."""
    assert answered(status, {"Retry-After": "7", "Location": "https://elsewhere"}, NOW) == Retry(f"http_{status}")


def test_the_waits_grow_and_end_within_three_days():
    """Soon after the first failure, then slower; the last one is still inside."""
    waits = [notify_delay(tries, 0.0) for tries in range(1, 13)]
    kept = [wait for wait in waits if wait is not None]

    assert waits[10:] == [None, None]
    assert kept == sorted(kept)
    assert kept[0] <= 10 * SECOND
    assert 2.9 * DAY < sum(kept) < 3 * DAY


@pytest.mark.parametrize("draw", [0.0, 0.5, 0.999])
def test_chance_only_shortens_a_wait(draw):
    """By a fifth at most, so that receivers are not hit all at once."""
    for tries in range(1, 11):
        longest, wait = notify_delay(tries, 0.0), notify_delay(tries, draw)
        assert 0.8 * longest <= wait <= longest
    assert notify_delay(0, draw) == notify_delay(1, draw)


def test_the_next_try_is_never_before_the_receiver_wants_it():
    """Its wait is a floor, up to twelve hours; a longer one can't silence us."""
    assert next_try(NOW, 1, NOW, 0.0) == NOW + 10 * SECOND
    assert next_try(NOW, 1, NOW, 0.0, 5 * SECOND) == NOW + 10 * SECOND
    assert next_try(NOW, 1, NOW, 0.0, HOUR) == NOW + HOUR
    assert next_try(NOW, 1, NOW, 0.0, 365 * DAY) == NOW + 12 * HOUR


def test_after_three_days_it_is_over():
    """By the number of tries, or by the clock where a receiver slowed us down."""
    assert next_try(NOW, 11, NOW + DAY, 0.0) is None
    assert next_try(NOW, 10, NOW + 2 * DAY, 0.0) == NOW + 2 * DAY + 22 * HOUR
    assert next_try(NOW, 10, NOW + 2 * DAY + 3 * HOUR, 0.0) is None
