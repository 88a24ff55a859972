"""What time alone can't mend: quota, money, boundaries, keys, and outcomes nobody knows."""

from __future__ import annotations

import pytest

from breakwater.domain import events as ev
from breakwater.domain.decide import CREDENTIAL_RECHECK, QUOTA_RECHECK
from breakwater.domain.signals import ErrorClass, LimitDimension
from breakwater.domain.states import Lane, Reason
from tests.support.cases import (
    LANES,
    NOW,
    WITH_FALLBACK,
    decided,
    make_catalogue,
    make_job,
    make_policy,
    make_route,
    make_signal,
)

INTERACTIVE = Lane.INTERACTIVE_ADMISSION


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


@pytest.mark.parametrize("error_class", [ErrorClass.CREDENTIAL, ErrorClass.PERMISSION])
def test_a_refused_key_closes_the_route_and_the_job_waits(error_class):
    """One alert per credential; the others wait at the closed route without losing attempts."""
    decision = decided(make_signal(error_class))

    assert decision.event.at == decision.close.until == NOW + CREDENTIAL_RECHECK
    assert decision.reason is Reason.ROUTE_CLOSED


@pytest.mark.parametrize(
    ("error_class", "dimension", "credential"),
    [
        (ErrorClass.CREDENTIAL, None, "key-first"),
        (ErrorClass.SPEND, None, "key-first"),
        (ErrorClass.QUOTA, LimitDimension.SPEND, "key-first"),
        (ErrorClass.QUOTA, LimitDimension.DAILY_REQUESTS, None),
        (ErrorClass.PERMISSION, None, None),
    ],
)
def test_money_and_keys_belong_to_the_account_rights_and_daily_limits_to_a_model(error_class, dimension, credential):
    """What is closed: every route of the credential, or this one."""
    decision = decided(make_signal(error_class, limit_dimension=dimension))

    assert (decision.close.route_key, decision.close.credential) == ("first", credential)


def test_a_refused_key_does_not_keep_people_waiting():
    """Another approved credential answers within the deadline, if there is one."""
    policy = make_policy(**WITH_FALLBACK)
    job = make_job(policy, INTERACTIVE)

    assert decided(make_signal(ErrorClass.CREDENTIAL), job, policy, in_run=True).action == "fallback"


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
