"""What did a workflow's owner decide in advance? One reviewed file per workflow, read as one frozen value.

`ai_api_queueing_strategy` is the customer's part (`strategy.py`); the other keys are ours and all have defaults.
Times are ms, money is micro-dollars.
"""

from __future__ import annotations

import hashlib
import json
from datetime import date
from enum import StrEnum
from functools import cached_property
from typing import Annotated, ClassVar, Literal

from breakwater.domain.model import Count, Flag, Model, Ms, Positive, Rule, Words
from breakwater.domain.states import Lane, Priority
from breakwater.domain.strategy import (
    BackgroundLane,
    Backoff,
    FailClosedReason,
    InteractiveLane,
    Lanes,
    Strategy,
    StreamLane,
)
from breakwater.domain.timing import DAY, GATEWAY_TIMEOUT, HOUR, RESPONSE_RESERVE, SECOND
from breakwater.domain.values import dataclass

DEFAULT_ROUTE = "default"  # stands for the catalogue's `default_route`
NAME = r"^[a-z][a-z0-9_]{0,62}$"
MAX_DEADLINE = GATEWAY_TIMEOUT - RESPONSE_RESERVE

Name = Annotated[str, Rule(pattern=NAME)]
RouteKey = Annotated[str, Rule(pattern=r"^[a-z0-9][a-z0-9._-]{0,98}$")]


class QualityTier(StrEnum):
    """How good a route is held to be; `QUALITY_RANK` orders them."""

    ECONOMY = "economy"
    STANDARD = "standard"
    PREMIUM = "premium"


QUALITY_RANK = {QualityTier.ECONOMY: 0, QualityTier.STANDARD: 1, QualityTier.PREMIUM: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback(Model):
    """An approved other route: referred to by name, with who approved it and when."""

    parts: ClassVar = {"approved_on": date.fromisoformat}

    name: Name
    route: RouteKey
    approved_by: Words
    approved_on: date
    contract_version: Words
    max_attempts: Positive = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DataBoundary(Model):
    """Where the data may go. A list that is not given restricts nothing, but a fallback must then match its origin."""

    providers: tuple[str, ...] = ()
    vendors: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    procurement: tuple[str, ...] = ()
    boundaries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputContract(Model):
    """What an answer needs, whoever gives it. Token numbers size the context window and the cost ceiling."""

    json_schema: Flag = False
    tools: Flag = False
    streaming: Flag = False
    media: Literal["image", "video"] | None = None
    safety: tuple[str, ...] = ()
    context_window: Positive | None = None
    max_input_tokens: Positive = 8_000
    max_output_tokens: Positive = 2_000
    images: Count = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(Model):
    """How much of this workflow may be in flight at once; a scope without a number is not limited.

    `concurrency` counts per value of `backpressure.concurrency_key`.
    """

    concurrency: Positive | None = None
    per_workflow: Positive | None = None
    per_owner: Positive | None = None
    per_user: Positive | None = None


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """How many jobs may stand in a lane, in all and of one owner; None: nobody counts."""

    lane: int | None = None
    owner: int | None = None


@dataclass(frozen=True, slots=True)
class LaneBudget:
    """What one lane allows. `max_attempts` counts on the workflow's own route; fallbacks have their own."""

    max_attempts: int
    max_wait_ms: int
    max_queue_age_ms: int
    backoff: Backoff


@dataclass(frozen=True, kw_only=True)  # without slots: it remembers its hash
class Policy(Model):
    """Everything one workflow's file says."""

    parts: ClassVar = {
        "ai_api_queueing_strategy": Strategy.of,
        "fallbacks": Fallback.of,
        "priority": Priority,
        "data_boundary": DataBoundary.of,
        "quality_tier": QualityTier,
        "output_contract": OutputContract.of,
        "limits": Limits.of,
    }

    workflow: Name
    ai_api_queueing_strategy: Strategy
    route: RouteKey = DEFAULT_ROUTE
    fallbacks: tuple[Fallback, ...] = ()
    mode: Literal["sync", "background"] = "sync"
    priority: Priority = Priority.NORMAL
    side_effects: Literal["none", "paid", "external"] = "none"
    deadline_ms: Annotated[int, Rule(strict=True, ge=1_000, le=MAX_DEADLINE)] = 25 * SECOND
    min_call_ms: Ms = 2 * SECOND  # less than this is not worth a call
    retry_now_max_ms: Annotated[int, Rule(strict=True, ge=0, le=5_000)] = 2 * SECOND
    webhook_grace_ms: Ms = 60 * SECOND
    provider_deadline_ms: Positive = HOUR
    expected_duration_ms: Positive = 30 * SECOND
    review_max_age_ms: Positive = 7 * DAY
    dedupe_window_ms: Positive = DAY
    retention_days: Annotated[int, Rule(strict=True, ge=1, le=395)] = 30  # the bucket keeps large bodies for 400
    accept_truncated: Flag = False
    serve_latest: Flag = False
    require_same_served_model: Flag = False
    manual_retries: Count = 1
    requires_approval: Flag = False  # a person agrees before the first call
    fallback_needs_approval: Flag = False  # a person agrees before each change of route
    data_boundary: DataBoundary = DataBoundary()
    quality_tier: QualityTier | None = None  # the least that will do
    cost_cap_micros: Positive | None = None  # per attempt
    output_contract: OutputContract = OutputContract()
    limits: Limits = Limits()
    schedule_pause: Flag = False  # skip this workflow's scheduled runs while its route is closed
    description: str = ""

    def __post_init__(self) -> None:
        names = [fallback.name for fallback in self.fallbacks]
        routes = [self.route, *(fallback.route for fallback in self.fallbacks)]
        if len(set(names)) < len(names) or len(set(routes)) < len(routes):
            raise ValueError("fallbacks need names and routes of their own, each other than the workflow's route")
        if self.fallbacks and self.require_same_served_model:
            raise ValueError("require_same_served_model allows no fallbacks: results must stay comparable")
        if self.min_call_ms + RESPONSE_RESERVE > self.deadline_ms:
            raise ValueError(f"min_call_ms + {RESPONSE_RESERVE} (reserve) must fit into deadline_ms")

    @property
    def lanes(self) -> Lanes:
        """The lanes of the strategy."""
        return self.ai_api_queueing_strategy.lanes

    @property
    def fail_closed_when(self) -> tuple[FailClosedReason, ...]:
        """The reasons after which no further call is made, neither a retry nor a fallback."""
        return self.ai_api_queueing_strategy.fail_closed_when

    @property
    def safe_to_repeat(self) -> bool:
        """Whether a second call does no harm beyond its price."""
        return self.side_effects == "none"

    @property
    def may_fall_back(self) -> bool:
        """Whether any approved fallback may be used at all."""
        return bool(self.fallbacks) and self.ai_api_queueing_strategy.fallback.allowed_before_first_token

    @cached_property
    def hash(self) -> str:
        """Names this exact policy: 16 hex digits over its canonical JSON."""
        text = json.dumps(self.plain(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def has_lane(self, lane: Lane) -> bool:
        """Whether the workflow promises this lane. A lane for streams comes with the interactive one."""
        if lane is Lane.STREAM_RECOVERY:
            return self.lanes.stream_recovery is not None or self.lanes.interactive_admission is not None
        return getattr(self.lanes, lane.value) is not None

    def lane(self, lane: Lane) -> LaneBudget:
        """The budget of a lane. Total: a lane that is not promised (any more) gets the default numbers."""
        if lane is Lane.INTERACTIVE_ADMISSION:
            return self._waiting(self.lanes.interactive_admission or InteractiveLane())
        if lane is Lane.STREAM_RECOVERY:
            return self._waiting(self._stream_lane())
        found = self.lanes.background_retry or BackgroundLane()
        return LaneBudget(found.max_attempts, found.max_queue_age_ms, found.max_queue_age_ms, found.backoff)

    def depth(self, lane: Lane) -> QueueDepth:
        """How much may stand in a lane before new work is turned away."""
        lanes = {
            Lane.INTERACTIVE_ADMISSION: self.lanes.interactive_admission,
            Lane.BACKGROUND_RETRY: self.lanes.background_retry,
        }
        found = lanes.get(lane)
        return QueueDepth(found.max_queue_depth, found.max_queue_depth_per_owner) if found else QueueDepth()

    def start_lane(self, *, interactive: bool) -> Lane:
        """Where a job starts: the lane asked for, or the one the workflow has."""
        wanted, other = Lane.INTERACTIVE_ADMISSION, Lane.BACKGROUND_RETRY
        if not interactive:
            wanted, other = other, wanted
        return wanted if self.has_lane(wanted) else other

    def total_attempts(self, lane: Lane) -> int:
        """The most calls one generation may make: the lane's on its own route, and each fallback's."""
        return self.lane(lane).max_attempts + sum(fallback.max_attempts for fallback in self.fallbacks)

    def approved_fallback(self, name: str | None) -> Fallback | None:
        """The approved fallback of this name."""
        return next((fallback for fallback in self.fallbacks if fallback.name == name), None)

    def _waiting(self, lane: InteractiveLane | StreamLane) -> LaneBudget:
        background = self.lanes.background_retry
        age = background.max_queue_age_ms if background else self.deadline_ms
        return LaneBudget(lane.max_attempts, lane.max_wait_ms, age, lane.backoff)

    def _stream_lane(self) -> StreamLane:
        if self.lanes.stream_recovery:
            return self.lanes.stream_recovery
        start = self.lanes.interactive_admission or InteractiveLane()
        return StreamLane(max_wait_ms=start.max_wait_ms, max_attempts=start.max_attempts, backoff=start.backoff)
