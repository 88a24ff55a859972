"""Where does a job rest that goes no further? One table, reason → place; a policy's `enter_when` lists override it.

`owner_review` where a person's decision can still let the same job go on, `dead_letter` where it can't be saved as is.
"""

from __future__ import annotations

from collections.abc import Mapping

from breakwater.domain.policy import Policy
from breakwater.domain.states import Lane, Reason

_REVIEW, _DEAD = Lane.OWNER_REVIEW, Lane.DEAD_LETTER

PLACES: Mapping[Reason, Lane] = {
    Reason.QUOTA_OR_SPEND_EXHAUSTED: _REVIEW,
    Reason.BUDGET_EXHAUSTED: _REVIEW,
    Reason.APPROVAL_REQUIRED: _REVIEW,
    Reason.DATA_BOUNDARY_UNKNOWN: _REVIEW,
    Reason.FALLBACK_CONTRACT_UNKNOWN: _REVIEW,
    Reason.OUTCOME_UNKNOWN: _REVIEW,
    Reason.POLICY_MISSING: _REVIEW,
    Reason.MAX_ATTEMPTS_EXHAUSTED: _DEAD,
    Reason.MAX_QUEUE_AGE_EXCEEDED: _DEAD,
    Reason.RETRY_AFTER_EXCEEDS_DEADLINE: _DEAD,
    Reason.DEADLINE_EXCEEDED: _DEAD,
    Reason.PROVIDER_DEADLINE_EXCEEDED: _DEAD,
    Reason.REVIEW_EXPIRED: _DEAD,
    Reason.PARTIAL_OUTPUT_COMMITTED: _DEAD,
    Reason.CALLER_FAULT: _DEAD,
    Reason.DATA_BOUNDARY_MISMATCH: _DEAD,
    Reason.FALLBACK_CONTRACT_MISMATCH: _DEAD,
    Reason.NOT_IDEMPOTENT: _DEAD,
    Reason.ANSWER_TRUNCATED: _DEAD,
    Reason.CONTENT_REFUSED: _DEAD,
    Reason.SERVED_MODEL_MISMATCH: _DEAD,
    Reason.SHED_LOW_PRIORITY: _DEAD,
    Reason.CRASHED_REPEATEDLY: _DEAD,
    Reason.INPUT_MISSING: _DEAD,
}


def place(reason: Reason, policy: Policy | None = None) -> Lane:
    """Where a job rests for this reason. Raises KeyError for a reason that stops nothing."""
    default = PLACES[reason]
    if policy is None:
        return default
    if reason.value in policy.lanes.owner_review.enter_when:
        return _REVIEW
    return _DEAD if reason.value in policy.lanes.dead_letter.enter_when else default
