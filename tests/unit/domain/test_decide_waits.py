"""How long a job waits, when it is too late, and where a broken stream goes on."""

from __future__ import annotations

import pytest

from breakwater.domain import events as ev
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Lane, Reason
from tests.support.cases import (
    LANES,
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


def only(lanes):
    """A policy with these lanes alone."""
    return {"lanes": {name: LANES[name] for name in lanes}}


@pytest.mark.parametrize(
    "error_class",
    [
        ErrorClass.PACING,
        ErrorClass.OVERLOAD,
        ErrorClass.SERVER_FAULT,
        ErrorClass.LOCKED,
        ErrorClass.NOT_SENT,
    ],
)
def test_without_a_hint_our_own_back_off_counts(error_class):
    """Full jitter in the lane's window."""
    decision = decided(make_signal(error_class), draw=0.5)

    assert decision.event.at == NOW + 625
    assert (decision.action, decision.reason, decision.close) == ("queue", Reason.BACKOFF, None)


@pytest.mark.parametrize("hint", [0, -1, -5_000, None])
def test_an_unusable_hint_is_none(hint):
    """Zero and negative waits mean our own back-off, not a tight loop (RA-01, RA-02)."""
    assert decided(make_signal(ErrorClass.PACING, hint)).reason is Reason.BACKOFF


@pytest.mark.parametrize("hint", [1, 500, 30_000, 899_000, 900_000, 901_000, 54_524_000, 13 * HOUR, 67_202_000])
def test_a_hint_is_kept_to_the_millisecond(hint):
    """Beyond a queue's 15 minutes and 12 hours as well, and for everybody on the route (SQ-06)."""
    decision = decided(make_signal(ErrorClass.PACING, hint), make_job(expires_at=NOW + 30 * HOUR))

    assert decision.event.at == NOW + hint
    assert decision.reason is Reason.PROVIDER_WAIT_HINT
    assert (decision.close.route_key, decision.close.until) == ("first", NOW + hint)
    assert decision.close.credential is None


def test_a_hint_about_a_lock_closes_no_route():
    """It is about one thing, not about the route."""
    assert decided(make_signal(ErrorClass.LOCKED, 5_000)).close is None


def test_windows_grow_with_failures_on_the_present_route():
    """A fallback's first failure is a first failure."""
    third = decided(make_signal(), make_job(attempt=3), draw=0.999)
    moved = decided(make_signal(), make_job(attempt=3, attempts_before_route=2), draw=0.999)

    assert third.event.at - NOW > 3_900
    assert moved.event.at - NOW < 1_000


@pytest.mark.parametrize(
    ("hint", "at_once"), [(None, True), (1_999, True), (2_000, True), (2_001, False), (9_000, False)]
)
def test_run_retries_at_once_only_after_short_waits(hint, at_once):
    """Up to 2 s in the same process; everything else goes back to the table (B060, B061)."""
    decision = decided(make_signal(ErrorClass.PACING, hint), make_job(lane=INTERACTIVE), in_run=True)

    assert decision.retry_now is at_once
    assert decision.action == ("retry_now" if at_once else "queue")
    assert decision.reason is (Reason.SHORT_BOUNDED_WAIT if at_once else Reason.PROVIDER_WAIT_HINT)


def test_only_run_retries_at_once():
    """A worker gives the job back; so does `/run` for work in the background lane."""
    assert not decided(make_signal(ErrorClass.PACING, 100), make_job(lane=INTERACTIVE)).retry_now
    assert not decided(make_signal(ErrorClass.PACING, 100), make_job(), in_run=True).retry_now


@pytest.mark.parametrize(("left", "fits"), [(100 + 2_000 + 3_000, True), (100 + 2_000 + 3_000 - 1, False)])
def test_a_retry_must_leave_time_for_the_call_and_the_answer(left, fits):
    """Wait, call and reserve fit into the deadline, to the millisecond."""
    job = make_job(lane=INTERACTIVE, deadline_at=NOW + left)
    policy = make_policy(lanes=only(["interactive_admission"])["lanes"])

    decision = decided(make_signal(ErrorClass.PACING, 100), job, policy, in_run=True)

    assert decision.retry_now is fits
    assert decision.reason is (Reason.SHORT_BOUNDED_WAIT if fits else Reason.RETRY_AFTER_EXCEEDS_DEADLINE)


def test_the_caller_may_know_better_how_long_a_call_takes():
    """Call and reserve are arguments."""
    job = make_job(lane=INTERACTIVE, deadline_at=NOW + 10_000)
    signal = make_signal(ErrorClass.PACING, 100)

    assert decided(signal, job, in_run=True, call_budget_ms=9_800, reserve_ms=100).retry_now
    assert not decided(signal, job, in_run=True, call_budget_ms=9_801, reserve_ms=100).retry_now


def test_a_hint_beyond_the_deadline_fails_closed_where_the_policy_says_so():
    """B059 and the template's list: the person is told now."""
    policy = make_policy(**WITH_FALLBACK, strategy={"fail_closed_when": ["retry_after_exceeds_deadline"]})

    decision = decided(make_signal(ErrorClass.PACING, 30_000), make_job(policy, INTERACTIVE), policy, in_run=True)

    assert isinstance(decision.event, ev.DeadLettered)
    assert decision.reason is Reason.RETRY_AFTER_EXCEEDS_DEADLINE
    assert decision.close.until == NOW + 30_000


def test_else_the_work_goes_on_in_the_background():
    """The lane is promised and the outcome known: it waits out the hint there, with that lane's attempts."""
    decision = decided(make_signal(ErrorClass.PACING, 30_000), make_job(lane=INTERACTIVE), in_run=True)

    assert (decision.event.lane, decision.event.at) == (Lane.BACKGROUND_RETRY, NOW + 30_000)
    assert decision.event.max_attempts == 5
    assert not decision.retry_now


def test_a_deadline_that_has_passed_moves_the_work_too():
    """Without a hint, after our own back-off."""
    decision = decided(make_signal(), make_job(lane=INTERACTIVE, deadline_at=NOW - 1))

    assert (decision.event.lane, decision.reason) == (Lane.BACKGROUND_RETRY, Reason.BACKOFF)


@pytest.mark.parametrize(
    ("policy", "job"),
    [
        ({"lanes": {"interactive_admission": {}}}, {}),
        ({"lanes": {**LANES, "background_retry": {"require_idempotency_key": True}}}, {"key_given": False}),
        ({"lanes": {**LANES, "background_retry": {"max_attempts": 1}}}, {}),
        ({}, {"expires_at": NOW + 100}),
    ],
    ids=["no lane", "no key", "no attempts", "no time"],
)
def test_without_a_promise_of_the_background_lane_the_deadline_is_the_end(policy, job):
    """No lane, no key where one is required, no attempts or no time there."""
    decision = decided(make_signal(), make_job(lane=INTERACTIVE, deadline_at=NOW, **job), make_policy(**policy))

    assert isinstance(decision.event, ev.DeadLettered)
    assert decision.reason is Reason.DEADLINE_EXCEEDED


def test_an_unknown_outcome_does_not_move_to_the_background():
    """The design moves only what is known not to have run."""
    job = make_job(lane=INTERACTIVE, deadline_at=NOW)

    decision = decided(make_signal(ErrorClass.OUTCOME_UNKNOWN), job)

    assert isinstance(decision.event, ev.DeadLettered)
    assert decision.reason is Reason.DEADLINE_EXCEEDED


def test_an_approved_route_answers_a_person_rather_than_the_queue():
    """Within the deadline a fallback comes before the background lane."""
    policy = make_policy(**WITH_FALLBACK)

    decision = decided(make_signal(ErrorClass.PACING, 30_000), make_job(policy, INTERACTIVE), policy, in_run=True)

    assert decision.action == "fallback"
    assert decision.reason is Reason.RETRY_AFTER_EXCEEDS_DEADLINE


def test_the_queue_takes_what_the_fallbacks_contract_leaves_unknown():
    """A person is not asked about a route while the work can simply wait."""
    policy = make_policy(fallbacks=[fallback()], quality_tier="standard")
    vague = make_catalogue(make_route(), make_route("second", quality_tier=None))
    job = make_job(policy, INTERACTIVE)

    assert decided(make_signal(ErrorClass.PACING, 30_000), job, policy, vague).event.lane is Lane.BACKGROUND_RETRY


@pytest.mark.parametrize(
    ("hint", "reason"),
    [
        (900_000, Reason.RETRY_AFTER_EXCEEDS_DEADLINE),
        (None, Reason.MAX_QUEUE_AGE_EXCEEDED),
    ],
)
def test_queueable_work_does_not_wait_for_a_call_after_its_own_age(hint, reason):
    """It would expire before its release: it rests now, and the hint still closes the route."""
    decision = decided(make_signal(ErrorClass.PACING, hint), make_job(expires_at=NOW + (900_000 if hint else 100)))

    assert isinstance(decision.event, ev.DeadLettered)
    assert decision.reason is reason
    assert (decision.close is not None) is (hint is not None)


def test_back_pressure_comes_before_fallback():
    """As long as waiting is possible, the route does not change."""
    policy = make_policy(**WITH_FALLBACK)

    assert decided(make_signal(ErrorClass.OVERLOAD, 60_000), make_job(policy), policy).action == "queue"


@pytest.mark.parametrize(
    "error_class",
    [
        ErrorClass.OVERLOAD,
        ErrorClass.SERVER_FAULT,
        ErrorClass.STREAM_INCOMPLETE,
        ErrorClass.OUTCOME_UNKNOWN,
    ],
)
def test_a_stream_that_breaks_before_its_first_token_recovers_in_its_own_lane(error_class):
    """A short lane with its own attempts (B099, B102)."""
    decision = decided(make_signal(error_class), make_job(lane=INTERACTIVE, stream=True))

    assert decision.event.lane is Lane.STREAM_RECOVERY
    assert decision.event.max_attempts == 2


@pytest.mark.parametrize(
    ("error_class", "job"),
    [
        (ErrorClass.PACING, {"stream": True}),
        (ErrorClass.OVERLOAD, {"stream": False}),
    ],
)
def test_what_never_began_to_stream_stays_in_its_lane(error_class, job):
    """A refusal before the stream is no broken stream."""
    assert decided(make_signal(error_class), make_job(lane=INTERACTIVE, **job)).event.lane is None


def test_a_recovering_stream_stays_in_recovery():
    """The lane is entered once."""
    job = make_job(lane=Lane.STREAM_RECOVERY, stream=True)

    assert decided(make_signal(), job).event.lane is None


@pytest.mark.parametrize(
    ("error_class", "hint", "why"),
    [
        (ErrorClass.PACING, 7_000, "pacing: waits exactly as long as the provider asked"),
        (ErrorClass.PACING, None, "pacing: waits our own back-off"),
        (ErrorClass.CREDENTIAL, None, "credential: waits before anyone looks again"),
    ],
)
def test_a_wait_says_whose_it_is(error_class, hint, why):
    """One line for the log, with no content in it."""
    assert decided(make_signal(error_class, hint)).why == why


def test_a_caller_whose_attempts_are_gone_may_leave_the_work_to_the_background():
    """`/run` used its attempts: with that lane's attempts left, the work goes on without the caller."""
    job = make_job(lane=INTERACTIVE, attempt=2)

    moved = decided(make_signal(), job, in_run=True)

    assert (moved.event.lane, moved.event.max_attempts) == (Lane.BACKGROUND_RETRY, 5)
    assert moved.reason is Reason.BACKOFF


@pytest.mark.parametrize(
    ("error_class", "listed", "more"),
    [
        (ErrorClass.OVERLOAD, [], {"in_run": False}),
        (ErrorClass.OUTCOME_UNKNOWN, [], {"in_run": True}),
        (ErrorClass.OVERLOAD, ["max_attempts_exhausted"], {"in_run": True}),
    ],
    ids=["no caller", "unknown outcome", "fails closed"],
)
def test_else_attempts_that_are_gone_are_the_end(error_class, listed, more):
    """Nobody waits, it may have run already, or the policy ends it there."""
    policy = make_policy(strategy={"fail_closed_when": listed})
    job = make_job(policy, INTERACTIVE, attempt=2)

    assert decided(make_signal(error_class), job, policy, **more).reason is Reason.MAX_ATTEMPTS_EXHAUSTED
