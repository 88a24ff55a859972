"""Numbers of a limit: never more in use than allowed, whatever was taken before and however the limit moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.job import SlotRef
from breakwater.domain.slots import ScopeLimit, Slot, Standing, free_numbers, refs_of, release_ref, standing
from tests.support.builders import NOW, make_execution, make_job


def slot(n, taken_at=NOW, epoch=1, job_id="job_a"):
    """A number in use."""
    return Slot(scope="s", n=n, job_id=job_id, epoch=epoch, taken_at=taken_at, verify_at=taken_at + 60_000)


USED = st.sets(st.integers(0, 30), max_size=20)


@given(limit=st.integers(1, 20), used=USED)
def test_what_is_handed_out_and_what_is_in_use_stay_within_the_limit(limit, used):
    """Also when the limit was lowered below what is in use."""
    free = free_numbers(ScopeLimit(scope="s", limit=limit), [slot(n) for n in used])

    assert not set(free) & used
    assert len(free) + len(used) <= max(limit, len(used))


@given(limit=st.integers(1, 20), used=USED)
def test_a_number_is_handed_out_whenever_there_is_room(limit, used):
    """No capacity is lost to where the numbers in use happen to lie, as long as the limit did not move."""
    used = {n for n in used if n < limit}

    free = free_numbers(ScopeLimit(scope="s", limit=limit), [slot(n) for n in used])

    assert len(free) == limit - len(used)


@given(data=st.data(), limits=st.lists(st.integers(1, 12), min_size=5, max_size=40))
def test_takers_with_old_views_never_exceed_the_largest_limit(data, limits):
    """Many look, then take one after the other, while the limit moves: the sum stays within what it once was."""
    used: dict[int, Slot] = {}
    views = []
    for limit in limits:
        views.append(free_numbers(ScopeLimit(scope="s", limit=limit), list(used.values())))
        free = views[data.draw(st.integers(0, len(views) - 1))]
        taken = next((n for n in free if n not in used), None)
        if taken is not None:
            used[taken] = slot(taken)
        if used and data.draw(st.booleans()):
            del used[data.draw(st.sampled_from(sorted(used)))]
        assert len(used) <= max(limits)


@given(
    limit=st.integers(1, 20),
    ramp=st.integers(0, 20),
    old=st.sets(st.integers(0, 19), max_size=10),
    new=st.sets(st.integers(0, 19), max_size=10),
)
def test_a_ramp_counts_only_what_was_taken_since_it_began(limit, ramp, old, new):
    """Long work from before does not block the probe; the limit as a whole still holds."""
    taken = [slot(n, NOW - 1) for n in old - new] + [slot(n, NOW) for n in new]

    free = free_numbers(ScopeLimit(scope="s", limit=limit, ramp=ramp, since=NOW), taken)

    assert len(free) + len(new) <= max(ramp, len(new))
    assert len(free) + len(old | new) <= max(limit, len(old | new))
    assert list(free) == sorted(free)


def later(**more):
    """A job that a second lease holds."""
    return make_job("processing", lease_epoch=2, execution=make_execution(epoch=2), **more)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (None, Standing.FREE),
        (make_job("processing", slots=(SlotRef(scope="s", n=0),)), Standing.HELD),
        (make_job("at_provider", slots=(SlotRef(scope="s", n=0),)), Standing.HELD),
        (make_job("processing", slots=(SlotRef(scope="s", n=1),)), Standing.FREE),
        (later(slots=(SlotRef(scope="s", n=0),)), Standing.FREE),
        (later(slots=(SlotRef(scope="s", n=0),), slots_since=1), Standing.HELD),
        (make_job("failed"), Standing.FREE),
        (make_job("succeeded"), Standing.FREE),
        (make_job("pending"), Standing.UNCLAIMED),
    ],
    ids=[
        "gone",
        "working",
        "at provider",
        "another number",
        "a later lease",
        "a stream that went on",
        "failed",
        "done",
        "not claimed yet",
    ],
)
def test_only_the_lease_that_names_it_holds_a_number(job, expected):
    """META tells, whatever the item says."""
    assert standing(job, slot(0)) is expected


def test_a_release_names_epoch_and_numbers():
    """What is owed can be carried out long after META forgot it."""
    slots = (SlotRef(scope="route:a|owner:b%20c", n=3), SlotRef(scope="all", n=0))
    job = make_job("processing", execution=make_execution(epoch=4), slots=slots)

    assert refs_of(release_ref(job)) == (4, slots)
