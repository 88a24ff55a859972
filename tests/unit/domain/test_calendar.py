"""When a schedule runs, on ordinary days and in the nights when clocks jump."""

from __future__ import annotations

from itertools import islice, takewhile

import pytest

from breakwater.domain.calendar import Ambiguous, Cron, Nonexistent, Rate, cron, runs_after, runs_until
from breakwater.domain.timing import HOUR, MINUTE
from breakwater.domain.zones import instant, local_text, utc_text

NEW_YORK, BERLIN, TORONTO = "America/New_York", "Europe/Berlin", "America/Toronto"


def following(rhythm, after, count=1):
    """The next runs as text."""
    return [utc_text(at) for at in islice(runs_after(rhythm, instant(after)), count)]


def between(rhythm, after, until):
    """The runs later than `after` up to `until`, as found in both directions."""
    low, high = instant(after), instant(until)
    forward = list(takewhile(lambda at: at <= high, runs_after(rhythm, low)))
    back = list(takewhile(lambda at: at > low, runs_until(rhythm, high)))
    assert forward == back[::-1]
    return [utc_text(at) for at in forward]


class TestFieldCase:
    def test_a_time_that_the_clock_jumps_over(self):
        """CR-01, 1 and 3: by default it runs the moment the clock jumps; with `skip` the next day."""
        for zone, after, jump, next_day in (
            (NEW_YORK, "2026-03-08T06:30:00Z", "2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"),
            (BERLIN, "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"),
        ):
            assert following(cron("30 2 * * *", zone), after, 2) == [jump, next_day]
            assert following(cron("30 2 * * *", zone, Nonexistent.SKIP), after) == [next_day]

    def test_a_time_that_the_clock_shows_twice(self):
        """CR-01, 2: it runs once, the first time, and then the next day."""
        nightly = cron("30 1 * * *", NEW_YORK)

        assert following(nightly, "2026-11-01T05:00:00Z") == ["2026-11-01T05:30:00Z"]
        assert following(nightly, "2026-11-01T05:30:00Z") == ["2026-11-02T06:30:00Z"]

    def test_the_second_of_two_equal_times_can_be_meant(self):
        """A report over the whole night rather runs after the hour that comes twice."""
        nightly = cron("30 1 * * *", NEW_YORK, ambiguous=Ambiguous.SECOND)

        assert following(nightly, "2026-11-01T05:00:00Z", 2) == ["2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z"]

    def test_every_quarter_of_an_hour_is_a_quarter_of_an_hour(self):
        """CR-01, 4: in the long night, too: eight runs in two hours."""
        runs = between(cron("*/15 * * * *", BERLIN), "2026-10-24T23:59:59Z", "2026-10-25T01:59:59Z")

        assert runs == [f"2026-10-25T0{hour}:{minute:02d}:00Z" for hour in (0, 1) for minute in (0, 15, 30, 45)]

    def test_the_hour_on_the_wall_stays(self):
        """CR-01, 5: nine o'clock is nine o'clock on the day of the jump."""
        assert following(cron("0 9 * * *", TORONTO), "2026-03-08T00:00:00Z") == ["2026-03-08T13:00:00Z"]

    def test_a_rate_knows_no_clock_on_the_wall(self):
        """CR-01, 6: two hours are two hours."""
        assert following(Rate(2 * HOUR), "2026-03-08T06:00:00Z") == ["2026-03-08T08:00:00Z"]

    @pytest.mark.parametrize("zone", [NEW_YORK, BERLIN, TORONTO, "Australia/Lord_Howe", "Asia/Kolkata", "UTC"])
    def test_the_next_run_is_always_later(self, zone):
        """CR-01: never now, never in the past, never months away."""
        nightly = cron("30 2 * * *", zone)

        for minute in range(0, 400 * 1440, 997):
            now = instant("2026-01-01T00:00:00Z") + minute * MINUTE
            assert now < next(runs_after(nightly, now)) <= now + 49 * HOUR


class TestRules:
    def test_several_lost_times_are_made_up_for_once(self):
        """Four runs that the clock jumps over become one at the jump, and none where a run falls on it anyway."""
        assert between(cron("*/15 2 * * *", BERLIN), "2026-03-28T12:00Z", "2026-03-29T12:00Z") == [
            "2026-03-29T01:00:00Z"
        ]
        assert between(cron("30 2,3 * * *", BERLIN), "2026-03-28T12:00Z", "2026-03-29T12:00Z") == [
            "2026-03-29T01:00:00Z",
            "2026-03-29T01:30:00Z",
        ]
        assert between(cron("0,30 2-3 * * *", BERLIN), "2026-03-28T12:00Z", "2026-03-29T12:00Z") == [
            "2026-03-29T01:00:00Z",
            "2026-03-29T01:30:00Z",
        ]

    def test_an_hourly_run_does_not_pile_up_at_the_jump(self):
        """Nothing is lost for a schedule that runs in every hour; `shift` can still be asked for."""
        night = "2026-03-29T00:00Z", "2026-03-29T02:00Z"

        assert between(cron("30 * * * *", BERLIN), *night) == ["2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"]
        assert between(cron("30 * * * *", BERLIN, Nonexistent.SHIFT), *night) == [
            "2026-03-29T00:30:00Z",
            "2026-03-29T01:00:00Z",
            "2026-03-29T01:30:00Z",
        ]

    @pytest.mark.parametrize(
        ("rule", "hours"), [(None, [0, 1]), (Ambiguous.BOTH, [0, 1]), (Ambiguous.FIRST, [0]), (Ambiguous.SECOND, [1])]
    )
    def test_an_hourly_run_in_the_long_night(self, rule, hours):
        """Both by default; one of them when asked for."""
        runs = between(cron("30 * * * *", BERLIN, ambiguous=rule), "2026-10-25T00:00Z", "2026-10-25T02:00Z")

        assert runs == [f"2026-10-25T0{hour}:30:00Z" for hour in hours]

    def test_a_day_that_is_missing_from_the_calendar(self):
        """Samoa had no 30 December 2011: the day's run falls on the jump."""
        noon = cron("0 12 30 12 *", "Pacific/Apia")

        assert following(noon, "2011-12-01T00:00Z", 2) == ["2011-12-30T10:00:00Z", "2012-12-29T22:00:00Z"]

    def test_rare_runs_are_found_far_away_in_both_directions(self):
        """Leap days and long pauses cost nothing."""
        leap = cron("0 0 29 2 *", NEW_YORK)

        assert following(leap, "2026-03-01T00:00Z", 2) == ["2028-02-29T05:00:00Z", "2032-02-29T05:00:00Z"]
        assert [utc_text(at) for at in islice(runs_until(leap, instant("2026-03-01T00:00Z")), 2)] == [
            "2024-02-29T05:00:00Z",
            "2020-02-29T05:00:00Z",
        ]

    def test_a_calendar_that_is_empty_ends(self):
        """The first of a month is never its fifth Monday: no run, and no endless search."""
        never = Cron("0 0 */31 * MON#5", BERLIN, Nonexistent.SHIFT, Ambiguous.FIRST)

        assert list(runs_after(never, instant("2026-01-01T00:00Z"))) == []
        assert list(runs_until(never, instant("2026-01-01T00:00Z"))) == []

    def test_rates_count_from_the_epoch_in_both_directions(self):
        """Nothing is remembered: whoever asks gets the same instants."""
        assert between(Rate(15 * MINUTE), "2026-01-01T00:00Z", "2026-01-01T00:30Z") == [
            "2026-01-01T00:15:00Z",
            "2026-01-01T00:30:00Z",
        ]

    def test_fractions_of_a_second_do_not_matter(self):
        """A run at this very millisecond is not later than it; one ms before, it is."""
        hourly, run = cron("0 * * * *", BERLIN), instant("2026-01-01T01:00Z")

        assert next(runs_after(hourly, run - 1)) == run
        assert next(runs_after(hourly, run)) == run + HOUR
        assert next(runs_until(hourly, run)) == run
        assert next(runs_until(hourly, run + 999)) == run
        assert next(runs_until(hourly, run - 1)) == run - HOUR


class TestChecks:
    @pytest.mark.parametrize(
        "expression", ["", "* * * *", "0 0 * * * *", "60 * * * *", "@daily", "0 0 31 2 *", "0 0 */31 * MON#5"]
    )
    def test_what_is_no_calendar_is_refused(self, expression):
        """Five fields, each in its range; no seconds, no names for whole expressions."""
        with pytest.raises(ValueError, match=r"five fields|no calendar|no day"):
            cron(expression, BERLIN)

    @pytest.mark.parametrize("zone", ["Berlin", "", "/etc/localtime", "../UTC", "Europe", "CEST+2"])
    def test_what_is_no_zone_is_refused(self, zone):
        """IANA names only."""
        with pytest.raises(ValueError, match="IANA"):
            cron("0 0 * * *", zone)

    def test_a_daily_run_cannot_be_asked_to_run_twice(self):
        """`both` is for schedules that follow elapsed time."""
        with pytest.raises(ValueError, match="ambiguous: both"):
            cron("30 1 * * *", BERLIN, ambiguous=Ambiguous.BOTH)

    def test_times_are_shown_in_both_clocks(self):
        """The same instant, in UTC and on the wall."""
        at = instant("2026-03-29T01:00:00+00:00")

        assert (utc_text(at), local_text(at, BERLIN)) == ("2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00")
        assert instant("2026-03-29T01:00:00") == at
