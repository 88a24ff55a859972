"""Laws of `due_at`: present exactly while something is owed, never later than the earliest uncovered obligation."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.job import Job, Owed
from breakwater.domain.obligations import (
    Due,
    Nudge,
    Queue,
    due_at,
    lane_queue,
    obligations,
    queues_for,
    schedule,
    swept,
)
from breakwater.domain.states import Lane
from breakwater.domain.timing import (
    CLOCK_SKEW,
    LEASE,
    MAX_QUEUE_DELAY,
    MINUTE,
    NUDGE_GRACE,
    NUDGE_GRACE_MAX,
    SECOND,
    nudge_grace,
)
from tests.support.builders import NOW, make_job

BUILT = ("pending", "review", "processing", "at_provider", "failed", "succeeded", "dead_letter", "closed", "cancelled")
KEYS = ("usage#1", "bus_event#1", "notify#1", "dead_letter#1", "release#1", "provider_cancel#1")
TIMES = st.integers(NOW - 3_600_000, NOW + 7_200_000)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Any job in any row, with any times, debts and an outstanding nudge or none."""
    built = draw(st.sampled_from(BUILT))
    more: dict[str, Any] = {
        "ready_at": draw(TIMES),
        "expires_at": draw(st.none() | TIMES),
        "owed": {key: Owed(next_at=draw(TIMES)) for key in draw(st.sets(st.sampled_from(KEYS), max_size=4))},
        "nudged_for": draw(st.none() | TIMES),
        "nudges": draw(st.integers(0, 20)),
        "due_at": draw(st.none() | TIMES),
    }
    if built in ("pending", "failed"):
        more["lane"] = draw(st.sampled_from([Lane.BACKGROUND_RETRY, Lane.INTERACTIVE_ADMISSION, Lane.STREAM_RECOVERY]))
    if built == "processing":
        more["locked_until"] = draw(TIMES)
    if built == "at_provider":
        more |= {"poll_at": draw(TIMES), "provider_deadline_at": draw(st.none() | TIMES)}
    if built == "review":
        more["review_expires_at"] = draw(TIMES)
        more["recheck_at"] = draw(st.none() | TIMES)
    return make_job(built, job_id="job_a", **more)


def latest_allowed(job: Job) -> int | None:
    """The law, written a second time: when must somebody look at the latest?"""
    limits = []
    for one in obligations(job):
        covered = job.nudged_for is not None and one.at <= job.nudged_for
        limits.append(job.nudged_for + nudge_grace(job.nudges) if covered else one.at)
    return min(limits, default=None)


@given(jobs())
def test_something_is_owed_exactly_while_a_job_is_open_or_has_debts(job):
    """A settled job that owes nothing has no obligation; every other has at least one."""
    assert bool(obligations(job)) is (not job.final or bool(job.owed))


@given(st.none() | jobs(), jobs(), TIMES)
def test_a_write_leaves_due_at_exactly_while_something_is_owed(before, after, now):
    """So the sparse index lists nothing that is over and misses nothing that is not."""
    planned, _ = schedule(before, after, now)

    assert (planned.due_at is not None) is bool(obligations(after))


@given(st.none() | jobs(), jobs(), TIMES)
def test_a_write_never_looks_later_than_the_earliest_uncovered_obligation(before, after, now):
    """An outstanding nudge covers what was due when it shows, until its grace is over."""
    planned, _ = schedule(before, after, now)

    limit = latest_allowed(planned)
    assert limit is None or (planned.due_at is not None and planned.due_at <= limit)


@given(jobs(), jobs(), TIMES)
def test_a_write_leaves_an_earlier_due_at_alone(before, after, now):
    """Moving it would cost index writes; the sweep corrects it."""
    planned, _ = schedule(before, after, now)

    if planned.due_at is not None and before.due_at is not None:
        assert planned.due_at <= before.due_at or planned.due_at == latest_allowed(planned)
        if before.due_at <= (latest_allowed(planned) or 0):
            assert planned.due_at == before.due_at


@given(st.none() | jobs(), jobs(), TIMES)
def test_nudges_stay_within_what_a_queue_can_delay(before, after, now):
    """At most 900 s ahead, never in the past, one a queue; and they are remembered in the same write.

    Also one that an earlier write sent, and that is still on its way.
    """
    planned, nudges = schedule(before, after, now)

    assert all(now <= one.at <= now + MAX_QUEUE_DELAY for one in nudges)
    assert len({one.queue for one in nudges}) == len(nudges)
    assert {one.queue for one in nudges} <= set(queues_for(after))
    assert planned.nudged_for is not None or not nudges
    assert planned.nudges_total == after.nudges_total + bool(nudges)


@given(jobs(), TIMES)
def test_work_that_is_put_off_has_its_own_nudge(job, now):
    """Whatever else is owed before it: a retry never waits for what is owed outside. Once, not with every write."""
    planned, nudges = schedule(None, job, now)
    put_off = [one for one in obligations(job) if one.kind is Due.READY and now < one.at <= now + MAX_QUEUE_DELAY]

    for one in put_off:
        sooner = next((nudge.at for nudge in nudges if nudge.queue is one.queue), one.at)
        assert Nudge(one.queue, min(sooner, one.at)) in nudges
        _, later = schedule(planned.with_(updated_at=now), planned.with_(updated_at=now), now)
        assert Nudge(one.queue, one.at) not in later


def test_a_retry_with_a_slot_to_give_back_does_not_wait_for_the_effects():
    """The release is owed now, the retry in 400 ms: each queue is told, and of the next write only what is new."""
    owed = {"release#1": Owed(next_at=NOW, ref="1 route:plain|0")}
    job = make_job("failed", ready_at=NOW + 400, owed=owed, due_at=None, updated_at=NOW)

    planned, nudges = schedule(None, job, NOW)
    _, after_effects = schedule(planned, planned.with_(owed={}), NOW + 100)

    assert set(nudges) == {Nudge(Queue.EFFECTS, NOW), Nudge(Queue.BACKGROUND, NOW + 400)}
    assert after_effects == ()
    assert due_at(planned) == NOW + 400  # were that nudge lost as well


@given(jobs(), TIMES)
def test_what_is_ready_now_is_nudged_now(job, now):
    """Nothing that could run at once waits for the sweep."""
    _, nudges = schedule(None, job, now)

    for one in obligations(job):
        if one.kind in (Due.READY, Due.EFFECT, Due.CANCEL, Due.POLL) and one.at <= now:
            assert Nudge(one.queue, now) in nudges


@given(jobs(), TIMES)
def test_the_sweep_moves_strictly_forward(job, now):
    """After it, the item is due in the future or not at all; so it can't find the same item twice in one run."""
    moved, _ = swept(job, now)

    assert moved.due_at is None or moved.due_at > now
    assert (moved.due_at is not None) is bool(obligations(job))


@given(jobs(), TIMES)
def test_the_sweep_nudges_every_queue_that_has_something_due(job, now):
    """What is due and covered by no nudge still on its way is nudged, and nothing else."""
    _, nudges = swept(job, now)

    expected = set()
    for one in obligations(job):
        covered = job.nudged_for is not None and one.at <= job.nudged_for
        if (job.nudged_for + nudge_grace(job.nudges) if covered else one.at) <= now:
            expected.add(one.queue)
    assert {one.queue for one in nudges} == expected
    assert all(one.at == now for one in nudges)


@given(jobs(), TIMES)
def test_the_sweep_never_loses_an_obligation(job, now):
    """However often nudges are lost, each due queue is nudged again, at most a longest grace later."""
    due = {one.queue for one in obligations(job) if one.at <= now}
    seen: set[Queue] = set()
    time, current = now, job
    for _ in range(40):
        current, nudges = swept(current, time)
        seen |= {one.queue for one in nudges}
        if current.due_at is None or due <= seen:
            break
        time = max(current.due_at, time)
    assert due <= seen


@given(jobs(), TIMES)
def test_sweeping_twice_in_a_row_changes_nothing_the_second_time(job, now):
    """A second run in the same minute finds nothing due."""
    once, _ = swept(job, now)
    twice, nudges = swept(once, now)

    assert (twice, nudges) == (once, ())


def test_an_unanswered_nudge_is_repeated_ever_more_slowly():
    """120 s, doubling to 15 min: a flooded queue is not flooded further."""
    assert [nudge_grace(n) // SECOND for n in range(7)] == [120, 120, 240, 480, 900, 900, 900]
    assert nudge_grace(10**9) == NUDGE_GRACE_MAX

    job, gaps, time = schedule(None, make_job("pending", expires_at=None, due_at=None), NOW)[0], [], NOW
    assert swept(job, job.due_at) == (job.with_(due_at=NOW + NUDGE_GRACE), ()), (
        "only looked at when its lease would end"
    )
    job = job.with_(due_at=NOW + NUDGE_GRACE)
    for _ in range(6):
        gaps.append(job.due_at - time)
        time = job.due_at
        job, nudges = swept(job, time)
        assert nudges == (Nudge(Queue.BACKGROUND, time),)
    assert [gap // SECOND for gap in gaps] == [120, 240, 480, 900, 900, 900]


def test_a_transition_starts_the_grace_anew():
    """A job that moves is no job that nobody answers for."""
    tired = make_job("failed", nudges=9, nudged_for=NOW - 1)

    planned, _ = schedule(tired, tired, NOW)

    assert planned.nudges == 1
    assert due_at(planned) == NOW + NUDGE_GRACE


@pytest.mark.parametrize(
    ("wait", "nudged"),
    [(0, True), (MAX_QUEUE_DELAY, True), (MAX_QUEUE_DELAY + 1, False), (13 * 3_600 * SECOND, False)],
)
def test_a_step_within_the_queues_reach_is_nudged_with_its_delay_and_a_later_one_left_to_the_sweep(wait, nudged):
    """Beyond 15 minutes, and beyond 12 hours, the table alone remembers."""
    job = make_job("failed", ready_at=NOW + wait, expires_at=NOW + 48 * 3_600 * SECOND, due_at=None)

    planned, nudges = schedule(None, job, NOW)

    assert nudges == ((Nudge(Queue.BACKGROUND, NOW + wait),) if nudged else ())
    assert planned.due_at == NOW + wait + (LEASE if nudged else 0)
    assert due_at(planned) == NOW + wait + (NUDGE_GRACE if nudged else 0)


def test_a_claim_in_time_leaves_the_index_alone():
    """Each move costs two writes of an index: what a new job is due at is when its first lease would end."""
    new, _ = schedule(None, make_job("pending", due_at=None), NOW)
    claimed = make_job("processing", locked_until=NOW + 300 + LEASE, due_at=new.due_at)
    assert schedule(new, claimed, NOW + 300)[0].due_at == new.due_at


def test_a_lease_is_looked_at_after_the_skew_and_never_nudged():
    """On every good day the holder is done long before."""
    planned, nudges = schedule(None, make_job("processing", due_at=None), NOW)

    assert (planned.due_at, nudges) == (NOW + MINUTE + CLOCK_SKEW, ())


def test_a_lease_that_was_renewed_is_only_corrected_by_the_sweep():
    """A renewal changes `locked_until` alone; the sweep sees that nothing is due and nudges nobody."""
    renewed = make_job("processing", due_at=NOW + 65_000, locked_until=NOW + 80_000)

    moved, nudges = swept(renewed, NOW + 66_000)

    assert (moved.due_at, nudges) == (NOW + 85_000, ())


@pytest.mark.parametrize(
    ("lane", "queue"),
    [
        (Lane.INTERACTIVE_ADMISSION, Queue.INTERACTIVE),
        (Lane.STREAM_RECOVERY, Queue.INTERACTIVE),
        (Lane.BACKGROUND_RETRY, Queue.BACKGROUND),
    ],
)
def test_each_lane_has_its_queue(lane, queue):
    """People who wait are never behind work that can."""
    assert lane_queue(lane) is queue
    assert queues_for(make_job("pending", lane=lane)) == (queue,)


@pytest.mark.parametrize(
    ("built", "owed", "queues"),
    [
        ("at_provider", {}, {Queue.COMPLETION}),
        ("processing", {}, {Queue.COMPLETION}),
        ("review", {}, {Queue.COMPLETION}),
        ("succeeded", {"usage#1": Owed(next_at=NOW)}, {Queue.EFFECTS}),
        ("cancelled", {"provider_cancel#1": Owed(next_at=NOW)}, {Queue.COMPLETION}),
        ("failed", {"usage#1": Owed(next_at=NOW)}, {Queue.BACKGROUND, Queue.EFFECTS}),
        ("succeeded", {}, set()),
    ],
)
def test_polls_takeovers_and_cancels_never_stand_behind_new_work(built, owed, queues):
    """Each kind of obligation has the queue whose function does it."""
    assert set(queues_for(make_job(built, owed=owed))) == queues
