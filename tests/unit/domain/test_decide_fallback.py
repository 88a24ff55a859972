"""When attempts are gone: the approved other route, its own budget, its contract."""

from __future__ import annotations

import pytest

from breakwater.domain import events as ev
from breakwater.domain.machine import advance
from breakwater.domain.routes import RouteView
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Lane, Reason, Status
from tests.support.cases import (
    NOW,
    WITH_FALLBACK,
    decided,
    fallback,
    make_catalogue,
    make_job,
    make_policy,
    make_route,
    make_signal,
)

HOUR = 3_600_000
INTERACTIVE = Lane.INTERACTIVE_ADMISSION


@pytest.mark.parametrize(("lane", "attempts"), [(INTERACTIVE, 2), (Lane.BACKGROUND_RETRY, 5)])
def test_attempts_are_counted_by_the_current_lane(lane, attempts):
    """The last attempt's failure is the end (B056), the one before is not."""
    last = decided(make_signal(), make_job(lane=lane, attempt=attempts))
    before = decided(make_signal(), make_job(lane=lane, attempt=attempts - 1))

    assert isinstance(last.event, ev.DeadLettered)
    assert last.reason is Reason.MAX_ATTEMPTS_EXHAUSTED
    assert isinstance(before.event, ev.RetryScheduled)


def test_when_attempts_are_gone_the_approved_route_takes_over():
    """By name, with the contract's version and every clause."""
    policy = make_policy(**WITH_FALLBACK)
    job = make_job(policy, attempt=5)

    event = decided(make_signal(), job, policy).event
    moved = advance(job, event, NOW).job

    assert isinstance(event, ev.FellBack)
    assert (event.fallback, event.contract_version, event.requested_model) == ("second", "v1", "model-second")
    assert set(event.clauses.values()) == {True}
    assert event.at == NOW
    assert (moved.status, moved.route_key, moved.fallback_allowed) == (Status.FAILED, "second", "second")
    assert moved.fallback_reason == "max_attempts_exhausted"


def test_a_fallback_has_a_small_budget_of_its_own():
    """Then the next approved one, each at most once, then the end."""
    policy = make_policy(fallbacks=[fallback(max_attempts=2), fallback("third")], cost_cap_micros=1_000_000)
    routes = make_catalogue(make_route(), make_route("second"), make_route("third"))
    on_second = {"route_key": "second", "fallback_allowed": "second", "attempts_before_route": 5}
    on_third = {"route_key": "third", "fallback_allowed": "third", "attempts_before_route": 7}

    again = decided(make_signal(), make_job(policy, attempt=6, **on_second), policy, routes)
    onward = decided(make_signal(), make_job(policy, attempt=7, **on_second), policy, routes)
    over = decided(make_signal(), make_job(policy, attempt=8, **on_third), policy, routes)

    assert again.action == "queue"
    assert onward.event.fallback == "third"
    assert over.reason is Reason.MAX_ATTEMPTS_EXHAUSTED


def test_the_generations_total_is_the_last_word():
    """A job that was moved about can't call more often than its lane and fallbacks allow together."""
    policy = make_policy(**WITH_FALLBACK)

    decision = decided(make_signal(), make_job(policy, attempt=6, attempts_before_route=6), policy)

    assert decision.reason is Reason.MAX_ATTEMPTS_EXHAUSTED


def test_a_policy_may_end_with_its_attempts():
    """`max_attempts_exhausted` in `fail_closed_when`: no fallback either."""
    policy = make_policy(**WITH_FALLBACK, strategy={"fail_closed_when": ["max_attempts_exhausted"]})

    assert decided(make_signal(), make_job(policy, attempt=5), policy).action == "fail_closed"


def exhausted(policy, *targets, **more):
    """The last background attempt failed, with these fallback targets."""
    routes = make_catalogue(make_route(), *targets)
    return decided(make_signal(), make_job(policy, attempt=5), policy, routes, **more)


def test_an_unknown_contract_is_a_persons_to_decide():
    """Held, with the clause named (B111)."""
    policy = make_policy(**WITH_FALLBACK, quality_tier="standard")

    decision = exhausted(policy, make_route("second", quality_tier=None))

    assert isinstance(decision.event, ev.HeldForReview)
    assert decision.reason is Reason.FALLBACK_CONTRACT_UNKNOWN
    assert decision.why == "fallback second: quality_tier unknown"


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        (["fallback_contract_mismatch"], Reason.FALLBACK_CONTRACT_MISMATCH),
        ([], Reason.MAX_ATTEMPTS_EXHAUSTED),
    ],
)
def test_a_broken_contract_is_no_fallback(listed, reason):
    """Never taken; the policy says which of the two reasons ends the job."""
    policy = make_policy(**WITH_FALLBACK, quality_tier="standard", strategy={"fail_closed_when": listed})

    decision = exhausted(policy, make_route("second", quality_tier="economy"))

    assert isinstance(decision.event, ev.DeadLettered)
    assert decision.reason is reason


def test_a_fallback_route_that_is_not_deployed_is_skipped():
    """The next approved one is looked at."""
    policy = make_policy(fallbacks=[fallback("gone"), fallback()], cost_cap_micros=1_000_000)

    assert exhausted(policy, make_route("second")).event.fallback == "second"


def test_a_fallback_that_needs_approval_waits_for_it():
    """Media and regulated work change route only when a person says so (B022, B025)."""
    policy = make_policy(**WITH_FALLBACK, fallback_needs_approval=True)

    decision = exhausted(policy, make_route("second"))

    assert isinstance(decision.event, ev.HeldForReview)
    assert decision.reason is Reason.APPROVAL_REQUIRED


def test_an_open_fallback_is_taken_before_a_closed_one():
    """The target's own route state counts; order decides among equals."""
    policy = make_policy(fallbacks=[fallback(), fallback("third")], cost_cap_micros=1_000_000)
    targets = (make_route("second"), make_route("third"))

    closed = exhausted(policy, *targets, route_states={"second": RouteView(closed_until=NOW + 9_000)})
    both = exhausted(
        policy,
        *targets,
        route_states={
            "second": RouteView(closed_until=NOW + 9_000),
            "third": RouteView(closed_until=NOW + 9_000),
        },
    )

    assert (closed.event.fallback, closed.event.at) == ("third", NOW)
    assert (both.event.fallback, both.event.at) == ("second", NOW + 9_000)


@pytest.mark.parametrize("view", [RouteView(limit=0), RouteView(closed_until=NOW + HOUR)])
def test_a_fallback_that_opens_too_late_or_nobody_knows_when_is_none(view):
    """It would break the job's own limits."""
    policy = make_policy(**WITH_FALLBACK)

    decision = exhausted(policy, make_route("second"), route_states={"second": view})

    assert decision.reason is Reason.MAX_ATTEMPTS_EXHAUSTED


def test_a_fallback_after_an_unknown_outcome_may_be_a_duplicate():
    """The mark goes with the job to its new route."""
    policy = make_policy(**WITH_FALLBACK)
    job = make_job(policy, attempt=5)

    event = decided(make_signal(ErrorClass.OUTCOME_UNKNOWN), job, policy).event

    assert event.possible_duplicate
    assert advance(job, event, NOW).job.possible_duplicate


def test_evaluation_never_changes_its_route():
    """Results must be comparable (B017, B018)."""
    policy = make_policy(require_same_served_model=True)

    assert decided(make_signal(), make_job(policy, attempt=5), policy).action == "fail_closed"


def test_a_route_chosen_by_a_person_counts_as_the_lanes_own():
    """An override is no fallback: the lane's attempts apply to it."""
    policy = make_policy(**WITH_FALLBACK)
    job = make_job(policy, attempt=3, route_key="second", fallback_allowed=None)

    assert decided(make_signal(), job, policy).action == "queue"


def test_the_same_question_has_the_same_answer():
    """Pure: clock and dice are arguments."""
    assert decided(make_signal(), draw=0.3) == decided(make_signal(), draw=0.3)
