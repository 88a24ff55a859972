"""What does a worker do with a nudge?

A pipeline over one job: look, gate, claim, call, conclude. Each stage may end it. Nothing before the claim costs an
attempt; nothing after the claim happens without an open execution in the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from breakwater.domain import events as ev
from breakwater.domain.errors import SecretUnavailable
from breakwater.domain.job import Execution, Job, execution_id
from breakwater.domain.machine import Step, advance, may
from breakwater.domain.obligations import Nudge, lane_queue
from breakwater.domain.policy import Policy
from breakwater.domain.results import Call, Outcome, Refused
from breakwater.domain.routes import Route
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import Reason, Status
from breakwater.domain.timing import CLOCK_SKEW, MINUTE, RESPONSE_RESERVE
from breakwater.ports import Guard
from breakwater.usecases.bodies import read_input
from breakwater.usecases.change import change
from breakwater.usecases.conclude import conclude
from breakwater.usecases.deps import Deps
from breakwater.usecases.gates import gate
from breakwater.usecases.lease import LeaseKeeper, lease_ms
from breakwater.usecases.retention import retained


class Verdict(StrEnum):
    """What became of a nudge."""

    GONE = "gone"  # no such job, or past its retention
    SETTLED = "settled"  # final already
    BUSY = "busy"  # someone holds it, or the provider runs it
    IN_REVIEW = "in_review"
    TOO_EARLY = "too_early"
    NOT_NOW = "not_now"  # a gate said wait, hold or stop
    LOST_RACE = "lost_race"
    WORKED = "worked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """Where the nudge came from, for the execution's record."""

    message_id: str | None = None
    receive_count: int | None = None
    lambda_request_id: str | None = None


def step(deps: Deps, job_id: str, remaining_ms: Callable[[], int], told: Told) -> Verdict:
    """Do the next thing for a job, if it is this worker's to do."""
    job = deps.store.get(job_id)
    now = deps.now()
    if job is None or not retained(job, now):
        return Verdict.GONE
    idle = _idle(deps, job, now)
    if idle is not None:
        return idle
    policy, route = deps.catalogue.policy(job.workflow), deps.catalogue.route(job.route_key)
    held_back = gate(deps, job, policy, route, now)
    if held_back is not None:
        change(deps, job, lambda standing: _unless_taken(standing, job, held_back, now))
        return Verdict.NOT_NOW
    assert policy is not None and route is not None  # noqa: S101 - the gate holds jobs without them
    claimed = _claim(deps, job, policy, route, remaining_ms, told)
    if claimed is None:
        return Verdict.LOST_RACE
    _work(deps, claimed, policy, route, remaining_ms)
    return Verdict.WORKED


def _idle(deps: Deps, job: Job, now: int) -> Verdict | None:
    """Why there is nothing for a worker to do, if so."""
    if job.final:
        return Verdict.SETTLED
    if job.in_review:
        return Verdict.IN_REVIEW
    if job.status is Status.PROCESSING:
        return Verdict.BUSY
    if job.ready_at > now:
        if job.ready_at - now <= CLOCK_SKEW:  # our clock is behind the one that set it
            deps.queues.nudge("job", job.job_id, [Nudge(lane_queue(job.lane), job.ready_at)], job.owner_key, now)
        return Verdict.TOO_EARLY
    return None


def _unless_taken(standing: Job, seen: Job, event: ev.Event, now: int) -> Step | None:
    """A gate's verdict holds only for the item it was made for."""
    same = standing.status is seen.status and standing.lease_epoch == seen.lease_epoch
    return advance(standing, event, now) if same and may(standing, type(event)) else None


def _claim(
    deps: Deps,
    job: Job,
    policy: Policy,
    route: Route,
    remaining_ms: Callable[[], int],
    told: Told,
) -> Job | None:
    """Open an execution under a new epoch, before any call. None: someone else was faster."""
    now = deps.now()
    attempt = job.attempt + 1
    execution = Execution(
        id=execution_id(job.job_id, job.created_at, job.generation, attempt),
        generation=job.generation,
        attempt=attempt,
        epoch=job.lease_epoch + 1,
        route_key=route.route_key,
        requested_model=route.model,
        opened_at=now,
        request_id=job.request_id,
        message_id=told.message_id,
        receive_count=told.receive_count,
        lambda_request_id=told.lambda_request_id,
        policy_hash=policy.hash,
        code_version=deps.code_version,
        waited_from=job.ready_at,
        possible_duplicate=job.possible_duplicate,
    )
    event = ev.Leased(execution=execution, locked_until=now + lease_ms(remaining_ms()))
    landed = change(deps, job, lambda standing: advance(standing, event, now) if standing.rev == job.rev else None)
    return landed.job if landed else None


def _work(deps: Deps, job: Job, policy: Policy, route: Route, remaining_ms: Callable[[], int]) -> None:
    """Call the provider once, under the lease, and conclude."""
    execution = job.execution
    assert execution is not None and job.locked_until is not None  # noqa: S101 - the claim put them there
    with LeaseKeeper(
        deps.store,
        deps.clock,
        job.job_id,
        job.lease_epoch,
        job.locked_until,
        remaining_ms,
    ):
        outcome = _call(deps, job, execution, policy, route, remaining_ms)
    if outcome is None:
        change(
            deps,
            job,
            lambda standing: (
                advance(
                    standing,
                    ev.DeadLettered(reason=Reason.INPUT_MISSING),
                    deps.now(),
                )
                if standing.lease_epoch == job.lease_epoch
                else None
            ),
        )
        return
    conclude(deps, job, execution, outcome, lambda standing: _holder(standing, job))


def _holder(standing: Job, claimed: Job) -> Guard:
    """While the lease is ours a write says so; later evidence is written as a stranger's."""
    return Guard(epoch=claimed.lease_epoch) if standing.lease_epoch == claimed.lease_epoch else Guard()


def _call(
    deps: Deps,
    job: Job,
    execution: Execution,
    policy: Policy,
    route: Route,
    remaining_ms: Callable[[], int],
) -> Outcome | None:
    payload = read_input(deps, job)
    if payload is None:
        return None
    assert deps.providers is not None  # noqa: S101 - workers are wired with providers
    try:
        provider = deps.providers.for_route(route.route_key)
    except SecretUnavailable:
        return Refused(
            signal=Signal(
                error_class=ErrorClass.NOT_SENT,
                route_key=route.route_key,
                retry_after_ms=MINUTE,
                rule="secret_unavailable",
            )
        )
    return provider.submit(
        Call(
            job_id=job.job_id,
            execution_id=execution.id,
            model=route.model,
            endpoint=route.endpoint,
            payload=payload,
            background=policy.mode == "background" and route.capabilities.background,
            timeout_ms=max(1_000, min(route.timeout_ms, remaining_ms() - RESPONSE_RESERVE)),
        )
    )
