"""A soft budget is told, a hard one asks the owner; without one nobody reads the ledger."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.states import Lane, Reason, Status
from breakwater.usecases.budgets import budgets_of, over_budget, period_of
from breakwater.usecases.review import approve
from tests.support.world import World


def world_with(settings, spent=0, workflow="sync"):
    """A world whose owner has these settings and has spent this much this month."""
    world = World()
    world.control.owners["acme"] = settings
    month = period_of(world.clock.now())
    if spent:
        line = {"owner_key": "acme", "period": month, "execution_id": "x", "cost_micros": spent}
        world.store.count_usage(line, [f"{month}#{workflow}", month])
    return world


def worked(world, workflow="sync", key="k-1"):
    """A job after its first nudge."""
    job_id = world.submit(workflow, key).job.job_id
    world.worker(job_id)
    return world.job(job_id)


@pytest.mark.parametrize(
    "settings",
    [
        {"budget_micros": 50_000},
        {"budgets": {"hard_micros": 50_000}},
        {"budgets": {"workflows": {"sync": {"hard_micros": 50_000}}}},
        {"budgets": {"hard_micros": 0}},
    ],
)
def test_a_hard_budget_that_is_spent_holds_the_job_for_its_owner(settings):
    """Nothing is called, no attempt is spent, and the reason says what is missing."""
    world = world_with(settings, spent=50_000)

    job = worked(world)

    assert (job.status, job.lane, job.reason) == (Status.PENDING, Lane.OWNER_REVIEW, Reason.BUDGET_EXHAUSTED)
    assert (job.attempt, world.provider.calls) == (0, [])
    assert "budget_exhausted" in [name for name, _ in world.log.notes]


def test_what_the_call_may_cost_counts_before_it_is_made():
    """An estimate that does not fit any more is not tried."""
    world = world_with({"budgets": {"hard_micros": 50_000}}, spent=49_000)

    assert worked(world).reason is Reason.BUDGET_EXHAUSTED


def test_an_owner_may_approve_beyond_the_budget():
    """A person's yes is a yes to the price."""
    world = world_with({"budgets": {"hard_micros": 0}})
    job = worked(world)

    approve(world.deps, job, "acme")
    world.settle()

    assert world.job(job.job_id).status is Status.SUCCEEDED


def test_a_soft_budget_is_told_and_holds_nothing():
    """A metric, once a claim, without the owner as a dimension."""
    world = world_with({"budgets": {"soft_micros": 1_000}}, spent=1_000)

    assert worked(world).status is Status.SUCCEEDED
    told = dict(world.log.notes)["budget_soft_exceeded"]
    assert (told["used_micros"], told["limit_micros"], told["budget_of"]) == (1_000, 1_000, "all")


def test_one_workflows_budget_does_not_bind_another():
    """What is spent elsewhere does not count either."""
    world = world_with({"budgets": {"workflows": {"urgent": {"hard_micros": 0}}}}, spent=10**9)

    assert worked(world).status is Status.SUCCEEDED
    assert worked(world, "urgent", "k-2").reason is Reason.BUDGET_EXHAUSTED


def test_without_a_budget_nobody_reads_the_ledger():
    """The gate costs nothing then."""
    world = world_with({})
    world.store.usage = None

    assert worked(world).status is Status.SUCCEEDED


def test_the_ledger_is_read_at_most_once_a_minute():
    """A hundred claims, one read; after a minute what was spent since counts."""
    world = world_with({"budgets": {"hard_micros": 200_000}})
    reads = []
    usage = world.store.usage
    world.deps.spending._usage = lambda *asked: reads.append(asked) or usage(*asked)

    for number in range(5):
        worked(world, key=f"k-{number}")
    assert len(reads) == 1
    month = period_of(world.clock.now())
    line = {"owner_key": "acme", "period": month, "execution_id": "late", "cost_micros": 200_000}
    world.store.count_usage(line, [month])
    world.clock.advance(61_000)

    assert worked(world, key="k-9").reason is Reason.BUDGET_EXHAUSTED
    assert len(reads) == 2


def test_a_ledger_that_does_not_answer_serves_what_was_known():
    """A blip of one table stops nobody, and lifts no limit."""
    world = world_with({"budgets": {"hard_micros": 0}})
    worked(world)
    world.clock.advance(61_000)

    def fail(*_):
        raise StoreUnavailable

    world.deps.spending._usage = fail

    assert worked(world, key="k-2").reason is Reason.BUDGET_EXHAUSTED


def test_a_new_month_begins_with_nothing_spent():
    """Periods are months in UTC, as in the ledger."""
    assert period_of(1_798_761_599_999) == "2026-12"
    assert period_of(1_798_761_600_000) == "2027-01"


@pytest.mark.parametrize(
    "settings",
    [
        {"budgets": None},
        {"budgets": []},
        {"budgets": {"hard_micros": "many", "workflows": {"sync": 7}}},
        {"budgets": {"soft_micros": True, "workflows": []}},
        {"budget_micros": -1},
    ],
)
def test_settings_that_make_no_sense_limit_nothing(settings):
    """As everywhere in an owner's settings."""
    assert list(budgets_of(settings, "sync")) == []


def test_the_smaller_of_two_hard_budgets_holds():
    """The older setting still counts."""
    (found,) = budgets_of({"budget_micros": 5, "budgets": {"hard_micros": 9}}, "sync")

    assert found.hard == 5


def test_a_function_that_claims_nothing_asks_for_no_budget():
    """Only workers are wired with the ledger's totals."""
    world = world_with({"budgets": {"hard_micros": 0}})
    job = world.submit().job
    deps = replace(world.deps, spending=None)

    assert over_budget(deps, job, deps.catalogue.need_policy("sync"), deps.now()) is None
