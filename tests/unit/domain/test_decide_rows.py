"""The customer's decision table, row by row, asked of the policies we ship.

Each test names the rows of the requirements it stands for.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from breakwater.domain import events as ev
from breakwater.domain.decide import Decision, decide
from breakwater.domain.job import Job
from breakwater.domain.routes import Catalogue
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Lane, Reason, Visibility
from breakwater.policy_yaml import load
from tests.support.cases import NOW, make_job, make_signal

PAIRS = [(one, other) for one in ErrorClass for other in (None, 1_000, 30_000, 3_600_000)]


@cache
def shipped() -> Catalogue:
    """The policies in the bundle."""
    return load(Path(__file__).parents[3] / "shared" / "policies")


def job_of(workflow: str, lane: Lane | None = None, **more) -> Job:
    """A job of a shipped workflow, as admission would have made it a second ago."""
    policy = shipped().need_policy(workflow)
    lane = lane or policy.start_lane(interactive=True)
    began = NOW - 1_000
    waits = lane is not Lane.BACKGROUND_RETRY
    return make_job(
        policy,
        lane,
        **{
            "workflow": workflow,
            "route_key": policy.route,
            "stream": policy.output_contract.streaming,
            "expires_at": began + policy.lane(lane).max_queue_age_ms,
            "deadline_at": began + policy.deadline_ms if waits else None,
            **more,
        },
    )


def ask(job: Job, error_class: ErrorClass, hint: int | None = None, **signal) -> Decision:
    """What the shipped policy of this job does with a signal."""
    catalogue = shipped()
    route = catalogue.route(job.route_key)
    assert route is not None
    in_run = job.lane is Lane.INTERACTIVE_ADMISSION and not job.stream
    said = make_signal(error_class, hint, route_key=route.route_key, **signal)
    return decide(job, said, catalogue.need_policy(job.workflow), catalogue, route, NOW, 0.5, in_run=in_run)


def calls_again(decision: Decision) -> bool:
    """Whether the decision leads to another call by itself."""
    return isinstance(decision.event, ev.RetryScheduled | ev.FellBack)


# --- chat before its first token: B007 to B010 ----------------------------------------------


def test_chat_waits_briefly_and_tries_again_within_the_deadline():
    """B007, B008: a short back-off, one or two attempts."""
    first = ask(job_of("support_chat"), ErrorClass.OVERLOAD)

    assert first.retry_now
    assert first.event.at - NOW <= 500
    assert shipped().need_policy("support_chat").lane(Lane.INTERACTIVE_ADMISSION).max_attempts == 2


def test_chat_falls_back_to_the_approved_route_with_the_same_contract():
    """B009: tools, schema and data boundary are clauses, and true."""
    event = ask(job_of("support_chat", attempt=2), ErrorClass.OVERLOAD).event

    assert event.fallback == "sonnet"
    assert event.clauses["tools"] is True
    assert all(kept for name, kept in event.clauses.items() if name.startswith("data_boundary"))


def test_chat_ends_gracefully_after_its_deadline():
    """B010, B059: told now, nothing tried any more."""
    decision = ask(job_of("support_chat"), ErrorClass.PACING, 30_000)

    assert (decision.action, decision.reason) == ("fail_closed", Reason.RETRY_AFTER_EXCEEDS_DEADLINE)


# --- chat after its first token: B011, B012 --------------------------------------------------


@pytest.mark.parametrize(("error_class", "hint"), PAIRS)
@pytest.mark.parametrize("workflow", ["chat_stream", "support_chat"])
def test_chat_is_never_replayed_after_its_first_token(workflow, error_class, hint):
    """B011, B055: no retry, no other route; B012: a controlled end, with the request id kept."""
    decision = ask(
        job_of(workflow),
        error_class,
        hint,
        visibility_state=Visibility.PARTIAL_OUTPUT,
        provider_request_id="req_1",
    )

    assert decision.reason is Reason.PARTIAL_OUTPUT_COMMITTED
    assert decision.event.signal.provider_request_id == "req_1"


# --- background summary: B013 to B015 --------------------------------------------------------


def test_a_summary_queues_as_long_as_it_is_useful():
    """B013: a wait of twelve hours is kept to the millisecond."""
    decision = ask(job_of("support_summary"), ErrorClass.PACING, 43_200_000)

    assert (decision.action, decision.event.at) == ("queue", NOW + 43_200_000)


@pytest.mark.parametrize(
    ("attempt", "error_class", "hint"),
    [
        (5, ErrorClass.OVERLOAD, None),
        (1, ErrorClass.QUOTA, None),
        (1, ErrorClass.PACING, 90_000_000),
    ],
)
def test_a_summary_may_be_written_by_another_approved_model(attempt, error_class, hint):
    """B014: quality and cost are clauses of the contract."""
    event = ask(job_of("support_summary", attempt=attempt), error_class, hint).event

    assert event.fallback == "flash"
    assert (event.clauses["quality_tier"], event.clauses["cost_ceiling"]) == (True, True)


def test_a_stale_summary_is_dropped():
    """B015: too old is dead."""
    assert ask(job_of("support_summary", expires_at=NOW), ErrorClass.PACING).reason is Reason.MAX_QUEUE_AGE_EXCEEDED


# --- evaluation: B016 to B018 ------------------------------------------------------------------


@pytest.mark.parametrize(("error_class", "hint"), PAIRS)
@pytest.mark.parametrize("attempt", [1, 8])
def test_an_evaluation_never_changes_its_route(error_class, hint, attempt):
    """B017, B018: rather no result than one that can't be compared."""
    assert ask(job_of("evaluation", attempt=attempt), error_class, hint).action != "fallback"


def test_an_evaluation_has_a_larger_but_bounded_budget():
    """B016: throttled by model and key, eight attempts in twelve hours."""
    policy = shipped().need_policy("evaluation")

    assert policy.ai_api_queueing_strategy.backpressure.concurrency_key == ("provider", "requested_model", "credential")
    assert policy.lane(Lane.BACKGROUND_RETRY).max_attempts == 8
    assert ask(job_of("evaluation", attempt=7), ErrorClass.OVERLOAD).action == "queue"
    assert ask(job_of("evaluation", attempt=8), ErrorClass.OVERLOAD).action == "fail_closed"


# --- images: B019 to B023 -----------------------------------------------------------------------


def test_an_image_needs_a_key_and_has_few_attempts():
    """B019, B020."""
    policy = shipped().need_policy("media_generation")

    assert policy.lanes.background_retry.require_idempotency_key
    assert policy.lane(Lane.BACKGROUND_RETRY).max_attempts == 2


@pytest.mark.parametrize(("error_class", "hint"), PAIRS)
@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_an_image_changes_its_model_only_with_approval(error_class, hint, attempt):
    """B022."""
    assert ask(job_of("media_generation", attempt=attempt), error_class, hint).action != "fallback"


def test_an_image_that_could_be_drawn_elsewhere_waits_for_its_owner():
    """B022: the missing decision is named."""
    decision = ask(job_of("media_generation", attempt=2), ErrorClass.OVERLOAD)

    assert isinstance(decision.event, ev.HeldForReview)
    assert decision.reason is Reason.APPROVAL_REQUIRED


@pytest.mark.parametrize("error_class", [ErrorClass.OUTCOME_UNKNOWN, ErrorClass.STREAM_INCOMPLETE, ErrorClass.UNKNOWN])
def test_an_image_is_not_paid_for_twice(error_class):
    """B023: where a duplicate is possible, a person decides."""
    assert ask(job_of("media_generation"), error_class).reason is Reason.OUTCOME_UNKNOWN


# --- finance, legal, procurement: B024 to B026 ----------------------------------------------------


@pytest.mark.parametrize(("error_class", "hint"), PAIRS)
def test_regulated_work_makes_no_second_call_by_itself(error_class, hint):
    """B024, B025: one attempt, then a person or the end."""
    assert not calls_again(ask(job_of("regulated_review"), error_class, hint))
    assert shipped().need_policy("regulated_review").requires_approval


@pytest.mark.parametrize(
    "reason",
    [
        "data_boundary_mismatch",
        "quota_or_spend_exhausted",
        "fallback_contract_mismatch",
        "fallback_contract_unknown",
    ],
)
def test_regulated_work_fails_closed(reason):
    """B026: boundary, cost and contract."""
    assert reason in shipped().need_policy("regulated_review").fail_closed_when


# --- the decision itself: B053 to B061 -------------------------------------------------------------


def test_every_decision_is_one_of_a_closed_set_and_has_a_reason():
    """B053: retry now, queue until a time, fallback, fail closed."""
    workflows = shipped().workflows()

    found = [
        ask(job_of(name, attempt=attempt), kind, hint)
        for name in workflows
        for attempt in (1, 2, 9)
        for kind, hint in PAIRS
    ]

    assert {one.action for one in found} == {"retry_now", "queue", "fallback", "fail_closed", "cancel"}
    assert all(one.reason for one in found)


def test_attempts_that_are_used_up_lead_to_fallback_or_the_end():
    """B056."""
    assert ask(job_of("support_chat", attempt=2), ErrorClass.SERVER_FAULT).action == "fallback"
    assert ask(job_of("evaluation", attempt=8), ErrorClass.SERVER_FAULT).reason is Reason.MAX_ATTEMPTS_EXHAUSTED


def test_the_providers_delay_wins_over_jitter():
    """B057: neither shortened nor stretched by the window."""
    assert ask(job_of("support_summary", attempt=4), ErrorClass.PACING, 1_234).event.at == NOW + 1_234


def test_without_a_delay_the_wait_is_jittered_in_a_doubling_window():
    """B058: 500 ms doubling for people, capped at 30 s."""
    waits = [
        ask(job_of("chat_stream", stream=False, attempt=1), ErrorClass.LOCKED).event.at - NOW,
        ask(job_of("support_summary", attempt=3), ErrorClass.LOCKED).event.at - NOW,
    ]

    assert waits == [250 + (500 - 250) // 2, 250 + (4_000 - 250) // 2]


@pytest.mark.parametrize(
    ("hint", "action", "reason"),
    [
        (2_000, "retry_now", Reason.SHORT_BOUNDED_WAIT),
        (2_001, "queue", Reason.PROVIDER_WAIT_HINT),
    ],
)
def test_two_seconds_are_the_border_between_now_and_the_queue(hint, action, reason):
    """B060, B061."""
    decision = ask(job_of("support_chat"), ErrorClass.PACING, hint)

    assert (decision.action, decision.reason) == (action, reason)
