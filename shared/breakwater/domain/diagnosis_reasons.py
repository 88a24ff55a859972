"""Which layer does a reason speak of, and in which words? Tables only; a test holds them against the reasons."""

from __future__ import annotations

from collections.abc import Mapping

from breakwater.domain.diagnosis import Layer
from breakwater.domain.states import Reason

Told = Mapping[Reason, tuple[Layer, str]]

DEAD_IN: Told = {
    Reason.MAX_ATTEMPTS_EXHAUSTED: (Layer.PROVIDER, "Every attempt failed at the provider."),
    Reason.MAX_QUEUE_AGE_EXCEEDED: (Layer.QUEUE, "It grew older than its workflow allows before it could run."),
    Reason.RETRY_AFTER_EXCEEDS_DEADLINE: (
        Layer.PROVIDER,
        "The provider asked for a longer wait than the deadline allows.",
    ),
    Reason.DEADLINE_EXCEEDED: (Layer.CLIENT, "The caller's own deadline passed first."),
    Reason.PROVIDER_DEADLINE_EXCEEDED: (Layer.PROVIDER, "The provider took the job and did not finish it in time."),
    Reason.REVIEW_EXPIRED: (Layer.ADMISSION, "It was held for a decision that nobody made in time."),
    Reason.PARTIAL_OUTPUT_COMMITTED: (Layer.PROVIDER, "The answer broke off after part of it was seen."),
    Reason.CALLER_FAULT: (Layer.CLIENT, "The provider refused the request itself: repeating it can't help."),
    Reason.DATA_BOUNDARY_MISMATCH: (Layer.ROUTE, "No allowed route keeps the workflow's data boundary."),
    Reason.FALLBACK_CONTRACT_MISMATCH: (Layer.ROUTE, "No other route keeps the workflow's contract."),
    Reason.NOT_IDEMPOTENT: (Layer.PROVIDER, "It may have had its effect, and can't be repeated safely."),
    Reason.ANSWER_TRUNCATED: (Layer.PROVIDER, "The answer stopped at its token limit."),
    Reason.CONTENT_REFUSED: (Layer.CLIENT, "The provider's content filter or model refused it."),
    Reason.SERVED_MODEL_MISMATCH: (Layer.PROVIDER, "Another model answered than the one asked for."),
    Reason.SHED_LOW_PRIORITY: (Layer.ROUTE, "It was dropped so that more urgent work could run."),
    Reason.CRASHED_REPEATEDLY: (Layer.WORKER, "Its handlers crashed three times."),
    Reason.INPUT_MISSING: (Layer.ADMISSION, "Its input is gone."),
    Reason.APPROVAL_REQUIRED: (Layer.ADMISSION, "Its policy ends it where approval is missing."),
    Reason.POLICY_MISSING: (Layer.ADMISSION, "Its workflow or route is not deployed."),
    Reason.QUOTA_OR_SPEND_EXHAUSTED: (Layer.ROUTE, "The account's quota or credit is used up."),
    Reason.BUDGET_EXHAUSTED: (Layer.ROUTE, "The owner's budget is used up."),
    Reason.DATA_BOUNDARY_UNKNOWN: (Layer.ROUTE, "Nobody has checked whether the route keeps the data boundary."),
    Reason.FALLBACK_CONTRACT_UNKNOWN: (Layer.ROUTE, "Nobody has checked whether another route keeps the contract."),
    Reason.OUTCOME_UNKNOWN: (Layer.PROVIDER, "The provider may or may not have done the work."),
}

HELD_IN: Told = {
    **{reason: (layer, f"{says} It is held for a person's decision.") for reason, (layer, says) in DEAD_IN.items()},
    Reason.APPROVAL_REQUIRED: (Layer.ADMISSION, "The workflow needs a person's approval before the first call."),
    Reason.BUDGET_EXHAUSTED: (
        Layer.ROUTE,
        "The owner's budget is used up. It is held for a person's decision, or until the budget covers it again.",
    ),
}

WAITS_IN: Told = {
    Reason.ACCEPTED: (Layer.QUEUE, "It is released later."),
    Reason.REPLAYED: (Layer.QUEUE, "It was replayed and is released later."),
    Reason.APPROVED: (Layer.QUEUE, "It was approved and is released later."),
    Reason.BUDGET_FREED: (Layer.QUEUE, "Its owner's budget covers it again; it is released later."),
    Reason.PROVIDER_WAIT_HINT: (Layer.PROVIDER, "The provider asked us to wait; its time is kept exactly."),
    Reason.SHORT_BOUNDED_WAIT: (Layer.PROVIDER, "A short wait after a failure at the provider."),
    Reason.BACKOFF: (Layer.PROVIDER, "The last call failed at the provider; it backs off before the next."),
    Reason.OUTCOME_UNKNOWN_REPEAT_SAFE: (
        Layer.PROVIDER,
        "The last answer was lost; it waits for a late webhook before it calls again.",
    ),
    Reason.FELL_BACK: (Layer.ROUTE, "It changed to an approved other route."),
    Reason.ROUTE_CLOSED: (Layer.ROUTE, "Its route is closed."),
    Reason.RATE_LIMITED: (Layer.ROUTE, "The route's rate is used up for the moment."),
    Reason.NO_CAPACITY: (Layer.ROUTE, "No slot is free."),
    Reason.PAUSED: (Layer.ROUTE, "An operator paused this kind of work."),
}

STOPPED_SAYS: Mapping[Reason, str] = {
    Reason.CANCELLED_BY_USER: "Cancelled",
    Reason.CANCELLED_BY_OPERATOR: "Cancelled by an operator,",
    Reason.CANCELLED_AT_PROVIDER: "Cancelled at the provider",
    Reason.REJECTED_BY_OWNER: "Rejected",
}
