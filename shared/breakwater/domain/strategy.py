"""What may a workflow's queueing strategy say? The keys and values of `ai_api_queueing_strategy`, all closed.

The names are the customer's and stay as they are. A list of reasons (`enter_when`, `fail_closed_when`) is an override
of the reason → place table: what a list does not name keeps its default place.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from breakwater.domain.model import Flag, Model, Ms, Positive, Rule
from breakwater.domain.states import Priority
from breakwater.domain.values import dataclass

SIGNAL_FIELDS: Final = (
    "http_status",
    "provider_error_type",
    "retry_after_ms",
    "limit_dimension",
    "route_key",
    "visibility_state",
)
SignalField = Literal[
    "http_status", "provider_error_type", "retry_after_ms", "limit_dimension", "route_key", "visibility_state"
]
Scope = Literal[
    "owner_key",
    "user_ref",
    "workflow",
    "route_key",
    "gateway",
    "provider",
    "requested_model",
    "endpoint_type",
    "credential",
]
ReleaseKey = Literal["ready_at", "priority", "created_at"]
ReviewReason = Literal[
    "quota_or_spend_exhausted",
    "budget_exhausted",
    "approval_required",
    "data_boundary_unknown",
    "data_boundary_mismatch",
    "fallback_contract_unknown",
    "fallback_contract_mismatch",
    "outcome_unknown",
]
DeadReason = Literal[
    "max_attempts_exhausted",
    "max_queue_age_exceeded",
    "partial_output_committed",
    "retry_after_exceeds_deadline",
    "deadline_exceeded",
    "quota_or_spend_exhausted",
    "budget_exhausted",
    "approval_required",
    "data_boundary_unknown",
    "data_boundary_mismatch",
    "fallback_contract_unknown",
    "fallback_contract_mismatch",
    "outcome_unknown",
]
FailClosedReason = Literal[
    "retry_after_exceeds_deadline",
    "deadline_exceeded",
    "partial_output_committed",
    "quota_or_spend_exhausted",
    "max_attempts_exhausted",
    "data_boundary_mismatch",
    "fallback_contract_mismatch",
    "fallback_contract_unknown",
    "outcome_unknown",
]


MAX_DEPTH: Final = 10_000  # counting up to here is a few reads; beyond it, the age limit says the same for less
Depth = Annotated[int, Rule(strict=True, ge=1, le=MAX_DEPTH)]


def _depths_fit(lane: int | None, owner: int | None) -> None:
    if lane is not None and owner is not None and owner > lane:
        raise ValueError(f"max_queue_depth_per_owner ({owner}) is above max_queue_depth ({lane}), so it limits nobody")


def no_repeats(values: tuple[str, ...]) -> tuple[str, ...]:
    """The same tuple; raises ValueError where a value stands twice."""
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise ValueError(f"names {', '.join(twice)} twice")
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff(Model):
    """Full jitter: a random wait between `min_ms` and a window that doubles from `base_ms` up to `cap_ms`."""

    base_ms: Positive = 1_000
    cap_ms: Positive = 60_000
    min_ms: Ms = 250

    def __post_init__(self) -> None:
        if not self.min_ms <= self.base_ms <= self.cap_ms:
            raise ValueError(f"min_ms <= base_ms <= cap_ms, got {self.min_ms}, {self.base_ms}, {self.cap_ms}")


INTERACTIVE_BACKOFF = Backoff(base_ms=500, cap_ms=30_000, min_ms=250)


@dataclass(frozen=True, slots=True, kw_only=True)
class Classify(Model):
    """Which fields a provider answer becomes; every signal carries all six."""

    fields: tuple[SignalField, ...] = SIGNAL_FIELDS

    def __post_init__(self) -> None:
        no_repeats(self.fields)
        missing = [name for name in SIGNAL_FIELDS if name not in self.fields]
        if missing:
            raise ValueError(f"leaves out {', '.join(missing)}; every signal carries all six fields")


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractiveLane(Model):
    """A person waits: a short queue, few attempts, a clear end."""

    parts: ClassVar = {"shed_priority_below": Priority, "backoff": Backoff.of}

    max_wait_ms: Ms = 4_000
    max_attempts: Positive = 2
    shed_priority_below: Priority | None = None
    max_queue_depth: Depth | None = None
    max_queue_depth_per_owner: Depth | None = None
    backoff: Backoff = INTERACTIVE_BACKOFF

    def __post_init__(self) -> None:
        _depths_fit(self.max_queue_depth, self.max_queue_depth_per_owner)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLane(Model):
    """A stream that broke before its first token."""

    parts: ClassVar = {"backoff": Backoff.of}

    max_wait_ms: Ms = 4_000
    max_attempts: Positive = 2
    backoff: Backoff = INTERACTIVE_BACKOFF


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundLane(Model):
    """Nobody waits: bounded by age and attempts."""

    parts: ClassVar = {"backoff": Backoff.of}

    max_queue_age_ms: Positive = 900_000
    max_attempts: Positive = 5
    require_idempotency_key: Flag = True
    max_queue_depth: Depth | None = None
    max_queue_depth_per_owner: Depth | None = None
    backoff: Backoff = Backoff()

    def __post_init__(self) -> None:
        _depths_fit(self.max_queue_depth, self.max_queue_depth_per_owner)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerReviewLane(Model):
    """A person must decide. `approvers` says who, for people to read."""

    enter_when: tuple[ReviewReason, ...] = (
        "quota_or_spend_exhausted",
        "fallback_contract_unknown",
        "data_boundary_mismatch",
    )
    approvers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterLane(Model):
    """It can't be saved without a person."""

    enter_when: tuple[DeadReason, ...] = (
        "max_attempts_exhausted",
        "max_queue_age_exceeded",
        "partial_output_committed",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes(Model):
    """The promises of a workflow. A lane that is not named is not promised; one that does work is needed."""

    parts: ClassVar = {
        "interactive_admission": InteractiveLane.of,
        "stream_recovery": StreamLane.of,
        "background_retry": BackgroundLane.of,
        "owner_review": OwnerReviewLane.of,
        "dead_letter": DeadLetterLane.of,
    }

    interactive_admission: InteractiveLane | None = None
    stream_recovery: StreamLane | None = None
    background_retry: BackgroundLane | None = None
    owner_review: OwnerReviewLane = OwnerReviewLane()
    dead_letter: DeadLetterLane = DeadLetterLane()

    def __post_init__(self) -> None:
        if self.interactive_admission is None and self.background_retry is None:
            raise ValueError("needs interactive_admission or background_retry")
        both = set(self.owner_review.enter_when) & set(self.dead_letter.enter_when)
        if both:
            raise ValueError(f"{', '.join(sorted(both))} can't enter owner_review and dead_letter both")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backpressure(Model):
    """What shares one concurrency limit, and who is released first."""

    concurrency_key: tuple[Scope, ...] = ("owner_key", "provider", "requested_model", "endpoint_type")
    release_order: tuple[ReleaseKey, ...] = ("ready_at", "priority", "created_at")

    def __post_init__(self) -> None:
        no_repeats(self.concurrency_key)
        no_repeats(self.release_order)
        if self.release_order[:1] != ("ready_at",):
            raise ValueError("release_order must begin with ready_at: nothing is released before its time")


@dataclass(frozen=True, slots=True, kw_only=True)
class FallbackRules(Model):
    """Which clauses of the contract must hold. `allowed_before_first_token: false` means: never falls back."""

    allowed_before_first_token: Flag = True
    require_equivalent_tools: Flag = True
    require_schema_match: Flag = True
    require_cost_cap: Flag = True
    require_data_boundary_match: Flag = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy(Model):
    """The customer's `ai_api_queueing_strategy`."""

    parts: ClassVar = {
        "lanes": Lanes.of,
        "classify": Classify.of,
        "backpressure": Backpressure.of,
        "fallback": FallbackRules.of,
    }

    lanes: Lanes
    classify: Classify = Classify()
    backpressure: Backpressure = Backpressure()
    fallback: FallbackRules = FallbackRules()
    fail_closed_when: tuple[FailClosedReason, ...] = (
        "retry_after_exceeds_deadline",
        "partial_output_committed",
        "quota_or_spend_exhausted",
        "fallback_contract_mismatch",
    )
