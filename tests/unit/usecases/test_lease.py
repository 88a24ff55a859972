"""How long a worker may believe that the job is its own, and that it never writes after that."""

from __future__ import annotations

import threading
import time

import pytest

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.results import Completed
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Reason, Status
from breakwater.domain.timing import CLOCK_SKEW, LEASE, LEASE_MARGIN, RENEW_TIMEOUT
from breakwater.ports import Conflicted, Guard
from breakwater.usecases.conclude import conclude
from breakwater.usecases.lease import LeaseKeeper, lease_ms
from breakwater.usecases.read import with_result
from tests.fakes.clock import FakeClock
from tests.fakes.outside import answer, refusal
from tests.fakes.store import FakeJobStore
from tests.support.builders import NOW, make_job
from tests.support.world import World

HOUR = 3_600_000


class Renewals:
    """A store that only renews: remembers each, and answers as told."""

    def __init__(self, *answers):
        self.asked, self.answers = [], list(answers)
        self.entered, self.go = threading.Event(), threading.Event()

    def renew(self, job_id, epoch, now, locked_until):
        self.asked.append((job_id, epoch, now, locked_until))
        self.entered.set()
        told = self.answers.pop(0) if self.answers else True
        if told == "hangs":
            self.go.wait(5)
            return True
        if isinstance(told, Exception):
            raise told
        return told


def keeper(store, clock=None, *, remaining=HOUR, lease=60_000, **more):
    """A keeper of a lease that ends in a minute."""
    clock = clock or FakeClock(NOW)
    return LeaseKeeper(store, clock, "job_a", 1, clock.now() + lease, lambda: remaining, **more)


# --- lengths


@pytest.mark.parametrize(
    ("remaining", "length"),
    [
        (900_000, LEASE),
        (LEASE, LEASE),
        (20_000, 20_000 + LEASE_MARGIN),
        (0, LEASE_MARGIN),
        (-5, LEASE_MARGIN),
    ],
)
def test_a_lease_is_as_long_as_the_function_may_run_and_no_longer_than_a_minute(remaining, length):
    """So it outlives its function by a margin only."""
    assert lease_ms(remaining) == length


def test_work_within_one_lease_needs_no_renewal_and_no_thread():
    """Short functions pay nothing."""
    store = Renewals()
    before = threading.active_count()

    with keeper(store, remaining=LEASE - LEASE_MARGIN):
        assert threading.active_count() == before

    assert store.asked == []


# --- renewing


def test_long_work_renews_from_a_thread_of_its_own():
    """A provider call that blocks for two leases does not starve the renewal; the thread ends before the return."""
    store = Renewals()
    held = keeper(store, every_ms=5)

    with held:
        while len(store.asked) < 3:
            time.sleep(0.005)
        thread = held._thread
    asked = len(store.asked)

    assert not thread.is_alive()
    time.sleep(0.03)
    assert len(store.asked) == asked, "a renewal after the release"
    assert not held.lost


def test_a_renewal_in_flight_is_waited_for_and_none_follows_it():
    """Release while a renewal is on its way: its answer arrives, and that was the last."""
    store = Renewals("hangs")
    held = keeper(store, every_ms=1)
    with held:
        assert store.entered.wait(5)
        threading.Timer(0.05, store.go.set).start()

    assert not held._thread.is_alive()
    assert len(store.asked) == 1


def test_a_renewal_that_hangs_holds_the_work_up_no_longer_than_its_own_time_out():
    """Its client's time-out is well below a lease, and the release waits only that long."""
    assert RENEW_TIMEOUT + 1_000 < LEASE // 3
    store = Renewals("hangs")
    held = keeper(store, every_ms=1)

    began = time.monotonic()
    with held:
        assert store.entered.wait(5)
    took = time.monotonic() - began
    store.go.set()
    held._thread.join(5)

    assert took < RENEW_TIMEOUT / 1000 + 2
    assert len(store.asked) == 1, "it renewed again after the release"


@pytest.mark.parametrize(("left", "renews"), [(RENEW_TIMEOUT + 1, True), (RENEW_TIMEOUT, False), (500, False)])
def test_no_renewal_begins_that_could_outlast_the_lease(left, renews):
    """With half a second left, a renewal that hangs would end in somebody else's lease."""
    store, clock = Renewals(), FakeClock(NOW)
    held = keeper(store, clock)
    clock.advance(60_000 - left)

    assert held._renew() is renews
    assert bool(store.asked) is renews


def test_a_lease_that_ran_out_is_lost_and_not_renewed():
    """A frozen process that thaws after ten minutes finds out by itself."""
    store, clock = Renewals(), FakeClock(NOW)
    held = keeper(store, clock)
    clock.advance(600_000)

    assert held._renew() is False
    assert held.lost
    assert store.asked == []


def test_nothing_is_renewed_beyond_the_functions_own_end():
    """A renewal never outlives its function: the length shrinks with the time that is left."""
    store, clock = Renewals(), FakeClock(NOW)
    remaining = [30_000]
    held = LeaseKeeper(store, clock, "job_a", 1, NOW + 60_000, lambda: remaining[0])

    assert held._renew()
    remaining[0] = 0
    assert held._renew() is False

    assert [until - now for _, _, now, until in store.asked] == [30_000 + LEASE_MARGIN]


def test_renewals_that_fail_are_tried_until_the_lease_itself_is_over():
    """A throttled table is no reason to stop at once, and no reason to go on for ever."""
    store, clock = Renewals(*[StoreUnavailable()] * 9), FakeClock(NOW)
    held = keeper(store, clock)

    assert held._renew()
    clock.advance(40_000)
    assert held._renew()
    assert not held.lost
    clock.advance(21_000)
    assert held._renew() is False
    assert held.lost


def test_a_refused_renewal_ends_it_at_once():
    """Somebody else holds the job."""
    held = keeper(Renewals(False))

    assert held._renew() is False
    assert held.lost


def test_nothing_is_renewed_once_the_block_is_left():
    """Even by a thread that had already decided to."""
    store = Renewals()
    held = keeper(store)
    with held:
        pass

    assert held._renew() is False
    assert store.asked == []


def test_the_thread_ends_by_itself_when_the_lease_is_lost():
    """There is nothing left to renew."""
    store = Renewals(False)
    held = keeper(store, every_ms=1)
    with held:
        held._thread.join(5)

        assert not held._thread.is_alive()
        assert held.lost
    assert len(store.asked) == 1


def test_a_wall_clock_that_is_set_back_shortens_no_lease():
    """Lengths are measured on the clock that never jumps."""
    store, clock = Renewals(), FakeClock(NOW)
    held = keeper(store, clock)
    clock.advance(20_000)
    clock.skew = -30_000

    assert held._renew()

    assert store.asked == [("job_a", 1, NOW + 20_000, NOW + 20_000 + LEASE)]


def test_a_renewal_after_the_job_moved_on_changes_nothing():
    """A late answer of a renewal finds no lease any more, whatever became of the job."""
    store = FakeJobStore()
    for status in ("at_provider", "failed", "succeeded", "cancelled", "pending"):
        job = store.create(make_job(status), NOW).job

        assert not store.renew(job.job_id, 1, NOW, NOW + 60_000)
        assert store.get(job.job_id) == job


# --- LS-01: the paused owner


def paused_owner():
    """A takes the job and stops in its provider call; B takes over and finishes it. The job as A knows it."""
    world = World()
    job_id = world.submit().job.job_id
    known = []

    def sleepy(_call):
        known.append(world.job(job_id))
        world.clock.advance(LEASE + CLOCK_SKEW)
        world.complete(job_id)
        world.clock.advance(120_000)
        world.worker(job_id)
        return Completed(result=answer("from A"))

    world.provider.script = [sleepy, Completed(result=answer("from B"))]
    return world, job_id, known


def test_a_paused_owner_that_wakes_up_can_write_nothing():
    """Its renewal, its result and its failure are all refused; what stands is B's."""
    world, job_id, known = paused_owner()
    world.worker(job_id)
    job, a = world.job(job_id), known[0]

    assert (job.status, job.lease_epoch, a.lease_epoch) == (Status.SUCCEEDED, 2, 1)
    assert with_result(world.deps, job)["result"]["text"] == "from B"
    now = world.clock.now()
    assert world.store.renew(job_id, a.lease_epoch, now, now + 60_000) is False
    assert isinstance(world.store.commit(a, a.with_(status=Status.SUCCEEDED), Guard(epoch=1)), Conflicted)
    assert isinstance(world.store.commit(a, a.with_(status=Status.FAILED), Guard(epoch=1)), Conflicted)
    assert isinstance(world.store.commit(job, job.with_(status=Status.FAILED), Guard(epoch=1)), Conflicted)
    assert world.job(job_id) == job


def test_what_the_paused_owner_did_is_in_the_books_and_counted_as_late():
    """One result, one event; its paid call is evidence, on the bill once, and flagged."""
    world, job_id, _ = paused_owner()
    world.worker(job_id)
    world.settle()
    job = world.job(job_id)

    assert [name for name, _ in world.log.notes if name == "late_write"] == ["late_write"]
    assert len({event for event, _, _ in world.bus.events}) == 1
    assert len(world.store.lines) == 2
    assert job.cost_micros == sum(line["cost_micros"] for line in world.store.lines.values())
    assert job.possible_duplicate
    assert len(world.provider.calls) == 2


def test_a_failure_that_comes_late_revives_nothing():
    """A's refusal after B's success stays a line in the story."""
    world, job_id, known = paused_owner()
    world.worker(job_id)
    a = known[0]

    step = conclude(world.deps, a, a.execution, refusal(ErrorClass.SERVER_FAULT, 500))

    assert step is None
    assert world.job(job_id).status is Status.SUCCEEDED


# --- LS-02: clocks


def taken_over(skew, since_crash, *, renewed=0):
    """What a completion function with this clock makes of a lease whose holder died (or lives and renews)."""
    world = World()
    job_id = world.submit().job.job_id

    class Dead(BaseException):
        pass

    def dies(_call):
        raise Dead

    world.provider.script = [dies]
    with pytest.raises(Dead):
        world.worker(job_id)
    for _ in range(renewed):
        world.clock.advance(20_000)
        now = world.clock.now()
        assert world.store.renew(job_id, 1, now, now + LEASE)
    world.clock.advance(since_crash)
    world.clock.skew = skew
    return world, world.complete(job_id)


@pytest.mark.parametrize("skew", [0, 4_000, 5_000])
def test_a_live_lease_is_not_stolen_within_the_allowed_skew(skew):
    """The owner renews every 20 s; a thief 4 s ahead sees a lease that still runs."""
    _, verdict = taken_over(skew, 19_999, renewed=5)

    assert verdict == "busy"


@pytest.mark.parametrize("skew", [-5_000, 0, 5_000])
def test_a_dead_lease_is_taken_no_later_than_lease_and_twice_the_skew(skew):
    """Whichever way the clocks are off."""
    _, verdict = taken_over(skew, LEASE + 2 * CLOCK_SKEW)

    assert verdict == "outcome_unknown"


def test_a_thief_far_ahead_is_harmless():
    """+120 s: it may steal, but the job is not sent again while its outcome is unknown, and the owner still wins."""
    world = World()
    job_id = world.submit("external").job.job_id

    def robbed(call):
        world.clock.skew = 120_000
        assert world.complete(job_id) == "outcome_unknown"
        world.clock.skew = 0
        return world.provider.accept(call)

    world.provider.script = [robbed]
    world.worker(job_id)
    job = world.job(job_id)
    assert (job.in_review, job.reason) == (True, Reason.OUTCOME_UNKNOWN)

    world.provider.finish("resp_1")
    world.webhook("resp_1")
    world.pump()

    assert world.job(job_id).status is Status.SUCCEEDED
    assert len(world.provider.calls) == 1


def test_a_sweeper_far_behind_still_finds_the_dead():
    """-120 s, crashed 200 s ago: the lease as that clock sees it is over."""
    _, verdict = taken_over(-120_000, 200_000)

    assert verdict == "outcome_unknown"
