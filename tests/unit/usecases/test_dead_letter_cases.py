"""Cases from the field: redrives, poison messages, and keys bound to a run that died."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from breakwater.domain.errors import InvalidRequest, StoreUnavailable, TooLate
from breakwater.domain.obligations import Queue
from breakwater.domain.records import RouteState
from breakwater.domain.replay import Filter
from breakwater.domain.request import parse
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Status
from breakwater.entry.queue import consume
from breakwater.usecases.again import again
from breakwater.usecases.batch import create
from breakwater.usecases.preview import preview_many
from breakwater.usecases.replay import replay
from tests.fakes.outside import Message, refusal
from tests.support.dead import batch_terms, dead, terms
from tests.support.world import World


def test_dl_01_a_redriven_message_repeats_no_step_that_was_done():
    """Usage is counted, the event fails three times, the message comes back under another id: only it follows."""
    world = World()
    job_id = world.submit().job.job_id
    failures = [3]

    def fails(name, when):
        if (name, when) == ("put_event", "before") and failures[0]:
            failures[0] -= 1
            raise StoreUnavailable

    world.bus.hook = fails
    world.worker(job_id)
    for _ in range(3):
        world.clock.advance(600_000)
        world.effects(job_id)
    assert world.bus.events == []

    world.clock.advance(600_000)
    world.queues.sent[Queue.EFFECTS].append(Message("job", job_id, world.clock.now()))
    world.pump()

    assert len(world.bus.events) == 1
    assert len(world.store.lines) == 1
    line = next(iter(world.store.lines.values()))
    assert world.store.totals["acme", f"{line['period']}#{line['workflow']}"]["executions"] == 1


def test_dl_03_pressing_redrive_on_thousands_does_nothing_to_dead_jobs():
    """A message is a nudge: the provider that still answers 503 is not called once."""
    world = World()
    names = [dead(world, key=f"k{number}") for number in range(5)]
    calls = len(world.provider.calls)

    for number in range(5_000):
        world.queues.sent[Queue.BACKGROUND].append(Message("job", names[number % 5], world.clock.now()))
    world.pump(10_000)

    assert len(world.provider.calls) == calls
    assert {world.job(name).generation for name in names} == {1}


def test_dl_03_a_batch_into_an_open_circuit_is_refused():
    """Recovery is confirmed first: with the route closed nothing is selected."""
    world = World()
    dead(world)
    until = world.clock.now() + 3_600_000
    world.store.put_route(
        world.store.route("plain"), RouteState(route_key="plain", closed_until=until, reason="overload")
    )

    assert preview_many(world.deps, Filter(workflow="sync"), "same", 10)["refused"] == {"cause_fixed": 1}
    with pytest.raises(TooLate):
        create(world.deps, batch_terms(), "ops/k1", "ops")


@pytest.mark.parametrize("end", ["succeeded", "cancelled", "gone"])
def test_dl_03_a_message_of_a_job_that_ended_is_acknowledged_unchanged(end):
    """Completed, cancelled or deleted: nothing is called, nothing is written, nothing is created."""
    world = World()
    job_id = world.submit().job.job_id
    if end == "cancelled":
        world.cancel(job_id)
    world.settle()
    if end == "gone":
        del world.store.items[f"JOB#{job_id}", "META"]
    before, calls = dict(world.store.items), len(world.provider.calls)

    world.worker(job_id)
    world.complete(job_id)
    world.effects(job_id)

    assert world.store.items == before
    assert len(world.provider.calls) == calls


def test_dl_03_a_replay_has_a_fresh_budget_and_keeps_its_history():
    """The counter at its maximum is the old generation's."""
    world = World()
    job_id = dead(world)
    assert world.job(job_id).attempt == world.job(job_id).max_attempts

    replay(world.deps, world.job(job_id), terms(stop={"max_attempts": 3}), "ops/k1")
    world.provider.script = [refusal(ErrorClass.SERVER_FAULT, 500)] * 2
    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED
    assert world.job(job_id).attempt == 3
    assert len(world.store.children(job_id, "EXEC#")) == 5


def test_sq_02_one_poison_message_fails_alone():
    """The good one runs once; what can't be read is reported without an attempt; no row appears from nowhere."""
    world = World()
    job_id = world.submit().job.job_id
    bodies = {
        "m1": "{not json",
        "m2": json.dumps({"kind": "job", "id": job_id}),
        "m3": "null",
        "m4": '{"kind":"job","id":12345}',
        "m5": '{"kind":"job","id":"does-not-exist"}',
        "m6": "",
    }
    records = [{"messageId": name, "body": body} for name, body in bodies.items()]

    def work(_kind, item_id, _record):
        world.worker(item_id)

    answer = consume({"Records": records}, SimpleNamespace(aws_request_id="l-1"), world.log, work)

    assert [one["itemIdentifier"] for one in answer["batchItemFailures"]] == ["m1", "m3", "m4", "m6"]
    assert len(world.provider.calls) == 1
    assert ("JOB#does-not-exist", "META") not in world.store.items


def test_sq_02_what_no_handler_can_read_ends_with_people():
    """Drained from its queue's DLQ, kept as a digest, never in circles."""
    world = World()
    for number, body in enumerate(("{not json", "null", "", '{"kind":"job","id":12345}')):
        world.queues.dlq[Queue.BACKGROUND][f"r{number}"] = body

    assert world.drain() == {"kept_for_people": 4}
    assert world.drain() == {}
    assert {one["kind"] for one in world.queues.dead} == {"unreadable"}
    assert "not json" not in json.dumps(world.queues.dead)


def test_id_07_a_key_bound_to_a_dead_run_gives_the_dead_job_and_a_way_on():
    """Never a bare cached success: the same key shows the dead letter, and a retry of it is a fresh run."""
    world = World()
    job_id = dead(world, key="k-7")

    same = world.submit(key="k-7")
    assert (same.job.job_id, same.replayed, same.job.status) == (job_id, True, Status.DEAD_LETTER)
    again(world.deps, same.job, same.policy, "acme")
    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED
    assert world.submit(key="k-7").job.status is Status.SUCCEEDED


def test_id_07_a_refused_admission_binds_no_key():
    """The corrected body goes through under the same key."""
    world = World()

    with pytest.raises(InvalidRequest):
        parse({"workflow": "sync", "input": {"nonsense": 1}})
    with pytest.raises(InvalidRequest):
        world.submit("unknown", key="k-8")

    assert world.submit(key="k-8").replayed is False


def test_a_retry_goes_to_the_default_route_by_its_own_name():
    """A policy that names no route gets the catalogue's; `default` is no route that could be closed."""
    world = World()
    policies = world.deps.catalogue.policies
    policies["sync"] = replace(policies["sync"], route="default")
    job_id = dead(world)

    job = again(world.deps, world.job(job_id), policies["sync"], "acme")

    assert job.route_key == "plain"
