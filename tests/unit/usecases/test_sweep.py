"""The one recovery path: it moves what is due forward, then nudges; bounded, fair, and always further."""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from breakwater.domain.errors import QueueUnavailable, StoreUnavailable
from breakwater.domain.obligations import Queue
from breakwater.domain.states import Status
from breakwater.domain.timing import MINUTE, NUDGE_GRACE, nudge_grace
from breakwater.ports import Committed, DueItem
from breakwater.store.items import job_attributes
from breakwater.usecases.sweep import MOST_ITEMS, PAGE, SHARDS, sweep
from tests.fakes.clock import FakeClock
from tests.fakes.outside import FakeLog
from tests.support.builders import NOW, make_job
from tests.support.world import World


def test_it_moves_the_item_before_it_nudges():
    """A crash in between costs a grace, never a flood."""
    world = World()
    job_id = world.submit().job.job_id
    world.clock.advance(NUDGE_GRACE)
    seen = []
    real = world.queues.nudge
    world.queues.nudge = lambda *args: seen.append(world.job(job_id).due_at) or real(*args)

    world.sweep()

    assert seen == [world.clock.now() + 2 * NUDGE_GRACE]


def test_what_is_not_due_is_not_touched():
    """Neither written nor nudged."""
    world = World()
    job_id = world.submit().job.job_id
    before = world.job(job_id)

    assert world.sweep() == {}
    assert world.job(job_id) == before


def test_an_index_that_lags_wakes_nobody():
    """META is read again: what is settled meanwhile is left alone."""
    world = World()
    job_id = world.submit().job.job_id
    world.clock.advance(NUDGE_GRACE)
    world.worker(job_id)
    world.settle()
    settled = world.job(job_id)
    stale = DueItem("job", job_id, NOW)
    world.store.due = lambda shard, *_args, again, **_more: ([stale] if shard == 0 and not again else [], None)

    assert world.sweep() == {"moved_meanwhile": 1}
    assert world.job(job_id) == settled


def test_an_item_that_is_gone_is_no_ghost_afterwards():
    """The index still lists it; nothing is created."""
    world = World()
    items = [DueItem("job", "job_gone", NOW), DueItem("delivery", "openai#gone", NOW), DueItem("what", "is this", NOW)]
    world.store.due = lambda shard, *_args, again, **_more: (items if shard == 0 and not again else [], None)

    assert world.sweep() == {"moved_meanwhile": 2, "unknown_kind": 1}
    assert world.store.items == {}


def test_a_job_that_moved_between_read_and_write_is_not_nudged():
    """The write is conditional on what was read."""
    world = World()
    job_id = world.submit().job.job_id
    world.clock.advance(NUDGE_GRACE)
    real = world.store.commit

    def overtaken(before, after, *guard):
        world.store.commit = real
        world.cancel(job_id)
        return real(before, after, *guard)

    world.store.commit = overtaken
    for messages in world.queues.sent.values():
        messages.clear()

    assert world.sweep() == {"moved_meanwhile": 1}
    assert [queue for queue, sent in world.queues.sent.items() if sent] == [Queue.EFFECTS]


def test_a_queue_that_is_down_stops_no_other_item():
    """Each is tried; each comes back after its grace."""
    world = World()
    jobs = [world.submit(key=f"k-{n}").job.job_id for n in range(3)]
    world.clock.advance(NUDGE_GRACE)
    world.queues.broken = True
    assert world.sweep() == {"unavailable": 3}
    world.queues.broken = False

    world.settle()

    assert {world.job(job_id).status for job_id in jobs} == {Status.SUCCEEDED}


def test_a_table_that_does_not_answer_for_one_item_stops_no_other():
    """Throttled once, the rest goes on."""
    world = World()
    for n in range(3):
        world.submit(key=f"k-{n}")
    world.clock.advance(NUDGE_GRACE)
    real, failures = world.store.commit, [StoreUnavailable()]

    def throttled(*args):
        if failures:
            raise failures.pop()
        return real(*args)

    world.store.commit = throttled

    assert world.sweep() == {"unavailable": 1, "nudged_background": 2}


def test_an_item_that_does_not_read_stops_no_other():
    """It is said, every minute, and the others are found."""
    world = World()
    jobs = [world.submit(key=f"k-{n}").job.job_id for n in range(3)]
    world.store.items[f"JOB#{jobs[1]}", "META"]["status"] = {"S": "nonsense"}
    world.clock.advance(NUDGE_GRACE)

    assert world.sweep() == {"failed": 1, "nudged_background": 2}
    assert [more for name, more in world.log.notes if name == "sweep_failed"] == [
        {"kind": "job", "id": jobs[1], "error": "CorruptItem"}
    ]


def test_a_shard_that_can_not_be_read_stops_no_other():
    """One hot partition is left to the next minute."""
    world = World()
    jobs = [world.submit(key=f"k-{n}").job.job_id for n in range(12)]
    world.clock.advance(NUDGE_GRACE)
    bad = world.store.shard_of(jobs[0])
    real = world.store.due

    def throttled(shard, *args, **more):
        if shard == bad:
            raise StoreUnavailable
        return real(shard, *args, **more)

    world.store.due = throttled
    others = [job_id for job_id in jobs if world.store.shard_of(job_id) != bad]

    assert world.sweep() == {"shard_unavailable": 2, "nudged_background": len(others)}
    world.store.due = real
    assert world.sweep() == {"nudged_background": len(jobs) - len(others)}


def test_it_stops_in_time():
    """With too little time left it leaves the rest to the next minute."""
    world = World()
    for n in range(5):
        world.submit(key=f"k-{n}")
    world.clock.advance(NUDGE_GRACE)
    left = iter([50_000, 20_000, 4_999])

    told = sweep(world.deps, lambda: next(left))

    assert told == Counter({"nudged_background": 2, "out_of_time": 1})


def test_a_renewed_lease_is_corrected_and_nobody_is_woken():
    """`due_at` moves to the lease end as it is now."""
    world = World()
    job_id = world.submit().job.job_id
    corrections = []

    def long(call):
        world.clock.advance(50_000)
        now = world.clock.now()
        assert world.store.renew(job_id, 1, now, now + 60_000)
        world.clock.advance(30_000)
        corrections.append(world.sweep())
        return world.provider._next(call)

    world.provider.script = [long]
    world.worker(job_id)

    assert corrections == [{"corrected": 1}]


def test_one_stuck_job_behind_many_that_are_not_due_is_found_in_the_same_run():
    """The index holds due items only, so nothing is counted before it is filtered."""
    world = World()
    jobs = [world.submit(key=f"k-{n}").job for n in range(250)]
    for job in jobs[1:]:
        world.store.commit(job, job.with_(due_at=NOW + 10**9 - job.rev))
    world.clock.advance(NUDGE_GRACE)

    assert world.sweep() == {"nudged_background": 1}


def test_a_delivery_that_was_worked_on_between_read_and_write_is_not_nudged():
    """The handler and the sweep race; the handler won."""
    world = World()
    world.webhook(None, "wh-1")
    world.clock.advance(NUDGE_GRACE)
    real = world.store.delivery

    def meanwhile(delivery_id):
        found = real(delivery_id)
        world.store.delivery = real
        world.deliver(delivery_id)
        return found

    world.store.delivery = meanwhile

    assert world.sweep() == {"moved_meanwhile": 1}
    assert world.store.delivery("openai#wh-1").due_at is None


# --- 100 000 due jobs

FRESH = 200  # a minute


class Crowd:
    """A store with a crowd of due jobs and nothing else: sorted lists instead of items. Nobody answers a nudge."""

    def __init__(self, count, now):
        self.clock = FakeClock(now)
        self.jobs, self.listed, self.sent, self.log = {}, {}, [], FakeLog()
        self.shards = {(shard, again): [] for shard in range(SHARDS) for again in (False, True)}
        self.template = make_job("pending", expires_at=None)
        for n in range(count):
            self.admit(n, now - 3_600_000 + n * 30)

    def admit(self, n, at):
        self.put(f"job_{n}", at, again=False)
        return f"job_{n}"

    def put(self, name, at, *, again):
        if name in self.listed:
            key, entry = self.listed[name]
            del self.shards[key][bisect.bisect_left(self.shards[key], entry)]
        key, entry = (int(name[4:]) % SHARDS, again), (at, name)
        bisect.insort(self.shards[key], entry)
        self.listed[name] = key, entry

    def now(self):
        return self.clock.now()

    @property
    def store(self):
        return self

    @property
    def queues(self):
        return self

    def due(self, shard, until, limit, cursor=None, *, newest=False, again=False):
        listed = self.shards[shard, again]
        end = bisect.bisect_right(listed, (until, "~"))
        if newest:
            end = bisect.bisect_left(listed, tuple(cursor["after"])) if cursor else end
            page = listed[max(0, end - limit) : end][::-1]
            more = end - limit > 0
        else:
            start = bisect.bisect_right(listed, tuple(cursor["after"])) if cursor else 0
            page = listed[start : min(end, start + limit)]
            more = start + limit < end
        return [DueItem("job", name, at) for at, name in page], {"after": page[-1]} if more and page else None

    def get(self, name):
        _, (at, _) = self.listed[name]
        return self.jobs.get(name) or self.template.with_(job_id=name, ready_at=at, due_at=at)

    def commit(self, before, after):
        assert after.due_at > self.now(), "strictly forward"
        assert before == self.get(before.job_id)
        self.jobs[after.job_id] = after
        self.put(after.job_id, after.due_at, again=job_attributes(after)["due_shard"].startswith("again"))
        return Committed(after)

    def nudge(self, _kind, name, nudges, _group, now):
        assert len(nudges) == 1
        self.sent.append((now, name))


@pytest.fixture(scope="module")
def swept_crowd():
    """Seven minutes of sweeping over 100 000 due jobs that nobody answers; some more fall due each minute."""
    crowd = Crowd(100_000, NOW)
    runs = []
    for minute in range(7):
        fresh = [crowd.admit(100_000 + minute * FRESH + n, crowd.now() - n * (MINUTE // FRESH)) for n in range(FRESH)]
        before = len(crowd.sent)
        told = sweep(crowd, lambda: 50_000)
        runs.append((told, [name for _, name in crowd.sent[before:]], fresh))
        crowd.clock.advance(MINUTE)
    return crowd, runs


def test_a_run_is_bounded_however_much_is_due(swept_crowd):
    """At most its number of items, whatever the table holds."""
    _, runs = swept_crowd

    for told, sent, _ in runs:
        assert len(sent) == told["nudged_background"] <= MOST_ITEMS
        assert len(sent) > MOST_ITEMS // 2, "and it is used"


def test_no_job_is_nudged_twice_while_its_nudge_may_still_be_answered(swept_crowd):
    """The queue is not flooded: between two messages about one job lies its grace, and the grace doubles."""
    crowd, _ = swept_crowd
    times = defaultdict(list)
    for at, name in crowd.sent:
        times[name].append(at)

    assert any(len(sent) > 1 for sent in times.values())
    for sent in times.values():
        for n, (one, other) in enumerate(pairwise(sent)):
            assert other - one >= nudge_grace(n + 1)


def test_neither_the_oldest_nor_the_newest_starves(swept_crowd):
    """Each run takes from both ends: what has just fallen due is seen in the same minute, whatever else is due."""
    _, runs = swept_crowd

    for _, sent, fresh in runs:
        assert set(fresh) <= set(sent)
    oldest = {f"job_{n}" for n in range(PAGE)}
    assert oldest <= set(runs[0][1])


def test_the_crowd_is_worked_off_at_a_steady_rate(swept_crowd):
    """Every run goes on where the last one stopped; nobody is visited again before others had their turn."""
    _, runs = swept_crowd
    seen = [name for _, sent, _ in runs for name in sent]

    assert len(seen) == 7 * MOST_ITEMS
    assert len(set(seen)) > 0.6 * len(seen), "most of the time goes to those who had no turn yet"


def test_the_first_shard_changes_with_the_minute():
    """None is always last when time runs out."""
    world = World()
    asked = []
    world.store.due = lambda shard, *_args, **_more: (asked.append(shard) or [], None)
    for _ in range(SHARDS):
        world.sweep()
        world.clock.advance(MINUTE)

    firsts = asked[:: 2 * SHARDS]
    assert sorted(firsts) == list(range(SHARDS))


def test_a_lost_nudge_of_a_delivery_goes_to_the_next_minute():
    """Nobody is told that the queue was down but the counter."""
    world = World()
    world.webhook("resp_1", "wh-1")
    world.clock.advance(NUDGE_GRACE)

    def down(*_args):
        raise QueueUnavailable

    real, world.queues.nudge_all = world.queues.nudge_all, down
    assert world.sweep() == {"unavailable": 1}
    world.queues.nudge_all = real
    world.clock.advance(2 * NUDGE_GRACE)

    assert world.sweep() == {"nudged_delivery": 1}
