"""In every zone, around every jump from 2020 to 2035, the runs are those found by walking through the minutes.

The independent calculation knows no cron library and no offsets in pieces: it lists what the wall clock shows at each
minute of two days, and looks which of these match, which are missing and which come twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise, takewhile
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import example, given, settings
from hypothesis import strategies as st

from breakwater.domain.calendar import Ambiguous, Nonexistent, cron, runs_after, runs_until

ZONES = sorted(zone for zone in available_timezones() if "/" in zone and not zone.startswith(("Etc/", "posix/")))
MINUTE = timedelta(minutes=1)
FIRST_DAY = datetime(2020, 1, 1, tzinfo=UTC)
DAYS = (datetime(2036, 1, 1, tzinfo=UTC) - FIRST_DAY).days


@dataclass(frozen=True)
class Fields:
    """A cron expression, and separately the sets it means."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    weekdays: frozenset[int]  # 1 is Monday, 7 is Sunday
    both: bool  # day of month and weekday must both match, else either will do

    def match(self, shown: datetime) -> bool:
        """Whether a wall clock that shows this starts a run."""
        if shown.minute not in self.minutes or shown.hour not in self.hours:
            return False
        day, weekday = shown.day in self.days, shown.isoweekday() in self.weekdays
        return (day and weekday) if self.both else (day or weekday)


def field(*choices):
    """One of these (text, numbers) pairs."""
    return st.sampled_from([(text, frozenset(numbers)) for text, numbers in choices])


minutes = field(
    ("*", range(60)),
    ("*/15", range(0, 60, 15)),
    ("30", [30]),
    ("0", [0]),
    ("59", [59]),
    ("5-25/10", [5, 15, 25]),
    ("0,45", [0, 45]),
)
hours = field(
    ("*", range(24)),
    ("0-23", range(24)),
    ("*/2", range(0, 24, 2)),
    ("0", [0]),
    ("1", [1]),
    ("2", [2]),
    ("3", [3]),
    ("23", [23]),
    ("1-3", [1, 2, 3]),
    ("0,12", [0, 12]),
    ("22-23", [22, 23]),
)
days = field(
    ("*", range(1, 32)),
    ("*", range(1, 32)),
    ("1-15", range(1, 16)),
    ("*/2", range(1, 32, 2)),
    ("29", [29]),
)
weekdays = field(
    ("*", range(1, 8)),
    ("*", range(1, 8)),
    ("SUN", [7]),
    ("0", [7]),
    ("1-5", [1, 2, 3, 4, 5]),
    ("6,7", [6, 7]),
)


@st.composite
def fields(draw):
    """Any combination, with the meaning of two restricted day fields worked out here."""
    minute, hour, day, weekday = draw(minutes), draw(hours), draw(days), draw(weekdays)
    text = f"{minute[0]} {hour[0]} {day[0]} * {weekday[0]}"
    both = day[0].startswith("*") or weekday[0].startswith("*")
    return Fields(text, minute[1], hour[1], day[1], weekday[1], both)


@lru_cache(maxsize=1024)
def jumps(zone):
    """The days (from FIRST_DAY) in which the offset changes; any one day for a zone that never jumps."""
    weeks = changes(zone, range(0, DAYS, 7))
    return [day for week in weeks for day in changes(zone, range(week, week + 8))] or [100]


def changes(zone, days):
    """The days of these after which the offset is another one at the next."""
    info = ZoneInfo(zone)
    offsets = [(FIRST_DAY + timedelta(days=day)).astimezone(info).utcoffset() for day in days]
    return [day for day, (one, other) in zip(days, pairwise(offsets), strict=False) if one != other]


@lru_cache(maxsize=64)
def around(zone, day):
    """What the wall shows at each minute of a day and the half days beside it: (instant, naive local time)."""
    info, start = ZoneInfo(zone), FIRST_DAY + timedelta(days=day - 0.5)
    instants = [start + number * MINUTE for number in range(2 * 24 * 60)]
    return [(at, at.astimezone(info).replace(tzinfo=None, fold=0)) for at in instants]


def expected(fields, shown, nonexistent, ambiguous):
    """The runs within these minutes, by the two rules as they are written down."""
    times = {}
    for at, wall in shown:
        if fields.match(wall):
            times.setdefault(wall, []).append(at)
    pick = {Ambiguous.FIRST: slice(0, 1), Ambiguous.SECOND: slice(-1, None), Ambiguous.BOTH: slice(None)}[ambiguous]
    runs = {at for twice in times.values() for at in twice[pick]}
    if nonexistent is Nonexistent.SHIFT:
        runs |= {at for (_, before), (at, after) in pairwise(shown) if lost(fields, before, after)}
    return sorted(runs)


def lost(fields, before, after):
    """Whether a matching time lies between two neighbouring minutes."""
    missing = (after - before) // MINUTE - 1
    return missing > 0 and any(fields.match(before + number * MINUTE) for number in range(1, missing + 1))


def resolved(fields, nonexistent, ambiguous):
    """The rules in force: what is asked for, else by whether the schedule runs in every hour."""
    hourly = fields.hours == frozenset(range(24))
    return (
        nonexistent or (Nonexistent.SKIP if hourly else Nonexistent.SHIFT),
        ambiguous or (Ambiguous.BOTH if hourly else Ambiguous.FIRST),
    )


DAILY = Fields(
    "30 2 * * *", frozenset([30]), frozenset([2]), frozenset(range(1, 32)), frozenset(range(1, 8)), both=True
)


@settings(max_examples=400, derandomize=True, database=None, deadline=None)
@example("Australia/Lord_Howe", 7, DAILY, None, None)
@example("Africa/Casablanca", 3, DAILY, Nonexistent.SHIFT, Ambiguous.SECOND)
@example("America/Nuuk", 6, DAILY, None, None)
@given(
    st.sampled_from(ZONES),
    st.integers(0, 40),
    fields(),
    st.sampled_from([None, *Nonexistent]),
    st.sampled_from([None, Ambiguous.FIRST, Ambiguous.SECOND]),
)
def test_runs_are_those_of_a_walk_through_the_minutes(zone, jump, fields, nonexistent, ambiguous):
    """Forwards and backwards, whatever the zone, the calendar and the rules."""
    days = jumps(zone)
    shown = around(zone, days[jump % len(days)])
    low, high = (round(shown[number][0].timestamp() * 1000) for number in (0, -1))

    rhythm = cron(fields.text, zone, nonexistent, ambiguous)
    forward = list(takewhile(lambda at: at <= high, runs_after(rhythm, low - 1)))
    backward = list(takewhile(lambda at: at >= low, runs_until(rhythm, high)))

    walked = expected(fields, shown, *resolved(fields, nonexistent, ambiguous))
    assert [datetime.fromtimestamp(at / 1000, UTC) for at in forward] == walked
    assert backward == forward[::-1]
