"""Which planned runs lie where, and which jobs does a tick create?

A tick looks at the windows since the last one that was dealt with, so it does not matter how often, by whom or how late
it is called: what was missed it finds. One instant is remembered, `Tick.last_window_ms`; losing a write of it does no
harm, since a window's job exists only once.
"""

from __future__ import annotations

from itertools import islice, takewhile
from typing import Any

from breakwater.domain.calendar import runs_after, runs_until
from breakwater.domain.schedules import Missed, Overlap, Schedule, filled, length_ms
from breakwater.domain.timing import MINUTE
from breakwater.domain.values import dataclass
from breakwater.domain.zones import local_text, utc_text

ON_TIME = 2 * MINUTE  # ticks come each minute, and one may fail
COUNT_LIMIT = 1_000  # passed-over windows are counted for the log, up to here


@dataclass(frozen=True, slots=True)
class Window:
    """One planned run: the instant, and what the wall in the schedule's zone shows then."""

    start_ms: int
    local: str

    @property
    def utc(self) -> str:
        """The planned instant as text."""
        return utc_text(self.start_ms)


@dataclass(frozen=True, slots=True)
class Tick:
    """What a tick found: the windows to create jobs for (oldest first), what to remember, how many were passed over."""

    create: tuple[Window, ...] = ()
    last_window_ms: int | None = None
    passed_over: int = 0


def windows(schedule: Schedule, after_ms: int, until_ms: int, limit: int) -> list[Window]:
    """The windows later than `after_ms` and up to `until_ms`, the first `limit` of them."""
    runs = takewhile(lambda at: at <= until_ms, runs_after(schedule.rhythm, after_ms))
    return [_window(schedule, at) for at in islice(runs, limit)]


def next_runs(schedule: Schedule, after_ms: int, count: int) -> list[Window]:
    """The next so many windows."""
    return [_window(schedule, at) for at in islice(runs_after(schedule.rhythm, after_ms), count)]


def planned_window(schedule: Schedule, at_ms: int, early_ms: int = 0) -> Window | None:
    """The window an arrival at this instant is about: the latest planned by then, or one at most `early_ms` ahead."""
    run = next(runs_until(schedule.rhythm, at_ms + early_ms), None)
    return None if run is None else _window(schedule, run)


def idempotency_key(schedule: Schedule, window: Window) -> str:
    """`schedule:nightly:2026-12-01T07:00:00Z`: one job per schedule and window, whoever creates it."""
    return f"schedule:{schedule.name}:{window.utc}"


def job_input(schedule: Schedule, window: Window) -> dict[str, Any]:
    """The input of a window's job. `window_end` is when the next one is planned, empty where there is none."""
    later = next(runs_after(schedule.rhythm, window.start_ms), None)
    earlier = next(runs_until(schedule.rhythm, window.start_ms - 1), None)
    values = {
        "schedule": schedule.name,
        "window_start": window.utc,
        "window_end": "" if later is None else utc_text(later),
        "previous_window_start": "" if earlier is None else utc_text(earlier),
    }
    made: dict[str, Any] = filled(schedule.input, values)
    return made


def still_running(schedule: Schedule, created_ms: int, now_ms: int, *, final: bool) -> bool:
    """Whether a window's job holds up later ones. A crashed or forgotten one does so only up to `overlap_limit`."""
    return not final and now_ms - created_ms < length_ms(schedule.overlap_limit)


def tick(schedule: Schedule, last_window_ms: int | None, now_ms: int, *, running: bool) -> Tick:
    """What to create now, given the last window dealt with (None: never seen) and whether its job still runs.

    The first tick of a new schedule makes up for nothing: it creates what is on time, and remembers where it stands.
    """
    latest = next(runs_until(schedule.rhythm, now_ms), None)
    if latest is None:
        return Tick(last_window_ms=last_window_ms)
    if last_window_ms is None:
        last_window_ms = latest - 1 if _on_time(latest, now_ms) else latest
    if latest <= last_window_ms or not schedule.enabled:
        return Tick(last_window_ms=max(latest, last_window_ms))
    if running and schedule.overlap is Overlap.QUEUE:
        return Tick(last_window_ms=last_window_ms)
    held_up = running and schedule.overlap is Overlap.SKIP
    create = () if held_up else _due(schedule, last_window_ms, latest, now_ms)
    return _ticked(schedule, last_window_ms, latest, create)


def _due(schedule: Schedule, last: int, latest: int, now: int) -> tuple[int, ...]:
    """The windows that the missed-run rule lets run, oldest first."""
    if schedule.missed is Missed.SKIP:
        return (latest,) if _on_time(latest, now) else ()
    if schedule.max_backfill is None:
        return (latest,)
    back = takewhile(lambda at: at > last, runs_until(schedule.rhythm, latest))
    due = tuple(islice(back, schedule.max_backfill))[::-1]
    return due[:1] if schedule.overlap is Overlap.QUEUE else due


def _ticked(schedule: Schedule, last: int, latest: int, create: tuple[int, ...]) -> Tick:
    """A queue's backfill goes on behind the one it creates; everything else is dealt with up to the latest window."""
    one_by_one = schedule.overlap is Overlap.QUEUE and create
    reached = create[-1] if one_by_one else latest
    seen = takewhile(lambda at: at <= reached, runs_after(schedule.rhythm, last))
    passed = sum(1 for _ in islice(seen, COUNT_LIMIT)) - len(create)
    return Tick(tuple(_window(schedule, at) for at in create), reached, passed)


def _on_time(run: int, now: int) -> bool:
    return now - run <= ON_TIME


def _window(schedule: Schedule, at: int) -> Window:
    return Window(at, local_text(at, schedule.zone))
