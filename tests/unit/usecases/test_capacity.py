"""Slots over whole jobs: taken before the claim, kept while the provider runs, given back once, never leaked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.priority import rank
from breakwater.domain.rate import cost_us, to_us
from breakwater.domain.slots import VERIFY_AFTER, Slot
from breakwater.domain.states import EffectKind, Reason, Status
from breakwater.usecases.capacity import free
from breakwater.usecases.step import Verdict
from tests.support.limited import limited, owner
from tests.support.world import OWNER, World


def world_with(**limits):
    """One route with limits."""
    return World(routes=limited(**limits))


def several(world, workflow="summary", count=2, **more):
    """Jobs admitted one after the other."""
    ids = []
    for n in range(count):
        ids.append(world.submit(workflow, key=f"{more.get('owner', OWNER).owner_key}{n}", **more).job.job_id)
        world.clock.advance(1)
    return ids


def in_use(world, scope="route:plain"):
    """Numbers of a scope that are taken."""
    return [slot.n for slot in world.store.slots(scope)]


def test_an_unconfigured_scope_costs_no_call():
    """No slot item, no rate item, no index read."""
    asked = []
    world = World(hook=lambda name, _when: asked.append(name))

    world.submit()
    world.settle()

    assert not {"slots", "take_slot", "free_slot", "waiters", "spend_rate"} & set(asked)


def test_a_slot_is_held_while_the_call_runs_and_given_back_after_it():
    """META names it from the claim on; the second worker finds no room and spends no attempt."""
    world = world_with(concurrency=1)
    first, second = world.submit(key="a").job.job_id, world.submit(key="b").job.job_id

    def look(_call):
        job = world.job(first)
        assert [slot.scope for slot in job.slots] == ["route:plain"]
        assert world.worker(second) is Verdict.NOT_NOW
        waits = world.job(second)
        assert (waits.attempt, waits.reason, waits.waiting_scope) == (0, Reason.NO_CAPACITY, "route:plain")
        return world.provider._next(_call)

    world.provider.script = [look]
    world.worker(first)

    assert in_use(world) == []
    assert world.job(second).woken_for == "route:plain"
    world.pump()
    assert world.job(second).status is Status.SUCCEEDED
    assert in_use(world) == []


def test_a_slot_follows_the_providers_job_not_the_function():
    """Accepted work keeps it until its result arrives, by whatever way."""
    world = world_with(concurrency=1)
    first, second = world.submit("summary", key="a").job.job_id, world.submit("summary", key="b").job.job_id
    world.pump()
    assert in_use(world, "route:hook") == [world.job(first).slots[0].n]
    assert world.job(second).status is Status.PENDING

    world.provider.finish("resp_1")
    world.webhook("resp_1")
    world.pump()

    assert world.job(first).status is Status.SUCCEEDED
    assert world.job(second).status is Status.PROCESSING, "woken by the webhook's write, not by polling"
    assert in_use(world, "route:hook") == [world.job(second).slots[0].n]


def test_a_worker_that_dies_before_its_claim_leaks_nothing():
    """Its slot is taken over once it has stood for a minute and META still does not name it."""
    world = world_with(concurrency=1)
    first, second = world.submit(key="a").job.job_id, world.submit(key="b").job.job_id
    job = world.job(first)
    now = world.clock.now()
    world.store.take_slot(
        Slot(scope="route:plain", n=0, job_id=first, epoch=job.lease_epoch + 1, taken_at=now, verify_at=now + 60_000)
    )
    assert world.worker(second) is Verdict.NOT_NOW

    world.clock.advance(VERIFY_AFTER)
    assert world.worker(second) is Verdict.WORKED

    assert world.job(first).rev == job.rev + 1, "a claim that was on its way would fail now"
    assert in_use(world) == []


def test_a_release_that_was_lost_is_repeated_by_the_effects_function():
    """The debt stands on the job until the slot is back."""
    world = world_with(concurrency=1)
    first, second = world.submit(key="a").job.job_id, world.submit(key="b").job.job_id

    def refuse(name, when):
        if name == "free_slot" and when == "before":
            raise StoreUnavailable

    def look(_call):
        world.worker(second)
        world.store._hook = refuse
        return world.provider._next(_call)

    world.provider.script = [look]
    world.worker(first)
    world.store._hook = lambda _name, _when: None
    assert in_use(world) == [0]
    assert [key for key in world.job(first).owed if key.startswith(EffectKind.RELEASE)]

    world.settle()

    assert world.job(second).status is Status.SUCCEEDED
    assert in_use(world) == []
    assert world.job(first).owed == {}


def test_an_old_release_does_not_take_the_slot_of_a_later_attempt():
    """Repeated for ever, it frees only what its own lease held."""
    world = world_with(concurrency=1)
    job_id = world.submit("summary", key="a").job.job_id
    world.pump()
    job = world.job(job_id)
    world.store.free_slot("route:hook", 0, job_id, 1)
    now = world.clock.now()
    world.store.take_slot(Slot(scope="route:hook", n=0, job_id=job_id, epoch=2, taken_at=now, verify_at=now + 1))
    free(world.deps, job_id, 1, job.slots)

    assert in_use(world, "route:hook") == [0]


def test_a_claim_that_was_overtaken_gives_its_slots_back():
    """Bookkeeping of another function raised `rev`; the second try takes the job, and no slot stays behind."""
    world = world_with(concurrency=3)
    job_id = world.submit().job.job_id
    bumped = []

    def bump(name, when):
        if name == "take_slot" and when == "after" and not bumped:
            bumped.append(True)
            job = world.store.get(job_id)
            world.store.commit(job, job)

    world.store._hook = bump

    assert world.worker(job_id) is Verdict.WORKED
    assert in_use(world) == []
    assert len(world.provider.calls) == 1


def test_every_scope_holds_at_once():
    """Owner, user, workflow, route, provider, model, endpoint and all: each is a number of its own."""
    world = world_with(concurrency=5, per_owner=4, per_user=3)
    world.control.owners = {
        "acme": {"concurrency": 4, "per_user": 2, "per_route": {"plain": 2}},
        "*": {
            "concurrency": 9,
            "per_provider": {"openai": 8},
            "per_model": {"gpt-5.2": 7},
            "per_endpoint": {"responses": 6},
        },
    }
    job_id = world.submit(user_ref="u 1").job.job_id
    seen = []

    def look(call):
        seen.extend(sorted(slot.scope for slot in world.job(job_id).slots))
        return world.provider._next(call)

    world.provider.script = [look]
    world.worker(job_id)

    assert seen == [
        "all",
        "all|endpoint:responses",
        "all|model:gpt-5.2",
        "all|provider:openai",
        "owner:acme",
        "owner:acme|user:u%201",
        "route:plain",
        "route:plain|owner:acme",
        "route:plain|owner:acme|user:u%201",
    ]
    assert not world.store.taken


def test_a_refusal_by_a_later_scope_gives_back_the_earlier_ones():
    """Nobody holds what it can't use."""
    world = world_with(concurrency=1, per_owner=1)
    first = world.submit(key="a", owner=owner("one")).job.job_id
    second = world.submit(key="b", owner=owner("two")).job.job_id

    def look(call):
        assert world.worker(second) is Verdict.NOT_NOW
        assert world.job(second).waiting_scope == "route:plain"
        assert in_use(world, "route:plain|owner:two") == []
        return world.provider._next(call)

    world.provider.script = [look]
    world.worker(first)
    world.pump()
    assert world.job(second).status is Status.SUCCEEDED


def test_one_owners_flood_does_not_keep_another_waiting():
    """Released in turn over owners, however many came first."""
    world = world_with(concurrency=1)
    flood = several(world, count=20, owner=owner("flood"))
    world.pump()
    late = world.submit("summary", key="b", owner=owner("late")).job.job_id
    world.pump()

    world.provider.finish("resp_1")
    world.webhook("resp_1")
    world.pump()

    assert world.job(late).status is Status.PROCESSING
    assert sum(world.job(one).status is Status.SUCCEEDED for one in flood) == 1


def test_a_newcomer_does_not_pass_those_who_wait():
    """A slot that was freed for the first in line is not taken by whoever happens to come by."""
    world = world_with(concurrency=1)
    ids = several(world)
    world.pump()
    world.clock.advance(1_000)
    newcomer = world.submit("summary", key="late").job.job_id
    world.store.free_slot("route:hook", 0, ids[0], 1)  # freed, and the run of the releaser was lost

    assert world.worker(newcomer) is Verdict.NOT_NOW

    assert world.job(newcomer).waiting_scope == "route:hook"
    assert world.job(ids[1]).woken_for == "route:hook", "who found room but others before it woke them"


def test_high_priority_stands_earlier_but_low_priority_is_not_starved():
    """The head start is finite: rank is ready time less a constant."""
    world = world_with(concurrency=1)
    world.submit(key="busy")
    low = world.submit("low", key="l").job
    world.clock.advance(60_000)
    high = world.submit("high", key="h").job
    ranks = {}
    for job in (low, high):
        policy = world.deps.catalogue.policy(job.workflow)
        ranks[job.workflow] = rank(policy, job.priority, job.ready_at)

    assert ranks["high"] < ranks["low"]
    assert ranks["low"] < rank(world.deps.catalogue.policy("high"), high.priority, high.ready_at + 300_000)


def test_a_waiter_nobody_wakes_looks_for_itself():
    """The slow recheck finds capacity that a lost release left behind."""
    world = world_with(concurrency=1)
    first, second = several(world)
    world.pump()
    world.store.free_slot("route:hook", 0, first, 1)
    waiting = world.job(second)
    assert waiting.due_at <= waiting.recheck_at == world.clock.now() + 60_000

    world.clock.advance(61_000)
    world.sweep()
    world.pump()

    assert world.job(second).status is Status.PROCESSING


def test_a_rate_refusal_waits_for_its_time_and_gives_slots_back():
    """Requests per minute: six at once at most for a limit of 36, the seventh waits, attempts are not touched."""
    world = world_with(concurrency=50, requests_per_minute=36)
    ids = [world.submit(key=f"k{n}").job.job_id for n in range(7)]
    for one in ids:
        world.worker(one)

    waits = [world.job(one) for one in ids if world.job(one).status is Status.PENDING]

    assert [(one.reason, one.attempt) for one in waits] == [(Reason.RATE_LIMITED, 0)] * len(waits)
    assert 1 <= len(waits) <= 3
    assert {one.waiting_scope for one in waits} == {"rate:plain"}
    assert in_use(world) == []
    world.settle()
    assert all(world.job(one).status is Status.SUCCEEDED for one in ids)


def test_tokens_are_reserved_by_estimate_and_corrected_by_use():
    """The answer used 120 tokens, not the two thousand it might have."""
    world = world_with(tokens_per_minute=70_000)
    job = world.submit().job
    assert job.estimated_tokens > 2_000

    world.settle()

    (reserved,) = world.store.rates.values()
    assert reserved == to_us(job.created_at) + cost_us(120, 70_000)


@pytest.mark.parametrize("event", ["cancel", "expire"])
def test_a_woken_job_that_does_not_claim_passes_its_turn_on(event):
    """The wake is not lost with the job it was for."""
    world = world_with(concurrency=1)
    ids = several(world, count=3)
    world.pump()
    world.provider.finish("resp_1")
    world.webhook("resp_1")
    world.deliver("openai#wh_1")
    woken, third = world.job(ids[1]), ids[2]
    assert woken.woken_for == "route:hook"

    if event == "cancel":
        world.cancel(woken.job_id)
    else:
        world.clock.advance(1)
        job = world.job(woken.job_id)
        world.store.commit(job, job.with_(expires_at=world.clock.now()))
        world.worker(woken.job_id)

    assert world.job(third).woken_for == "route:hook"


# --- without a look -------------------------------------------------------------------------------------------------


def test_a_scope_that_was_roomy_a_moment_ago_is_not_looked_at_again():
    """The second job of a process asks for its numbers at once, in all scopes."""
    world = world_with(concurrency=20, per_owner=10)
    looks: list[str] = []
    real = world.store.slots
    world.store.slots = lambda scope: looks.append(scope) or real(scope)
    first, second, third = several(world, count=3)
    world.worker(first)
    assert len(looks) == 2
    world.worker(second)
    assert len(looks) == 2
    world.clock.advance(1_001)
    world.worker(third)
    assert len(looks) == 4
    assert len(in_use(world, "route:hook")) == 3


def test_what_others_took_meanwhile_is_found_by_a_look():
    """The number was free a moment ago: its condition refuses, and the job gets another one."""
    world = world_with(concurrency=20, per_owner=10)
    first, second = several(world)
    world.worker(first)
    now, real = world.clock.now(), world.store.take_slots

    def theirs_first(slots):
        for one in slots:
            world.store.take_slot(replace(one, job_id="job_them", taken_at=now))
        return real(slots)

    world.store.take_slots = theirs_first
    world.worker(second)
    assert world.job(second).status is Status.PROCESSING
    assert len({(one.scope, one.n) for one in world.job(first).slots + world.job(second).slots}) == 4
    assert len(in_use(world, "route:hook")) == 3


def test_a_repeat_of_our_own_request_is_told_from_somebody_faster():
    """The answer was lost and the SDK asked again: every number is refused, and every one is ours."""
    world = world_with(concurrency=20, per_owner=10)
    first, second = several(world)
    world.worker(first)
    real = world.store.take_slots
    world.store.take_slots = lambda slots: [False for _ in real(slots)]
    world.worker(second)
    assert world.job(second).status is Status.PROCESSING
    assert len(in_use(world, "route:hook")) == 2, "none was taken twice"
