"""What ends a job: settled, cancelled, seen, too old, wrong; and questions that failed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakwater.domain import events as ev
from breakwater.domain.decide import CREDENTIAL_RECHECK, acceptable
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Reason, Status, Visibility
from tests.support.cases import (
    NOW,
    WITH_FALLBACK,
    decided,
    make_job,
    make_policy,
    make_signal,
)

HOUR = 3_600_000


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
    windows = [decided(make_signal(), make_job(polls=polls), asking=True, draw=0.999).event.at for polls in (0, 1, 2)]

    assert [round((at - NOW) / 10_000) for at in windows] == [1, 2, 4]
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


def opened(at):
    """The job's execution, opened at this time."""
    return {"execution": replace(make_job().execution, opened_at=at)}


def test_a_provider_job_is_given_the_webhooks_grace_to_appear():
    """To the millisecond; then it has vanished."""
    grace = make_policy().webhook_grace_ms

    assert isinstance(asked(ErrorClass.NOT_FOUND, **opened(NOW - grace + 1)).event, ev.PollAgain)
    assert not isinstance(asked(ErrorClass.NOT_FOUND, **opened(NOW - grace)).event, ev.PollAgain)


def test_a_provider_job_that_vanished_may_have_run():
    """Later it is an unknown outcome: repeated if that is safe, held if not."""
    lost = opened(NOW - HOUR)

    safe, paid = asked(ErrorClass.NOT_FOUND, **lost), asked(ErrorClass.NOT_FOUND, side_effects="paid", **lost)

    assert safe.event.possible_duplicate
    assert safe.reason is Reason.OUTCOME_UNKNOWN_REPEAT_SAFE
    assert paid.reason is Reason.OUTCOME_UNKNOWN


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
