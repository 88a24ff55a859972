"""Held work goes on or stops by a person's word."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakwater.domain.errors import TooLate
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Lane, Reason, Status
from breakwater.usecases.review import approve, reject
from tests.fakes.outside import refusal
from tests.support.world import World


def held(world, workflow="guarded", key="k-1"):
    """A job that waits for a decision."""
    job_id = world.submit(workflow, key).job.job_id
    world.pump()
    assert world.job(job_id).in_review
    return job_id


def unknown_outcome(world):
    """Paid work whose answer was lost."""
    world.provider.script = [refusal(ErrorClass.OUTCOME_UNKNOWN)]
    return held(world, "paid")


def test_an_approved_job_runs_once_and_says_who_approved():
    """Back in its lane with its age restarted."""
    world = World()
    job_id = held(world)
    world.clock.advance(3_600_000)

    job = approve(world.deps, world.job(job_id), "ops/k1")
    world.settle()

    assert (job.lane, job.reason, job.approved_by) == (Lane.BACKGROUND_RETRY, Reason.APPROVED, "ops/k1")
    assert job.round_started_at == world.clock.now() or job.expires_at is not None
    assert world.job(job_id).status is Status.SUCCEEDED
    assert len(world.provider.calls) == 1


def test_a_rejected_job_is_cancelled_by_that_person():
    """Nothing is called; the owner is told as of any end."""
    world = World()
    job_id = held(world)

    reject(world.deps, world.job(job_id), "ops/k1")
    world.settle()

    job = world.job(job_id)
    assert (job.status, job.reason, job.cancelled_by) == (Status.CANCELLED, Reason.REJECTED_BY_OWNER, "ops/k1")
    assert world.provider.calls == []


def test_two_people_decide_once():
    """The second decision is told that it came late."""
    world = World()
    job_id = held(world)
    seen = world.job(job_id)
    approve(world.deps, seen, "one")

    with pytest.raises(TooLate):
        reject(world.deps, seen, "two")
    with pytest.raises(TooLate):
        approve(world.deps, world.job(job_id), "two")


def test_spend_that_ran_out_goes_on_elsewhere():
    """The person names an approved fallback; the job keeps what it asked for."""
    world = World()
    policies = world.deps.catalogue.policies
    policies["fallback"] = replace(policies["fallback"], fallback_needs_approval=True)
    world.provider.script = [refusal(ErrorClass.SPEND, 429)]
    job_id = held(world, "fallback")

    job = approve(world.deps, world.job(job_id), "ops", "other")
    world.settle()

    assert (job.route_key, job.fallback_allowed, job.requested_model) == ("other", "second_account", "gpt-5.2")
    assert world.job(job_id).status is Status.SUCCEEDED


@pytest.mark.parametrize("route", ["pictures", "nowhere"])
def test_a_route_that_breaks_the_contract_can_not_be_approved(route):
    """A person may settle what is unknown, not what is wrong."""
    world = World()
    job_id = held(world)

    with pytest.raises(TooLate, match="route"):
        approve(world.deps, world.job(job_id), "ops", route)
    assert world.job(job_id).in_review


def test_a_route_that_breaks_a_clause_can_not_be_approved():
    """An approved fallback whose route changed since is refused by clause."""
    world = World()
    policy = world.deps.catalogue.policies["fallback"]
    world.deps.catalogue.policies["fallback"] = replace(policy, requires_approval=True)
    route = world.deps.catalogue.routes["other"]
    observability = replace(route.observability, usage=False)
    world.deps.catalogue.routes["other"] = replace(route, observability=observability)
    job_id = held(world, "fallback")

    with pytest.raises(TooLate, match=r"observability\.usage"):
        approve(world.deps, world.job(job_id), "ops", "other")


def test_an_unknown_outcome_is_repeated_only_on_proof():
    """Never silently: the person says what the provider shows."""
    world = World()
    job_id = unknown_outcome(world)

    with pytest.raises(TooLate, match="repeat an effect"):
        approve(world.deps, world.job(job_id), "ops")
    job = approve(world.deps, world.job(job_id), "ops", proof=True)

    assert job.reason is Reason.APPROVED


def test_an_approval_on_the_last_attempt_is_worth_one_more_call():
    """Else the approved job would die of its old count."""
    world = World()
    job_id = unknown_outcome(world)
    job = world.job(job_id)
    world.store.commit(job, job.with_(max_attempts=1))

    approve(world.deps, world.job(job_id), "ops", proof=True)
    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED


def test_an_approval_needs_the_workflow():
    """A job whose policy is gone waits on until it is deployed again."""
    world = World()
    job_id = held(world)
    del world.deps.catalogue.policies["guarded"]
    del world.deps.catalogue.routes["plain"]

    with pytest.raises(TooLate, match="not deployed"):
        approve(world.deps, world.job(job_id), "ops")
