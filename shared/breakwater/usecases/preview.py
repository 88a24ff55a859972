"""What would a replay do, to one job or to all that a filter means, what would it cost, and what speaks against it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from breakwater.domain.checklist import Check, Facts, blocking, checks, result_waits
from breakwater.domain.contract import Clauses, check, needs_of
from breakwater.domain.job import Job, execution_suffix
from breakwater.domain.policy import Policy
from breakwater.domain.records import effect_child_key, late_key
from breakwater.domain.replay import MOST_ITEMS, SAME_ROUTE, Filter
from breakwater.domain.routes import Route
from breakwater.domain.states import EffectKind, Lane, Status
from breakwater.domain.values import dataclass
from breakwater.usecases.budgets import budgets_of
from breakwater.usecases.deps import Deps
from breakwater.usecases.retention import retained
from breakwater.usecases.usage import usage

_PAGE = 100
_MOST_SCANNED = 5_000
_SIDE_BY_SIDE = 8  # within the ten connections of one client


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The route a job would take, and whether it may."""

    route: Route | None
    allowed: bool
    clauses: Clauses | None = None  # None: the workflow's own route
    fallback: str | None = None
    contract_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """One job: what the checklist says and what a replay would cost."""

    job: Job
    target: Target
    checks: tuple[Check, ...]
    refused: Check | None
    estimate_micros: int | None


def target(deps: Deps, job: Job, policy: Policy | None, wanted: str) -> Target:
    """The route asked for: the workflow's own, one with the same model, or an approved fallback."""
    own = deps.catalogue.route(policy.route) if policy else deps.catalogue.route(job.route_key)
    if wanted == SAME_ROUTE or (own is not None and wanted == own.route_key):
        return Target(route=own, allowed=True)
    route = deps.catalogue.route(wanted)
    if policy is None or own is None or route is None:
        return Target(route=route, allowed=False, clauses={})
    approved = next((one for one in policy.fallbacks if one.route == route.route_key), None)
    return Target(
        route=route,
        allowed=approved is not None or route.model == job.requested_model,
        clauses=check(policy, own, route, needs_of(policy, stream=job.stream)),
        fallback=approved.name if approved else None,
        contract_version=approved.contract_version if approved else None,
    )


def facts(deps: Deps, job: Job, chosen: Target) -> Facts:
    """Everything the checklist looks at."""
    policy = deps.catalogue.policy(job.workflow)
    executions = _executions(deps, job)
    budget, spent = _budget(deps, job)
    return Facts(
        job=job,
        now=deps.now(),
        policy=policy,
        route=chosen.route,
        state=deps.store.route(chosen.route.route_key) if chosen.route else None,
        input_present=deps.store.child(job.job_id, job.input_ref) is not None,
        executions=executions,
        cancels=_cancels(deps, job, executions),
        code_version=deps.code_version,
        budget_micros=budget,
        spent_micros=spent,
        clauses=chosen.clauses,
        route_allowed=chosen.allowed,
    )


def _executions(deps: Deps, job: Job) -> tuple[Mapping[str, Any], ...]:
    """Closed executions in order; one that left only late evidence is of unknown outcome."""
    found: dict[str, Mapping[str, Any]] = {}
    for prefix in ("EXEC#", "RESULT#"):  # a result says more than a refusal or a loss
        for child in deps.store.children(job.job_id, prefix):
            found[child.sk.partition("#")[2]] = child.data.get("execution", {})
    for suffix, one in found.items():
        late = deps.store.child(job.job_id, late_key(str(one["id"]), "accepted")) if one.get("id") else None
        if late is not None and not one.get("provider_job_id"):
            found[suffix] = {**one, "provider_job_id": late.data.get("provider_job_id")}
    return tuple(found[suffix] for suffix in sorted(found))


def _cancels(deps: Deps, job: Job, executions: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What became of the cancel of each provider job that was left running."""
    found = {}
    for one in executions:
        key = f"{EffectKind.PROVIDER_CANCEL}#{execution_suffix(str(one['id']))}"
        if key in job.owed:
            found[str(one["id"])] = "owed"
        elif one.get("provider_job_id") and (done := deps.store.child(job.job_id, effect_child_key(key))) is not None:
            found[str(one["id"])] = "given_up" if done.data.get("given_up") else "confirmed"
    return found


def _budget(deps: Deps, job: Job) -> tuple[int | None, int]:
    """The hard budget with the least room, and what is spent of it; without one nobody looks."""
    hard = [(one.workflow, one.hard) for one in budgets_of(deps.control.owner(job.owner_key), job.workflow)]
    if not hard:
        return None, 0
    seen = usage(deps, job.owner_key, "")
    spent = {"": seen["total"], **seen["workflows"]}
    rooms = [(limit, int(spent.get(name, {}).get("cost_micros", 0))) for name, limit in hard if limit is not None]
    return min(rooms, key=lambda one: one[0] - one[1], default=(None, 0))


def preview(deps: Deps, job: Job, wanted: str = SAME_ROUTE, *, proof: bool = False, override: bool = False) -> Preview:
    """The checklist for one job as it stands now."""
    chosen = target(deps, job, deps.catalogue.policy(job.workflow), wanted)
    known = facts(deps, job, chosen)
    found = checks(known)
    return Preview(
        job=job,
        target=chosen,
        checks=found,
        refused=blocking(found, proof=proof, override=override),
        estimate_micros=_estimate(job, known.executions),
    )


def previews(deps: Deps, jobs: Sequence[Job], wanted: str) -> list[Preview]:
    """The checklist of many, a few at a time side by side: each needs several reads, and an operator waits."""
    with ThreadPoolExecutor(_SIDE_BY_SIDE, thread_name_prefix="preview") as pool:
        return list(pool.map(lambda job: preview(deps, job, wanted), jobs))


def _estimate(job: Job, executions: Sequence[Mapping[str, Any]]) -> int | None:
    """What a replay costs: nothing without a call, else the dearest one so far, else what admission estimated."""
    if result_waits(job, executions):
        return 0
    paid = [int(one["cost_micros"]) for one in executions if one.get("cost_micros")]
    return max(paid) if paid else job.estimated_cost


def select(deps: Deps, wanted: Filter, most: int = MOST_ITEMS) -> tuple[list[Job], bool]:
    """Open dead letters that a filter means, oldest death first; True when there may be more."""
    found: list[Job] = []
    cursor, scanned = None, 0
    while scanned < _MOST_SCANNED:
        until = wanted.until if wanted.until is not None else deps.now()
        ids, cursor = deps.store.attention(Lane.DEAD_LETTER.value, wanted.since or 0, until, _PAGE, cursor)
        scanned += len(ids)
        jobs = deps.store.get_many(ids) if ids else {}
        found += [
            jobs[one] for one in ids if one in jobs and _open(jobs[one], deps.now()) and wanted.matches(jobs[one])
        ]
        if cursor is None or len(found) >= most:
            break
    more = cursor is not None or len(found) > most
    return sorted(found[:most], key=lambda job: (job.completed_at or 0, job.job_id)), more


def _open(job: Job, now: int) -> bool:
    return job.status is Status.DEAD_LETTER and job.closed_at is None and retained(job, now)


def preview_many(deps: Deps, wanted: Filter, route: str, size: int) -> dict[str, Any]:
    """What a batch would do: how many, how old, at what cost, and who is refused why."""
    jobs, more = select(deps, wanted, size)
    found = previews(deps, jobs, route)
    refused = [one for one in found if one.refused is not None]
    fine = [one for one in found if one.refused is None]
    return {
        "jobs": len(found),
        "more": more,
        "oldest_died_at": min((one.job.completed_at or 0 for one in found), default=None),
        "would_replay": len(fine),
        "estimated_cost_micros": sum(one.estimate_micros or 0 for one in fine),
        "without_estimate": sum(one.estimate_micros is None for one in fine),
        "refused": dict(Counter(one.refused.item.value for one in refused if one.refused)),
        "reasons": dict(Counter(one.job.reason.value for one in found)),
        "items": [brief(one) for one in found],
    }


def brief(one: Preview) -> dict[str, Any]:
    """One line of a list."""
    line = {
        "job_id": one.job.job_id,
        "generation": one.job.generation,
        "workflow": one.job.workflow,
        "reason": one.job.reason.value,
        "died_at": one.job.completed_at,
        "estimate_micros": one.estimate_micros,
    }
    return {**line, "refused": f"{one.refused.item.value}: {one.refused.says}"} if one.refused else line


def shown(one: Preview) -> dict[str, Any]:
    """A preview as plain data."""
    return {
        **brief(one),
        "route_key": one.target.route.route_key if one.target.route else None,
        "fallback": one.target.fallback,
        "would_replay": one.refused is None,
        "checks": [{"item": it.item.value, "verdict": it.verdict.value, "says": it.says} for it in one.checks],
    }
