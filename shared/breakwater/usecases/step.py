"""What does a worker do with a nudge?

A pipeline over one job: look, gate, claim, call, conclude. Each stage may end it. Nothing before the claim costs an
attempt; nothing after the claim happens without an open execution in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import Any

from breakwater.domain import events as ev
from breakwater.domain.errors import SecretUnavailable, Unavailable
from breakwater.domain.job import Execution, Job, execution_id
from breakwater.domain.machine import Step, advance, may
from breakwater.domain.obligations import Nudge, lane_queue
from breakwater.domain.policy import Policy
from breakwater.domain.rate import correction
from breakwater.domain.records import INPUTS, Child
from breakwater.domain.results import Accepted, Call, Completed, Outcome, Refused
from breakwater.domain.routes import Route
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import Reason, Status
from breakwater.domain.timing import CLOCK_SKEW, MINUTE, RESPONSE_RESERVE
from breakwater.domain.values import dataclass
from breakwater.ports import Guard
from breakwater.usecases import evidence
from breakwater.usecases.bodies import read_input
from breakwater.usecases.capacity import CLAIM_WITHIN
from breakwater.usecases.change import change
from breakwater.usecases.circuit import watch
from breakwater.usecases.conclude import conclude, mine, settlement
from breakwater.usecases.deps import Deps
from breakwater.usecases.gates import Grant, Held, gate, give_back, look_again
from breakwater.usecases.insist import insist
from breakwater.usecases.lease import LeaseKeeper, lease_ms
from breakwater.usecases.protect import notice_wait
from breakwater.usecases.releaser import release
from breakwater.usecases.retention import retained
from breakwater.usecases.stream_cost import counted
from breakwater.usecases.stream_worker import resume, stream, streams, taught, waits_for_a_holder

_TRIES = 3


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


def step(deps: Deps, job_id: str, remaining_ms: Callable[[], int], told: Told, *, in_run: bool = False) -> Verdict:
    """Do the next thing for a job, if it is this worker's to do.

    `in_run`: a caller waits in this process, so a gate's "not now" is not written down: it is asked again at once.
    """
    verdict = Verdict.LOST_RACE
    for _ in range(_TRIES):  # bookkeeping of others may be faster without taking the job
        verdict = _step(deps, job_id, remaining_ms, told, in_run=in_run)
        if verdict is not Verdict.LOST_RACE:
            break
    return verdict


def _step(deps: Deps, job_id: str, remaining_ms: Callable[[], int], told: Told, *, in_run: bool) -> Verdict:
    job, inputs = deps.store.get_with(job_id, INPUTS, 1)
    now = deps.now()
    if job is None or not retained(job, now):
        return Verdict.GONE
    waits = waits_for_a_holder(job, now)
    idle = _go_on(deps, job, remaining_ms, told, in_run=in_run) if waits else _idle(deps, job, now)
    if idle is not None:
        return idle
    policy, route = deps.catalogue.policy(job.workflow), deps.catalogue.route(job.route_key)
    found = gate(deps, job, policy, route, now)
    if isinstance(found, Held):
        return _held_back(deps, job, found, now, in_run=in_run)
    assert policy is not None  # noqa: S101 - the gate holds jobs without a policy
    assert route is not None  # noqa: S101 - or without a route
    payload = read_input(deps, job, inputs)  # before the claim: what can't be read was certainly not sent
    if payload is None:
        gone = ev.DeadLettered(reason=Reason.INPUT_MISSING)
        change(deps, job, lambda standing: _unless_taken(standing, job, gone, now))
        give_back(deps, job, found.taken)
        return Verdict.NOT_NOW
    claimed = _claim(deps, job, policy, route, remaining_ms, told, found)
    if claimed is None:
        give_back(deps, job, found.taken)
        return Verdict.LOST_RACE
    notice_wait(deps, job, now)
    _work(deps, claimed, policy, route, payload, remaining_ms, in_run=in_run)
    return Verdict.WORKED


def _held_back(deps: Deps, job: Job, held: Held, now: int, *, in_run: bool) -> Verdict:
    event = held.event
    if in_run and isinstance(event, ev.Waiting) and event.lane is None:
        return Verdict.NOT_NOW
    stands = change(deps, job, lambda standing: _unless_taken(standing, job, event, now))
    if isinstance(event, ev.Waiting) and event.scope is not None:
        if held.in_line:
            release(deps, event.scope)
        elif stands is not None:
            look_again(deps, stands.job)
    return Verdict.NOT_NOW


def _idle(deps: Deps, job: Job, now: int) -> Verdict | None:
    """Why there is nothing for a worker to do, if so."""
    if job.final:
        return Verdict.SETTLED
    if job.in_review:
        return Verdict.IN_REVIEW
    if job.status is Status.PROCESSING:
        return Verdict.BUSY
    too_old = job.expires_at is not None and job.expires_at <= now
    if job.ready_at > now and not too_old:
        if job.ready_at - now <= CLOCK_SKEW:  # our clock is behind the one that set it
            deps.queues.nudge("job", job.job_id, [Nudge(lane_queue(job.lane), job.ready_at)], job.owner_key, now)
        return Verdict.TOO_EARLY
    return Verdict.SETTLED if _left_behind(deps, job) else None


def _left_behind(deps: Deps, job: Job) -> bool:
    """A paid result that came too late is taken before anything is paid again.

    One of an earlier generation, or of an earlier attempt whose end nobody saw.
    """
    if not job.possible_duplicate and (job.generation == 1 or job.attempt > 0):
        return False

    def plan(child: Child, standing: Job) -> Step | None:
        found = settlement(deps, standing, child) if standing.generation == job.generation else None
        return found if found is not None and found.event == ev.Succeeded.__name__ else None

    kept = deps.store.children(job.job_id, f"RESULT#{job.created_at:013d}#")
    return any(change(deps, job, partial(plan, child)) for child in kept)


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
    granted: Grant,
) -> Job | None:
    """Open an execution under a new epoch, before any call. None: someone else was faster, or it took too long."""
    now = deps.now()
    if granted.slots and now - granted.taken.at >= CLAIM_WITHIN:
        return None
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
    event = ev.Leased(execution=execution, locked_until=now + lease_ms(remaining_ms()), slots=granted.slots)
    landed = change(deps, job, lambda standing: advance(standing, event, now) if standing.rev == job.rev else None)
    return landed.job if landed else None


def _work(
    deps: Deps,
    job: Job,
    policy: Policy,
    route: Route,
    payload: Mapping[str, Any],
    remaining_ms: Callable[[], int],
    *,
    in_run: bool,
) -> None:
    """Call the provider once, under the lease, and conclude."""
    execution = job.execution
    assert execution is not None  # noqa: S101 - the claim put it there
    assert job.locked_until is not None  # noqa: S101 - and the lease
    with LeaseKeeper(
        deps.store,
        deps.clock,
        job.job_id,
        job.lease_epoch,
        job.locked_until,
        remaining_ms,
    ) as keeper:
        outcome = _call(deps, job, execution, policy, route, payload, remaining_ms, keeper)
    _after(deps, job, execution, route, outcome, remaining_ms, in_run=in_run)


def _after(
    deps: Deps,
    job: Job,
    execution: Execution,
    route: Route,
    outcome: Outcome | None,
    remaining_ms: Callable[[], int],
    *,
    in_run: bool,
) -> None:
    """Conclude, and learn from it. Nothing of both where another holder goes on with the stream.

    What a failure teaches stands before its slots are free: whoever takes them then finds the route closed.
    """
    if outcome is None:
        return
    begun_at = taught(outcome, execution, deps.now())
    if begun_at is not None and isinstance(outcome, Refused):
        watch(deps, route, begun_at, outcome)
    _conclude(deps, job, execution, outcome, remaining_ms, in_run=in_run)
    if begun_at is not None and not isinstance(outcome, Refused):
        watch(deps, route, begun_at, outcome)
    _settle_rate(deps, job, route, outcome)


def _go_on(deps: Deps, job: Job, remaining_ms: Callable[[], int], told: Told, *, in_run: bool) -> Verdict:
    """Go on with a stream whose holder stopped."""
    found = resume(deps, job, remaining_ms, told.message_id)
    if found is None:
        return Verdict.BUSY
    _after(deps, found.job, found.execution, found.route, found.outcome, remaining_ms, in_run=in_run)
    return Verdict.WORKED


def _conclude(
    deps: Deps,
    job: Job,
    execution: Execution,
    outcome: Outcome,
    remaining_ms: Callable[[], int],
    *,
    in_run: bool,
) -> None:
    """Make the outcome count; say so when the job had moved on without this worker."""
    told = partial(conclude, deps, job, execution, outcome, lambda standing: _holder(standing, job), in_run=in_run)
    try:
        step = insist(deps, remaining_ms, told)
    except Unavailable:
        if isinstance(outcome, Accepted):  # one small put may pass where a write to META does not
            with suppress(Unavailable):
                evidence.put_late(deps, job, execution, "accepted", provider_job_id=outcome.provider_job_id)
        raise
    if step is None or step.before is None or not mine(step.before, execution):
        deps.log.note(
            "late_write",
            job_id=job.job_id,
            execution_id=execution.id,
            epoch=execution.epoch,
            outcome=type(outcome).__name__.lower(),
            workflow=job.workflow,
            lane=job.lane.value,
            route_key=execution.route_key,
        )


def _settle_rate(deps: Deps, job: Job, route: Route, outcome: Outcome) -> None:
    """The tokens were estimated; now they are known. What was reserved for a call that failed stays spent."""
    units = outcome.result.usage.units if isinstance(outcome, Completed) else 0
    wrong = correction(job, route, units) if units else None
    if wrong is not None:
        with suppress(Unavailable):
            deps.store.adjust_rate(*wrong)


def _holder(standing: Job, claimed: Job) -> Guard:
    """While the lease is ours a write says so; later evidence is written as a stranger's."""
    return Guard(epoch=claimed.lease_epoch) if standing.lease_epoch == claimed.lease_epoch else Guard()


def _call(  # noqa: PLR0913, PLR0917 - everything one call needs
    deps: Deps,
    job: Job,
    execution: Execution,
    policy: Policy,
    route: Route,
    payload: Mapping[str, Any],
    remaining_ms: Callable[[], int],
    keeper: LeaseKeeper,
) -> Outcome | None:
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
    call = Call(
        job_id=job.job_id,
        execution_id=execution.id,
        model=route.model,
        endpoint=route.endpoint,
        payload=payload,
        background=policy.mode == "background" and route.capabilities.background,
        timeout_ms=max(1_000, min(route.timeout_ms, remaining_ms() - RESPONSE_RESERVE)),
    )
    if streams(job, route):
        return stream(deps, job, provider, call, route, remaining_ms, keeper)
    return _counted(provider.submit(call), payload)


def _counted(outcome: Outcome, payload: Mapping[str, Any]) -> Outcome:
    """An answer of which nobody told the tokens gets an estimate: it was paid for."""
    if not isinstance(outcome, Completed) or outcome.result.usage.units or outcome.result.media:
        return outcome
    return replace(outcome, result=counted(outcome.result, payload))
