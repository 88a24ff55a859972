"""A line for a route's rates: nobody polls, everybody goes in order at the rate's pace, and no lost clock stops it."""

from __future__ import annotations

from collections import Counter

import pytest

from breakwater.domain.records import PACE_LOST
from breakwater.domain.states import Reason, Status
from breakwater.usecases.circuit import close
from tests.support.limited import limited, owner, run_in
from tests.support.world import World

SECOND, MINUTE = 1_000, 60_000
RPM = 60


def saturated(count, hook=None, **limits):
    """More jobs than a minute takes, all tried once. Each call is counted in the second it was made."""
    world = World(routes=limited(**{"requests_per_minute": RPM, **limits}), **({"hook": hook} if hook else {}))
    ids = [world.submit(key=f"k{n}").job.job_id for n in range(count)]
    world.pump(most=10_000)
    return world, ids


def pass_time(world, seconds):
    """Second by second, a sweep each minute; the moments of the calls."""
    called = []
    for n in range(seconds):
        world.clock.advance(SECOND)
        before = len(world.provider.calls)
        world.pump(most=10_000)
        called += [world.clock.now()] * (len(world.provider.calls) - before)
        if n % 60 == 59:
            world.sweep()
    return called


def test_a_backlog_behind_a_rate_is_worked_off_at_its_pace_and_polls_nothing():
    """Two hundred jobs at sixty a minute: no minute above the rate, at most two looks at the rate a job."""
    looks = Counter()
    world, ids = saturated(200, hook=lambda name, when: looks.update([name] if when == "before" else []))
    assert sum(world.job(one).waiting_scope == "rate:plain" for one in ids) > 180

    called = pass_time(world, 280)

    assert all(world.job(one).status is Status.SUCCEEDED for one in ids)
    assert all(sum(at <= one < at + MINUTE for one in called) <= RPM for at in called)
    assert looks["spend_rate"] <= 2 * 200
    assert all(world.job(one).attempt == 1 for one in ids)
    assert world.store.route("plain").paced_until is None, "the clock stops with the line"


def test_nobody_overtakes_and_owners_take_turns():
    """Who came with the first refusal goes before who comes now; one owner's flood is not another's wait."""
    world, first = saturated(40)
    world.clock.advance(1)
    late = [world.submit(key=f"late{n}").job.job_id for n in range(20)]
    other = [world.submit(key=f"o{n}", owner=owner("other")).job.job_id for n in range(5)]
    world.pump(most=1_000)
    assert {world.job(one).reason for one in (*late, *other)} == {Reason.RATE_LIMITED}

    pass_time(world, 20)

    done = {one for one in (*first, *late, *other) if world.job(one).status is Status.SUCCEEDED}
    assert set(other) <= done
    assert not done & set(late)


def test_a_person_does_not_stand_behind_the_line():
    """The first unit that is earned is theirs, if they ask first."""
    world, _ = saturated(40)
    world.clock.advance(2 * SECOND)

    ran = run_in(world, "plain_chat")

    assert ran.job.status is Status.SUCCEEDED


@pytest.mark.parametrize("after", [0, 30])
def test_a_clock_that_was_lost_is_wound_again_by_the_sweep(after):
    """The nudge of a turn never comes: a minute later the line goes on."""
    world, ids = saturated(60)
    pass_time(world, after)
    for messages in world.queues.sent.values():
        messages[:] = [one for one in messages if one.kind != "route"]

    pass_time(world, 240)

    assert all(world.job(one).status is Status.SUCCEEDED for one in ids)


def test_a_line_whose_clock_nobody_winds_holds_nobody():
    """Two minutes behind its time it is no line any more: who comes tries, and winds it."""
    world, ids = saturated(60)
    for messages in world.queues.sent.values():
        messages.clear()
    world.clock.advance(PACE_LOST + MINUTE)

    job_id = world.submit(key="new").job.job_id
    world.worker(job_id)

    assert world.job(job_id).status is Status.SUCCEEDED
    world.settle()
    assert all(world.job(one).status is Status.SUCCEEDED for one in ids)


def test_two_turns_at_once_wake_for_one():
    """A nudge that came twice makes one turn."""
    world, ids = saturated(60)
    pass_time(world, 3)
    world.clock.advance(SECOND)
    route = [one for messages in world.queues.sent.values() for one in messages if one.kind == "route"]
    before = sum(world.job(one).waiting_scope is not None for one in ids)

    for _ in range(4):
        for queue, messages in world.queues.sent.items():
            if route[0] in messages:
                world.handle(queue, route[0])

    woken = before - sum(world.job(one).waiting_scope is not None for one in ids)
    assert woken <= 2


def test_a_closed_route_keeps_its_line_and_goes_on_when_it_opens():
    """The hint is obeyed first; then the line leaves at the rate's pace, and nothing is forgotten."""
    world, ids = saturated(40)
    route = world.deps.catalogue.route("plain")
    close(world.deps, route, until=world.clock.now() + 30 * SECOND, reason="x", by="ann")
    assert pass_time(world, 29) == []

    pass_time(world, 120)

    assert all(world.job(one).status is Status.SUCCEEDED for one in ids)
