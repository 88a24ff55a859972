"""Routes over whole jobs: closed for everybody at once, no attempt lost, opened through a ramp, waiters woken."""

from __future__ import annotations

from breakwater.domain import ramp
from breakwater.domain.hints import ExhaustedLimit
from breakwater.domain.records import RouteState
from breakwater.domain.results import Completed
from breakwater.domain.signals import ErrorClass, LimitDimension
from breakwater.domain.states import Reason, Status
from breakwater.domain.switches import Switch, SwitchName
from breakwater.usecases.circuit import close, open_again, reopen, watch
from breakwater.usecases.read import view
from breakwater.usecases.switch_state import close_route, lift, open_route, switches, throw
from tests.fakes.outside import answer, refusal
from tests.support.limited import limited, owner
from tests.support.world import World

MINUTE = 60_000


def down(world, count):
    """The provider fails that many times."""
    world.provider.script = [refusal(ErrorClass.OVERLOAD, 503)] * count


def test_faults_close_the_route_and_the_rest_waits_without_a_call():
    """A hundred jobs meet an outage: a handful of calls, no attempt lost by those that came later."""
    world = World(routes=limited(concurrency=10))
    down(world, 1_000)
    ids = [world.submit(key=f"k{n}").job.job_id for n in range(100)]

    world.pump(most=2_000)

    state = world.store.route("plain")
    assert state.closed(world.clock.now())
    assert state.reason == ramp.CIRCUIT
    assert len(world.provider.calls) <= 2 * ramp.OPEN_AFTER
    waiting = [world.job(one) for one in ids if world.job(one).attempt == 0]
    assert len(waiting) >= 90
    assert {(one.reason, one.ready_at) for one in waiting} == {(Reason.ROUTE_CLOSED, state.closed_until)}


def test_recovery_is_a_ramp_and_everything_finishes():
    """One probe, then two, four …; nobody polls for it and nothing is left behind."""
    world = World(routes=limited(concurrency=8))
    down(world, ramp.OPEN_AFTER)
    ids = [world.submit(key=f"k{n}").job.job_id for n in range(60)]
    world.pump(most=2_000)
    world.provider.script = []

    for _ in range(200):
        world.clock.advance(1_000)
        world.pump(most=2_000)
        if world.clock.now() % MINUTE < 1_000:
            world.sweep()

    assert all(world.job(one).status is Status.SUCCEEDED for one in ids)
    for n in range(4):  # those above took no time at all: the ramp goes on with the next ones
        world.clock.advance(ramp.STEP)
        world.submit(key=f"more{n}")
        world.pump()
    state = world.store.route("plain")
    assert (state.limit, state.closed_until) == (None, None)
    assert not world.store.taken


def test_a_provider_that_is_back_on_one_route_is_asked_sooner_on_its_others():
    """The route that was tried last would have waited a minute more; what a person closed waits."""
    world = World(routes=limited(concurrency=8))
    route = world.deps.catalogue.route
    down(world, 1_000)
    while (state := world.store.route("plain")) is None or state.opens < 5:
        world.submit(key=f"k{world.clock.now()}")
        world.pump(most=200)
        world.clock.advance(10_000)
    close(world.deps, route("hook"), until=world.clock.now() + 10 * MINUTE, reason="x", by="ann")
    opens = world.store.route("plain").closed_until
    assert opens - world.clock.now() > MINUTE

    world.provider.script = []
    _breaks_and_recovers(world, route("other"))

    assert world.clock.now() < world.store.route("plain").closed_until < opens - MINUTE / 2
    assert world.store.route("hook").closed_until > opens
    world.clock.advance(ramp.FIRST_OPEN)
    world.pump(most=200)
    assert world.store.route("plain").closed_until is None


def _breaks_and_recovers(world, route, *, answered=True):
    """Faults until the circuit opens, its time, and then a probe that is answered."""
    fault = refusal(ErrorClass.OVERLOAD, 503)
    for _ in range(ramp.OPEN_AFTER):
        watch(world.deps, route, world.clock.now(), fault)
    world.clock.advance(ramp.FIRST_OPEN + ramp.STEP)
    if answered:
        watch(world.deps, route, world.clock.now(), Completed(result=answer("back")))


def test_a_probes_slot_that_its_failure_freed_is_no_second_probe(monkeypatch):
    """Read while the probe was out, taken after its refusal had closed the route: no call goes out."""
    world = World(routes=limited(concurrency=8))
    route = world.deps.catalogue.route("plain")
    _breaks_and_recovers(world, route, answered=False)
    job_id = world.submit(key="second").job.job_id
    fault, read = refusal(ErrorClass.OVERLOAD, 503), world.store.route

    def just_before_it_closes(route_key):
        state = read(route_key)
        if state is not None and not state.closed(world.clock.now()):
            monkeypatch.setattr(world.store, "route", read)
            watch(world.deps, route, world.clock.now(), fault)
        return state

    monkeypatch.setattr(world.store, "route", just_before_it_closes)
    world.worker(job_id)

    assert world.provider.calls == []
    job = world.job(job_id)
    assert (job.reason, job.attempt) == (Reason.ROUTE_CLOSED, 0)
    assert job.ready_at == read("plain").closed_until
    assert not world.store.taken


def test_a_caller_fault_never_touches_the_route():
    """However many of them come."""
    world = World(routes=limited(concurrency=10))
    world.provider.script = [refusal(ErrorClass.CALLER_FAULT, 400)] * 20

    for n in range(20):
        world.submit(key=f"k{n}")
    world.settle()

    assert world.store.route("plain") is None


def test_a_hint_closes_the_route_for_everybody_and_wakes_them_when_it_is_over():
    """Kept to the ms, and nobody calls before."""
    world = World(routes=limited(concurrency=4))
    world.provider.script = [refusal(ErrorClass.PACING, 429, retry_after_ms=60_000)]
    first = world.submit(key="a").job.job_id
    world.pump()
    second = world.submit(key="b").job.job_id
    world.pump()
    opens = world.store.route("plain").closed_until
    assert world.job(second).ready_at == opens == world.clock.now() + 60_000

    world.clock.advance(59_999)
    world.pump()
    assert len(world.provider.calls) == 1
    world.clock.advance(1)
    world.pump()

    assert world.job(first).status is world.job(second).status is Status.SUCCEEDED


def test_headers_that_say_nothing_remains_close_the_route_before_a_call_is_refused():
    """The call that took the last of a limit succeeds; the next waits for the reset, at most a minute."""
    world = World(routes=limited(concurrency=4))
    gone = ExhaustedLimit(dimension=LimitDimension.REQUESTS, resets_at=world.clock.now() + 20_000)
    spent = ExhaustedLimit(dimension=LimitDimension.INPUT_TOKENS, resets_at=None)
    world.provider.script = [Completed(result=answer("last", exhausted=(gone, spent)))]
    first = world.submit(key="a").job.job_id
    world.pump()
    second = world.submit(key="b").job.job_id
    world.pump()

    assert world.job(first).status is Status.SUCCEEDED
    assert (world.job(second).reason, world.job(second).attempt) == (Reason.ROUTE_CLOSED, 0)
    assert world.store.route("plain").reason == "limit_exhausted"
    world.clock.advance(20_000)
    world.pump()
    assert world.job(second).status is Status.SUCCEEDED


def test_a_lost_nudge_of_a_route_is_made_up_for_by_the_sweep():
    """The route's own `due_at` is its second way to open."""
    world = World(routes=limited(concurrency=4))
    job_id = world.submit(key="a").job.job_id
    world.queues.lossy = True
    close(world.deps, world.deps.catalogue.route("plain"), until=world.clock.now() + 30_000, reason="x", by="ann")
    world.queues.lossy = False
    world.pump()
    assert world.job(job_id).waiting_scope == "route:plain"

    world.clock.advance(31_000)
    assert world.sweep()["nudged_route"] == 1
    world.pump()

    assert world.job(job_id).status is Status.SUCCEEDED


def test_waiters_of_a_route_without_a_limit_leave_in_batches():
    """Nothing counts them, so they don't all leave at once."""
    world = World()
    route = world.deps.catalogue.route("plain")
    close(world.deps, route, until=world.clock.now() + 30_000, reason="x", by="ann")
    ids = [world.submit(key=f"k{n}").job.job_id for n in range(80)]
    world.pump(most=1_000)

    for _ in range(60):
        world.clock.advance(1_000)
        world.pump(most=1_000)

    assert all(world.job(one).status is Status.SUCCEEDED for one in ids)


def test_an_operator_closes_a_route_until_a_time_and_says_why():
    """One call, for everybody; waiting jobs show it, and reopening early wakes them."""
    world = World(routes=limited(concurrency=4))
    until = world.clock.now() + 10 * MINUTE
    close_route(world.deps, "plain", until=until, why="provider maintenance", by="ann")
    job_id = world.submit().job.job_id
    world.pump()

    state = world.store.route("plain")
    assert (state.closed_until, state.reason, state.closed_by) == (until, "operator: provider maintenance", "ann")
    shown = view(world.deps, world.job(job_id))
    assert (shown["reason"], shown["ready_at"]) == ("route_closed", until)
    assert [(one["name"], one["why"]) for one in shown["degraded"]] == [("circuit_override", "provider maintenance")]

    open_route(world.deps, "plain")
    world.pump()

    assert world.job(job_id).status is Status.SUCCEEDED
    assert switches(world.deps) == {}
    assert world.job(job_id).ready_at < until


def test_a_pause_holds_work_and_its_end_lets_it_go_on():
    """Backlog is kept in order; nothing is called meanwhile."""
    world = World(routes=limited(concurrency=4))
    throw(world.deps, Switch(name=SwitchName.PAUSE, who="ann", why="outage", since=1, priorities=("low",)))
    held, other = world.submit("low", key="l").job.job_id, world.submit(key="n").job.job_id
    world.pump()
    assert world.job(held).reason is Reason.PAUSED
    assert world.job(other).status is Status.SUCCEEDED

    lift(world.deps, SwitchName.PAUSE)
    world.pump()

    assert world.job(held).status is Status.SUCCEEDED


def test_the_alternative_route_is_taken_when_the_switch_is_thrown():
    """Only where its contract holds, once, and the job says so."""
    world = World(routes=limited(concurrency=4))
    throw(world.deps, Switch(name=SwitchName.ALTERNATIVE_ROUTE, who="ann", why="slow", since=1, workflows=("chat",)))
    moved, kept = world.submit("chat", key="c").job.job_id, world.submit(key="s").job.job_id

    world.pump()

    assert (world.job(moved).route_key, world.job(moved).fallback_allowed) == ("other", "second_account")
    assert world.job(moved).status is Status.SUCCEEDED
    assert world.job(kept).route_key == "plain"


def test_a_reopened_route_that_nobody_knows_any_more_rests():
    """A route that is not deployed has no waiters to wake."""
    world = World()
    world.store.put_route(None, RouteState(route_key="gone", closed_until=1, due_at=1))

    assert reopen(world.deps, "gone") == "route_gone"
    assert world.store.route("gone").due_at is None
    assert reopen(world.deps, "never") == "nothing"


def test_opening_what_was_never_closed_changes_nothing():
    """No state, no write."""
    world = World()

    open_again(world.deps, world.deps.catalogue.route("plain"))

    assert world.store.route("plain") is None


def test_owners_behind_a_closed_route_leave_in_turn():
    """The ramp's few first calls are shared."""
    world = World(routes=limited(concurrency=2))
    close(world.deps, world.deps.catalogue.route("plain"), until=world.clock.now() + 30_000, reason="x", by="ann")
    for n in range(10):
        world.submit(key=f"a{n}", owner=owner("flood"))
        world.clock.advance(1)
    world.pump()
    world.clock.advance(5_000)
    late = world.submit(key="b", owner=owner("late")).job.job_id
    world.pump()
    world.clock.advance(25_000)
    world.pump()
    world.clock.advance(3_000)
    world.pump()

    order = [call.job_id for call in world.provider.calls]
    assert order.index(late) <= 3
