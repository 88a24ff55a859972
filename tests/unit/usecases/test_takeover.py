"""What is left behind by a worker that died, and what is made of it before anything is repeated."""

from __future__ import annotations

import pytest

from breakwater.domain.results import Refused
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import Reason, Status
from breakwater.domain.timing import CLOCK_SKEW, LEASE
from breakwater.usecases.read import story
from tests.crash.checks import children, everything
from tests.crash.stage import Stage
from tests.crash.tap import Fault, Tap
from tests.fakes.outside import refusal
from tests.support.world import World

LOST = Refused(signal=Signal(error_class=ErrorClass.OUTCOME_UNKNOWN, rule="cut"))


def dies_at(workflow: str, call: str, fault: Fault, nth: int = 1, script=()) -> tuple[Stage, str]:
    """A stage whose first worker is killed at its n-th call of this name."""
    names = Tap()
    probe = Stage(names)
    probe.provider.script = list(script)
    job_id = probe.submit(workflow).job.job_id
    before = len(names.calls)
    probe.worker(job_id)
    at = [n for n, name in enumerate(names.calls) if name == call and n >= before][nth - 1]
    stage = Stage(Tap(at=at, fault=fault))
    stage.provider.script = list(script)
    return stage, stage.ask_for(workflow)


def test_a_lease_that_still_runs_is_left_alone():
    """Nothing is looked for, nothing is written."""
    world = World()
    job_id = world.submit().job.job_id
    verdicts = []

    def busy(call):
        verdicts.append(world.complete(job_id))
        world.clock.advance(LEASE + CLOCK_SKEW - 1)
        verdicts.append(world.complete(job_id))
        return world.provider._next(call)

    world.provider.script = [busy]
    world.worker(job_id)

    assert verdicts == ["busy", "busy"]
    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_stored_result_is_adopted_and_not_paid_for_again():
    """Killed between the result and the write that makes it visible."""
    stage, job_id = dies_at("paid", "store.put_child", Fault.KILL_AFTER)

    stage.run()

    assert (stage.job(job_id).status, len(stage.provider.calls)) == (Status.SUCCEEDED, 1)
    assert not stage.job(job_id).possible_duplicate
    everything(stage)


def test_an_archived_refusal_is_followed_as_if_it_had_just_come():
    """Killed between the archived refusal and the write that schedules the retry."""
    stage, job_id = dies_at("sync", "store.put_child", Fault.KILL_AFTER, script=[refusal(ErrorClass.OVERLOAD, 503)])

    stage.run()

    job = stage.job(job_id)
    assert (job.status, job.attempt, job.possible_duplicate) == (Status.SUCCEEDED, 2, False)
    assert (job.last_error_class, job.http_status) == ("overload", 503)
    everything(stage)


@pytest.mark.parametrize("fault", [Fault.KILL_BEFORE, Fault.KILL_AFTER])
def test_safe_work_is_repeated_and_flagged(fault):
    """Nobody knows whether the call went out, so the second one says that it may be a duplicate."""
    stage, job_id = dies_at("sync", "provider.submit", fault)

    stage.run()

    job = stage.job(job_id)
    assert (job.status, job.attempt, job.possible_duplicate) == (Status.SUCCEEDED, 2, True)
    assert len(stage.provider.calls) == (1 if fault is Fault.KILL_BEFORE else 2)
    outcomes = [(line["outcome"], line.get("possible_duplicate")) for line in story(stage.deps, job)]
    assert outcomes == [("lost", False), ("completed", True)]
    everything(stage)


@pytest.mark.parametrize("workflow", ["paid", "external"])
def test_work_with_side_effects_is_held_and_never_silently_repeated(workflow):
    """A person decides, and the reason says what is not known."""
    stage, job_id = dies_at(workflow, "provider.submit", Fault.KILL_BEFORE)

    stage.pump()
    for _ in range(10):
        stage.clock.advance(60_000)
        stage.sweep()
        stage.pump()

    job = stage.job(job_id)
    assert (job.in_review, job.reason, job.attempt) == (True, Reason.OUTCOME_UNKNOWN, 1)
    assert stage.provider.calls == []


def test_held_work_that_a_webhook_explains_goes_on_by_itself():
    """The provider had accepted it: its webhook settles the job that waits for a person."""
    stage, job_id = dies_at("external", "provider.submit", Fault.KILL_AFTER)
    stage.provider_takes = 600_000

    stage.run()

    job = stage.job(job_id)
    assert (job.status, job.reason, len(stage.provider.calls)) == (Status.SUCCEEDED, Reason.COMPLETED, 1)
    assert "HeldForReview" in stage.log.events()
    everything(stage)


def test_safe_work_waits_the_webhook_grace_before_it_is_repeated():
    """Where a webhook can come, it is given its time; when it comes, nothing is sent again."""
    stage, job_id = dies_at("summary", "provider.submit", Fault.KILL_AFTER)
    stage.provider_takes = 150_000

    stage.run()

    job = stage.job(job_id)
    retry = next(after for event, _, after in stage.log.steps if event == "RetryScheduled")
    assert retry.ready_at - retry.updated_at == 120_000
    assert (job.status, len(stage.provider.calls)) == (Status.SUCCEEDED, 1)


def test_a_webhook_that_never_comes_ends_in_a_flagged_repeat():
    """After the grace the work is done again; the orphan that reports first settles it, and the other is stopped."""
    stage, job_id = dies_at("summary", "provider.submit", Fault.KILL_AFTER)
    stage.provider_takes = 900_000

    stage.run()

    job = stage.job(job_id)
    assert (job.status, job.possible_duplicate, len(stage.provider.calls)) == (Status.SUCCEEDED, True, 2)
    assert stage.provider.cancelled == ["resp_2"]
    assert len(stage.store.lines) == 1
    everything(stage)


def test_a_takeover_that_dies_itself_is_taken_over():
    """Killed after it archived the lost execution and before it moved the job."""
    stage, job_id = dies_at("sync", "provider.submit", Fault.KILL_AFTER)
    stage.pump()
    stage.clock.advance(LEASE + CLOCK_SKEW)
    put = stage.store.put_child

    class Dead(BaseException):
        pass

    def dies(*args):
        put(*args)
        raise Dead

    stage.store.put_child = dies
    with pytest.raises(Dead):
        stage.complete(job_id)
    stage.store.put_child = put
    assert [one.data["execution"]["outcome"] for one in children(stage, stage.job(job_id), "EXEC#")] == ["lost"]

    stage.run()

    assert (stage.job(job_id).status, stage.job(job_id).possible_duplicate) == (Status.SUCCEEDED, True)
    everything(stage)


def test_what_a_worker_heard_after_it_was_given_up_is_appended():
    """Its refusal, with all it says, stands beside the record that says `lost`."""
    world = World()
    job_id = world.submit().job.job_id

    def too_slow(_call):
        world.clock.advance(LEASE + CLOCK_SKEW)
        assert world.complete(job_id) == "outcome_unknown"
        return refusal(ErrorClass.SERVER_FAULT, 500, provider_error_code="boom")

    world.provider.script = [too_slow]
    world.worker(job_id)
    world.settle()

    job = world.job(job_id)
    assert (job.status, job.attempt) == (Status.SUCCEEDED, 2)
    late = children(world, job, "LATE#")
    assert [one.data["execution"]["error_code"] for one in late] == ["boom"]
    assert [name for name, _ in world.log.notes].count("late_write") == 1
    kinds = [(line["kind"], line.get("outcome")) for line in story(world.deps, job)]
    assert kinds[0] == ("execution", "lost")
    assert kinds[1][0] == "late_evidence"
    everything(world)


def test_a_renewed_lease_is_not_taken_over_with_an_old_reading():
    """The takeover is conditional on the lease end it read, which a renewal moves without a new revision."""
    world = World()
    job_id = world.submit().job.job_id
    verdicts = []

    def renewed(call):
        job = world.job(job_id)
        world.clock.advance(LEASE + CLOCK_SKEW)
        real = world.store.child

        def meanwhile(*args):
            world.store.child = real
            world.store.items[f"JOB#{job_id}", "META"]["locked_until"] = {"N": str(world.clock.now() + 50_000)}
            return real(*args)

        world.store.child = meanwhile
        verdicts.append(world.complete(job_id))
        assert job.execution == world.job(job_id).execution
        return world.provider._next(call)

    world.provider.script = [renewed]
    world.worker(job_id)

    assert verdicts == ["overtaken"]
    assert world.job(job_id).status is Status.SUCCEEDED
    assert "LATE#" not in {sk[:5] for _, sk in world.store.items}
