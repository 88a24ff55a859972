"""The table of a policy is what `decide` says."""

from __future__ import annotations

import pytest

from breakwater.domain.explain import WORDS, Moment, explain, length, of_lane
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Lane
from tests.support.cases import LANES, fallback, make_catalogue, make_policy, make_route

ALL_LANES = {**LANES, "stream_recovery": {}}


def row(policy, lane, error_class, moment, catalogue=None):
    """The one row for a moment."""
    rows = explain(policy, catalogue or make_catalogue())
    return next(one for one in rows if one.lane is lane and one.error_class is error_class and moment in one.moments)


def test_every_signal_has_words():
    """A product owner reads no code."""
    assert set(WORDS) == set(ErrorClass)


@pytest.mark.parametrize(
    ("lanes", "named"),
    [
        (LANES, [Lane.INTERACTIVE_ADMISSION, Lane.BACKGROUND_RETRY]),
        (ALL_LANES, [Lane.INTERACTIVE_ADMISSION, Lane.STREAM_RECOVERY, Lane.BACKGROUND_RETRY]),
        ({"background_retry": {}}, [Lane.BACKGROUND_RETRY]),
        ({"interactive_admission": {}}, [Lane.INTERACTIVE_ADMISSION]),
    ],
)
def test_every_promised_lane_is_explained_whole(lanes, named):
    """Each signal at each moment, exactly once."""
    rows = explain(make_policy(lanes=lanes), make_catalogue())

    assert list(dict.fromkeys(one.lane for one in rows)) == named
    seen = [(one.lane, one.error_class, moment) for one in rows for moment in one.moments]
    assert len(seen) == len(set(seen)) == len(named) * len(ErrorClass) * len(Moment)


@pytest.mark.parametrize(
    ("lane", "error_class", "moment", "action", "when"),
    [
        (Lane.INTERACTIVE_ADMISSION, ErrorClass.OVERLOAD, Moment.FIRST, "retry at once", "0.25 s to 0.5 s"),
        (Lane.INTERACTIVE_ADMISSION, ErrorClass.PACING, Moment.SHORT_HINT, "retry at once", "1 s"),
        (Lane.INTERACTIVE_ADMISSION, ErrorClass.PACING, Moment.HINT, "approved fallback second", "now"),
        (Lane.BACKGROUND_RETRY, ErrorClass.PACING, Moment.HINT, "wait and retry", "30 s"),
        (Lane.BACKGROUND_RETRY, ErrorClass.OVERLOAD, Moment.LAST, "approved fallback second", "now"),
        (Lane.BACKGROUND_RETRY, ErrorClass.CALLER_FAULT, Moment.FIRST, "stop: dead_letter", "now"),
        (Lane.BACKGROUND_RETRY, ErrorClass.CANCELLED, Moment.FIRST, "cancelled", "now"),
        (Lane.BACKGROUND_RETRY, ErrorClass.UNKNOWN, Moment.PARTIAL, "stop: dead_letter", "now"),
    ],
)
def test_a_row_says_what_happens_and_when(lane, error_class, moment, action, when):
    """In words, with the range of the dice."""
    found = row(make_policy(fallbacks=[fallback()], cost_cap_micros=1_000_000), lane, error_class, moment)

    assert (found.action, found.when) == (action, when)
    assert found.why


def test_a_move_to_another_lane_is_told():
    """Where a person waits no longer, the work may."""
    found = row(make_policy(), Lane.INTERACTIVE_ADMISSION, ErrorClass.PACING, Moment.HINT)

    assert found.action == "wait and retry in background_retry"


def test_a_review_says_how_long_it_waits_and_what_is_closed():
    """Where the job rests, until when, and what others notice."""
    found = row(make_policy(), Lane.BACKGROUND_RETRY, ErrorClass.SPEND, Moment.FIRST)

    assert found.action == "stop: owner_review"
    assert found.when == "until a person decides, at most 7 d"
    assert (found.rests_in, found.closes_route) == ("owner_review", "15 min")


def test_the_side_effects_of_a_workflow_show():
    """Paid work is held where free work is repeated."""
    free, paid = (
        row(make_policy(side_effects=kind), Lane.BACKGROUND_RETRY, ErrorClass.OUTCOME_UNKNOWN, Moment.FIRST)
        for kind in ("none", "paid")
    )

    assert (free.action, paid.action) == ("wait and retry", "stop: owner_review")


def test_what_is_the_same_for_every_signal_is_told_once():
    """After visible output there is one answer to everything."""
    rows = explain(make_policy(), make_catalogue())

    always, others = of_lane(rows, Lane.BACKGROUND_RETRY)

    assert always is not None
    assert always.reason == "partial_output_committed"
    assert not [one for one in others if Moment.PARTIAL in one.moments]


def test_what_is_not_the_same_is_told_row_by_row():
    """Nothing is folded that differs."""
    rows = [one for one in explain(make_policy(), make_catalogue()) if one.error_class is not ErrorClass.QUOTA]

    always, others = of_lane(rows, Lane.INTERACTIVE_ADMISSION)

    assert always is None
    assert len(others) == len([one for one in rows if one.lane is Lane.INTERACTIVE_ADMISSION])


def test_a_workflow_whose_route_is_gone_has_nothing_to_explain():
    """Its jobs are held by the gate."""
    assert explain(make_policy(route="gone"), make_catalogue(make_route())) == ()


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (250, "0.25 s"),
        (1_000, "1 s"),
        (90_000, "90 s"),
        (60_000, "1 min"),
        (900_000, "15 min"),
        (3_600_000, "1 h"),
        (46_800_000, "13 h"),
        (604_800_000, "7 d"),
    ],
)
def test_lengths_are_said_as_people_say_them(ms, words):
    """The largest unit that fits exactly."""
    assert length(ms) == words
