"""Nobody who waits is forgotten: two limits at once, a line that ends just then, a clock that is behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.obligations import Queue
from breakwater.domain.rate import to_us
from breakwater.domain.results import Completed
from breakwater.domain.slots import Standing, standing
from breakwater.domain.states import Reason, Status
from breakwater.domain.stream_events import Done
from breakwater.domain.switches import Switch, SwitchName
from breakwater.usecases import circuit
from breakwater.usecases.redeliver import redeliver
from breakwater.usecases.switch_state import lift, throw
from tests.fakes.outside import answer
from tests.support.catalogue import catalogue, policy, route
from tests.support.limited import limited
from tests.support.streams import numbered, streaming
from tests.support.world import World

SECOND, MINUTE = 1_000, 60_000
CALL_MS, TICK_MS = 200, 50


def full(world, ms, route_key="plain"):
    """Nothing is left of the route's requests per minute for so long."""
    world.store.rates[f"{route_key}#requests"] = to_us(world.clock.now() + ms)


def work_off(world, seconds):
    """Time passes, each call takes `CALL_MS` and its webhook comes; worker steps, and how many jobs were done."""
    steps, running, seen = 0, {}, len(world.provider.jobs)
    for n in range(seconds * SECOND // TICK_MS):
        for queue, message in world.visible():
            steps += message.kind == "job" and queue is Queue.BACKGROUND
            world.handle(queue, message)
        for name in list(world.provider.jobs)[seen:]:
            running[name] = world.clock.now() + CALL_MS
        seen = len(world.provider.jobs)
        for name in [one for one, at in running.items() if at <= world.clock.now()]:
            del running[name]
            world.provider.finish(name)
            world.webhook(name)
        world.clock.advance(TICK_MS)
        if n * TICK_MS % MINUTE == 0:
            world.sweep()
    return steps


# --- two limits at once ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backlog", [15, 60, 120])
def test_a_backlog_behind_slots_and_a_rate_does_not_bounce_between_the_two_lines(backlog):
    """One slot that takes five calls a second, a rate of ten: five are done each second, at a few steps a job."""
    world = World(routes=limited(concurrency=1, requests_per_minute=600))
    full(world, 9_950, "hook")  # all stand in line for the rate first
    ids = [world.submit("summary", key=f"k{n}").job.job_id for n in range(backlog)]

    steps = work_off(world, 10)

    done = sum(world.job(one).status is Status.SUCCEEDED for one in ids)
    assert done >= min(backlog, 35)
    assert steps <= 3 * backlog + 40
    assert max(world.job(one).waits for one in ids) <= 4


def test_where_the_rate_is_what_is_short_its_pace_is_kept():
    """Ten a second fit the slots, four the rate: four are called."""
    world = World(routes=limited(concurrency=4, requests_per_minute=240))
    ids = [world.submit("summary", key=f"k{n}").job.job_id for n in range(60)]
    full(world, 9_950, "hook")

    steps = work_off(world, 12)

    done = sum(world.job(one).status is Status.SUCCEEDED for one in ids)
    assert 36 <= done <= 50
    assert steps <= 3 * 60


# --- a line that ends just then -------------------------------------------------------------------------------------


def paused(world):
    """`sync` is paused, and one job stands in line for that."""
    throw(
        world.deps,
        Switch(name=SwitchName.PAUSE, who="ops", why="down", since=world.clock.now(), workflows=("sync",)),
    )
    return world.submit().job.job_id


def test_a_job_that_a_lifted_pause_woke_is_not_held_by_what_its_worker_still_remembers():
    """Switches are cached for seconds; whoever stood in line once more would wait for a slow recheck."""
    world = World()
    job_id = paused(world)
    world.worker(job_id)
    remembered = dict(world.control.thrown)
    lift(world.deps, SwitchName.PAUSE)
    world.control.switches = lambda: remembered

    world.worker(job_id)

    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_job_that_enters_a_pause_while_it_is_lifted_is_woken():
    """It was read as paused; when the job stands in line, everybody else was woken already."""
    armed = []

    def hook(name, when):
        if name == "commit" and when == "before" and armed:
            armed.clear()
            lift(world.deps, SwitchName.PAUSE)

    world = World(hook=hook)
    job_id = paused(world)
    armed.append(True)
    world.worker(job_id)

    assert world.job(job_id).waiting_scope is None
    world.pump()
    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_job_that_enters_a_rates_line_after_its_last_turn_winds_the_clock_again():
    """The clock saw nobody and stopped, between the look at the route and the job's own write."""
    armed = []

    def hook(name, when):
        if name == "commit" and when == "before" and armed:
            armed.clear()
            assert circuit.reopen(world.deps, "plain") == "drained"

    world = World(routes=limited(requests_per_minute=60), hook=hook)
    circuit.pace(world.deps, world.deps.catalogue.route("plain"), world.clock.now())
    job_id = world.submit().job.job_id
    armed.append(True)
    world.worker(job_id)
    assert world.job(job_id).waiting_scope == "rate:plain"

    world.clock.advance(2 * SECOND)
    world.pump()
    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_number_that_a_rates_refusal_gave_back_goes_to_who_found_none():
    """J1 takes its owner's only number and is refused by its rate; J2, on another route, saw that number taken."""
    state = {}

    def hook(name, when):
        if name == "spend_rate" and when == "before" and state:
            world.worker(state.pop("j2"))

    world = World(routes=limited(requests_per_minute=1), hook=hook)
    world.control.owners["acme"] = {"concurrency": 1}
    full(world, MINUTE)
    first = world.submit(key="a").job.job_id
    state["j2"] = second = world.submit("summary", key="b").job.job_id
    world.worker(first)

    assert world.job(first).waiting_scope == "rate:plain"
    assert world.job(second).woken_for == "owner:acme"


# --- a clock that is behind -----------------------------------------------------------------------------------------


def test_effects_are_delivered_by_a_clock_that_is_two_seconds_behind():
    """The nudge is there once; what was owed a moment ago by the sender's clock is due."""
    world = World()
    job_id = world.submit().job.job_id
    world.worker(job_id)
    world.clock.skew = -2 * SECOND

    assert world.effects(job_id) == "delivered"
    assert not world.job(job_id).owed


def test_a_poll_is_made_by_a_clock_that_is_two_seconds_behind():
    """As the nudge says."""
    world = World()
    job_id = world.submit("polled").job.job_id
    world.pump()
    world.provider.finish("resp_1")
    world.clock.advance(world.job(job_id).poll_at - world.clock.now())
    world.clock.skew = -2 * SECOND

    assert world.complete(job_id) == "settled_by_poll"


def test_a_route_opens_on_time_though_its_nudge_met_a_clock_that_is_behind():
    """Never before its time, and not a minute after it either."""
    world = World(routes=limited())
    circuit.close(
        world.deps, world.deps.catalogue.route("plain"), until=world.clock.now() + 30 * SECOND, reason="x", by="ops"
    )
    job_id = world.submit().job.job_id
    world.pump()
    world.clock.advance(30 * SECOND)
    list(world.visible())  # its nudge is received, by a clock that is behind
    world.clock.skew = -2 * SECOND
    assert circuit.reopen(world.deps, "plain") == "nothing"
    assert world.job(job_id).status is Status.PENDING

    world.clock.skew = 0
    world.clock.advance(SECOND)
    world.pump()
    assert world.job(job_id).status is Status.SUCCEEDED


# --- what somebody asked for meanwhile ------------------------------------------------------------------------------


def test_a_redelivery_asked_for_while_a_try_is_under_way_is_made():
    """The slow try ends as before; the new debt is another one."""
    world = World()
    world.control.owners["acme"] = {"callback_hosts": ["hooks.example.com"]}
    job_id = world.submit(callback_url="https://hooks.example.com/x").job.job_id
    world.worker(job_id)
    send, asked = world.notifier.send, []

    def slow(*args, **more):
        if not asked:
            asked.append(redeliver(world.deps, world.job(job_id), "ops"))
        return send(*args, **more)

    world.notifier.send = slow
    world.effects(job_id)
    assert "notify#1" in world.job(job_id).owed
    before = len(world.notifier.sent)
    world.pump()
    assert len(world.notifier.sent) == before + 1


def test_a_fallback_with_a_token_limit_reserves_for_what_moves_there():
    """An outage moves all work to the route that nobody had counted tokens for."""
    base = catalogue()
    counted = route("other", credential="second", limits={"tokens_per_minute": 10_000})
    world = World(routes=replace(base, routes={**base.routes, "other": counted}))

    assert world.submit("fallback").job.estimated_tokens > 0
    assert world.submit("sync", key="no limit anywhere").job.estimated_tokens is None


def test_an_input_is_kept_as_long_as_the_job_that_a_review_keeps():
    """Held for a week of its seven days: approved on the last of them, it still has what it shall ask."""
    base, day = catalogue(), 86_400_000
    slow = policy("guarded", requires_approval=True, retention_days=7, review_max_age_ms=7 * day)
    world = World(routes=replace(base, policies={**base.policies, "guarded": slow}))
    job_id = world.submit("guarded").job.job_id
    world.clock.advance(10 * MINUTE)
    world.worker(job_id)

    job = world.job(job_id)
    assert job.reason is Reason.APPROVAL_REQUIRED
    assert int(world.store.items[f"JOB#{job_id}", job.input_ref]["ttl"]["N"]) == job.ttl


def test_a_paid_result_whose_write_was_lost_is_taken_before_the_next_attempt_pays_again():
    """A worker that stalled past its lease stored its result, and could not say so."""
    failing = []

    def hook(name, when):
        if name == "commit" and when == "before" and failing:
            raise StoreUnavailable("throttled")

    world = World(hook=hook)
    job_id = world.submit().job.job_id

    def stalls(_call):
        world.clock.advance(70 * SECOND)
        world.sweep()
        world.complete(job_id)
        failing.append(True)
        return Completed(result=answer("first"))

    world.provider.script = [stalls]
    with pytest.raises(StoreUnavailable):
        world.worker(job_id)
    failing.clear()
    job = world.job(job_id)
    assert job.possible_duplicate
    world.clock.advance(max(0, job.ready_at - world.clock.now()) + 1)
    world.settle()

    assert (world.job(job_id).status, len(world.provider.calls)) == (Status.SUCCEEDED, 1)
    assert len(world.store.lines) == 1


def test_a_stream_that_goes_on_keeps_its_slots_and_gives_them_back():
    """The second holder's epoch is later than the one its numbers were taken under."""
    can = {"background": True, "streaming": True, "tools": True, "context_window": 400_000}
    base = streaming()
    told = route("told", capabilities=can, limits={"concurrency": 1})
    world = World(routes=replace(base, routes={**base.routes, "told": told}))

    def dies():
        raise RuntimeError("the process is gone")

    world.provider.streams = [[*[piece for one in numbered("a", "b") for piece in (one, 300)], dies]]
    job_id = world.submit("told", stream=True).job.job_id
    with pytest.raises(RuntimeError):
        world.worker(job_id)
    world.clock.advance(70 * SECOND)
    world.sweep()
    world.complete(job_id)
    seen = []

    def looks():
        seen.extend(standing(world.job(job_id), one) for one in world.store.slots("route:told"))

    world.provider.streams = [[*numbered("a", "b", "c", start=2), looks, Done(result=answer("abc"), sequence=4)]]
    world.worker(job_id)

    assert seen == [Standing.HELD]
    assert world.job(job_id).status is Status.SUCCEEDED
    assert world.store.slots("route:told") == []
