"""New work is turned away where as much as may stands in a lane already; nobody counts where nobody asked for it."""

from __future__ import annotations

import pytest

from breakwater.domain.errors import Overloaded, StoreUnavailable, TooMany
from breakwater.domain.records import RouteState
from breakwater.domain.routes import Catalogue
from breakwater.domain.states import Lane, Status
from breakwater.usecases.protect import notice_wait
from tests.support.catalogue import policy, route
from tests.support.limited import owner, run_in
from tests.support.world import World

SETTLED = 3_000


def world_with(*, lane=None, per_owner=None, people=None, hook=None):
    """`sync` with limits in its lanes, `other` with none."""
    limits = {"max_queue_depth": lane, "max_queue_depth_per_owner": per_owner}
    background = {"max_queue_age_ms": 900_000, "max_attempts": 3, "require_idempotency_key": False, **limits}
    admission = {"max_wait_ms": 4_000, "max_attempts": 2, "max_queue_depth": people}
    strategy = {"lanes": {"interactive_admission": admission, "background_retry": background}}
    policies = [policy("sync", ai_api_queueing_strategy=strategy, serve_latest=True), policy("other")]
    routes = Catalogue(
        routes={"plain": route("plain")},
        policies={one.workflow: one for one in policies},
        default_route="plain",
    )
    return World(routes=routes, hook=hook)


def fill(world, count, workflow="sync", who="acme"):
    """So many jobs of one owner, admitted one after the other."""
    return [world.submit(workflow, key=f"{workflow}-{who}-{n}", owner=owner(who)).job for n in range(count)]


def test_without_a_limit_nobody_counts():
    """No request, and nothing on the job."""
    asked = []
    world = world_with(hook=lambda name, _when: asked.append(name))

    jobs = fill(world, 3)

    assert "backlog" not in asked
    assert not any(one.counted for one in jobs)
    assert not any("standing_lane" in item for item in world.store.items.values())


def test_a_full_lane_turns_new_work_away_and_lets_it_in_again():
    """503, whoever asks and of whatever workflow stands there; the same intent as before is still answered."""
    world = world_with(lane=3)
    first = fill(world, 1)
    fill(world, 2, workflow="other", who="umbrella")
    world.clock.advance(SETTLED)

    with pytest.raises(Overloaded) as caught:
        world.submit(key="new")

    assert caught.value.rule == "backlog_depth"
    assert caught.value.ids == {"latest": "/v1/workflows/sync/latest"}
    assert world.submit(key="sync-acme-0").job.job_id == first[0].job_id
    assert fill(world, 1, workflow="other")[0].status is Status.PENDING, "its own policy has no limit"

    world.pump()
    world.clock.advance(SETTLED)
    assert world.submit(key="new").job.status is Status.PENDING


def test_one_owners_depth_is_theirs():
    """429 for the one, the others are let in."""
    world = world_with(lane=10, per_owner=2)
    fill(world, 2)

    with pytest.raises(TooMany) as caught:
        world.submit(key="new")

    assert caught.value.rule == "owner_backlog_depth"
    assert len(fill(world, 2, who="umbrella")) == 2


def test_each_lane_has_its_own_depth():
    """A full background leaves people alone, and the other way round."""
    world = world_with(lane=1, people=1)
    fill(world, 1)

    assert run_in(world, "sync").job.status is Status.SUCCEEDED
    with pytest.raises(Overloaded):
        fill(world, 2)


def test_a_process_counts_no_more_than_every_two_seconds():
    """And adds what it lets in itself; whatever others did is seen after that."""
    asked = []
    world = world_with(lane=50, per_owner=40, hook=lambda name, when: asked.append(name) if when == "before" else None)

    fill(world, 30)
    assert asked.count("backlog") == 2, "the lane and the owner, once"
    world.clock.advance(SETTLED)
    fill(world, 31)

    assert asked.count("backlog") == 4
    fill(world, 40)
    with pytest.raises(TooMany):
        world.submit(key="one more")
    assert sum("standing_lane" in item for item in world.store.items.values()) == 40


def test_the_time_to_come_again_follows_the_pace_that_workers_see():
    """What they took had waited two minutes: a tenth of the lane is free in a tenth of that."""
    world = world_with(lane=2)
    jobs = fill(world, 2)
    notice_wait(world.deps, jobs[0], world.clock.now() + 120_000)
    world.clock.advance(6_000)

    with pytest.raises(Overloaded) as caught:
        world.submit(key="new")

    assert caught.value.retry_after_ms == 12_000


def test_where_nobody_takes_anything_the_time_grows_with_what_stands():
    """From a second on: as long as the older of what stands has stood, by the same share."""
    world = world_with(lane=2)
    fill(world, 2)
    waits = []
    for passed in (0, 100_000, 200_000):
        world.clock.advance(passed)
        with pytest.raises(Overloaded) as caught:
            world.submit(key="new")
        waits.append(caught.value.retry_after_ms)

    assert waits == [1_000, 10_000, 30_000]


def test_nothing_drains_before_the_route_opens():
    """A closed route says the time."""
    world = world_with(lane=2)
    fill(world, 2)
    state = RouteState(route_key="plain", closed_until=world.clock.now() + 300_000, reason="overload", limit=0)
    world.store.put_route(None, state)
    world.clock.advance(6_000)

    with pytest.raises(Overloaded) as caught:
        world.submit(key="new")

    assert (caught.value.rule, caught.value.retry_after_ms) == ("backlog_depth", 294_000)


def test_a_count_that_fails_turns_nobody_away():
    """The index is throttled: the table itself may still answer."""

    def down(name, _when):
        if name == "backlog":
            raise StoreUnavailable

    world = world_with(lane=1, hook=down)

    assert len(fill(world, 1)) == 1
    world.clock.advance(SETTLED)
    assert fill(world, 2)[1].status is Status.PENDING
    assert "depth_unknown" in [name for name, _ in world.log.notes]


def test_what_is_worked_on_or_settled_does_not_stand():
    """Also after a retry, a cancel and a replay: the index is derived, so there is nothing to leak."""
    world = world_with(lane=100)
    cancelled, worked = fill(world, 2)
    world.cancel(cancelled.job_id)
    seen = []

    def look(call):
        seen.append(world.store.backlog(Lane.BACKGROUND_RETRY, None, 100).depth)
        return world.provider._next(call)

    world.provider.script = [look]
    world.pump()

    assert seen == [0]
    assert world.job(worked.job_id).status is Status.SUCCEEDED
    assert world.store.backlog(Lane.BACKGROUND_RETRY, None, 100).depth == 0


def test_a_process_forgets_owners_it_has_not_seen_for_long():
    """Its memory is bounded, however many owners come by."""
    world = world_with(per_owner=1)
    for n in range(1_100):
        world.submit(key="k", owner=owner(f"o-{n}"))

    assert len(world.deps.noticed.depths) <= 1_001
