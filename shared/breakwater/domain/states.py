"""Which closed sets of words describe a job?

Statuses are exactly six (`failed` means: this round failed, another is due). Everything finer is a `Lane`
(which promise applies) and a `Reason` (why the job is where it is).
"""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Where a job is. `FINAL` lists those that nothing late moves."""

    PENDING = "pending"  # accepted, not leased; admission, replay or approval puts it here
    PROCESSING = "processing"  # a worker holds the lease, or a provider runs its job
    SUCCEEDED = "succeeded"  # the result is stored
    FAILED = "failed"  # this round failed, another is due; the worker leases it again
    DEAD_LETTER = "dead_letter"  # a limit is reached or it can't recover; waits for a person
    CANCELLED = "cancelled"  # a user or an operator stopped it


FINAL = frozenset({Status.SUCCEEDED, Status.DEAD_LETTER, Status.CANCELLED})


class Lane(StrEnum):
    """Which promise applies to a job."""

    INTERACTIVE_ADMISSION = "interactive_admission"
    STREAM_RECOVERY = "stream_recovery"
    BACKGROUND_RETRY = "background_retry"
    OWNER_REVIEW = "owner_review"
    DEAD_LETTER = "dead_letter"


class Priority(StrEnum):
    """How early a job is released among those that are ready."""

    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


PRIORITY_RANK = {Priority.LOW: 0, Priority.NORMAL: 1, Priority.HIGH: 2}


class Reason(StrEnum):
    """Why a job is where it is."""

    # on its way
    ACCEPTED = "accepted"
    LEASED = "leased"
    AT_PROVIDER = "at_provider"
    COMPLETED = "completed"
    CANCEL_REQUESTED = "cancel_requested"
    REPLAYED = "replayed"
    APPROVED = "approved"
    BUDGET_FREED = "budget_freed"
    # waiting
    PROVIDER_WAIT_HINT = "provider_wait_hint"
    SHORT_BOUNDED_WAIT = "short_bounded_wait"
    BACKOFF = "backoff"
    FELL_BACK = "fell_back"
    ROUTE_CLOSED = "route_closed"
    RATE_LIMITED = "rate_limited"
    NO_CAPACITY = "no_capacity"
    PAUSED = "paused"
    OUTCOME_UNKNOWN_REPEAT_SAFE = "outcome_unknown_repeat_safe"
    # held for a person
    QUOTA_OR_SPEND_EXHAUSTED = "quota_or_spend_exhausted"
    APPROVAL_REQUIRED = "approval_required"
    DATA_BOUNDARY_UNKNOWN = "data_boundary_unknown"
    FALLBACK_CONTRACT_UNKNOWN = "fallback_contract_unknown"
    OUTCOME_UNKNOWN = "outcome_unknown"
    POLICY_MISSING = "policy_missing"
    BUDGET_EXHAUSTED = "budget_exhausted"
    # dead letters
    MAX_ATTEMPTS_EXHAUSTED = "max_attempts_exhausted"
    MAX_QUEUE_AGE_EXCEEDED = "max_queue_age_exceeded"
    RETRY_AFTER_EXCEEDS_DEADLINE = "retry_after_exceeds_deadline"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    PROVIDER_DEADLINE_EXCEEDED = "provider_deadline_exceeded"
    REVIEW_EXPIRED = "review_expired"
    PARTIAL_OUTPUT_COMMITTED = "partial_output_committed"
    CALLER_FAULT = "caller_fault"
    DATA_BOUNDARY_MISMATCH = "data_boundary_mismatch"
    FALLBACK_CONTRACT_MISMATCH = "fallback_contract_mismatch"
    NOT_IDEMPOTENT = "not_idempotent"
    ANSWER_TRUNCATED = "answer_truncated"
    CONTENT_REFUSED = "content_refused"
    SERVED_MODEL_MISMATCH = "served_model_mismatch"
    SHED_LOW_PRIORITY = "shed_low_priority"
    CRASHED_REPEATEDLY = "crashed_repeatedly"
    INPUT_MISSING = "input_missing"
    # cancelled
    CANCELLED_BY_USER = "cancelled_by_user"
    CANCELLED_BY_OPERATOR = "cancelled_by_operator"
    CANCELLED_AT_PROVIDER = "cancelled_at_provider"
    REJECTED_BY_OWNER = "rejected_by_owner"
    CLOSED_BY_OPERATOR = "closed_by_operator"


class EffectKind(StrEnum):
    """What a job can owe to the world outside its own item."""

    USAGE = "usage"  # a line in the usage ledger, per execution
    DEAD_LETTER = "dead_letter"  # a reference in the dead-letters queue, per generation
    RELEASE = "release"  # slots given back, per execution
    PROVIDER_CANCEL = "provider_cancel"  # the provider told to stop, per execution
    NOTIFY = "notify"  # the owner's callback, per generation
    BUS_EVENT = "bus_event"  # an event on the bus, per generation


class Visibility(StrEnum):
    """What the user may have seen when a signal arrived."""

    BEFORE_FIRST_TOKEN = "before_first_token"  # noqa: S105 - a token of text
    PARTIAL_OUTPUT = "partial_output"
    BACKGROUND_ONLY = "background_only"
