"""What a worker makes of a nudge: nothing before the claim costs an attempt, nothing after it happens unrecorded."""

from __future__ import annotations

import pytest

from breakwater.domain.errors import QueueUnavailable, StoreUnavailable
from breakwater.domain.obligations import Queue
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Reason, Status
from breakwater.domain.timing import CLOCK_SKEW
from breakwater.usecases.step import Told, Verdict
from tests.crash.checks import everything
from tests.crash.stage import Stage
from tests.crash.tap import Fault, Tap
from tests.fakes.outside import refusal
from tests.support.world import World


def test_a_nudge_for_a_job_nobody_stored_does_nothing():
    """No ghost row, no call."""
    world = World()

    assert world.worker("job_nobody") is Verdict.GONE
    assert world.store.items == {}


def test_a_nudge_for_a_job_past_its_retention_does_nothing():
    """The row may still stand; the cleaner is late by days."""
    world = World()
    job_id = world.submit().job.job_id
    world.settle()
    world.clock.advance(31 * 86_400_000)

    assert world.worker(job_id) is Verdict.GONE
    assert world.complete(job_id) == "gone"
    assert world.effects(job_id) == "gone"


def test_the_execution_is_in_the_table_before_the_provider_is_called():
    """With every id that a person will ask for."""
    world = World()
    job_id = world.submit().job.job_id
    seen = []
    world.provider.script = [lambda call: seen.append((call, world.job(job_id))) or world.provider._next(call)]

    world.worker(job_id, told=Told(message_id="m-7", receive_count=3, lambda_request_id="l-9"))

    call, job = seen[0]
    execution = job.execution
    assert (job.status, job.attempt, job.lease_epoch) == (Status.PROCESSING, 1, 1)
    assert call.execution_id == execution.id == f"{job_id}.{job.created_at}.1.1"
    assert (execution.message_id, execution.receive_count, execution.lambda_request_id) == ("m-7", 3, "l-9")
    assert (execution.request_id, execution.code_version, execution.route_key) == ("request-1", "test", "plain")
    assert execution.policy_hash == world.deps.catalogue.need_policy("sync").hash
    assert job.locked_until > world.clock.now()


def test_a_second_delivery_while_the_first_is_at_work_calls_nobody():
    """Work longer than the queue's patience is not done twice."""
    world = World()
    job_id = world.submit().job.job_id
    verdicts = []

    def long_work(call):
        for _ in range(3):
            world.clock.advance(15_000)
            verdicts.append(world.worker(job_id))
        return world.provider._next(call)

    world.provider.script = [long_work]
    world.worker(job_id)

    assert verdicts == [Verdict.BUSY] * 3
    assert len(world.provider.calls) == 1
    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_nudge_before_its_time_waits_for_it():
    """Within the clocks' tolerance it is sent again for the right moment; earlier than that, one is on its way."""
    world = World()
    world.provider.script = [refusal(ErrorClass.OVERLOAD, 503, retry_after_ms=30_000)]
    job_id = world.submit().job.job_id
    world.worker(job_id)
    ready_at = world.job(job_id).ready_at
    for messages in world.queues.sent.values():
        messages.clear()

    assert world.worker(job_id) is Verdict.TOO_EARLY
    assert not any(world.queues.sent.values())
    world.clock.advance(ready_at - world.clock.now() - CLOCK_SKEW)
    assert world.worker(job_id) is Verdict.TOO_EARLY
    assert [one.at for one in world.queues.sent[Queue.BACKGROUND]] == [ready_at]
    assert len(world.provider.calls) == 1


def test_a_hint_is_obeyed_to_the_millisecond():
    """Whoever nudges, whoever looks: no call before the provider's time."""
    world = World()
    world.provider.script = [refusal(ErrorClass.PACING, 429, retry_after_ms=61_234)]
    job_id = world.submit().job.job_id
    world.worker(job_id)
    start = world.clock.now()

    for _ in range(61_234 // 5_000):
        world.clock.advance(5_000)
        world.worker(job_id)
        assert len(world.provider.calls) == 1
    world.clock.advance(start + 61_234 - world.clock.now())
    world.worker(job_id)

    assert len(world.provider.calls) == 2


def test_a_job_that_waits_dies_at_its_age_limit_and_not_at_its_release():
    """A route closed for hours does not keep what is too old alive."""
    world = World()
    world.provider.script = [refusal(ErrorClass.OVERLOAD, 503)]
    job_id = world.submit().job.job_id
    world.worker(job_id)
    job = world.job(job_id)
    late = job.with_(ready_at=job.expires_at + 7_200_000)
    world.store.commit(job, late)

    world.settle(30)

    after = world.job(job_id)
    assert (after.status, after.reason) == (Status.DEAD_LETTER, Reason.MAX_QUEUE_AGE_EXCEEDED)
    assert after.completed_at <= job.expires_at + 180_000
    assert len(world.provider.calls) == 1


def test_an_input_that_is_gone_spends_no_attempt():
    """It is found out before the claim, so the record does not say that anything was called."""
    world = World()
    job_id = world.submit().job.job_id
    del world.store.items[f"JOB#{job_id}", world.job(job_id).input_ref]

    assert world.worker(job_id) is Verdict.NOT_NOW

    job = world.job(job_id)
    assert (job.status, job.reason, job.attempt) == (Status.DEAD_LETTER, Reason.INPUT_MISSING, 0)
    assert world.provider.calls == []


@pytest.mark.parametrize("call", ["store.get_with", "store.route"])
def test_a_table_that_does_not_answer_before_the_claim_costs_nothing(call):
    """The nudge comes again, no attempt is spent, and even work with side effects goes on."""
    names = Tap()
    probe = Stage(names)
    job_id = probe.submit("paid").job.job_id
    before = len(names.calls)
    probe.worker(job_id)
    at = before + names.calls[before:].index(call)

    stage = Stage(Tap(at=at, fault=Fault.REFUSED))
    job_id = stage.ask_for("paid")
    with pytest.raises(StoreUnavailable):
        stage.worker(job_id)
    assert stage.job(job_id).attempt == 0
    stage.run()

    assert (stage.job(job_id).status, stage.job(job_id).attempt) == (Status.SUCCEEDED, 1)
    everything(stage)


def test_an_accepted_job_whose_write_fails_leaves_its_id_behind():
    """The provider's job id is kept as evidence, so the takeover polls it and nothing is sent again."""
    names = Tap()
    probe = Stage(names)
    probe.worker(probe.submit("external").job.job_id)
    commits = [n for n, name in enumerate(names.calls) if name == "store.commit"]

    stage = Stage(Tap(at=commits[1], fault=Fault.REFUSED))
    stage.provider_tells = False
    job_id = stage.ask_for("external")
    stage.run()

    job = stage.job(job_id)
    assert (job.status, len(stage.provider.calls)) == (Status.SUCCEEDED, 1)
    assert ("OutcomeUnknown" in stage.log.events()) is False
    everything(stage)


def test_a_credential_that_cant_be_read_sends_nothing():
    """It is an ordinary retry, even for work that may not be repeated."""
    world = World()
    world.provider.keyless = True
    job_id = world.submit("paid").job.job_id

    world.worker(job_id)
    job = world.job(job_id)
    assert (job.status, job.last_error_class, world.provider.calls) == (Status.FAILED, "not_sent", [])

    world.provider.keyless = False
    world.settle()
    assert world.job(job_id).status is Status.SUCCEEDED


def test_two_workers_at_once_have_one_claim():
    """The loser of the race drops its message and calls nobody."""
    world = World()
    job_id = world.submit().job.job_id
    job = world.job(job_id)
    real = world.store.get
    stale = [job, job]
    world.store.get = lambda name: stale.pop() if stale else real(name)

    first = world.worker(job_id)
    second = world.worker(job_id)

    assert (first, second) == (Verdict.WORKED, Verdict.SETTLED)
    assert len(world.provider.calls) == 1
    assert world.job(job_id).attempt == 1


def test_a_queue_that_is_down_loses_no_step():
    """The write stands with its `due_at`; the sweep nudges when the queue is back."""
    world = World()
    world.provider.script = [refusal(ErrorClass.OVERLOAD, 503)]
    job_id = world.submit().job.job_id
    world.queues.broken = True
    world.worker(job_id)
    assert [name for name, _ in world.log.notes].count("nudge_lost") == 1
    world.queues.broken = False

    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_queue_that_is_down_fails_the_nudge_that_came_too_early():
    """It will be delivered again, which is as good."""
    world = World()
    world.provider.script = [refusal(ErrorClass.OVERLOAD, 503, retry_after_ms=2_000)]
    job_id = world.submit().job.job_id
    world.worker(job_id)
    world.queues.broken = True

    with pytest.raises(QueueUnavailable):
        world.worker(job_id)


def test_a_claim_planned_over_an_old_reading_is_not_made():
    """Another worker did a whole round in between: same status, another revision, and not ready any more."""
    world = World()
    world.provider.script = [refusal(ErrorClass.OVERLOAD, 503)] * 2
    job_id = world.submit().job.job_id
    world.worker(job_id)
    world.clock.advance(60_000)
    real = world.store.route

    def meanwhile(route_key):
        world.store.route = real
        assert world.worker(job_id) is Verdict.WORKED
        return real(route_key)

    world.store.route = meanwhile

    assert world.worker(job_id) is Verdict.TOO_EARLY
    job = world.job(job_id)
    assert (job.status, job.attempt, job.lease_epoch) == (Status.FAILED, 2, 2)
    ids = [call.execution_id for call in world.provider.calls]
    assert len(ids) == len(set(ids)) == 2
