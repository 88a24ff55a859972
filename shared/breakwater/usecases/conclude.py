"""What does an outcome of one execution do to its job?

Whoever learns an outcome comes here: the worker, a poll, a webhook, a takeover. Children first; then one write planned
over the item as it stands. An outcome of the job's open execution moves it; a paid result of any of its executions
settles it while it is open; everything else is evidence that changes nothing but the books.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from breakwater.domain import events as ev
from breakwater.domain.decide import Decision, acceptable, decide
from breakwater.domain.errors import Unavailable
from breakwater.domain.job import Execution, Job, Owed
from breakwater.domain.machine import Step, advance, amend, effect_key, may
from breakwater.domain.paths import MAX_CHARS
from breakwater.domain.records import Child, ProviderJob, execution_of
from breakwater.domain.results import Accepted, Completed, Outcome, Refused, Usage
from breakwater.domain.routes import Route
from breakwater.domain.signals import Signal
from breakwater.domain.states import EffectKind, Reason, Status
from breakwater.domain.telling import entry_of, returns_no_metadata, tells
from breakwater.domain.timing import HOUR, MINUTE
from breakwater.ports import AS_READ, Guard
from breakwater.usecases import evidence
from breakwater.usecases.change import change
from breakwater.usecases.circuit import views, watch
from breakwater.usecases.deps import Deps
from breakwater.usecases.routing import close_route, polling

Guarding = Callable[[Job], Guard]
ORPHAN_GRACE = MINUTE  # how long an open job leaves an orphaned provider job alone before it asks


def conclude(  # noqa: PLR0913 - what was heard, by whom, and what is known of it
    deps: Deps,
    job: Job,
    execution: Execution,
    outcome: Outcome,
    guard: Guarding = lambda _: AS_READ,
    *,
    in_run: bool = False,
    asking: bool = False,
    trace: Child | None = None,
) -> Step | None:
    """Make an outcome count. `asking`: it answers our question about a provider job, not the job itself.

    `trace`: a record of how it became known, put before anything moves. None: it changed nothing that was not so.
    """
    if isinstance(outcome, Completed):
        return _completed(deps, job, execution, outcome, guard, trace)
    if trace is not None:
        deps.store.put_child(job.job_id, trace, job.ttl)
    if isinstance(outcome, Accepted):
        return _accepted(deps, job, execution, outcome, guard)
    if isinstance(outcome, Refused):
        return _refused(deps, job, execution, outcome, guard, in_run=in_run, asking=asking)
    return change(deps, job, lambda now: _poll_again(deps, now, execution), guard)


def mine(job: Job, execution: Execution) -> bool:
    """Whether the job still waits for this execution."""
    return job.status is Status.PROCESSING and job.execution is not None and job.execution.id == execution.id


def _completed(
    deps: Deps,
    job: Job,
    execution: Execution,
    outcome: Completed,
    guard: Guarding,
    trace: Child | None,
) -> Step | None:
    route = deps.catalogue.route(execution.route_key)
    child = evidence.put_result(deps, job, execution, outcome.result, route, trace)
    return settle(deps, job, child, guard)


def settle(deps: Deps, job: Job, child: Child, guard: Guarding = lambda _: AS_READ) -> Step | None:
    """Let a stored result settle its job: once, and only while the job is open."""
    return change(deps, job, lambda standing: settlement(deps, standing, child), guard)


def settlement(deps: Deps, job: Job, child: Child) -> Step | None:
    """What a stored result makes of a job as it stands; None when it is in the books already and changes nothing."""
    if job.final and job.result_ref == child.sk:
        return None
    event = evidence.succeeded_by(child)
    execution = execution_of(child.data["execution"])
    counted = not mine(job, execution) and _counted(deps, job, execution)
    if job.final or _another_is_shown(job, execution):
        return None if counted else _books(job, deps.now(), execution, event.usage or Usage(), event.cost_micros)
    verdict = _verdict(deps, job, event)
    if counted:  # in an earlier generation, which it could not save; a later one may still take it
        if not isinstance(verdict, ev.Succeeded):
            return None
        verdict = replace(verdict, usage=None, cost_micros=None)
    _archive_overtaken(deps, job, execution)
    return advance(job, verdict, deps.now())


def _another_is_shown(job: Job, execution: Execution) -> bool:
    """Part of another execution's answer was seen: this one can't become the answer any more."""
    return job.partial_output_committed and job.execution is not None and job.execution.id != execution.id


def _counted(deps: Deps, job: Job, execution: Execution) -> bool:
    return evidence.owed_or_delivered(deps, job, effect_key(EffectKind.USAGE, execution.id))


def _verdict(deps: Deps, job: Job, event: ev.Succeeded) -> ev.Event:
    """A result after a cancel mark is evidence; a result of the wrong model is no comparable result."""
    policy = deps.catalogue.policy(job.workflow)
    if job.cancel_requested_at is not None and may(job, ev.Cancelled):
        return ev.Cancelled(
            by=job.cancelled_by or job.owner_key,
            reason=_cancel_reason(job),
            execution_id=event.execution_id,
            usage=event.usage,
            cost_micros=event.cost_micros,
        )
    strays = (
        policy is not None
        and policy.require_same_served_model
        and not same_model(
            event.served_model,
            job.requested_model,
        )
    )
    if strays and may(job, ev.DeadLettered):
        return ev.DeadLettered(
            reason=Reason.SERVED_MODEL_MISMATCH,
            execution_id=event.execution_id,
            result_ref=event.result_ref,
            usage=event.usage,
            cost_micros=event.cost_micros,
        )
    return event


def same_model(served: str | None, requested: str) -> bool:
    """Whether the model that answered is the one asked for; a dated snapshot of it is."""
    if not served:
        return False
    bare = requested.rsplit("/", 1)[-1]
    return served.rsplit("/", 1)[-1] == bare or served.rsplit("/", 1)[-1].startswith(f"{bare}-2")


def _cancel_reason(job: Job) -> Reason:
    return Reason.CANCELLED_BY_USER if job.cancelled_by == job.owner_key else Reason.CANCELLED_BY_OPERATOR


def _archive_overtaken(deps: Deps, job: Job, winner: Execution) -> None:
    """Another execution of this job is open: its record must outlive META."""
    if job.execution is not None and job.execution.id != winner.id:
        evidence.put_unheard(deps, job, job.execution, "overtaken")


def _books(job: Job, now: int, execution: Execution, usage: Usage, cost: int | None) -> Step:
    """What was paid for and came too late: its cost is owed to the ledger, once."""
    key = effect_key(EffectKind.USAGE, execution.id)
    return amend(
        job,
        now,
        why="LateCost",
        owed={**job.owed, key: Owed(next_at=now, ref=execution.id)},
        cost_micros=job.cost_micros + (cost or 0),
        usage_units=job.usage_units + usage.units,
    )


def _accepted(deps: Deps, job: Job, execution: Execution, outcome: Accepted, guard: Guarding) -> Step | None:
    policy, route = deps.catalogue.policy(job.workflow), deps.catalogue.route(execution.route_key)
    _make_findable(deps, job, execution, route, outcome.provider_job_id)

    def plan(standing: Job) -> Step | None:
        if not mine(standing, execution):
            return _orphan(deps, standing, execution, outcome)
        now = deps.now()
        poll_at, deadline = polling(policy, route, now, never=tells(deps.catalogue, route))
        taken = advance(
            standing,
            ev.ProviderAccepted(
                provider_job_id=outcome.provider_job_id,
                provider_request_id=outcome.provider_request_id,
                poll_at=poll_at,
                provider_deadline_at=deadline,
            ),
            now,
        )
        stopped = marked(deps, taken.job)  # in the same write: nobody else would look for the mark
        return taken if stopped is None else Step(standing, stopped.job, stopped.event, stopped.nudges)

    return change(deps, job, plan, guard)


def _make_findable(deps: Deps, job: Job, execution: Execution, route: Route | None, provider_job_id: str) -> None:
    """Where the provider's webhooks can't name our job, its own id leads to it; put before anybody waits for them."""
    endpoint = route.capabilities.webhook if route is not None else None
    if endpoint is None or not returns_no_metadata(entry_of(deps.catalogue, endpoint)):
        return
    if len(provider_job_id) > MAX_CHARS:  # no delivery can name it
        return
    known = ProviderJob(
        endpoint=endpoint,
        provider_job_id=provider_job_id,
        job_id=job.job_id,
        execution_id=execution.id,
        ttl=job.ttl,
    )
    deps.store.put_provider_job(known)


def marked(deps: Deps, job: Job) -> Step | None:
    """Carry out a cancel that was asked for while a worker held the job; None where there is no such mark."""
    if job.cancel_requested_at is None or job.execution is None or not may(job, ev.Cancelled):
        return None
    evidence.put_unheard(deps, job, job.execution, "cancelled")
    event = ev.Cancelled(by=job.cancelled_by or job.owner_key, reason=_cancel_reason(job))
    return advance(job, event, deps.now())


def _orphan(deps: Deps, job: Job, execution: Execution, outcome: Accepted) -> Step | None:
    """The provider took work that nobody waits for any more: keep the evidence, and owe it a look.

    An open job may still be settled by it; a settled one stops it. Either way its cost is found (`cancel_owed`).
    """
    evidence.put_late(deps, job, execution, "accepted", provider_job_id=outcome.provider_job_id)
    key = effect_key(EffectKind.PROVIDER_CANCEL, execution.id)
    if job.provider_job_id == outcome.provider_job_id or evidence.owed_or_delivered(deps, job, key):
        return None
    now = deps.now()
    look = now if job.final else now + ORPHAN_GRACE
    return amend(job, now, why="OrphanFound", owed={**job.owed, key: Owed(next_at=look, ref=outcome.provider_job_id)})


def _refused(
    deps: Deps,
    job: Job,
    execution: Execution,
    outcome: Refused,
    guard: Guarding,
    *,
    in_run: bool,
    asking: bool,
) -> Step | None:
    policy = deps.catalogue.policy(job.workflow)
    if outcome.partial is not None and policy is not None and acceptable(policy, outcome.signal):
        return _completed(deps, job, execution, Completed(result=outcome.partial), guard, None)
    route = deps.catalogue.route(execution.route_key)

    def archive(standing: Job) -> Child:
        return evidence.put_refusal(deps, standing, execution, outcome, route)

    return _follow(deps, job, execution, archive, outcome.signal, guard, in_run=in_run, asking=asking)


def adopt_refusal(deps: Deps, job: Job, execution: Execution, child: Child) -> Step | None:
    """Follow an archived refusal whose META write never came."""
    return _follow(deps, job, execution, lambda _: child, evidence.signal_of(child), lambda _: AS_READ)


def _follow(  # noqa: PLR0913 - one value more than seven would only be another name for these
    deps: Deps,
    job: Job,
    execution: Execution,
    archive: Callable[[Job], Child],
    signal: Signal,
    guard: Guarding,
    *,
    in_run: bool = False,
    asking: bool = False,
) -> Step | None:
    """Decide, close the route for everybody if that is said, archive the execution if it is over, move the job.

    The route is closed before the slots are free, so that whoever takes them finds it so; if that can't be written now,
    after the job was moved, which matters more.
    """
    decided: list[Decision] = []
    closed: list[Decision] = []

    def plan(standing: Job) -> Step | None:
        if mine(standing, execution) and standing.lease_epoch > execution.epoch:
            return None  # another holder goes on with the same attempt, and knows better
        if not mine(standing, execution):
            return None if asking else _late_refusal(deps, standing, execution, archive(standing))
        decision = decision_for(deps, standing, execution, signal, in_run=in_run, asking=asking)
        decided[:] = [decision]
        if decision.event is None:
            return None
        if not closed:
            with suppress(Unavailable):
                close_route(deps, decision)
                closed.append(decision)
        over = not isinstance(decision.event, ev.PollAgain)
        event = with_cost(decision.event, archive(standing)) if over else decision.event
        return advance(standing, event, deps.now())

    step = change(deps, job, plan, guard)
    if decided and step is not None:
        if not closed:
            close_route(deps, decided[0])
        if not asking and execution.provider_job_id is not None:  # what a worker saw, the worker tells
            route = deps.catalogue.route(execution.route_key)
            watch(deps, route, execution.opened_at, Refused(signal=signal))
        deps.log.note(
            "decided",
            job_id=job.job_id,
            execution_id=execution.id,
            why=decided[0].why,
            rule=signal.rule,
            error_class=signal.error_class.value,
            route_key=signal.route_key,
            retry_after_ms=signal.retry_after_ms,
        )
    return step


def _late_refusal(deps: Deps, job: Job, execution: Execution, child: Child) -> Step | None:
    """Evidence that moves nothing; where it cost something, the books are told once."""
    closed = execution_of(child.data["execution"])
    usage = evidence.usage_of(closed.usage)
    if usage is None or _counted(deps, job, execution):
        return None
    return _books(job, deps.now(), execution, usage, closed.cost_micros)


def decision_for(
    deps: Deps,
    job: Job,
    execution: Execution,
    signal: Signal,
    *,
    in_run: bool = False,
    asking: bool = False,
) -> Decision:
    """What the policy makes of a signal now; a policy or route that is gone holds the job."""
    policy, route = deps.catalogue.policy(job.workflow), deps.catalogue.route(execution.route_key)
    now = deps.now()
    if policy is None or route is None:
        return Decision(
            event=ev.HeldForReview(reason=Reason.POLICY_MISSING, review_expires_at=now + 72 * HOUR, signal=signal),
            why="the workflow's policy or route is not deployed",
        )
    return decide(
        job,
        signal,
        policy,
        deps.catalogue,
        route,
        now,
        deps.draw(),
        in_run=in_run,
        asking=asking,
        route_states=views(deps, [one.route for one in policy.fallbacks] if policy.may_fall_back else []),
    )


_CARRY_COST = ev.RetryScheduled | ev.FellBack | ev.HeldForReview | ev.DeadLettered | ev.Expired | ev.Cancelled


def with_cost(event: ev.Event, child: Child) -> ev.Event:
    """What a refused execution cost nevertheless, on the events that can carry it."""
    execution = execution_of(child.data["execution"])
    usage = evidence.usage_of(execution.usage)
    if usage is None or not isinstance(event, _CARRY_COST):
        return event
    if isinstance(event, ev.DeadLettered):
        partial = child.sk if child.body is not None or child.blob is not None else None
        event = replace(event, result_ref=event.result_ref or partial)
    return replace(event, usage=usage, cost_micros=execution.cost_micros)


def _poll_again(deps: Deps, job: Job, execution: Execution) -> Step | None:
    if not mine(job, execution):
        return None
    now = deps.now()
    age = now - execution.opened_at
    return advance(job, ev.PollAgain(at=now + poll_interval(age)), now)


def poll_interval(age_ms: int) -> int:
    """How long to leave a provider alone: a tenth of the age so far, between 10 s and 5 min."""
    return max(10_000, min(300_000, age_ms // 10))
