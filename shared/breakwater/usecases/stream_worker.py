"""How does a worker stream instead of asking for a whole answer, and how does it go on with somebody else's stream?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from breakwater.domain import events as ev
from breakwater.domain.errors import SecretUnavailable
from breakwater.domain.job import Execution, Job
from breakwater.domain.machine import Step, advance
from breakwater.domain.results import Call, Completed, Outcome, Refused
from breakwater.domain.routes import Route
from breakwater.domain.states import Status
from breakwater.domain.timing import CLOCK_SKEW, RESPONSE_RESERVE, SECOND
from breakwater.domain.values import dataclass
from breakwater.ports import Provider
from breakwater.usecases.bodies import read_input
from breakwater.usecases.change import change
from breakwater.usecases.deps import Deps
from breakwater.usecases.lease import LeaseKeeper, lease_ms
from breakwater.usecases.routing import polling
from breakwater.usecases.stream_handover import can_be_resumed, hand_over
from breakwater.usecases.stream_holder import Holder, Lease
from breakwater.usecases.stream_log import Log, take_over

_OURS = frozenset({"stream.out_of_time", "stream.lease_lost", "stream.cancelled", "stream.other_answer"})
_LEAST_MS = SECOND
Remaining = Callable[[], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A stream that was gone on with: the job and execution as claimed, and how it ended (None: not here)."""

    job: Job
    execution: Execution
    route: Route
    outcome: Outcome | None


def streams(job: Job, route: Route) -> bool:
    """Whether the job's answer is read as it comes. A route that can't stream answers in one piece."""
    return job.stream and bool(route.capabilities.streaming)


def stream(
    deps: Deps, job: Job, provider: Provider, call: Call, route: Route, remaining_ms: Remaining, keeper: LeaseKeeper
) -> Outcome | None:
    """Send one attempt and read its answer as it comes. None: another holder goes on with it."""
    return Holder(deps, job, provider, call, _lease(deps, job, call, route, remaining_ms, keeper), None).run()


def _lease(deps: Deps, job: Job, call: Call, route: Route, remaining_ms: Remaining, keeper: LeaseKeeper) -> Lease:
    now = deps.now()
    policy = deps.catalogue.policy(job.workflow)
    deadline = job.provider_deadline_at or polling(policy, route, now)[1]
    return Lease(
        remaining_ms=remaining_ms,
        lost=lambda: keeper.lost,
        idle_ms=call.timeout_ms,
        first_ms=_first(job, call.timeout_ms, now),
        provider_deadline_at=deadline,
    )


def _first(job: Job, most: int, now: int) -> int:
    """How long to wait for the first token: half of what a person still waits, so that a second try fits."""
    if job.deadline_at is None:
        return most
    return max(_LEAST_MS, min(most, (job.deadline_at - now) // 2))


def taught(outcome: Outcome, execution: Execution, now: int) -> int | None:
    """From when on the call counts for its route: a long answer is no slow provider. None: it teaches nothing."""
    if isinstance(outcome, Refused) and outcome.signal.rule in _OURS:
        return None
    first = outcome.result.evidence.get("first_token_ms") if isinstance(outcome, Completed) else None
    return execution.opened_at if first is None else max(execution.opened_at, now - int(first))


def waits_for_a_holder(job: Job, now: int) -> bool:
    """Whether somebody should go on with this job's stream now."""
    if job.resume_at is None or job.resume_at > now + CLOCK_SKEW or job.locked_until is not None:
        return False
    return job.status is Status.PROCESSING and can_be_resumed(job)


def resume(deps: Deps, job: Job, remaining_ms: Remaining, message_id: str | None) -> Resumed | None:
    """Go on with the stream of an open execution, under a new epoch. None: somebody else was faster, or nobody can."""
    route = deps.catalogue.route(job.execution.route_key) if job.execution is not None else None
    payload = read_input(deps, job)
    if route is None or payload is None or job.execution is None:
        return None
    claimed = _claim(deps, job, job.execution, remaining_ms, message_id)
    if claimed is None or claimed.execution is None or claimed.locked_until is None:
        return None
    execution, before = claimed.execution, None
    if claimed.stream_epoch is not None:
        before = take_over(deps, claimed, execution.epoch)
        if before is None:
            return None
    call = Call(
        job_id=job.job_id,
        execution_id=execution.id,
        model=route.model,
        endpoint=route.endpoint,
        payload=payload,
        background=True,
        timeout_ms=max(_LEAST_MS, min(route.timeout_ms, remaining_ms() - RESPONSE_RESERVE)),
    )
    keeper = LeaseKeeper(deps.store, deps.clock, job.job_id, claimed.lease_epoch, claimed.locked_until, remaining_ms)
    with keeper:
        outcome = _read_on(deps, claimed, route, call, remaining_ms, keeper, before)
    return Resumed(job=claimed, execution=execution, route=route, outcome=outcome)


def _read_on(
    deps: Deps, job: Job, route: Route, call: Call, remaining_ms: Remaining, keeper: LeaseKeeper, before: Log | None
) -> Outcome | None:
    assert deps.providers is not None  # noqa: S101 - workers are wired with providers
    assert job.execution is not None  # noqa: S101 - the claim kept it
    try:
        provider = deps.providers.for_route(route.route_key)
    except SecretUnavailable:
        hand_over(deps, job, job.execution, after_ms=SECOND)
        return None
    return Holder(deps, job, provider, call, _lease(deps, job, call, route, remaining_ms, keeper), before).run()


def _claim(deps: Deps, job: Job, execution: Execution, remaining_ms: Remaining, message_id: str | None) -> Job | None:
    now = deps.now()
    event = ev.StreamResumed(
        execution=replace(execution, epoch=job.lease_epoch + 1, message_id=message_id or execution.message_id),
        locked_until=now + lease_ms(remaining_ms()),
    )

    def plan(standing: Job) -> Step | None:
        return advance(standing, event, now) if standing.rev == job.rev else None

    step = change(deps, job, plan)
    return step.job if step is not None else None
