"""What each event changes, field by field where it matters."""

from __future__ import annotations

import pytest

from breakwater.domain import events as ev
from breakwater.domain.machine import advance
from breakwater.domain.obligations import Due, obligations
from breakwater.domain.results import Usage
from breakwater.domain.signals import ErrorClass, LimitDimension, Signal
from breakwater.domain.states import Lane, Reason, Status
from tests.support.builders import NOW, make_execution, make_job

LATER = NOW + 5_000
SIGNAL = Signal(
    error_class=ErrorClass.PACING,
    http_status=429,
    provider_error_type="rate_limit_error",
    provider_error_code="rate_limit_exceeded",
    retry_after_ms=2_500,
    limit_dimension=LimitDimension.REQUESTS,
)


def moved(job, event):
    """The job after the event."""
    return advance(job, event, LATER).job


def test_a_claim_opens_an_execution_under_a_new_epoch():
    """Attempt, epoch, execution and lease in one write."""
    job = make_job("failed", job_id="job_a", waiting_scope="w#sync", waiting_rank=5)
    execution = make_execution(attempt=2, epoch=2)

    after = moved(job, ev.Leased(execution=execution, locked_until=LATER + 60_000))

    assert (after.status, after.reason, after.attempt, after.lease_epoch) == (Status.PROCESSING, Reason.LEASED, 2, 2)
    assert (after.execution, after.locked_until) == (execution, LATER + 60_000)
    assert (after.waiting_scope, after.waiting_rank) == (None, None), "it no longer stands in the line"


def test_waiting_is_counted_apart_and_costs_no_attempt():
    """A refused gate moves the release time and names the capacity it waits for."""
    job = make_job("pending", attempt=0, waits=3)

    after = moved(job, ev.Waiting(at=LATER + 1, reason=Reason.NO_CAPACITY, scope="r#plain", rank=7))

    assert (after.attempt, after.waits, after.ready_at) == (0, 4, LATER + 1)
    assert (after.waiting_scope, after.waiting_rank, after.reason) == ("r#plain", 7, Reason.NO_CAPACITY)


def test_a_provider_that_accepts_ends_the_lease_and_not_the_execution():
    """The worker goes home; its execution knows the provider's job from now on."""
    job = make_job("processing", job_id="job_a")

    after = moved(
        job,
        ev.ProviderAccepted(
            provider_job_id="resp_1", poll_at=LATER + 60_000, provider_deadline_at=LATER + 9, provider_request_id="req"
        ),
    )

    assert (after.locked_until, after.provider_job_id, after.poll_at) == (None, "resp_1", LATER + 60_000)
    assert after.execution.provider_job_id == "resp_1"
    assert after.execution.provider_request_id == "req"
    assert after.reason is Reason.AT_PROVIDER


def test_a_cancel_mark_stays_readable_when_the_provider_accepts():
    """The holder sees at its next write that the user wants it stopped."""
    job = make_job("processing", job_id="job_a", cancel_requested_at=NOW)

    after = moved(job, ev.ProviderAccepted(provider_job_id="r", poll_at=LATER, provider_deadline_at=LATER))

    assert after.reason is Reason.CANCEL_REQUESTED


def test_polls_are_counted_apart():
    """Asking the provider is neither an attempt nor a wait."""
    after = moved(make_job("at_provider"), ev.PollAgain(at=LATER + 10_000))

    assert (after.polls, after.poll_at, after.attempt) == (1, LATER + 10_000, 1)


def test_a_success_keeps_the_requested_and_the_served_model():
    """Which model answered is never mixed up with the one asked for."""
    job = make_job("processing", job_id="job_a", cost_micros=5, usage_units=1)

    after = moved(
        job,
        ev.Succeeded(
            execution_id=make_execution().id,
            result_ref="RESULT#1",
            usage=Usage(input_tokens=10, output_tokens=2),
            cost_micros=30,
            served_model="gpt-5.2-2025-12-11",
            finish_reason="stop",
            provider_job_id="resp_9",
        ),
    )

    assert (after.requested_model, after.served_model) == ("gpt-5.2", "gpt-5.2-2025-12-11")
    assert (after.result_ref, after.finish_reason, after.completed_at) == ("RESULT#1", "stop", LATER)
    assert (after.cost_micros, after.usage_units) == (35, 13)
    assert after.provider_job_id == "resp_9"


def test_a_result_that_was_counted_before_costs_nothing_again():
    """`usage` is None where the books have it already."""
    job = make_job("processing", job_id="job_a", cost_micros=5, usage_units=1)
    event = ev.Succeeded(
        execution_id=make_execution().id, result_ref="RESULT#1", usage=None, cost_micros=None, served_model=None,
        finish_reason="stop",
    )  # fmt: skip

    after = advance(job, event, LATER).job

    assert (after.cost_micros, after.usage_units) == (5, 1)
    assert not [key for key in after.owed if key.startswith("usage#")]


def test_a_refusal_stays_readable():
    """Class, type, code, status, dimension and hint of the last error are fields of the job."""
    after = moved(make_job("processing"), ev.RetryScheduled(at=LATER + 1, reason=Reason.BACKOFF, signal=SIGNAL))

    assert (after.http_status, after.last_error_type, after.last_error_code) == (
        429, "rate_limit_error", "rate_limit_exceeded",
    )  # fmt: skip
    assert (after.retry_after_ms, after.last_error_class, after.limit_dimension) == (2_500, "pacing", "requests")


def test_a_retry_keeps_an_earlier_suspicion():
    """Once a call may have been executed twice, the job says so for good."""
    job = make_job("processing", possible_duplicate=True)

    assert moved(job, ev.RetryScheduled(at=LATER, reason=Reason.BACKOFF)).possible_duplicate


def test_a_retry_may_change_the_lane_and_its_attempts():
    """The person waits no longer, the work goes on in the background."""
    job = make_job("processing", lane=Lane.INTERACTIVE_ADMISSION, max_attempts=2)

    after = moved(job, ev.RetryScheduled(at=LATER, reason=Reason.BACKOFF, lane=Lane.BACKGROUND_RETRY, max_attempts=5))

    assert (after.lane, after.max_attempts) == (Lane.BACKGROUND_RETRY, 5)


def test_a_fallback_starts_a_budget_of_its_own():
    """Route, approval and contract are recorded; the user's model stays."""
    job = make_job("processing", attempt=2)

    after = moved(
        job,
        ev.FellBack(
            route_key="other", requested_model="m-2", fallback="second", contract_version="3",
            reason=Reason.MAX_ATTEMPTS_EXHAUSTED, clauses={"endpoint": True}, at=NOW,
        ),
    )  # fmt: skip

    assert (after.route_key, after.fallback_allowed, after.contract_version) == ("other", "second", "3")
    assert (after.fallback_reason, after.fallbacks, after.attempts_before_route) == ("max_attempts_exhausted", 1, 2)
    assert (after.requested_model, after.ready_at) == ("gpt-5.2", LATER), "never before now"


def test_a_dead_letter_keeps_the_partial_that_was_paid_for():
    """What was paid for stays readable, with its cost."""
    after = moved(
        make_job("processing", job_id="job_a"),
        ev.DeadLettered(
            reason=Reason.ANSWER_TRUNCATED, result_ref="EXEC#1", usage=Usage(output_tokens=9), cost_micros=7
        ),
    )

    assert (after.lane, after.result_ref, after.cost_micros) == (Lane.DEAD_LETTER, "EXEC#1", 7)


def test_a_replay_starts_every_clock_and_counter_anew_and_forgets_no_history():
    """Generation + 1; queue age, expiry, attempts, waits, polls and deadline start over; money and epoch don't."""
    job = make_job(
        "dead_letter", waits=4, polls=2, fallbacks=1, cost_micros=50, deadline_at=NOW, fallback_allowed="second",
        route_key="other", cancel_requested_at=NOW, cancelled_by="acme", result_ref="EXEC#1", manual_retries=1,
        attempts_before_route=2,
    )  # fmt: skip

    after = moved(
        job,
        ev.Replayed(
            by="ops", at=LATER, max_attempts=4, expires_at=LATER + 9, lane=Lane.BACKGROUND_RETRY, route_key="plain"
        ),
    )

    assert (after.status, after.generation, after.attempt, after.max_attempts) == (Status.PENDING, 2, 0, 4)
    assert (after.waits, after.polls, after.fallbacks, after.attempts_before_route) == (0, 0, 0, 0)
    assert (after.round_started_at, after.expires_at, after.deadline_at) == (LATER, LATER + 9, None)
    assert (after.result_ref, after.completed_at, after.cancel_requested_at) == (None, None, None)
    assert (after.cost_micros, after.lease_epoch, after.manual_retries) == (50, 3, 1)
    assert (after.route_key, after.fallback_allowed) == ("plain", None)


def test_an_approval_is_worth_at_least_one_call():
    """A person's yes can't end in the dead letter that attempts or a caller's old deadline would bring."""
    job = make_job("review", attempt=3, max_attempts=3, deadline_at=NOW - 1, cancel_requested_at=NOW)

    after = moved(job, ev.Approved(by="lead", at=LATER, lane=Lane.BACKGROUND_RETRY, expires_at=LATER + 900_000))

    assert (after.max_attempts, after.attempt, after.deadline_at) == (4, 3, None)
    assert (after.round_started_at, after.expires_at, after.approved_by) == (LATER, LATER + 900_000, "lead")
    assert (after.review_expires_at, after.cancel_requested_at, after.reason) == (None, None, Reason.APPROVED)


def test_a_budget_that_covers_it_again_is_nobodys_yes():
    """It goes on with its age restarted, and the budget is asked again before the call."""
    job = make_job("review", attempt=1, max_attempts=2, deadline_at=NOW - 1, recheck_at=NOW)

    after = moved(job, ev.BudgetFreed(at=LATER, lane=Lane.BACKGROUND_RETRY, max_attempts=3, expires_at=LATER + 900_000))

    assert (after.max_attempts, after.attempt, after.deadline_at, after.ready_at) == (3, 1, None, LATER)
    assert (after.round_started_at, after.expires_at, after.approved_by) == (LATER, LATER + 900_000, None)
    assert (after.review_expires_at, after.recheck_at, after.reason) == (None, None, Reason.BUDGET_FREED)


def test_an_approval_for_another_route_gives_it_a_budget_of_its_own():
    """Attempts on the old route don't count against the approved one."""
    job = make_job("review", attempt=3, max_attempts=3)

    after = moved(
        job,
        ev.Approved(by="lead", at=LATER, lane=Lane.BACKGROUND_RETRY, expires_at=LATER + 900_000, route_key="other"),
    )

    assert (after.route_key, after.attempts_before_route) == ("other", 3)


def test_a_hold_names_the_missing_decision_and_has_a_clock_of_its_own():
    """The queue's age limit does not run while a person thinks."""
    after = moved(make_job("processing"), ev.HeldForReview(reason=Reason.OUTCOME_UNKNOWN, review_expires_at=LATER + 9))

    assert (after.status, after.lane, after.reason) == (Status.PENDING, Lane.OWNER_REVIEW, Reason.OUTCOME_UNKNOWN)
    assert after.due_at is not None
    assert (after.review_expires_at, after.recheck_at) == (LATER + 9, None)


def test_a_hold_that_may_end_by_itself_is_looked_at_again():
    """Before its review runs out, by the sweep."""
    held = ev.HeldForReview(reason=Reason.BUDGET_EXHAUSTED, review_expires_at=LATER + 900, recheck_at=LATER + 9)

    after = moved(make_job("pending", recheck_at=NOW), held)

    assert (after.recheck_at, after.due_at) == (LATER + 9, NOW)  # an earlier look is left alone, and corrected
    assert {(one.kind, one.at) for one in obligations(after)} == {
        (Due.REVIEW, LATER + 900),
        (Due.RECHECK, LATER + 9),
    }


@pytest.mark.parametrize("built", ["pending", "processing", "at_provider", "failed", "review"])
def test_a_cancel_says_who_and_when(built):
    """And keeps the first moment it was asked for."""
    job = make_job(built, cancel_requested_at=NOW if built == "processing" else None)

    after = moved(job, ev.Cancelled(by="ops", reason=Reason.CANCELLED_BY_OPERATOR))

    assert (after.cancelled_by, after.reason) == ("ops", Reason.CANCELLED_BY_OPERATOR)
    assert after.cancel_requested_at == (NOW if built == "processing" else LATER)


def test_closing_says_who_and_when_and_changes_nothing_else():
    """A dead letter put to rest stays a dead letter with all it was."""
    job = make_job("dead_letter")

    after = moved(job, ev.Closed(by="ops"))

    assert (after.closed_by, after.closed_at, after.status, after.reason) == ("ops", LATER, job.status, job.reason)
