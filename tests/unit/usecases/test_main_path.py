"""A job on a good day, by every way a result can arrive."""

from __future__ import annotations

from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Reason, Status
from breakwater.usecases.read import story, with_result
from breakwater.usecases.step import Verdict
from tests.fakes.outside import refusal
from tests.support.world import World


def test_a_synchronous_job_is_called_once_and_settles():
    """One nudge, one call, one result, every effect delivered, nothing left due."""
    world = World()
    job_id = world.submit().job.job_id

    world.settle()

    job = world.job(job_id)
    assert (job.status, job.reason, job.attempt) == (Status.SUCCEEDED, Reason.COMPLETED, 1)
    assert len(world.provider.calls) == 1
    assert job.owed == {}
    assert job.due_at is None
    assert with_result(world.deps, job)["result"]["text"] == "answer 1"
    assert len(world.bus.events) == 1
    assert job.cost_micros == 100 * 1 + 20 * 10


def test_a_background_job_settles_by_its_webhook():
    """The worker goes home after the provider accepted; the webhook brings the result."""
    world = World()
    job_id = world.submit("summary").job.job_id
    world.pump()
    accepted = world.job(job_id)
    assert (accepted.status, accepted.reason, accepted.locked_until) == (Status.PROCESSING, Reason.AT_PROVIDER, None)

    world.provider.finish("resp_1")
    world.clock.advance(30_000)
    assert world.webhook("resp_1") == "recorded"
    world.pump()

    job = world.job(job_id)
    assert job.status is Status.SUCCEEDED
    assert job.result_ref is not None
    assert len(world.provider.calls) == 1


def test_a_webhook_that_never_comes_is_made_up_for_by_the_poll():
    """The safety net asks the provider once its grace is over."""
    world = World()
    job_id = world.submit("summary").job.job_id
    world.pump()
    world.provider.finish("resp_1")

    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED
    assert len(world.provider.calls) == 1


def test_a_route_without_webhook_is_polled_from_the_start():
    """Results arrive by polling, without waiting for the minute sweep."""
    world = World()
    job_id = world.submit("polled").job.job_id
    world.pump()
    world.provider.finish("resp_1")

    world.clock.advance(10_000)
    world.pump()

    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_dropped_nudge_is_repeated_by_the_sweep():
    """A job whose only message was lost still finishes."""
    world = World()
    world.queues.lossy = True
    job_id = world.submit().job.job_id
    world.queues.lossy = False
    assert world.pump() == 0

    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED
    assert len(world.provider.calls) == 1


def test_a_queue_that_refuses_the_nudge_does_not_refuse_the_job():
    """The job is stored with its `due_at`, so the caller gets its id and the sweep does the rest."""
    world = World()
    world.queues.broken = True
    admitted = world.submit()
    world.queues.broken = False

    world.settle()

    assert world.job(admitted.job.job_id).status is Status.SUCCEEDED


def test_duplicate_nudges_do_nothing():
    """Ten messages for one job make one call."""
    world = World()
    job_id = world.submit().job.job_id

    verdicts = [world.worker(job_id) for _ in range(10)]

    assert verdicts[0] is Verdict.WORKED
    assert set(verdicts[1:]) == {Verdict.SETTLED}
    assert len(world.provider.calls) == 1


def test_the_story_of_a_job_can_be_read_back_in_order():
    """Each execution with its ids, in the order they were opened."""
    world = World()
    world.provider.script = [refusal(ErrorClass.SERVER_FAULT, 500), refusal(ErrorClass.OVERLOAD, 503)]
    job_id = world.submit().job.job_id

    world.settle()

    lines = story(world.deps, world.job(job_id))
    assert [line["attempt"] for line in lines] == [1, 2, 3]
    assert [line["outcome"] for line in lines] == ["refused", "refused", "completed"]
    assert [line.get("error_class") for line in lines] == ["server_fault", "overload", None]
    assert all(line["message_id"] == "m-1" and line["policy_hash"] for line in lines)
