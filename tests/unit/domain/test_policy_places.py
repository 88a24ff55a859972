"""Where jobs rest, who goes first, and who is dropped."""

from __future__ import annotations

import pytest

from breakwater.domain.places import PLACES, place
from breakwater.domain.priority import HEAD_START_MS, effective, rank, sheds
from breakwater.domain.states import Lane, Priority, Reason
from tests.support.cases import LANES, make_policy

ON_ITS_WAY = {
    Reason.ACCEPTED,
    Reason.LEASED,
    Reason.AT_PROVIDER,
    Reason.COMPLETED,
    Reason.CANCEL_REQUESTED,
    Reason.REPLAYED,
    Reason.APPROVED,
    Reason.BUDGET_FREED,
    Reason.PROVIDER_WAIT_HINT,
    Reason.SHORT_BOUNDED_WAIT,
    Reason.BACKOFF,
    Reason.FELL_BACK,
    Reason.ROUTE_CLOSED,
    Reason.RATE_LIMITED,
    Reason.NO_CAPACITY,
    Reason.PAUSED,
    Reason.OUTCOME_UNKNOWN_REPEAT_SAFE,
    Reason.CANCELLED_BY_USER,
    Reason.CANCELLED_BY_OPERATOR,
    Reason.CANCELLED_AT_PROVIDER,
    Reason.REJECTED_BY_OWNER,
    Reason.CLOSED_BY_OPERATOR,
}


def test_every_reason_that_stops_a_job_has_a_place():
    """A new reason must be placed, or be one that stops nothing."""
    assert set(PLACES) == set(Reason) - ON_ITS_WAY


@pytest.mark.parametrize("reason", sorted(ON_ITS_WAY))
def test_a_reason_that_stops_nothing_has_none(reason):
    """Asking for its place is a mistake."""
    with pytest.raises(KeyError):
        place(reason)


@pytest.mark.parametrize(
    ("reason", "lane"),
    [
        (Reason.QUOTA_OR_SPEND_EXHAUSTED, Lane.OWNER_REVIEW),
        (Reason.APPROVAL_REQUIRED, Lane.OWNER_REVIEW),
        (Reason.DATA_BOUNDARY_UNKNOWN, Lane.OWNER_REVIEW),
        (Reason.FALLBACK_CONTRACT_UNKNOWN, Lane.OWNER_REVIEW),
        (Reason.OUTCOME_UNKNOWN, Lane.OWNER_REVIEW),
        (Reason.PARTIAL_OUTPUT_COMMITTED, Lane.DEAD_LETTER),
        (Reason.MAX_ATTEMPTS_EXHAUSTED, Lane.DEAD_LETTER),
        (Reason.MAX_QUEUE_AGE_EXCEEDED, Lane.DEAD_LETTER),
        (Reason.CALLER_FAULT, Lane.DEAD_LETTER),
        (Reason.FALLBACK_CONTRACT_MISMATCH, Lane.DEAD_LETTER),
        (Reason.DATA_BOUNDARY_MISMATCH, Lane.DEAD_LETTER),
        (Reason.NOT_IDEMPOTENT, Lane.DEAD_LETTER),
        (Reason.DEADLINE_EXCEEDED, Lane.DEAD_LETTER),
    ],
)
def test_the_design_places_these(reason, lane):
    """Review where a person can let it go on, else the dead letters."""
    assert place(reason) is lane


def test_a_policys_lists_move_a_reason():
    """`enter_when` overrides the table in both directions; what it does not name stays."""
    policy = make_policy(
        lanes={
            **LANES,
            "owner_review": {"enter_when": ["data_boundary_mismatch"]},
            "dead_letter": {"enter_when": ["quota_or_spend_exhausted"]},
        }
    )

    assert place(Reason.DATA_BOUNDARY_MISMATCH, policy) is Lane.OWNER_REVIEW
    assert place(Reason.QUOTA_OR_SPEND_EXHAUSTED, policy) is Lane.DEAD_LETTER
    assert place(Reason.OUTCOME_UNKNOWN, policy) is Lane.OWNER_REVIEW
    assert place(Reason.CALLER_FAULT, policy) is Lane.DEAD_LETTER


@pytest.mark.parametrize(
    ("requested", "priority"),
    [
        (None, Priority.NORMAL),
        (Priority.LOW, Priority.LOW),
        (Priority.NORMAL, Priority.NORMAL),
        (Priority.HIGH, Priority.NORMAL),
    ],
)
def test_a_request_may_only_lower_its_priority(requested, priority):
    """The policy's word is the most one gets."""
    assert effective(make_policy(priority="normal"), requested) is priority


def test_priority_is_a_finite_head_start():
    """High goes first among those ready at once; low waits longer, but not for ever."""
    policy = make_policy()
    ranks = {one: rank(policy, one, 1_000_000) for one in Priority}

    assert ranks[Priority.HIGH] < ranks[Priority.NORMAL] < ranks[Priority.LOW]
    later = 1_000_000 + HEAD_START_MS[Priority.HIGH] + 1
    assert rank(policy, Priority.LOW, 1_000_000) < rank(policy, Priority.HIGH, later)


def test_a_workflow_may_leave_priority_out_of_its_order():
    """Then only the release time and the birth count."""
    policy = make_policy(strategy={"backpressure": {"release_order": ["ready_at", "created_at"]}})

    assert rank(policy, Priority.HIGH, 7) == rank(policy, Priority.LOW, 7) == 7


@pytest.mark.parametrize(
    ("lane", "priority", "dropped"),
    [
        (Lane.INTERACTIVE_ADMISSION, Priority.LOW, True),
        (Lane.INTERACTIVE_ADMISSION, Priority.NORMAL, False),
        (Lane.INTERACTIVE_ADMISSION, Priority.HIGH, False),
        (Lane.BACKGROUND_RETRY, Priority.LOW, False),
    ],
)
def test_only_low_priority_is_dropped_to_keep_capacity_for_people(lane, priority, dropped):
    """`shed_priority_below: normal` (B067)."""
    lanes = {**LANES, "interactive_admission": {"shed_priority_below": "normal"}}

    assert sheds(make_policy(lanes=lanes), lane, priority) is dropped


@pytest.mark.parametrize("lanes", [LANES, {"background_retry": {}}])
def test_nothing_is_dropped_where_no_policy_says_so(lanes):
    """Shedding is opt-in."""
    assert not sheds(make_policy(lanes=lanes), Lane.INTERACTIVE_ADMISSION, Priority.LOW)
