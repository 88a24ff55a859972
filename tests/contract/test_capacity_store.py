"""What every store promises about limits: one holder a number, no rate beyond its burst, one line in order."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from breakwater.domain.job import SlotRef
from breakwater.domain.records import RouteState
from breakwater.domain.release import turn_name
from breakwater.domain.slots import Slot
from breakwater.domain.states import Lane, Status
from breakwater.ports import Backlog
from breakwater.store.items import due_shard
from tests.support.builders import NOW, make_job

_names = itertools.count(1)


@pytest.fixture
def name():
    """A scope or rate that no other test uses."""
    return f"scope:{next(_names)}|owner:a%20b"


def slot(scope, n=0, job_id="job_a", epoch=1, **more):
    """A number in use."""
    fields = {"taken_at": NOW, "verify_at": NOW + 60_000, **more}
    return Slot(scope=scope, n=n, job_id=job_id, epoch=epoch, **fields)


def test_a_number_is_taken_once(store, name):
    """The second taker is refused, whoever holds it is readable."""
    first = slot(name, owner=turn_name("acme"))

    assert store.take_slot(first)
    assert not store.take_slot(slot(name, job_id="job_b"))
    assert store.slots(name) == [first]


def test_a_repeated_take_of_our_own_counts_as_taken(store, name):
    """The answer of the first try was lost; the second finds itself. Another stamp is another taker."""
    first = slot(name, stamp=7)
    assert store.take_slot(first)

    assert store.take_slot(first)
    assert not store.take_slot(replace(first, stamp=8))


def test_twenty_takers_of_one_number_have_one_winner(store, name):
    """The condition is in the write."""
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: store.take_slot(slot(name, job_id=f"job_{n}")), range(20)))

    assert sum(answers) == 1


def test_a_number_is_freed_only_by_the_lease_that_took_it(store, name):
    """An old release that is repeated takes nothing from a later attempt of the same job."""
    store.take_slot(slot(name, epoch=2))

    assert not store.free_slot(name, 0, "job_a", 1)
    assert not store.free_slot(name, 0, "job_b", 2)
    assert store.free_slot(name, 0, "job_a", 2)
    assert not store.free_slot(name, 0, "job_a", 2)
    assert store.slots(name) == []


def test_a_number_is_taken_over_only_as_it_was_read(store, name):
    """Who looked at it before another did takes nothing."""
    old = slot(name)
    store.take_slot(old)
    assert store.keep_slot(old, NOW + 90_000)

    assert not store.keep_slot(old, NOW + 99_000)
    assert not store.take_slot(slot(name, job_id="job_b"), instead_of=old)
    assert store.take_slot(slot(name, job_id="job_b"), instead_of=replace(old, verify_at=NOW + 90_000))
    assert [one.job_id for one in store.slots(name)] == ["job_b"]


def test_numbers_of_one_scope_come_in_order(store, name):
    """And none of another's."""
    for n in (3, 0, 11):
        store.take_slot(slot(name, n=n))
    store.take_slot(slot(name + "x", n=1))

    assert [one.n for one in store.slots(name)] == [0, 3, 11]


def test_waiters_stand_by_rank_and_then_by_age(store, name):
    """A line of one scope, bounded; who left it is not in it."""
    ranked = [
        store.create(make_job(waiting_scope=name, waiting_rank=NOW + rank, created_at=NOW + age), NOW).job
        for rank, age in ((5, 1), (1, 9), (1, 2), (3, 3))
    ]
    store.create(make_job(waiting_scope=name + "x", waiting_rank=0), NOW)
    store.create(make_job(), NOW)

    line = store.waiters(name, 10)

    assert [one.job_id for one in line] == [ranked[n].job_id for n in (2, 1, 3, 0)]
    assert [one.rank - NOW for one in line] == [1, 1, 3, 5]
    assert [one.job_id for one in store.waiters(name, 1)] == [ranked[2].job_id]
    store.commit(ranked[2], ranked[2].with_(waiting_scope=None))
    assert store.waiters(name, 1)[0].job_id == ranked[1].job_id


def test_a_line_is_read_owner_by_owner(store, name):
    """Each owner's by rank and then by age; what one owner has in line is skipped in one step."""
    wanted = [("a", 5), ("b", 1), ("a", 1), ("a b#c", 3), ("a", 1)]
    jobs = [
        store.create(
            make_job(owner_key=who, waiting_scope=name, waiting_rank=NOW + rank, created_at=NOW + n),
            NOW,
        ).job
        for n, (who, rank) in enumerate(wanted)
    ]
    store.create(make_job(waiting_scope=name + "x", waiting_rank=0), NOW)
    store.create(make_job(), NOW)
    a, b, other = (turn_name(one) for one in ("a", "b", "a b#c"))

    line, more = store.waiters_by_owner(name, "", 10)

    assert not more
    assert [one.owner for one in line] == sorted([a, a, a, b, other])
    assert [one.job_id for one in line if one.owner == a] == [jobs[n].job_id for n in (2, 4, 0)]
    assert [one.rank - NOW for one in line if one.owner == a] == [1, 1, 5]
    for who in (a, b, other):
        behind, _ = store.waiters_by_owner(name, who, 10)
        assert behind == [one for one in line if one.owner > who]
    assert store.waiters_by_owner(name, "", 2) == (line[:2], True)
    store.commit(jobs[1], jobs[1].with_(waiting_scope=None))
    assert b not in {one.owner for one in store.waiters_by_owner(name, "", 10)[0]}


def test_what_stands_in_a_lane_is_counted(store):
    """Whatever it waits for; not what is worked on, settled, in review, in another lane, or not counted at all."""
    lane, who = Lane.STREAM_RECOVERY, f"owner {next(_names)}"
    other = f"{who}x"

    def put(owner_key, status="pending", **more):
        fields = {"lane": lane, "counted": True, "round_started_at": NOW + next(_names), **more}
        return store.create(make_job(status, owner_key=owner_key, **fields), NOW).job

    first = put(who)
    put(who, "failed", ready_at=NOW + 99_000)
    put(who, waiting_scope="route:x", waiting_rank=NOW)
    theirs = put(other)
    put(who, "processing")
    put(who, "succeeded")
    put(who, counted=False)
    put(who, lane=Lane.INTERACTIVE_ADMISSION)
    review = put(who, "review", lane=Lane.OWNER_REVIEW)

    assert store.backlog(lane, who, 10) == Backlog(3)
    assert store.backlog(lane, other, 10) == Backlog(1)
    assert store.backlog(Lane.OWNER_REVIEW, who, 10) == Backlog(0)
    assert store.backlog(lane, who, 3) == Backlog(3, first.round_started_at)
    assert store.backlog(lane, who, 2) == Backlog(2, first.round_started_at)
    assert store.backlog(lane, other, 1) == Backlog(1, theirs.round_started_at)
    everybody = store.backlog(lane, None, 10_000)
    assert everybody.depth >= 4
    assert store.backlog(lane, None, 4).depth == 4
    store.commit(first, first.with_(status=Status.CANCELLED))
    assert store.backlog(lane, who, 10) == Backlog(2)
    store.commit(review, review.with_(lane=lane))
    assert store.backlog(lane, who, 10) == Backlog(3)


def test_a_rate_grants_its_burst_and_says_when_to_ask_again(store, name):
    """Ten at once, then one for each share of time that passed."""
    granted = [store.spend_rate(name, 1_000, 100, 1_000) for _ in range(10)]
    refused = store.spend_rate(name, 1_000, 100, 1_000)

    assert granted == [None] * 10
    assert refused == 1_100
    assert store.spend_rate(name, 1_099, 100, 1_000) == 1_100
    assert store.spend_rate(name, 1_100, 100, 1_000) is None


def test_a_rate_tells_what_is_reserved(store, name):
    """So that no more are woken than it takes."""
    assert store.rate(name) is None
    store.spend_rate(name, 1_000, 100, 1_000)
    store.spend_rate(name, 1_000, 50, 1_000)
    assert store.rate(name) == 1_150


def test_what_is_larger_than_the_burst_goes_alone(store, name):
    """It waits until nothing is reserved, and is granted then."""
    assert store.spend_rate(name, 0, 100, 1_000) is None
    assert store.spend_rate(name, 0, 5_000, 1_000) == 100
    assert store.spend_rate(name, 101, 5_000, 1_000) is None
    assert store.spend_rate(name, 200, 1, 1_000) == 4_102


def test_a_rate_is_corrected_afterwards(store, name):
    """What was reserved too much is given back; nothing is created by it."""
    store.adjust_rate(name, -50)
    assert store.spend_rate(name, 0, 1_000, 1_000) is None

    store.adjust_rate(name, -400)

    assert store.spend_rate(name, 0, 400, 1_000) is None
    assert store.spend_rate(name, 0, 1, 1_000) == 1


def test_thirty_spenders_at_once_get_no_more_than_the_burst(store, name):
    """No number of workers makes a rate promise more."""
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: store.spend_rate(name, 1_000, 100, 1_000), range(30)))

    assert sum(one is None for one in answers) <= 10
    assert store.spend_rate(name, 1_000, 100, 1_000) is not None or sum(one is None for one in answers) < 10


def test_the_newest_fact_wins(store, name):
    """A late writer with an older one changes nothing."""
    assert store.latest(name) is None
    assert store.put_latest(name, 10, {"job_id": "job_b"})
    assert not store.put_latest(name, 9, {"job_id": "job_a"})
    assert not store.put_latest(name, 10, {"job_id": "job_c"})

    assert store.latest(name) == {"job_id": "job_b", "at": 10}


def test_numbers_of_several_scopes_are_taken_at_once_each_for_itself(store):
    """One that is in use harms no other."""
    wide, narrow = f"wide-{next(_names)}", f"narrow-{next(_names)}"
    theirs = slot(narrow, 0, job_id="job_them")
    assert store.take_slot(theirs)
    mine = [slot(wide, 3, job_id="job_me"), slot(narrow, 0, job_id="job_me"), slot(narrow, 1, job_id="job_me")]
    assert store.take_slots(mine) == [True, False, True]
    assert store.slots(wide) == mine[:1]
    assert store.slots(narrow) == [theirs, mine[2]]
    assert store.take_slots(mine[:1]) == [True], "our own first try landed"


def test_numbers_of_several_scopes_are_freed_at_once_by_their_holder_alone(store):
    """What somebody else holds, or nobody, stays as it is."""
    one, other = f"one-{next(_names)}", f"other-{next(_names)}"
    mine, theirs = slot(one, 3, job_id="job_me"), slot(other, 0, job_id="job_them")
    assert store.take_slots([mine, theirs]) == [True, True]
    freed = store.free_slots([mine.ref, theirs.ref, SlotRef(scope=one, n=9)], "job_me", mine.epoch)
    assert mine.ref in freed
    assert theirs.ref not in freed
    assert (store.slots(one), store.slots(other)) == ([], [theirs])
    assert store.free_slots([theirs.ref], "job_me", mine.epoch) == []


def test_a_route_that_waits_to_open_is_due(store, name):
    """It is listed with the jobs, under its own kind, until it has opened."""
    key = f"route-{abs(hash(name))}"
    shard = int(due_shard(key).split("#")[1])
    state = RouteState(route_key=key, closed_until=NOW, limit=0, due_at=5)
    assert store.put_route(None, state)

    found = [one for one in store.due(shard, 5, 50)[0] if one.id == key]
    assert [one.kind for one in found] == ["route"]
    standing = store.route(key)
    assert standing == replace(state, rev=1)
    assert store.put_route(standing, replace(standing, due_at=None))
    assert [one for one in store.due(shard, 5, 50)[0] if one.id == key] == []


def test_of_several_numbers_those_still_held_are_told(store, name):
    """One look for all; numbers of another lease or nobody are not among them."""
    store.take_slot(slot(name, n=1))
    store.take_slot(slot(name, n=2, epoch=2))
    refs = [SlotRef(scope=name, n=n) for n in (1, 2, 3)]

    assert store.held_slots(refs, "job_a", 1) == refs[:1]
    assert store.held_slots([], "job_a", 1) == []
