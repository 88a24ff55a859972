"""Every kind of stuck job, built through the world, gets the right layer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakwater.domain.callbacks import Disabled
from breakwater.domain.policy import Limits
from breakwater.domain.records import RouteState
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Reason
from breakwater.usecases import diagnose
from breakwater.usecases.close import close
from breakwater.usecases.diagnose import diagnosis, shown
from breakwater.usecases.redeliver import redeliver
from breakwater.usecases.replay import replay
from breakwater.usecases.step import Told
from tests.fakes.outside import refusal
from tests.support.dead import terms
from tests.support.world import World

MINUTE = 60_000


class Crash(BaseException):
    """The process is gone."""


def queued(world):
    """Queued."""
    return world.submit().job.job_id


def nudge_lost(world):
    """Nudge lost."""
    world.queues.lossy = True
    job_id = queued(world)
    world.clock.advance(10 * MINUTE)
    return job_id


def released_later(world):
    """Released later."""
    job_id = queued(world)
    world.provider.script = [refusal(ErrorClass.PACING, 429, retry_after_ms=300_000)]
    world.pump()
    return job_id


def backs_off(world):
    """Backs off."""
    job_id = queued(world)
    world.provider.script = [refusal(ErrorClass.SERVER_FAULT, 500)]
    world.pump()
    return job_id


def being_worked_on(world):
    """Being worked on."""
    job_id = queued(world)
    _die_in_call(world, job_id)
    return job_id


def worker_gone(world):
    """Worker gone."""
    job_id = being_worked_on(world)
    world.clock.advance(10 * MINUTE)
    return job_id


def crashing(world):
    """Crashing."""
    job_id = queued(world)
    world.queues.sent = {queue: [] for queue in world.queues.sent}
    for queue in world.queues.dlq:
        if queue.value == "background":
            world.queues.dlq[queue]["r-1"] = f'{{"kind":"job","id":"{job_id}"}}'
    world.drain()
    return job_id


def route_closed(world):
    """Route closed."""
    job_id = queued(world)
    _close(world, "plain", world.clock.now() + 30 * MINUTE)
    world.pump()
    return job_id


def route_closed_not_seen_yet(world):
    """Route closed not seen yet."""
    job_id = queued(world)
    _close(world, "plain", world.clock.now() + 30 * MINUTE)
    return job_id


def paused(world):
    """Paused."""
    world.control.thrown = {"pause": {"workflows": ["sync"]}}
    job_id = queued(world)
    world.pump()
    return job_id


def no_slot(world):
    """No slot."""
    policy = world.deps.catalogue.policies["summary"]
    limited = replace(policy, limits=Limits(per_workflow=1))
    world.deps.catalogue.policies["summary"] = limited
    world.submit("summary", "first")
    world.pump()
    job_id = world.submit("summary", "second").job.job_id
    world.pump()
    return job_id


def no_slot_for_long(world):
    """No slot for long."""
    job_id = no_slot(world)
    for _ in range(8):
        world.clock.advance(MINUTE)
        world.sweep()
        world.pump()
    return job_id


def replayed(world):
    """Replayed."""
    job_id = attempts_gone(world)
    replay(world.deps, world.job(job_id), terms(), "ops")
    return job_id


def cancel_at_provider_owed(world):
    """Cancel at provider owed."""
    job_id = provider_runs_it(world)
    world.cancel(job_id)
    return job_id


def closed_by_a_person(world):
    """Closed by a person."""
    job_id = attempts_gone(world)
    close(world.deps, world.job(job_id), "ops")
    return job_id


def provider_runs_it(world):
    """Provider runs it."""
    job_id = world.submit("summary").job.job_id
    world.pump()
    world.clock.advance(MINUTE)
    return job_id


def webhook_unprocessed(world):
    """Webhook unprocessed."""
    job_id = provider_runs_it(world)
    world.queues.lossy = True
    world.webhook("resp_1")
    world.clock.advance(5 * MINUTE)
    return job_id


def no_webhook_and_no_poll(world):
    """No webhook and no poll."""
    job_id = provider_runs_it(world)
    world.clock.advance(30 * MINUTE)
    return job_id


def polled_provider_silent(world):
    """Polled provider silent."""
    job_id = world.submit("polled").job.job_id
    world.pump()
    world.clock.advance(30 * MINUTE)
    return job_id


def effects_owed(world):
    """Effects owed."""
    job_id = queued(world)
    world.worker(job_id)
    world.clock.advance(20 * MINUTE)
    return job_id


def effects_on_their_way(world):
    """Effects on their way."""
    job_id = queued(world)
    world.worker(job_id)
    return job_id


def input_gone(world):
    """Input gone."""
    job_id = queued(world)
    del world.store.items[f"JOB#{job_id}", world.job(job_id).input_ref]
    return job_id


def needs_approval(world):
    """Needs approval."""
    job_id = world.submit("guarded").job.job_id
    world.pump()
    return job_id


def spend_gone(world):
    """Spend gone."""
    job_id = queued(world)
    world.provider.script = [refusal(ErrorClass.SPEND, 429)]
    world.pump()
    return job_id


def wrong_request(world):
    """Wrong request."""
    job_id = queued(world)
    world.provider.script = [refusal(ErrorClass.CALLER_FAULT, 400)]
    world.settle()
    return job_id


def attempts_gone(world):
    """Attempts gone."""
    job_id = queued(world)
    world.provider.script = [refusal(ErrorClass.SERVER_FAULT, 500)] * 3
    world.settle()
    return job_id


def grew_old_behind_a_closed_route(world):
    """Grew old behind a closed route."""
    job_id = queued(world)
    _close(world, "plain", world.clock.now() + 60 * MINUTE)
    world.settle()
    return job_id


def cancelled(world):
    """Cancelled."""
    job_id = queued(world)
    world.cancel(job_id)
    world.settle()
    return job_id


def done(world):
    """Done."""
    job_id = queued(world)
    world.settle()
    return job_id


def _close(world, route_key, until):
    assert world.store.put_route(None, RouteState(route_key=route_key, closed_until=until, reason="maintenance"))


def _die_in_call(world, job_id):
    def dies(_call):
        raise Crash

    world.provider.script = [dies]
    with pytest.raises(Crash):
        world.worker(job_id, told=Told(message_id="m-7", receive_count=1, lambda_request_id="l-7"))


KINDS = [
    (queued, "queue", "in_progress"),
    (nudge_lost, "queue", "stuck"),
    (released_later, "provider", "waiting"),
    (backs_off, "provider", "waiting"),
    (being_worked_on, "worker", "in_progress"),
    (worker_gone, "worker", "stuck"),
    (crashing, "worker", "stuck"),
    (route_closed, "route", "waiting"),
    (route_closed_not_seen_yet, "route", "waiting"),
    (paused, "route", "waiting"),
    (provider_runs_it, "provider", "in_progress"),
    (webhook_unprocessed, "webhook", "stuck"),
    (no_webhook_and_no_poll, "webhook", "stuck"),
    (polled_provider_silent, "provider", "stuck"),
    (effects_owed, "effects", "stuck"),
    (effects_on_their_way, "effects", "in_progress"),
    (input_gone, "admission", "stuck"),
    (needs_approval, "admission", "needs_a_person"),
    (spend_gone, "route", "needs_a_person"),
    (wrong_request, "client", "needs_a_person"),
    (attempts_gone, "provider", "needs_a_person"),
    (grew_old_behind_a_closed_route, "route", "needs_a_person"),
    (cancelled, "finished", "stopped_by_a_person"),
    (done, "finished", "done"),
    (no_slot, "route", "waiting"),
    (no_slot_for_long, "route", "waiting"),
    (replayed, "queue", "in_progress"),
    (cancel_at_provider_owed, "effects", "in_progress"),
    (closed_by_a_person, "finished", "stopped_by_a_person"),
]


@pytest.mark.parametrize(("build", "layer", "condition"), KINDS, ids=[build.__name__ for build, _, _ in KINDS])
def test_a_stuck_job_names_its_layer(build, layer, condition):
    """One verdict, evidence for all nine layers in order, and what comes next."""
    world = World()
    job_id = build(world)

    found = diagnosis(world.deps, world.job(job_id), deliveries=True)

    assert (found.layer.value, found.condition.value) == (layer, condition)
    assert [one.layer.value for one in found.evidence] == [
        "client",
        "admission",
        "queue",
        "worker",
        "route",
        "provider",
        "webhook",
        "effects",
        "finished",
    ]
    assert next(one for one in found.evidence if one.mark.value == "here").layer is found.layer
    assert found.verdict
    assert found.next.what


def test_what_comes_next_and_when_is_the_jobs_own_obligation():
    """The time of the next look is the one the table holds, so the answer is a promise."""
    world = World()
    job_id = released_later(world)

    found = diagnosis(world.deps, world.job(job_id))

    assert found.next.at == world.clock.now() + 300_000
    assert found.next.what == "a worker looks at it"


def test_a_webhook_that_was_worked_on_is_seen():
    """The job keeps a trace of its deliveries, so `delivery seen?` has an answer."""
    world = World()
    job_id = provider_runs_it(world)
    world.provider.finish("resp_1")
    world.webhook("resp_1")
    world.settle()

    found = diagnosis(world.deps, world.job(job_id))

    webhook = next(one for one in found.evidence if one.layer.value == "webhook")
    assert webhook.facts["processed"] == 1
    assert found.layer.value == "finished"


def test_the_worker_is_named_by_its_lease_and_its_request():
    """Whoever looks can find the log lines of the very process that holds the job."""
    world = World()
    job_id = being_worked_on(world)

    found = diagnosis(world.deps, world.job(job_id))

    worker = next(one for one in found.evidence if one.layer.value == "worker")
    assert worker.facts["lambda_request_id"] == "l-7"
    assert worker.facts["locked_until"] == world.job(job_id).locked_until


def test_owners_are_told_what_owners_can_do():
    """An owner sees no operator's command; an operator sees both."""
    world = World()
    job_id = attempts_gone(world)
    found = diagnosis(world.deps, world.job(job_id))

    assert {one["by"] for one in shown(found)["can_do"]} <= {"owner"}
    commands = [one["command"] for one in shown(found, by=("owner", "operator"))["can_do"]]
    assert f"breakwater preview {job_id}" in commands


def test_a_dead_job_waits_for_a_person():
    """Nothing is due any more, and the answer says so."""
    world = World()
    job_id = attempts_gone(world)

    found = diagnosis(world.deps, world.job(job_id))

    assert found.next.at is None
    assert "person" in found.next.what
    assert world.job(job_id).reason is Reason.MAX_ATTEMPTS_EXHAUSTED


def test_a_waiter_for_capacity_is_no_stuck_nudge():
    """Nobody nudges it: whoever frees a slot wakes it, and a slow recheck stands behind that."""
    world = World()
    job_id = no_slot(world)
    job = world.job(job_id)
    waiting = job.with_(ready_at=world.clock.now(), recheck_at=world.clock.now() + MINUTE)
    world.store.commit(job, waiting)
    world.clock.advance(MINUTE)

    found = diagnosis(world.deps, world.job(job_id))
    assert (found.layer.value, found.condition.value) == ("route", "waiting")
    world.clock.advance(30 * MINUTE)
    assert diagnosis(world.deps, world.job(job_id)).layer.value == "queue"


def told_to_nobody(world, workflow="sync"):
    """A success whose callback answered 410."""
    world.control.owners["acme"] = {"callback_hosts": ["hooks.example.com"]}
    world.notifier.always = Disabled("gone")
    job_id = world.submit(workflow, callback_url="https://hooks.example.com/x").job.job_id
    world.worker(job_id)
    world.effects(job_id)
    return job_id


def test_what_was_given_up_is_not_delivered():
    """Whoever is paged learns that the receiver heard nothing, and why; after it took the message all is done."""
    world = World()
    job_id = told_to_nobody(world)

    found = diagnosis(world.deps, world.job(job_id))

    assert (found.layer.value, found.condition.value) == ("effects", "needs_a_person")
    facts = next(one.facts for one in found.evidence if one.layer.value == "effects")
    assert (facts["delivered"], list(facts["given_up"])) == (["bus_event#1", *usage_of(world, job_id)], ["notify#1"])
    assert any(one.command == f"POST /v1/jobs/{job_id}/notify" for one in found.can_do)

    world.notifier.always = None
    redeliver(world.deps, world.job(job_id), "acme")
    world.settle()

    found = diagnosis(world.deps, world.job(job_id))
    assert (found.layer.value, found.condition.value) == ("finished", "done")


def usage_of(world, job_id):
    """The keys of a job's ledger lines that are told."""
    return [child.sk.partition("#")[2] for child in world.store.children(job_id, "EFFECT#usage")]


def with_neighbours(count):
    """A background job whose webhook is recorded and not worked on, and so many items due before it."""
    world = World()
    job_id = world.submit("summary").job.job_id
    world.pump()
    for number in range(count):
        world.submit(key=f"neighbour-{number}")
    world.provider.finish("resp_1")
    world.webhook("resp_1")
    return world, job_id


@pytest.mark.parametrize(("page", "pages", "seen"), [(3, 10, 1), (3, 1, None)])
def test_a_webhook_behind_many_open_jobs_is_found_or_not_denied(monkeypatch, page, pages, seen):
    """All pages are read up to a bound; beyond it nobody claims that no webhook came."""
    monkeypatch.setattr(diagnose, "_PAGE", page)
    monkeypatch.setattr(diagnose, "_PAGES", pages)
    world, job_id = with_neighbours(60)

    found = diagnosis(world.deps, world.job(job_id), deliveries=True)

    facts = next(one.facts for one in found.evidence if one.layer.value == "webhook")
    assert facts.get("recorded_but_not_processed") == seen
