"""What does a person decide about held work? Approve, maybe on another route, or reject; with a name and a why."""

from __future__ import annotations

from breakwater.domain import events as ev
from breakwater.domain.checklist import Item, Verdict, checks
from breakwater.domain.contract import Verdict as ContractVerdict
from breakwater.domain.contract import not_kept, verdict
from breakwater.domain.errors import TooLate
from breakwater.domain.job import Job
from breakwater.domain.machine import Step, advance
from breakwater.domain.replay import SAME_ROUTE
from breakwater.domain.states import Reason
from breakwater.usecases.change import change
from breakwater.usecases.deps import Deps
from breakwater.usecases.preview import Target, facts, target


def approve(deps: Deps, job: Job, by: str, route: str | None = None, *, proof: bool = False) -> Job:
    """Let a held job go on, with its age restarted and at least one more call.

    Raises `TooLate` when it is not held any more, when the route breaks the contract, or when the provider may have
    done the work and `proof` does not speak to that.
    """
    _held(job)
    chosen = _route(deps, job, route)
    _no_repeat(deps, job, chosen, proof=proof)
    policy = deps.catalogue.need_policy(job.workflow)
    lane = policy.start_lane(interactive=False)
    now = deps.now()
    event = ev.Approved(
        by=by,
        at=now,
        lane=lane,
        expires_at=now + policy.lane(lane).max_queue_age_ms,
        route_key=chosen.route.route_key if route is not None and chosen.route else None,
        fallback=chosen.fallback,
        contract_version=chosen.contract_version,
    )
    return _decide(deps, job, event)


def reject(deps: Deps, job: Job, by: str) -> Job:
    """Stop a held job for good; raises `TooLate` when it is not held any more."""
    _held(job)
    return _decide(deps, job, ev.Rejected(by=by))


def _decide(deps: Deps, job: Job, event: ev.Approved | ev.Rejected) -> Job:
    """The decision holds for the job as it was looked at: the same reason, in the same review."""

    def plan(standing: Job) -> Step | None:
        same = standing.in_review and standing.reason is job.reason and standing.lease_epoch == job.lease_epoch
        return advance(standing, event, deps.now()) if same else None

    step = change(deps, job, plan)
    if step is None:
        raise _late(job, "Somebody decided already, or the review ran out.")
    return step.job


def _route(deps: Deps, job: Job, wanted: str | None) -> Target:
    """The route it goes on: as it was, or another one that breaks no clause. A person may settle unknown clauses."""
    chosen = target(deps, job, deps.catalogue.policy(job.workflow), wanted or SAME_ROUTE)
    if chosen.route is None:
        raise _late(job, "The route is not deployed.", rule="route")
    if not chosen.allowed:
        raise _late(job, "The route is neither the workflow's own nor an approved fallback.", rule="route")
    if chosen.clauses and verdict(chosen.clauses) is ContractVerdict.MISMATCH:
        raise _late(
            job, f"The route breaks the contract: {', '.join(not_kept(chosen.clauses))}.", rule="route_contract"
        )
    return chosen


def _no_repeat(deps: Deps, job: Job, chosen: Target, *, proof: bool) -> None:
    found = next(one for one in checks(facts(deps, job, chosen)) if one.item is Item.IDEMPOTENCY)
    unsure = found.verdict is Verdict.UNKNOWN or job.reason is Reason.OUTCOME_UNKNOWN
    if found.verdict is Verdict.NO or (unsure and not proof):
        raise _late(job, f"It may repeat an effect: {found.says}.", rule="idempotency")


def _held(job: Job) -> None:
    if not job.in_review:
        raise _late(job, "The job is not held for a decision.")


def _late(job: Job, message: str, rule: str = "in_review") -> TooLate:
    fix = {
        "idempotency": "send `proof`: what you saw at the provider",
        "in_review": "read the job: nothing was changed",
    }
    return TooLate(
        message,
        field="job_id",
        rule=rule,
        fix=fix.get(rule, "choose another route"),
        job=job.job_id,
        job_status=job.status.value,
    )
