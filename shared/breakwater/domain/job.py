"""What is known about one job?

A `Job` is the frozen value behind the META item. Only `machine.py` moves it. Times are ms since the epoch, money is
micro-dollars. Everything immutable (input, results, closed executions) lives in children whose keys this value names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from breakwater.domain.states import FINAL, Lane, Priority, Reason, Status
from breakwater.domain.values import changed, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One attempt: one call to a provider. Open in META while it runs, archived as a child when closed."""

    id: str  # names job, incarnation, generation, attempt; sent to the provider
    generation: int
    attempt: int
    epoch: int
    route_key: str
    requested_model: str
    opened_at: int
    request_id: str | None = None  # the client's own request that admitted the job
    message_id: str | None = None  # the queue delivery that started it
    receive_count: int | None = None
    lambda_request_id: str | None = None
    policy_hash: str = ""
    code_version: str = ""
    waited_from: int | None = None  # release time in force when it was leased: shows whether a hint was obeyed
    provider_job_id: str | None = None
    provider_request_id: str | None = None
    # set when it closes
    closed_at: int | None = None
    outcome: str | None = None  # completed, refused, unknown, cancelled, lost
    error_class: str | None = None
    error_type: str | None = None
    error_code: str | None = None
    http_status: int | None = None
    rule: str | None = None
    retry_after_ms: int | None = None
    served_model: str | None = None
    usage: Mapping[str, int] | None = None
    cost_micros: int | None = None
    possible_duplicate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """An effect not yet delivered: when it is tried next and how often it was tried."""

    next_at: int
    tries: int = 0
    ref: str | None = None  # what it is about: an execution id, a provider job id


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRef:
    """A capacity slot in use: its scope and number."""

    scope: str
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One business intent. See the module's docstring."""

    # identity, frozen at admission
    job_id: str
    owner_key: str
    workflow: str
    idempotency_key: str
    fingerprint: str
    created_at: int  # birth of this incarnation, also its name
    user_ref: str | None = None
    input_ref: str = ""  # sort key of the INPUT child, or s3://…
    request_id: str | None = None
    priority: Priority = Priority.NORMAL
    side_effects: str = "none"  # frozen side-effect class: none, paid, external
    callback_url: str | None = None
    stream: bool = False
    key_given: bool = True  # False: the key was derived from the input
    counted: bool = False  # some workflow limits how much may stand in a lane

    # where it is
    status: Status = Status.PENDING
    lane: Lane = Lane.BACKGROUND_RETRY
    reason: Reason = Reason.ACCEPTED
    generation: int = 1
    attempt: int = 0
    max_attempts: int = 1
    waits: int = 0  # waiting is free, and counted apart
    polls: int = 0
    fallbacks: int = 0
    attempts_before_route: int = 0  # spent when the present route was chosen: a fallback has its own small budget
    manual_retries: int = 0
    round_started_at: int = 0  # the generation's birth: queue age counts from here
    ready_at: int = 0
    expires_at: int | None = None
    deadline_at: int | None = None  # the client's own deadline, interactive work only
    review_expires_at: int | None = None
    updated_at: int = 0

    # route
    route_key: str = ""
    requested_model: str = ""
    served_model: str | None = None
    fallback_allowed: str | None = None  # name of the approved fallback, never a boolean
    fallback_reason: str | None = None
    contract_version: str | None = None

    # lease
    lease_epoch: int = 0
    locked_until: int | None = None
    execution: Execution | None = None
    slots: tuple[SlotRef, ...] = ()
    slots_since: int | None = None  # the epoch they were taken under, where a stream went on under a later one

    # at the provider
    provider_job_id: str | None = None
    poll_at: int | None = None
    provider_deadline_at: int | None = None
    resume_at: int | None = None  # a worker should go on with the provider's stream

    # outcome
    result_ref: str | None = None
    finish_reason: str | None = None
    completed_at: int | None = None
    last_error_type: str | None = None
    last_error_code: str | None = None
    last_error_class: str | None = None
    http_status: int | None = None
    limit_dimension: str | None = None
    retry_after_ms: int | None = None
    estimated_cost: int | None = None
    estimated_tokens: int | None = None  # what a rate per minute is charged before the answer is known
    cost_micros: int = 0  # spent by all executions of all generations
    usage_units: int = 0
    possible_duplicate: bool = False
    partial_output_committed: bool = False
    stream_epoch: int | None = None  # whose log of segments is visible; seals in it name what follows
    cancel_requested_at: int | None = None
    cancelled_by: str | None = None
    approved_by: str | None = None
    closed_at: int | None = None
    closed_by: str | None = None
    replay_id: str | None = None  # the operator's request that began this generation

    # what is owed, and who looks when
    owed: Mapping[str, Owed] = field(default_factory=dict)
    notify_reason: str | None = None  # why the owner's callback was not reached: at the last try, or for good
    due_at: int | None = None
    nudged_at: int | None = None  # when the last nudge was sent
    nudged_for: int | None = None  # when it becomes visible; covers every obligation up to then
    nudges: int = 0  # since the last transition; doubles the grace
    nudges_total: int = 0
    sweeps: int = 0  # how often the sweep found it due since the last write of anybody else
    crashes: int = 0  # nudges that crashed their handler, since the last transition
    waiting_scope: str | None = None  # the one capacity scope that refused
    waiting_rank: int | None = None
    recheck_at: int | None = None  # a waiter for capacity is woken; this is only its slow safety net
    woken_for: str | None = None  # the scope whose free capacity it was woken for

    # fencing
    rev: int = 0
    write_id: str = ""
    ttl: int | None = None  # seconds since the epoch; cleaning only

    @property
    def final(self) -> bool:
        """Nothing late moves it."""
        return self.status in FINAL

    @property
    def in_review(self) -> bool:
        """It waits for a person's decision."""
        return self.status is Status.PENDING and self.lane is Lane.OWNER_REVIEW

    @property
    def slots_epoch(self) -> int:
        """The lease epoch that its slots were taken under."""
        if self.slots_since is not None:
            return self.slots_since
        return self.execution.epoch if self.execution is not None else self.lease_epoch

    def lease_live(self, now: int) -> bool:
        """A worker may still be at it."""
        return self.locked_until is not None and self.locked_until > now

    def with_(self, **changes: Any) -> Job:
        """A copy with these fields changed."""
        return changed(self, changes)


def execution_id(job_id: str, incarnation: int, generation: int, attempt: int) -> str:
    """The name of one attempt; unique because a claim raises `attempt` under the revision it read."""
    return f"{job_id}.{incarnation}.{generation}.{attempt}"


def execution_suffix(execution: str) -> str:
    """`incarnation#generation#attempt` of an execution id, zero-padded so that keys sort in order."""
    _, incarnation, generation, attempt = execution.split(".")
    return f"{int(incarnation):013d}#{int(generation):04d}#{int(attempt):04d}"
