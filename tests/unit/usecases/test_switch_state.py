"""Throwing and lifting switches: complete, replaced under a revision, and undone by taking them back."""

from __future__ import annotations

import pytest

from breakwater.domain.errors import InvalidRequest, StaleVersion, TooMany
from breakwater.domain.states import Reason, Status
from breakwater.domain.switches import Switch, SwitchName
from breakwater.usecases.again import again
from breakwater.usecases.circuit import close
from breakwater.usecases.switch_state import close_route, lift, open_route, switches, throw
from tests.support.limited import limited
from tests.support.world import World

SOON = 60_000


def switch(name, **more):
    """A complete switch."""
    return Switch(**{"name": name, "who": "ann", "why": "outage", "since": 1, **more})


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (switch(SwitchName.PAUSE, workflows=("sync",), why=" "), "why"),
        (switch(SwitchName.PAUSE), "workflows"),
        (switch(SwitchName.PAUSE, workflows=("nobody",)), "workflows"),
        (switch(SwitchName.SERVE_LAST_RESULT, until=5), "until"),
        (switch(SwitchName.CIRCUIT_OVERRIDE, routes=("plain",)), "routes"),
        (switch(SwitchName.CIRCUIT_OVERRIDE, routes=("nowhere",), until=10**15), "route_key"),
    ],
)
def test_a_switch_that_says_too_little_is_refused(wrong, field):
    """Nothing is stored, and the answer names the field."""
    world = World(routes=limited())

    with pytest.raises(InvalidRequest) as caught:
        throw(world.deps, wrong)

    assert caught.value.field == field
    assert switches(world.deps) == {}


def test_switches_stand_side_by_side_and_are_lifted_one_by_one():
    """In order of severity; lifting what is not thrown changes nothing."""
    world = World(routes=limited())
    throw(world.deps, switch(SwitchName.MANUAL_RETRY, limit=0))
    throw(world.deps, switch(SwitchName.QUEUE_INSTEAD_OF_FAIL))

    assert list(switches(world.deps)) == [SwitchName.QUEUE_INSTEAD_OF_FAIL, SwitchName.MANUAL_RETRY]
    assert lift(world.deps, SwitchName.PAUSE) is None
    assert lift(world.deps, SwitchName.MANUAL_RETRY).limit == 0
    assert list(switches(world.deps)) == [SwitchName.QUEUE_INSTEAD_OF_FAIL]


def test_who_loses_every_race_is_told():
    """Five others were faster: the operator looks again."""
    world = World(routes=limited())
    world.control.put_switches = lambda _rev, _switches: False

    with pytest.raises(StaleVersion):
        throw(world.deps, switch(SwitchName.QUEUE_INSTEAD_OF_FAIL))


def test_an_override_of_several_routes_closes_and_opens_them_all():
    """Each on its own item; the switch names them together."""
    world = World(routes=limited())
    until = world.clock.now() + SOON
    throw(world.deps, switch(SwitchName.CIRCUIT_OVERRIDE, routes=("plain", "hook"), until=until))
    assert all(world.store.route(key).closed(world.clock.now()) for key in ("plain", "hook"))

    lift(world.deps, SwitchName.CIRCUIT_OVERRIDE)

    assert not any(world.store.route(key).closed(world.clock.now()) for key in ("plain", "hook"))


def test_a_second_closed_route_joins_the_switch_and_leaves_it_alone():
    """Opening one leaves the other closed; a route's own closure by a provider opens the same way."""
    world = World(routes=limited())
    until = world.clock.now() + SOON
    close_route(world.deps, "plain", until=until, why="one", by="ann")
    both = close_route(world.deps, "hook", until=until + 1, why="two", by="bob")
    assert (both.routes, both.until) == (("plain", "hook"), until + 1)

    open_route(world.deps, "plain")
    assert switches(world.deps)[SwitchName.CIRCUIT_OVERRIDE].routes == ("hook",)
    open_route(world.deps, "hook")
    assert switches(world.deps) == {}

    close(world.deps, world.deps.catalogue.route("plain"), until=until, reason="overload", by="provider")
    open_route(world.deps, "plain")
    assert not world.store.route("plain").closed(world.clock.now())
    with pytest.raises(InvalidRequest):
        close_route(world.deps, "plain", until=world.clock.now(), why="late", by="ann")
    with pytest.raises(InvalidRequest):
        open_route(world.deps, "nowhere")


def test_manual_retries_follow_the_switch_while_it_is_thrown():
    """Zero forbids them; a higher number allows more than the policy."""
    world = World(routes=limited())
    job_id = world.submit(key="dead").job.job_id
    job = world.job(job_id)
    dead = {"status": Status.DEAD_LETTER, "reason": Reason.MAX_QUEUE_AGE_EXCEEDED, "due_at": None}
    world.store.commit(job, job.with_(**dead, manual_retries=1))
    policy = world.deps.catalogue.policy("sync")
    with pytest.raises(TooMany):
        again(world.deps, world.job(job_id), policy, "acme")
    throw(world.deps, switch(SwitchName.MANUAL_RETRY, limit=2, workflows=("sync",)))

    assert again(world.deps, world.job(job_id), policy, "acme").generation == 2


def test_a_pause_without_workflows_is_resumed_everywhere():
    """By priority: every workflow's line is looked at."""
    world = World(routes=limited())
    throw(world.deps, switch(SwitchName.PAUSE, priorities=("low", "normal"), until=world.clock.now() + SOON))
    ids = [world.submit(workflow, key=workflow).job.job_id for workflow in ("low", "sync")]
    world.pump()
    assert {world.job(one).reason for one in ids} == {Reason.PAUSED}
    assert {world.job(one).recheck_at for one in ids} == {world.clock.now() + SOON}

    lift(world.deps, SwitchName.PAUSE)
    world.pump()

    assert {world.job(one).status for one in ids} == {Status.SUCCEEDED}
