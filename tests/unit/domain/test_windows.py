"""Which windows a tick creates jobs for: overlaps, missed ticks, two schedulers."""

from __future__ import annotations

from itertools import pairwise

import pytest

from breakwater.domain.calendar import Ambiguous, Cron, Nonexistent
from breakwater.domain.schedules import load_schedules
from breakwater.domain.timing import DAY, HOUR, MINUTE, SECOND
from breakwater.domain.windows import (
    ON_TIME,
    Tick,
    Window,
    idempotency_key,
    job_input,
    next_runs,
    planned_window,
    still_running,
    tick,
    windows,
)
from breakwater.domain.zones import instant, utc_text

START = instant("2026-12-01T00:00:00Z")


def schedule(**changes):
    """One schedule; daily at 07:00 UTC unless said otherwise."""
    entry = {"name": "nightly", "workflow": "w", "owner_key": "o", "input": {"prompt": "x"}}
    if "every" not in changes:
        entry |= {"cron": "0 7 * * *", "timezone": "UTC"}
    return load_schedules([entry | changes])["nightly"]


def starts(ticked):
    """The planned times of the jobs to create."""
    return [window.utc for window in ticked.create]


def simulate(one, minutes, run_ms, away=()):
    """Tick every minute as the sweep would; gives back (window, created at) of every job."""
    last, jobs = START - DAY, []
    for minute in range(minutes):
        now = START + minute * MINUTE + 7 * SECOND
        if minute in away:
            continue
        busy = bool(jobs) and still_running(one, jobs[-1][1], now, final=now - jobs[-1][1] >= run_ms)
        ticked = tick(one, last, now, running=busy)
        last = ticked.last_window_ms
        jobs += [(window.start_ms, now) for window in ticked.create]
    return jobs


class TestWindows:
    def test_windows_lie_after_and_up_to(self):
        """The first bound is excluded, the second included, and the limit holds."""
        hourly = schedule(every="1h")

        found = windows(hourly, START, START + 3 * HOUR, 10)

        assert [one.start_ms - START for one in found] == [HOUR, 2 * HOUR, 3 * HOUR]
        assert windows(hourly, START, START + DAY, 2) == found[:2] == next_runs(hourly, START, 2)

    def test_a_window_shows_both_clocks(self):
        """Local time in the schedule's zone, and UTC."""
        (window,) = next_runs(schedule(cron="30 2 * * *", timezone="Europe/Berlin"), instant("2026-03-29T00:00Z"), 1)

        assert (window.utc, window.local) == ("2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00")

    @pytest.mark.parametrize("late_ms", [0, 40, 55 * SECOND, 23 * HOUR])
    def test_the_window_is_the_planned_one(self, late_ms):
        """CR-02: three deliveries of one event, at +0 ms, +40 ms and +55 s, are one job."""
        at = instant("2026-12-01T07:00:00Z") + late_ms

        window = planned_window(schedule(), at)

        assert idempotency_key(schedule(), window) == "schedule:nightly:2026-12-01T07:00:00Z"

    def test_an_arrival_that_is_a_little_early_is_on_time(self):
        """Two clocks differ; without the allowance it would be yesterday's window again."""
        at = instant("2026-12-01T06:59:58Z")

        assert planned_window(schedule(), at).utc == "2026-11-30T07:00:00Z"
        assert planned_window(schedule(), at, 5 * SECOND).utc == "2026-12-01T07:00:00Z"

    def test_the_input_names_the_window_and_its_neighbours(self):
        """UTC, in the same form as the key."""
        names = ("schedule", "window_start", "window_end", "previous_window_start")
        one = schedule(input={name: f"<${{{name}}}>" for name in names})

        assert job_input(one, planned_window(one, START)) == {
            "schedule": "<nightly>",
            "window_start": "<2026-11-30T07:00:00Z>",
            "window_end": "<2026-12-01T07:00:00Z>",
            "previous_window_start": "<2026-11-29T07:00:00Z>",
        }

    def test_a_calendar_without_neighbours_leaves_them_empty(self):
        """No schedule that loads is so empty; the functions are total all the same."""
        one = schedule(input={"prompt": "${window_end}${previous_window_start}"})
        one.__dict__["rhythm"] = Cron("0 0 */31 * MON#5", "UTC", Nonexistent.SKIP, Ambiguous.FIRST)

        assert job_input(one, Window(START, "")) == {"prompt": ""}
        assert planned_window(one, START) is None
        assert tick(one, 7, START, running=False) == Tick(last_window_ms=7)


class TestFieldCase:
    def test_a_slow_job_is_not_overtaken(self):
        """CR-03, 1: every minute, 150 s long: with `skip` every third window runs, with `queue` the latest is next."""
        skipping = simulate(schedule(every="1m"), 10, 150 * SECOND)
        queueing = simulate(schedule(every="1m", overlap="queue"), 10, 150 * SECOND)

        assert [(window - START) // MINUTE for window, _ in skipping] == [0, 3, 6, 9]
        assert [(window - START) // MINUTE for window, _ in queueing] == [0, 3, 6, 9]
        for jobs in (skipping, queueing):
            created = [at for _, at in jobs]
            assert all(later - earlier >= 150 * SECOND for earlier, later in pairwise(created))

    def test_side_by_side_is_allowed_when_asked_for(self):
        """CR-03, 1: then every window runs."""
        assert len(simulate(schedule(every="1m", overlap="allow"), 10, 150 * SECOND)) == 10

    def test_a_missed_tick_is_made_up_for_once(self):
        """CR-03, 2: due at 07:00, nobody there until 07:03; one run, with the planned time, and it is counted."""
        jobs = simulate(schedule(), 8 * 60, MINUTE, away=range(7 * 60 - 1, 7 * 60 + 3))

        assert [(utc_text(window), utc_text(at)) for window, at in jobs[1:]] == [
            ("2026-12-01T07:00:00Z", "2026-12-01T07:03:07Z")
        ]

    def test_a_missed_tick_can_be_left_out(self):
        """With `missed: skip` only what is on time runs, and what was passed over is counted."""
        one, due = schedule(missed="skip"), instant("2026-12-01T07:00:00Z")

        assert starts(tick(one, due - DAY, due + ON_TIME, running=False)) == ["2026-12-01T07:00:00Z"]
        late = tick(one, due - DAY, due + ON_TIME + 1, running=False)
        assert (late.create, late.last_window_ms, late.passed_over) == ((), due, 1)

    def test_a_weekly_schedule_survives_daily_restarts(self):
        """CR-03, 3: nothing but the last window is remembered, and that is stored."""
        one = schedule(cron="0 7 * * 2")
        last, runs = START - 7 * DAY, []

        for day in range(21):
            ticked = tick(one, last, START + day * DAY + 8 * HOUR, running=False)
            last, runs = ticked.last_window_ms, runs + starts(ticked)

        assert runs == [f"2026-12-{day:02d}T07:00:00Z" for day in (1, 8, 15)]

    def test_a_job_that_never_ends_frees_the_schedule_after_its_limit(self):
        """CR-03, 4: the lock is the job, and a job can be lost."""
        one = schedule(every="1h", overlap_limit="3h")

        assert still_running(one, START, START + 3 * HOUR - 1, final=False)
        assert not still_running(one, START, START + 3 * HOUR, final=False)
        assert not still_running(one, START, START + 1, final=True)

    def test_six_hours_away_are_one_run(self):
        """CR-03, 5: one catch-up run on a one-minute schedule, not 360."""
        ticked = tick(schedule(every="1m"), START, START + 6 * HOUR, running=False)

        assert starts(ticked) == ["2026-12-01T06:00:00Z"]
        assert ticked.passed_over == 359

    @pytest.mark.parametrize("overlap", ["skip", "queue", "allow"])
    def test_two_schedulers_find_the_same_windows(self, overlap):
        """CR-02: whatever one has created, the other names the same."""
        one = schedule(every="1m", overlap=overlap)

        assert tick(one, START, START + HOUR + 1, running=False) == tick(one, START, START + HOUR + 900, running=False)


class TestTick:
    def test_a_new_schedule_makes_up_for_nothing(self):
        """Its first tick runs what is on time; older windows were before its time."""
        due = instant("2026-12-01T07:00:00Z")

        assert starts(tick(schedule(), None, due + MINUTE, running=False)) == ["2026-12-01T07:00:00Z"]
        first = tick(schedule(), None, due + HOUR, running=False)
        assert (first.create, first.last_window_ms) == ((), due)

    def test_a_disabled_schedule_does_not_save_up(self):
        """When it is enabled again, the pause is no catch-up."""
        due = instant("2026-12-01T07:00:00Z")
        off = tick(schedule(enabled=False), due - 5 * DAY, due + MINUTE, running=False)

        assert (off.create, off.last_window_ms) == ((), due)

    def test_nothing_new_changes_nothing(self):
        """Also for a clock that went back."""
        due = instant("2026-12-01T07:00:00Z")

        for now in (due, due + HOUR, due - DAY):
            ticked = tick(schedule(), due, now, running=False)
            assert (ticked.create, ticked.last_window_ms, ticked.passed_over) == ((), due, 0)

    def test_a_skipped_window_is_counted(self):
        """The job of yesterday is still running at seven."""
        due = instant("2026-12-01T07:00:00Z")
        ticked = tick(schedule(), due - DAY, due, running=True)

        assert (ticked.create, ticked.last_window_ms, ticked.passed_over) == ((), due, 1)

    def test_a_queued_window_waits(self):
        """It is created when the running one ends, however late that is."""
        one, due = schedule(overlap="queue"), instant("2026-12-01T07:00:00Z")

        waiting = tick(one, due - DAY, due, running=True)
        after = tick(one, waiting.last_window_ms, due + 5 * HOUR, running=False)

        assert (waiting.create, waiting.last_window_ms) == ((), due - DAY)
        assert starts(after) == ["2026-12-01T07:00:00Z"]

    def test_a_backfill_side_by_side_creates_the_latest_windows_at_once(self):
        """At most `max_backfill`, oldest first; the older ones are passed over."""
        one = schedule(every="1h", missed="backfill", max_backfill=3, overlap="allow")
        ticked = tick(one, START, START + 6 * HOUR, running=True)

        assert starts(ticked) == [f"2026-12-01T0{hour}:00:00Z" for hour in (4, 5, 6)]
        assert (ticked.last_window_ms, ticked.passed_over) == (START + 6 * HOUR, 3)

    def test_a_queued_backfill_creates_one_after_the_other(self):
        """Each waits for the one before it; none runs twice."""
        one = schedule(every="1h", missed="backfill", max_backfill=3, overlap="queue")
        last, made = START, []

        for _ in range(5):
            ticked = tick(one, last, START + 6 * HOUR, running=False)
            last, made = ticked.last_window_ms, [*made, (starts(ticked), ticked.passed_over)]

        assert made == [
            (["2026-12-01T04:00:00Z"], 3),
            (["2026-12-01T05:00:00Z"], 0),
            (["2026-12-01T06:00:00Z"], 0),
            ([], 0),
            ([], 0),
        ]

    def test_counting_is_bounded(self):
        """A minute schedule that was away for a year costs no more than one that was away for a day."""
        ticked = tick(schedule(every="1m"), START, START + 365 * DAY, running=False)

        assert (len(ticked.create), ticked.passed_over) == (1, 999)
