"""May this owner spend more? Asked before a claim, from totals that may be a minute old; without a budget nobody asks.

`budgets` in the owner's settings: `soft_micros` and `hard_micros` for a month, and the same under `workflows`. A soft
one is only told. A hard one holds the job for its owner's decision, who may approve it: that is a yes to its price.
Work that is under way when the limit is reached is finished, so a hard budget can be overdrawn by what is in flight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from breakwater.domain import events as ev
from breakwater.domain.job import Job
from breakwater.domain.policy import Policy
from breakwater.domain.states import Reason
from breakwater.domain.values import dataclass
from breakwater.usecases.deps import Deps


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent in a month: in all (`workflow` empty), or in one workflow."""

    workflow: str
    soft: int | None
    hard: int | None


def over_budget(deps: Deps, job: Job, policy: Policy, now: int) -> ev.HeldForReview | None:
    """The event that holds a job whose owner's hard budget does not cover its estimate; None lets it go on."""
    if deps.spending is None:
        return None
    budgets = tuple(budgets_of(deps.control.owner(job.owner_key), job.workflow))
    if not budgets:
        return None
    spent = deps.spending.spent(job.owner_key, period_of(now))
    for one in budgets:
        used = spent.get(one.workflow, 0)
        if one.hard is not None and job.approved_by is None and used + (job.estimated_cost or 0) > one.hard:
            _tell(deps, job, "budget_exhausted", one, used)
            return ev.HeldForReview(reason=Reason.BUDGET_EXHAUSTED, review_expires_at=now + policy.review_max_age_ms)
        if one.soft is not None and used >= one.soft:
            _tell(deps, job, "budget_soft_exceeded", one, used)
    return None


def budgets_of(owner: Mapping[str, Any], workflow: str) -> Iterator[Budget]:
    """What the owner's settings say about all work and about this workflow; `budget_micros` is a hard one for all."""
    said = owner.get("budgets")
    found: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
    hard = [one for one in (_number(found.get("hard_micros")), _number(owner.get("budget_micros"))) if one is not None]
    narrow = found.get("workflows")
    own = narrow.get(workflow) if isinstance(narrow, Mapping) else None
    own = own if isinstance(own, Mapping) else {}
    for one in (
        Budget(workflow, _number(own.get("soft_micros")), _number(own.get("hard_micros"))),
        Budget("", _number(found.get("soft_micros")), min(hard) if hard else None),
    ):
        if one.soft is not None or one.hard is not None:
            yield one


def period_of(now: int) -> str:
    """The month that budgets are about, as the usage ledger names it."""
    return datetime.fromtimestamp(now / 1000, UTC).strftime("%Y-%m")


def _number(value: Any) -> int | None:
    """An amount; what is no number limits nothing, and zero allows nothing."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _tell(deps: Deps, job: Job, name: str, budget: Budget, used: int) -> None:
    deps.log.note(
        name,
        job_id=job.job_id,
        owner_key=job.owner_key,
        workflow=job.workflow,
        budget_of=budget.workflow or "all",
        used_micros=used,
        limit_micros=budget.hard if name == "budget_exhausted" else budget.soft,
    )
