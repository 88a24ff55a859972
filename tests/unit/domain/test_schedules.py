"""What a schedule may say, and how its author learns what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from breakwater.domain.calendar import Ambiguous, Cron, Nonexistent, Rate
from breakwater.domain.errors import InvalidPolicy
from breakwater.domain.schedules import filled, length_ms, load_schedules
from breakwater.domain.timing import DAY, HOUR, MINUTE

MINIMAL = {"name": "nightly", "workflow": "summary", "owner_key": "team", "input": {"prompt": "x"}, "every": "2h"}
CRON = {name: value for name, value in MINIMAL.items() if name != "every"} | {
    "cron": "30 2 * * *",
    "timezone": "Europe/Berlin",
}


def load(*entries, workflows=None):
    """Schedules from plain data."""
    return load_schedules({"schedules": list(entries)}, workflows)


def refused(entry):
    """The refusal of one entry."""
    with pytest.raises(InvalidPolicy) as caught:
        load(entry)
    return caught.value.field, str(caught.value)


def test_the_shipped_schedules_load():
    """They are examples, switched off."""
    shipped = load_schedules(yaml.safe_load(Path("shared/policies/schedules.yaml").read_text(encoding="utf-8")))

    assert shipped
    assert not any(one.enabled for one in shipped.values())


def test_a_calendar_takes_its_rules_from_the_schedule():
    """The defaults of the calendar hold where nothing is said."""
    plain = load(CRON)["nightly"]
    other = load(CRON | {"nonexistent": "skip", "ambiguous": "second"})["nightly"]

    assert plain.rhythm == Cron("30 2 * * *", "Europe/Berlin", Nonexistent.SHIFT, Ambiguous.FIRST)
    assert other.rhythm == Cron("30 2 * * *", "Europe/Berlin", Nonexistent.SKIP, Ambiguous.SECOND)


def test_a_rate_may_name_the_zone_it_is_shown_in():
    """The zone changes nothing but what is shown."""
    assert load(MINIMAL)["nightly"].rhythm == Rate(2 * HOUR)
    assert load(MINIMAL)["nightly"].zone == "UTC"
    assert load(MINIMAL | {"timezone": "Asia/Tokyo"})["nightly"].zone == "Asia/Tokyo"


@pytest.mark.parametrize(("text", "length"), [("15m", 15 * MINUTE), ("2h", 2 * HOUR), ("1d", DAY)])
def test_lengths_are_read(text, length):
    """Minutes, hours and days."""
    assert length_ms(text) == length


@pytest.mark.parametrize(
    ("change", "field", "text"),
    [
        ({"cron": "61 * * * *"}, "schedules[0].cron", "is no calendar"),
        ({"cron": "* * * * * *"}, "schedules[0].cron", "needs five fields"),
        ({"cron": "0 0 */31 * MON#5"}, "schedules[0].cron", "matches no day"),
        ({"timezone": "Berlin"}, "schedules[0].timezone", "IANA time zone"),
        ({"timezone": None}, "schedules[0]", "cron needs a timezone"),
        ({"cron": None}, "schedules[0]", "either cron or every"),
        ({"every": "2h"}, "schedules[0]", "either cron or every"),
        ({"ambiguous": "both"}, "schedules[0]", "both is for schedules that run in every hour"),
        ({"missed": "backfill", "overlap": "queue"}, "schedules[0]", "max_backfill belongs to"),
        ({"max_backfill": 3}, "schedules[0]", "max_backfill belongs to"),
        ({"missed": "backfill", "max_backfill": 3}, "schedules[0]", "needs overlap: queue or allow"),
        ({"missed": "backfill", "max_backfill": 0}, "schedules[0].max_backfill", ">= 1"),
        ({"missed": "skip", "overlap": "queue"}, "schedules[0]", "overlap: queue needs missed"),
        ({"input": {"a": [{"b": "${windw}"}]}}, "schedules[0].input", "${windw} is not known"),
        ({"overlap": "wait"}, "schedules[0].overlap", "must be one of"),
        ({"overlap_limit": "0h"}, "schedules[0].overlap_limit", "must match"),
        ({"name": "Nightly"}, "schedules[0].name", "must match"),
        ({"zone": "UTC"}, "schedules[0].zone", "is not a known key"),
    ],
)
def test_what_is_wrong_is_told_with_its_path(change, field, text):
    """Contradictions are refused when the file is read, not found at night."""
    path, message = refused(CRON | change)

    assert path == field
    assert text in message


@pytest.mark.parametrize("change", [{"every": "90s"}, {"every": "0m"}, {"every": "1.5h"}, {"every": 15}])
def test_a_rate_is_whole_minutes_at_least(change):
    """Ticks come once a minute."""
    assert refused(MINIMAL | change)[0] == "schedules[0].every"


def test_rules_about_local_times_mean_nothing_to_a_rate():
    """Nobody should believe that they do."""
    assert "every counts elapsed time" in refused(MINIMAL | {"nonexistent": "skip"})[1]


def test_a_workflow_that_is_not_there_is_refused():
    """Only when the names are known."""
    other = MINIMAL | {"name": "other", "workflow": "gone"}

    with pytest.raises(InvalidPolicy) as caught:
        load(MINIMAL, other, workflows={"summary"})

    assert caught.value.field == "schedules[1].workflow"
    assert set(load(MINIMAL, other)) == {"nightly", "other"}
    assert set(load(MINIMAL, workflows=["summary"])) == {"nightly"}


def test_placeholders_are_filled_in_at_any_depth():
    """In texts only; keys, numbers and dollars stay."""
    template = {"a": ["${x}-${x}", 7, None, {"${x}": "$x $ {x}"}], "b": True}

    assert filled(template, {"x": "1"}) == {"a": ["1-1", 7, None, {"${x}": "$x $ {x}"}], "b": True}
