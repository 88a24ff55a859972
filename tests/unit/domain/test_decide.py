"""What `decide` says, rule by rule in the order of the design."""

from __future__ import annotations

import pytest

from breakwater.domain import events as ev
from breakwater.domain.decide import CREDENTIAL_RECHECK, QUOTA_RECHECK, acceptable
from breakwater.domain.machine import advance
from breakwater.domain.routes import RouteView
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Lane, Reason, Status, Visibility
from tests.support.cases import (
    LANES,
    NOW,
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
WITH_FALLBACK = {"fallbacks": [fallback()], "cost_cap_micros": 1_000_000}


def only(lanes):
    """A policy with these lanes alone."""
    return {"lanes": {name: LANES[name] for name in lanes}}


# --- 1: settled, cancelled ---------------------------------------------------------------


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.DEAD_LETTER, Status.CANCELLED])
def test_a_settled_job_is_left_alone(status):
    """Nothing late moves it: there is no event at all."""
    decision = decided(make_signal(), make_job(status=status))

    assert (decision.event, decision.action, decision.reason) == (None, "drop", None)


@pytest.mark.parametrize(
    ("by", "reason"),
    [
        ("owner", Reason.CANCELLED_BY_USER),
        ("ops@example", Reason.CANCELLED_BY_OPERATOR),
        (None, Reason.CANCELLED_BY_USER),
    ],
)
def test_a_cancel_that_was_asked_for_is_carried_out(by, reason):
    """Even where a retry would be due, and after visible output."""
    job = make_job(cancel_requested_at=NOW - 1, cancelled_by=by, partial_output_committed=True)

    decision = decided(make_signal(), job)

    assert decision.action == "cancel"
    assert decision.event == ev.Cancelled(by=by or "owner", reason=reason)


# --- 2: a question that failed -------------------------------------------------------------


def asked(error_class, hint=None, **job):
    """A failed question about a provider job."""
    return decided(make_signal(error_class, hint), make_job(provider_job_id="resp_1", **job), asking=True)


@pytest.mark.parametrize(
    "error_class",
    [
        ErrorClass.PACING,
        ErrorClass.OVERLOAD,
        ErrorClass.SERVER_FAULT,
        ErrorClass.NOT_SENT,
        ErrorClass.OUTCOME_UNKNOWN,
        ErrorClass.CREDENTIAL,
        ErrorClass.QUOTA,
        ErrorClass.CALLER_FAULT,
        ErrorClass.UNKNOWN,
    ],
)
def test_a_failed_question_is_asked_again_and_costs_nothing(error_class):
    """The job at the provider goes on; no attempt and no second job."""
    decision = asked(error_class)

    assert isinstance(decision.event, ev.PollAgain)
    assert 5_000 <= decision.event.at - NOW < 10_000
    assert decision.action == "poll"


def test_a_failed_question_waits_as_long_as_the_provider_asks():
    """A hint binds polls as well, and everybody on the route."""
    decision = asked(ErrorClass.PACING, 77_000)

    assert decision.event == ev.PollAgain(at=NOW + 77_000)
    assert decision.close.until == NOW + 77_000


def test_questions_grow_rarer():
    """The window doubles with every poll."""
    assert asked(ErrorClass.OVERLOAD, polls=20).event.at - NOW > 100_000


def test_a_refused_key_closes_the_route_while_polls_go_on():
    """One alert, and the paid result is still asked for."""
    decision = asked(ErrorClass.CREDENTIAL)

    assert decision.close.credential == "key-first"
    assert decision.close.until == NOW + CREDENTIAL_RECHECK


def test_a_provider_deadline_ends_the_questions():
    """After it the job is given up, whatever the answer was about."""
    decision = asked(ErrorClass.OVERLOAD, provider_deadline_at=NOW)

    assert decision.event == ev.Expired(reason=Reason.PROVIDER_DEADLINE_EXCEEDED)
    assert isinstance(asked(ErrorClass.OVERLOAD, provider_deadline_at=NOW + 1).event, ev.PollAgain)


def test_a_provider_job_may_not_be_readable_yet():
    """Just after it was made, an unknown job is asked for again."""
    assert isinstance(asked(ErrorClass.NOT_FOUND).event, ev.PollAgain)
    assert isinstance(asked(ErrorClass.NOT_FOUND, execution=None).event, ev.PollAgain)


def test_a_provider_job_that_vanished_may_have_run():
    """Later it is an unknown outcome: repeated if that is safe, held if not."""
    early = make_job().execution
    lost = {"execution": type(early)(**{**{f: getattr(early, f) for f in early.__slots__}, "opened_at": NOW - HOUR})}

    safe, paid = asked(ErrorClass.NOT_FOUND, **lost), asked(ErrorClass.NOT_FOUND, side_effects="paid", **lost)

    assert safe.event.possible_duplicate
    assert safe.reason is Reason.OUTCOME_UNKNOWN_REPEAT_SAFE
    assert paid.reason is Reason.OUTCOME_UNKNOWN


# --- 3 and 4: visible output, age ----------------------------------------------------------


@pytest.mark.parametrize("error_class", list(ErrorClass))
def test_after_visible_output_nothing_is_sent_again(error_class):
    """No retry, no fallback, whatever went wrong (B011, B055)."""
    policy = make_policy(**WITH_FALLBACK)
    seen = decided(make_signal(error_class, visibility_state=Visibility.PARTIAL_OUTPUT), make_job(policy), policy)
    kept = decided(make_signal(error_class), make_job(policy, partial_output_committed=True), policy)

    for decision in (seen, kept):
        assert isinstance(decision.event, ev.DeadLettered)
        assert decision.reason is Reason.PARTIAL_OUTPUT_COMMITTED


@pytest.mark.parametrize("error_class", [ErrorClass.PACING, ErrorClass.CALLER_FAULT, ErrorClass.QUOTA])
def test_a_job_past_its_age_is_dead(error_class):
    """Stale work expires instead of running (B043); the last error stays readable."""
    decision = decided(make_signal(error_class), make_job(expires_at=NOW))

    assert decision.event.reason is Reason.MAX_QUEUE_AGE_EXCEEDED
    assert decision.event.signal.error_class is error_class


# --- 5: the end ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error_class", "reason"),
    [
        (ErrorClass.CALLER_FAULT, Reason.CALLER_FAULT),
        (ErrorClass.NOT_FOUND, Reason.CALLER_FAULT),
        (ErrorClass.TRUNCATED, Reason.ANSWER_TRUNCATED),
        (ErrorClass.CONTENT_REFUSED, Reason.CONTENT_REFUSED),
    ],
)
def test_what_a_repeat_cannot_change_is_not_repeated(error_class, reason):
    """One call, its own reason, no fallback."""
    policy = make_policy(**WITH_FALLBACK)

    decision = decided(make_signal(error_class, 1_000), make_job(policy), policy)

    assert isinstance(decision.event, ev.DeadLettered)
    assert decision.reason is reason
    assert decision.close is None


def test_a_truncated_answer_is_a_result_where_the_policy_says_so():
    """Whoever has the partial asks before it decides."""
    accepting = make_policy(accept_truncated=True)

    assert acceptable(accepting, make_signal(ErrorClass.TRUNCATED))
    assert not acceptable(accepting, make_signal(ErrorClass.CONTENT_REFUSED))
    assert not acceptable(make_policy(), make_signal(ErrorClass.TRUNCATED))


def test_a_cancel_at_the_provider_is_a_cancel():
    """Nobody here asked for it, and the job says so."""
    decision = decided(make_signal(ErrorClass.CANCELLED))

    assert decision.event == ev.Cancelled(by="openai", reason=Reason.CANCELLED_AT_PROVIDER)


# --- 6: quota, spend, data boundary --------------------------------------------------------


@pytest.mark.parametrize("error_class", [ErrorClass.QUOTA, ErrorClass.SPEND])
@pytest.mark.parametrize("hint", [None, 1_000, 34_000])
def test_quota_and_spend_are_never_a_timed_retry(error_class, hint):
    """A hint changes nothing about the job: a person has to act (B036, RA-06 c)."""
    decision = decided(make_signal(error_class, hint))

    assert isinstance(decision.event, ev.HeldForReview)
    assert decision.reason is Reason.QUOTA_OR_SPEND_EXHAUSTED
    assert decision.event.review_expires_at == NOW + make_policy().review_max_age_ms


def test_an_empty_account_is_found_out_once():
    """The route is closed for everybody, with one alert for the credential (RA-07)."""
    short, long = (decided(make_signal(ErrorClass.SPEND, hint)).close for hint in (None, 67_202_000))

    assert (short.credential, short.until) == ("key-first", NOW + QUOTA_RECHECK)
    assert long.until == NOW + 67_202_000


def test_another_account_may_take_over_from_an_empty_one():
    """Fallback where the policy allows it and its contract holds."""
    policy = make_policy(**WITH_FALLBACK)

    decision = decided(make_signal(ErrorClass.QUOTA), make_job(policy), policy)

    assert decision.action == "fallback"
    assert decision.event.route_key == "second"
    assert decision.reason is Reason.QUOTA_OR_SPEND_EXHAUSTED
    assert decision.close is not None


def test_the_same_empty_account_is_no_way_out():
    """Another model behind the same credential has the same problem."""
    policy = make_policy(**WITH_FALLBACK)
    shared = make_catalogue(make_route(), make_route("second", credential="key-first"))

    assert decided(make_signal(ErrorClass.SPEND), make_job(policy), policy, shared).action == "fail_closed"


def test_a_policy_may_forbid_fallback_on_quota():
    """`fail_closed_when` means no further call of any kind."""
    policy = make_policy(**WITH_FALLBACK, strategy={"fail_closed_when": ["quota_or_spend_exhausted"]})

    assert decided(make_signal(ErrorClass.QUOTA), make_job(policy), policy).action == "fail_closed"


def test_an_unknown_contract_leaves_a_blocked_job_with_its_first_reason():
    """What is missing is money; that a fallback needs checking is said beside it."""
    policy = make_policy(**WITH_FALLBACK, quality_tier="standard")
    vague = make_catalogue(make_route(), make_route("second", quality_tier=None))

    decision = decided(make_signal(ErrorClass.QUOTA), make_job(policy), policy, vague)

    assert decision.reason is Reason.QUOTA_OR_SPEND_EXHAUSTED
    assert "quality_tier unknown" in decision.why


def test_a_data_boundary_is_never_retried():
    """A known breach rests where the policy says: in review by the template's list, else in the dead letters."""
    reviewed = decided(make_signal(ErrorClass.DATA_BOUNDARY, 1_000))
    policy = make_policy(lanes={**LANES, "owner_review": {"enter_when": []}})
    dead = decided(make_signal(ErrorClass.DATA_BOUNDARY), make_job(policy), policy)

    assert isinstance(reviewed.event, ev.HeldForReview)
    assert isinstance(dead.event, ev.DeadLettered)
    assert reviewed.reason is dead.reason is Reason.DATA_BOUNDARY_MISMATCH
    assert reviewed.close is None


@pytest.mark.parametrize(
    ("target", "action"),
    [
        ({}, "fail_closed"),
        ({"provider": "anthropic"}, "fallback"),
    ],
)
def test_a_forbidden_region_is_left_only_for_another_provider_or_region(target, action):
    """The same provider in the same region would say the same."""
    policy = make_policy(**WITH_FALLBACK, data_boundary={"providers": ["openai", "anthropic"]})
    routes = make_catalogue(make_route(), make_route("second", **target))

    assert decided(make_signal(ErrorClass.DATA_BOUNDARY), make_job(policy), policy, routes).action == action


# --- 7: credential and permission ----------------------------------------------------------


@pytest.mark.parametrize("error_class", [ErrorClass.CREDENTIAL, ErrorClass.PERMISSION])
def test_a_refused_key_closes_the_route_and_the_job_waits(error_class):
    """One alert per credential; the others wait at the closed route without losing attempts."""
    decision = decided(make_signal(error_class))

    assert decision.event.at == decision.close.until == NOW + CREDENTIAL_RECHECK
    assert decision.reason is Reason.ROUTE_CLOSED
    assert decision.close.credential == "key-first"


def test_a_refused_key_does_not_keep_people_waiting():
    """Another approved credential answers within the deadline, if there is one."""
    policy = make_policy(**WITH_FALLBACK)
    job = make_job(policy, INTERACTIVE)

    assert decided(make_signal(ErrorClass.CREDENTIAL), job, policy, in_run=True).action == "fallback"


# --- 8: the outcome is not known ------------------------------------------------------------


@pytest.mark.parametrize(
    "error_class",
    [
        ErrorClass.OUTCOME_UNKNOWN,
        ErrorClass.STREAM_INCOMPLETE,
        ErrorClass.UNKNOWN,
    ],
)
def test_work_that_is_safe_to_repeat_is_repeated_and_marked(error_class):
    """It may be a duplicate, and everybody can see that."""
    decision = decided(make_signal(error_class))

    assert decision.event.possible_duplicate
    assert decision.reason is Reason.OUTCOME_UNKNOWN_REPEAT_SAFE
    assert 250 <= decision.event.at - NOW < 1_000


@pytest.mark.parametrize("side_effects", ["paid", "external"])
@pytest.mark.parametrize(
    "error_class",
    [
        ErrorClass.OUTCOME_UNKNOWN,
        ErrorClass.STREAM_INCOMPLETE,
        ErrorClass.UNKNOWN,
    ],
)
def test_work_that_is_not_safe_is_never_silently_repeated(error_class, side_effects):
    """A person decides, even with attempts left and a hint given."""
    decision = decided(make_signal(error_class, 1_000), make_job(side_effects=side_effects))

    assert isinstance(decision.event, ev.HeldForReview)
    assert decision.reason is Reason.OUTCOME_UNKNOWN


def test_the_side_effect_class_is_the_jobs_own():
    """It was frozen at admission; a policy deployed later does not loosen it."""
    decision = decided(make_signal(ErrorClass.OUTCOME_UNKNOWN), make_job(side_effects="paid"), make_policy())

    assert decision.reason is Reason.OUTCOME_UNKNOWN


@pytest.mark.parametrize(
    ("side_effects", "reason"),
    [
        ("none", Reason.BACKOFF),
        ("paid", Reason.BACKOFF),
        ("external", Reason.OUTCOME_UNKNOWN),
    ],
)
def test_a_server_fault_may_have_touched_the_outside(side_effects, reason):
    """A failed answer is no result to pay for, but outside effects may be half done (A137)."""
    assert decided(make_signal(ErrorClass.SERVER_FAULT), make_job(side_effects=side_effects)).reason is reason


def test_a_repeat_waits_for_the_webhook_that_can_still_come():
    """Where the provider tells us, its grace comes first."""
    policy = make_policy(mode="background", webhook_grace_ms=90_000)
    hooked = make_catalogue(make_route(capabilities={"background": True, "webhook": "openai"}))
    deaf = make_catalogue(make_route(capabilities={"background": True}))

    unknown = make_signal(ErrorClass.OUTCOME_UNKNOWN)
    assert decided(unknown, make_job(), policy, hooked).event.at == NOW + 90_000
    assert decided(unknown, make_job(), policy, deaf).event.at < NOW + 1_000
    assert decided(unknown, make_job(), make_policy(), hooked).event.at < NOW + 1_000
    assert decided(make_signal(ErrorClass.OUTCOME_UNKNOWN, 95_000), make_job(), policy, hooked).event.at == NOW + 95_000


def test_a_policy_may_forbid_repeats_of_unknown_outcomes():
    """Fail closed also where a repeat would be safe."""
    policy = make_policy(strategy={"fail_closed_when": ["outcome_unknown"]})

    assert decided(make_signal(ErrorClass.OUTCOME_UNKNOWN), make_job(), policy).action == "fail_closed"


@pytest.mark.parametrize("side_effects", ["none", "paid", "external"])
def test_what_was_never_sent_is_an_ordinary_retry(side_effects):
    """Safe or not, nothing has happened: no duplicate, no review."""
    decision = decided(make_signal(ErrorClass.NOT_SENT), make_job(side_effects=side_effects))

    assert isinstance(decision.event, ev.RetryScheduled)
    assert not decision.event.possible_duplicate


# --- 9: waiting -----------------------------------------------------------------------------


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


# --- too late --------------------------------------------------------------------------------


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


# --- streams ----------------------------------------------------------------------------------


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


# --- attempts and fallback --------------------------------------------------------------------


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
