"""Whose turn it is: owners in turn, each owner's jobs in order, nobody woken twice or for nothing."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.release import LONGEST_RECHECK, recheck_at, turn_name, turns

LINES = st.lists(st.sampled_from("abcd"), max_size=40).map(lambda owners: [(f"j{n}", o) for n, o in enumerate(owners)])


@given(
    line=LINES,
    busy=st.dictionaries(st.sampled_from("abcde"), st.integers(0, 5)),
    last=st.sampled_from(["", *"abcde"]),
    most=st.integers(0, 50),
)
def test_as_many_as_there_is_room_for_each_owner_in_order(line, busy, last, most):
    """No job twice, none out of its owner's order, and as many as fit."""
    chosen = turns(line, busy, last, most)

    assert len(chosen) == len(set(chosen)) == min(most, len(line))
    place = {job: n for n, (job, _) in enumerate(line)}
    owner = dict(line)
    for name in "abcd":
        own = [place[job] for job in chosen if owner[job] == name]
        assert own == sorted(own)


@given(line=LINES, last=st.sampled_from(["", *"abcde"]), most=st.integers(1, 50))
def test_no_owner_is_more_than_one_ahead_of_another_that_waits(line, last, most):
    """Round robin: a flood gets its share and no more."""
    chosen = turns(line, {}, last, most)
    owner = dict(line)
    got = Counter(owner[job] for job in chosen)
    left = Counter(owner.values()) - got

    for hungry in left:
        assert all(count <= got[hungry] + 1 for count in got.values())


def test_a_flood_does_not_keep_a_latecomer_waiting():
    """One owner holds everything and has a hundred in line; the other's first job goes next."""
    line = [*((f"a{n}", "a") for n in range(100)), ("b0", "b")]

    assert turns(line, {"a": 4}, "", 1) == ["b0"]


def test_the_circle_goes_on_behind_the_last_turn():
    """Whoever had it comes last among equals, and after the end the beginning follows."""
    line = [("a0", "a"), ("a1", "a"), ("b0", "b"), ("c0", "c")]

    assert turns(line, {}, "b", 4) == ["c0", "a0", "b0", "a1"]
    assert turns(line, {"c": 1}, "b", 3) == ["a0", "b0", "c0"]


def test_a_name_in_the_circle_is_short_and_always_the_same():
    """Whatever an owner is called, also in text that is no valid Unicode."""
    names = [turn_name(one) for one in ("acme", "a#b", "\ud800", "x" * 500, "acme")]

    assert {len(one) for one in names} == {16}
    assert names[0] == names[4]
    assert len(set(names)) == 4


def test_rechecks_are_slow_and_double():
    """They are the safety net, not the way capacity is found."""
    waits = [recheck_at(0, n) for n in range(8)]

    assert waits[:3] == [60_000, 120_000, 240_000]
    assert waits[-1] == LONGEST_RECHECK
