"""A soft budget is told, a hard one asks the owner; without one nobody reads the ledger."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.states import Lane, Reason, Status
from breakwater.domain.timing import DAY, HOUR, MINUTE
from breakwater.usecases.budgets import SPREAD, budgets_of, next_period, over_budget, period_of
from breakwater.usecases.cancel import cancel
from breakwater.usecases.review import approve
from tests.support.catalogue import catalogue, policy
from tests.support.world import World


def world_with(settings, spent=0, workflow="sync"):
    """A world whose owner has these settings and has spent this much this month."""
    world = World()
    world.control.owners["acme"] = settings
    month = period_of(world.clock.now())
    if spent:
        line = {"owner_key": "acme", "workflow": workflow, "period": month, "execution_id": "x", "cost_micros": spent}
        world.store.count_usage(line)
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
    line = {"owner_key": "acme", "workflow": "sync", "period": month, "execution_id": "late", "cost_micros": 200_000}
    world.store.count_usage(line)
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


# --- what was held goes on by itself


def held(settings=None, workflow="sync", before_month=2 * DAY, **more):
    """A job that its owner's spent budget holds, so long before the next month."""
    world = World(**more)
    world.clock._now = next_period(world.clock.now()) - before_month
    world.control.owners["acme"] = settings or {"budgets": {"hard_micros": 50_000}}
    month = period_of(world.clock.now())
    line = {"owner_key": "acme", "workflow": "sync", "period": month, "execution_id": "x", "cost_micros": 50_000}
    world.store.count_usage(line)
    job = worked(world, workflow)
    assert job.reason is Reason.BUDGET_EXHAUSTED
    return world, job.job_id


def pass_by(world, ms):
    """Sweep and work, a minute at a time."""
    for _ in range(ms // MINUTE):
        world.clock.advance(MINUTE)
        world.sweep()
        world.pump()


def events_of(world, job_id):
    """Every move of the job but its admission."""
    return [event for event, before, after in world.log.steps if after.job_id == job_id and before is not None]


def test_a_new_month_releases_what_the_old_one_held():
    """Nobody has to decide; it is called once, and only in the new month."""
    world, job_id = held(before_month=30 * MINUTE)
    pass_by(world, 29 * MINUTE)
    assert (world.job(job_id).lane, world.provider.calls) == (Lane.OWNER_REVIEW, [])

    pass_by(world, MINUTE + SPREAD)

    job = world.job(job_id)
    assert (job.status, job.attempt, job.approved_by) == (Status.SUCCEEDED, 1, None)
    assert "BudgetFreed" in events_of(world, job_id)


def test_it_is_looked_at_each_hour_and_at_the_months_start():
    """Not more often: a held job costs next to nothing."""
    world, job_id = held(before_month=3 * HOUR)
    start = next_period(world.clock.now())

    pass_by(world, 2 * HOUR + 30 * MINUTE)

    looked = [event for event in events_of(world, job_id) if event == "BudgetRechecked"]
    assert len(looked) == 2
    assert start <= world.job(job_id).recheck_at <= start + SPREAD
    assert world.job(job_id).due_at == world.job(job_id).recheck_at


def test_a_higher_budget_releases_what_was_held():
    """Within the hour, without an approval."""
    world, job_id = held()
    world.control.owners["acme"] = {"budgets": {"hard_micros": 500_000}}

    pass_by(world, HOUR + SPREAD + MINUTE)

    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_budget_that_is_gone_again_before_the_call_holds_it_again():
    """Released by the look, refused by the gate: nothing is spent, and it waits for the next look."""
    world, job_id = held(before_month=30 * MINUTE)
    taken = []
    real = world.handle

    def others_first(queue, message):
        month = period_of(world.clock.now())
        if world.job(job_id).reason is Reason.BUDGET_FREED and not taken:
            taken.append(True)
            line = {
                "owner_key": "acme",
                "workflow": "sync",
                "period": month,
                "execution_id": "y",
                "cost_micros": 50_000,
            }
            world.store.count_usage(line)
            world.clock.advance(61_000)
        real(queue, message)

    world.handle = others_first
    pass_by(world, 30 * MINUTE + SPREAD)

    job = world.job(job_id)
    assert taken
    assert (job.lane, job.reason, job.attempt, world.provider.calls) == (
        Lane.OWNER_REVIEW, Reason.BUDGET_EXHAUSTED, 0, [],
    )  # fmt: skip
    assert job.recheck_at is not None
    assert world.job(job_id).review_expires_at > world.clock.now()


def test_two_looks_at_once_release_it_once():
    """The second finds it gone on."""
    world, job_id = held()
    world.control.owners["acme"] = {}
    world.clock.advance(HOUR + SPREAD)

    assert world.complete(job_id) == "budget_freed"
    assert world.complete(job_id) == "nothing"
    world.settle()

    assert (world.job(job_id).status, len(world.provider.calls)) == (Status.SUCCEEDED, 1)


def test_a_decision_that_comes_meanwhile_stands():
    """Somebody approves between the look's read and its write."""
    world, job_id = held()
    world.clock.advance(HOUR + SPREAD)
    real = world.store.commit

    def overtaken(before, after, *guard):
        world.store.commit = real
        cancel(world.deps, world.job(job_id), "acme")
        return real(before, after, *guard)

    world.store.commit = overtaken

    assert world.complete(job_id) == "overtaken"
    assert world.job(job_id).status is Status.CANCELLED


def test_a_look_before_its_time_does_nothing():
    """An early or repeated nudge."""
    world, job_id = held()
    before = world.job(job_id)

    assert world.complete(job_id) == "nothing"
    assert world.job(job_id) == before


def test_the_reviews_own_limit_still_ends_it():
    """A month that is too far away is not waited for."""
    world, job_id = held(before_month=9 * DAY)

    for _ in range(8 * 24):
        world.clock.advance(HOUR)
        world.sweep()
        world.pump()

    assert (world.job(job_id).status, world.job(job_id).reason) == (Status.DEAD_LETTER, Reason.REVIEW_EXPIRED)


def test_what_may_not_wait_in_the_background_waits_for_a_person():
    """Nobody is there any more for an answer that only a waiting caller wanted."""
    lanes = {"lanes": {"interactive_admission": {"max_wait_ms": 4000, "max_attempts": 2}}}
    routes = catalogue()
    routes.policies["urgent"] = policy("urgent", ai_api_queueing_strategy=lanes)
    world, job_id = held(workflow="urgent", before_month=30 * MINUTE, routes=routes)
    assert world.job(job_id).recheck_at is None

    pass_by(world, HOUR)

    assert world.job(job_id).reason is Reason.BUDGET_EXHAUSTED


@pytest.mark.parametrize("gone", ["policy", "lane"])
def test_a_policy_that_no_longer_lets_it_wait_leaves_it_held(gone):
    """A later deploy may bring it back, so it is looked at again."""
    world, job_id = held(before_month=30 * MINUTE)
    lanes = {"lanes": {"interactive_admission": {"max_wait_ms": 4000, "max_attempts": 2}}}
    if gone == "policy":
        del world.deps.catalogue.policies["sync"]
    else:
        world.deps.catalogue.policies["sync"] = policy("sync", ai_api_queueing_strategy=lanes)

    pass_by(world, 30 * MINUTE + SPREAD)

    job = world.job(job_id)
    assert job.reason is Reason.BUDGET_EXHAUSTED
    assert job.recheck_at > world.clock.now()


def test_many_that_wait_for_a_month_do_not_all_come_at_its_first_minute():
    """What the first ones cost is counted before the last ones ask."""
    world, _ = held(before_month=30 * MINUTE)
    looks = set()
    for number in range(6):
        world.deps = replace(world.deps, draw=lambda number=number: number / 6)
        looks.add(worked(world, key=f"k-{number + 2}").recheck_at)

    start = next_period(world.clock.now())
    assert len(looks) == 6
    assert min(looks) >= start
    assert max(looks) < start + SPREAD


@pytest.mark.parametrize(
    ("now", "start"),
    [
        (1_798_761_599_999, 1_798_761_600_000),  # the last moment of a year
        (1_798_761_600_000, 1_801_440_000_000),  # the first of January leads to the first of February
        (1_835_395_200_000, 1_835_481_600_000),  # the 29th of February in a leap year
    ],
)
def test_the_next_month_begins_at_its_first_moment_in_utc(now, start):
    """Whatever the month's length."""
    assert next_period(now) == start
    assert period_of(start - 1) != period_of(start)
