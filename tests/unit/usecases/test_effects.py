"""What a job owes the world is recorded once and delivered at least once, under one id that never changes."""

from __future__ import annotations

import pytest

from breakwater.domain.errors import QueueUnavailable, StoreUnavailable
from breakwater.domain.results import Completed, Refused
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import Status
from breakwater.usecases.again import again
from breakwater.usecases.effects import GIVE_UP_TRIES, effect_id
from tests.crash.checks import children, everything
from tests.fakes.outside import answer, refusal
from tests.support.world import World

FAULT = refusal(ErrorClass.SERVER_FAULT, 500)


def worked(outcomes=(), workflow="sync"):
    """A job that is final, with nothing delivered yet."""
    world = World()
    world.provider.script = list(outcomes)
    job_id = world.submit(workflow).job.job_id
    for _ in range(4):
        world.worker(job_id)
        world.clock.advance(60_000)
    assert world.job(job_id).final
    return world, job_id


def test_a_success_owes_its_usage_and_its_event():
    """And a handler that runs twice delivers them once more under the same ids, or not at all."""
    world, job_id = worked()
    job = world.job(job_id)
    assert sorted(key.partition("#")[0] for key in job.owed) == ["bus_event", "usage"]

    assert world.effects(job_id) == "delivered"
    assert world.effects(job_id) == "nothing"

    assert [event for event, _, _ in world.bus.events] == [effect_id(job, "bus_event#1")]
    everything_but_messages(world)


def everything_but_messages(world):
    """The nudges of the moves are still in the queues."""
    for messages in world.queues.sent.values():
        messages.clear()
    everything(world)


def test_a_dead_letter_owes_its_reference_with_nothing_private_in_it():
    """Ids, reason, class, attempts and times; never the prompt."""
    world, job_id = worked([FAULT] * 3)
    world.settle()

    reference = world.queues.dead[0]
    assert reference["reference_id"] == f"{job_id}.{world.job(job_id).created_at}.dead_letter.1"
    assert (reference["reason"], reference["attempts"]) == ("max_attempts_exhausted", 3)
    assert (reference["error_class"], reference["http_status"]) == ("server_fault", 500)
    assert "hello" not in str(reference)
    everything(world)


def test_a_crash_between_delivery_and_record_delivers_again_under_the_same_id():
    """At least once, and whoever listens can tell."""
    world, job_id = worked()
    put = world.store.put_child

    def down(*_args):
        raise StoreUnavailable

    world.store.put_child = down
    with pytest.raises(StoreUnavailable):
        world.effects(job_id)
    world.store.put_child = put
    world.settle()

    ids = [event for event, _, _ in world.bus.events]
    assert len(ids) == 2
    assert len(set(ids)) == 1
    assert len(children(world, world.job(job_id), "EFFECT#bus_event")) == 1
    assert len(world.store.lines) == 1
    everything(world)


def test_one_way_out_that_is_blocked_does_not_block_the_others():
    """The bus is down: usage is counted now, the event later, ever more slowly."""
    world, job_id = worked()
    put = world.bus.put

    def down(*_args):
        raise QueueUnavailable

    world.bus.put = down
    assert world.effects(job_id) == "postponed"
    job = world.job(job_id)
    assert list(job.owed) == ["bus_event#1"]
    assert (job.owed["bus_event#1"].tries, job.owed["bus_event#1"].next_at) == (1, world.clock.now() + 10_000)
    assert len(world.store.lines) == 1
    assert world.effects(job_id) == "nothing", "not before its time"
    world.bus.put = put

    world.settle()
    everything(world)


def test_a_way_out_that_never_opens_is_given_up_and_recorded():
    """No debt is repeated for ever."""
    world, job_id = worked()

    def down(*_args):
        raise QueueUnavailable

    world.bus.put = down
    world.settle(minutes=60 * (GIVE_UP_TRIES + 10))

    job = world.job(job_id)
    assert (job.owed, job.due_at) == ({}, None)
    record = children(world, job, "EFFECT#bus_event")[0].data
    assert (record["given_up"], record["tries"]) == ("QueueUnavailable", GIVE_UP_TRIES)
    assert "effect_given_up" in [name for name, _ in world.log.notes]


def test_each_paid_execution_is_one_line():
    """A refusal that cost something, then a success: two lines, one sum."""
    partial = Refused(
        signal=Signal(error_class=ErrorClass.SERVER_FAULT, http_status=200, rule="failed"), partial=answer("half")
    )
    world, job_id = worked([partial, Completed(result=answer())])
    world.settle()

    job = world.job(job_id)
    assert job.cost_micros == 600
    assert sorted(line["outcome"] for line in world.store.lines.values()) == ["completed", "refused"]
    totals = world.store.usage("acme", "2027-01")
    assert [(one["sk"], one["executions"], one["cost_micros"]) for one in totals] == [
        ("TOTAL#2027-01#sync", 2, 600),
    ]
    everything(world)


def test_what_a_generation_owed_is_told_as_it_ended_though_the_next_has_begun():
    """A replay before the dead letter was told: its event and its reference still say how it died."""
    world, job_id = worked([FAULT] * 3)
    dead = world.job(job_id)
    assert {"bus_event#1", "dead_letter#1"} <= set(dead.owed)
    again(world.deps, dead, world.deps.catalogue.need_policy("sync"), "acme")

    world.effects(job_id)

    _, kind, detail = world.bus.events[0]
    assert (kind, detail["reason"], detail["generation"], detail["attempts"]) == (
        "job.dead_letter", "max_attempts_exhausted", 1, 3,
    )  # fmt: skip
    assert world.queues.dead[0]["reason"] == "max_attempts_exhausted"
    assert world.queues.dead[0]["dead_at"] == dead.completed_at
    world.settle()
    assert world.job(job_id).status is Status.SUCCEEDED
    assert {kind for _, kind, _ in world.bus.events} == {"job.dead_letter", "job.succeeded"}
    everything(world)


def test_a_debt_that_somebody_else_paid_meanwhile_is_not_paid_back_into_the_item():
    """Two handlers at once: the second finds its entries gone and writes nothing."""
    world, job_id = worked()
    stale = world.job(job_id)
    world.effects(job_id)
    settled = world.job(job_id)
    world.store.get, real = (lambda _job_id: stale), world.store.get

    world.effects(job_id)
    world.store.get = real

    assert world.job(job_id) == settled


def test_an_execution_without_a_record_is_said_and_not_invented():
    """The line needs its numbers from somewhere."""
    world, job_id = worked()
    for key in [key for key in world.store.items if key[1].startswith("RESULT#")]:
        del world.store.items[key]

    world.effects(job_id)

    assert "usage_without_record" in [name for name, _ in world.log.notes]
    assert world.store.lines == {}


def test_a_job_that_owes_nothing_yet_or_is_gone_is_left_alone():
    """A nudge too many does nothing."""
    world = World()
    job_id = world.submit().job.job_id

    assert world.effects(job_id) == "nothing"
    assert world.effects("job_nobody") == "gone"


def test_a_generation_whose_archive_is_gone_is_told_as_the_job_stands():
    """Something is told rather than nothing."""
    world, job_id = worked([FAULT] * 3)
    dead = world.job(job_id)
    again(world.deps, dead, world.deps.catalogue.need_policy("sync"), "acme")
    for key in [key for key in world.store.items if key[1].startswith("GEN#")]:
        del world.store.items[key]

    world.effects(job_id)

    assert [event for event, _, _ in world.bus.events] == [effect_id(dead, "bus_event#1")]


def test_an_installation_without_a_bus_owes_nobody_an_event():
    """The debt is paid by there being nobody to tell."""
    world, job_id = worked()
    object.__setattr__(world.deps, "bus", None)
    world.settle()

    assert world.job(job_id).owed == {}
    assert world.bus.events == []
