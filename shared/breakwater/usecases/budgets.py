"""May this owner spend more? Asked before a claim, from totals that may be a minute old; without a budget nobody asks.

`budgets` in the owner's settings: `soft_micros` and `hard_micros` for a month, and the same under `workflows`. A soft
one is only told. A hard one holds the job for its owner's decision, who may approve it: that is a yes to its price.
What may wait in the background is looked at again when the next month begins, and each hour in case the budget was
raised; it goes on once the budget covers it, and is asked about once more before its call. Work that is under way when
the limit is reached is finished, so a hard budget can be overdrawn by what is in flight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from breakwater.domain import events as ev
from breakwater.domain.job import Job
from breakwater.domain.machine import Step, advance, amend
from breakwater.domain.policy import Policy
from breakwater.domain.states import Lane, Reason
from breakwater.domain.timing import HOUR, MINUTE
from breakwater.domain.values import dataclass
from breakwater.usecases.change import change
from breakwater.usecases.deps import Deps

SPREAD = 10 * MINUTE  # those who wait for a new month don't all come in its first minute, before any cost is counted


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent in a month: in all (`workflow` empty), or in one workflow."""

    workflow: str
    soft: int | None
    hard: int | None


def over_budget(deps: Deps, job: Job, policy: Policy, now: int) -> ev.HeldForReview | None:
    """The event that holds a job whose owner's hard budget does not cover its estimate; None lets it go on."""
    for one, used in _used(deps, job, now):
        if job.approved_by is None and _exceeds(one, used, job):
            _tell(deps, job, "budget_exhausted", one, used)
            return ev.HeldForReview(
                reason=Reason.BUDGET_EXHAUSTED,
                review_expires_at=now + policy.review_max_age_ms,
                recheck_at=_next_look(deps, now) if _may_wait(job, policy) else None,
            )
        if one.soft is not None and used >= one.soft:
            _tell(deps, job, "budget_soft_exceeded", one, used)
    return None


def recheck(deps: Deps, job: Job) -> str:
    """Let a held job go on whose owner's budget covers it again, else look again later; says which."""

    def plan(standing: Job) -> Step | None:
        now = deps.now()
        held = standing.in_review and standing.reason is Reason.BUDGET_EXHAUSTED
        if not held or standing.recheck_at is None or standing.recheck_at > now:
            return None
        policy = deps.catalogue.policy(standing.workflow)
        if policy is None or not _may_wait(standing, policy):  # a deploy took that away, and may bring it back
            return amend(standing, now, why="BudgetRechecked", recheck_at=_next_look(deps, now))
        if any(_exceeds(one, used, standing) for one, used in _used(deps, standing, now)):
            return amend(standing, now, why="BudgetRechecked", recheck_at=_next_look(deps, now))
        lane = Lane.BACKGROUND_RETRY
        freed = ev.BudgetFreed(
            at=now,
            lane=lane,
            max_attempts=policy.total_attempts(lane),
            expires_at=now + policy.lane(lane).max_queue_age_ms,
        )
        return advance(standing, freed, now)

    step = change(deps, job, plan)
    return "overtaken" if step is None else "budget_freed" if step.event == "BudgetFreed" else "budget_rechecked"


def _used(deps: Deps, job: Job, now: int) -> Iterator[tuple[Budget, int]]:
    """The budgets that bind the job, each with what is spent of it; without one nothing is read."""
    budgets = tuple(budgets_of(deps.control.owner(job.owner_key), job.workflow)) if deps.spending is not None else ()
    if deps.spending is None or not budgets:
        return
    spent = deps.spending.spent(job.owner_key, period_of(now))
    yield from ((one, spent.get(one.workflow, 0)) for one in budgets)


def _exceeds(budget: Budget, used: int, job: Job) -> bool:
    return budget.hard is not None and used + (job.estimated_cost or 0) > budget.hard


def _may_wait(job: Job, policy: Policy) -> bool:
    """Whether it may go on without anybody asking: only what the policy lets wait in the background."""
    lane = policy.lanes.background_retry
    return lane is not None and (job.key_given or not lane.require_idempotency_key)


def _next_look(deps: Deps, now: int) -> int:
    """At the start of the next month or in an hour, whichever is sooner, and a little spread."""
    return min(now + HOUR, next_period(now)) + int(deps.draw() * SPREAD)


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


def next_period(now: int) -> int:
    """When the next month begins, in UTC."""
    month = datetime.fromtimestamp(now / 1000, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    following = month.replace(year=month.year + month.month // 12, month=month.month % 12 + 1)
    return int(following.timestamp() * 1000)


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
