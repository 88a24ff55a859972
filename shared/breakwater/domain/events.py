"""What can happen to a job? One frozen value per kind; the decision *is* the event.

Past tense, with everything the move needs. `machine.TRANSITIONS` says where each may happen.
"""

from __future__ import annotations

from collections.abc import Mapping

from breakwater.domain.job import Execution, SlotRef
from breakwater.domain.results import Usage
from breakwater.domain.signals import Signal
from breakwater.domain.states import Lane, Reason
from breakwater.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """A worker claimed it; an attempt is spent, an execution is open, nothing has been sent yet."""

    execution: Execution
    locked_until: int
    slots: tuple[SlotRef, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """It can't run now and loses no attempt. `scope` names the capacity that refused, if one did.

    Whoever waits under a scope is woken when it has room; `recheck_at` is the slow safety net.
    """

    at: int
    reason: Reason
    scope: str | None = None
    rank: int | None = None
    recheck_at: int | None = None
    lane: Lane | None = None  # nobody waits for it any more: it goes on in the background
    max_attempts: int | None = None  # what the generation may use in its new lane


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldForReview:
    """A person must decide; `reason` names the missing decision.

    `recheck_at`: when to look whether it may go on without one.
    """

    reason: Reason
    review_expires_at: int
    recheck_at: int | None = None
    signal: Signal | None = None
    usage: Usage | None = None
    cost_micros: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """A limit of time is passed: queue age, deadline, provider deadline, review."""

    reason: Reason
    usage: Usage | None = None
    cost_micros: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shed:
    """Dropped to keep capacity for more urgent work."""

    reason: Reason = Reason.SHED_LOW_PRIORITY


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """It stops now. `by` is an owner key or an operator's name."""

    by: str
    reason: Reason = Reason.CANCELLED_BY_USER
    execution_id: str | None = None  # what it cost nevertheless
    usage: Usage | None = None
    cost_micros: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequested:
    """A live worker holds it; the worker settles the cancel at its next write."""

    by: str
    reason: Reason = Reason.CANCELLED_BY_USER


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAccepted:
    """The provider runs it in the background; the worker goes home."""

    provider_job_id: str
    poll_at: int
    provider_deadline_at: int
    provider_request_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOpened:
    """The provider named the job that the holder streams: whoever comes after can find it."""

    provider_job_id: str
    provider_deadline_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputCommitted:
    """The first segment becomes visible, and with it the boundary: nothing may be sent again from here on."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamHandedOver:
    """The holder stops in mid-stream (its time is over, or it died); the provider goes on, and so may the next.

    `resume_at` None: too many tried already, only polls are left.
    """

    poll_at: int
    resume_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamResumed:
    """The next holder goes on with the same attempt, under a new epoch."""

    execution: Execution
    locked_until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PollAgain:
    """The provider still works, or has to be asked; nobody holds a lease meanwhile."""

    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeeded:
    """A result child exists and belongs to one of this job's own executions."""

    execution_id: str
    result_ref: str
    usage: Usage | None  # None: counted before
    cost_micros: int | None
    served_model: str | None
    finish_reason: str
    provider_request_id: str | None = None
    provider_job_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryScheduled:
    """This round failed; another is due at `at`. `possible_duplicate`: the last call may have been executed."""

    at: int
    reason: Reason
    signal: Signal | None = None
    possible_duplicate: bool = False
    lane: Lane | None = None
    max_attempts: int | None = None  # what the generation may use in its new lane
    usage: Usage | None = None
    cost_micros: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FellBack:
    """The next attempt goes to another approved route, whose contract holds clause by clause."""

    route_key: str
    requested_model: str
    fallback: str  # the approved fallback's name
    contract_version: str
    reason: Reason
    clauses: Mapping[str, bool | None]
    signal: Signal | None = None
    at: int = 0
    possible_duplicate: bool = False
    usage: Usage | None = None
    cost_micros: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLettered:
    """It can't be saved without a person."""

    reason: Reason
    signal: Signal | None = None
    execution_id: str | None = None  # whose cost it is, where it is not the open one's
    result_ref: str | None = None  # a partial that was paid for
    usage: Usage | None = None
    cost_micros: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """An operator starts a new generation; age, expiry and attempts start anew."""

    by: str
    at: int
    max_attempts: int
    expires_at: int
    lane: Lane
    route_key: str | None = None
    requested_model: str | None = None
    fallback: str | None = None  # the approved fallback whose route it is
    contract_version: str | None = None
    request_id: str | None = None  # the operator's request; asking twice is harmless


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """An operator puts a dead letter to rest."""

    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """A person lets it go on, maybe on another route."""

    by: str
    at: int
    lane: Lane
    expires_at: int
    route_key: str | None = None
    requested_model: str | None = None
    fallback: str | None = None  # the approved fallback whose route it is
    contract_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetFreed:
    """The owner's budget covers its estimate again, so nobody has to decide."""

    at: int
    lane: Lane
    max_attempts: int
    expires_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A person stops it."""

    by: str


Event = (
    Leased
    | Waiting
    | HeldForReview
    | Expired
    | Shed
    | Cancelled
    | CancelRequested
    | ProviderAccepted
    | StreamOpened
    | OutputCommitted
    | StreamHandedOver
    | StreamResumed
    | PollAgain
    | Succeeded
    | RetryScheduled
    | FellBack
    | DeadLettered
    | Replayed
    | Closed
    | Approved
    | BudgetFreed
    | Rejected
)
"""Everything that can happen to a job."""
