"""What does an operator look at? Jobs of anybody, what needs a person, and a job's facts for the audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakwater.domain import identity
from breakwater.domain.job import Job
from breakwater.domain.replay import Filter
from breakwater.domain.states import Lane
from breakwater.usecases.audit import Action, Desk, audited
from breakwater.usecases.deps import Deps
from breakwater.usecases.read import view
from breakwater.usecases.retention import retained

Page = tuple[list[dict[str, Any]], str | None]


def of_owner(deps: Deps, owner_key: str, limit: int, cursor: str | None) -> Page:
    """An owner's jobs, newest first."""
    ids, following = deps.store.by_owner(owner_key, limit, cursor)
    return [brief(job) for job in _read(deps, ids)], following


def by_key(deps: Deps, owner_key: str, user_ref: str | None, workflow: str, key: str) -> list[dict[str, Any]]:
    """The job behind a client's own idempotency key: the id follows from it."""
    return [brief(job) for job in _read(deps, [identity.job_id(owner_key, user_ref, workflow, key)])]


def needing(deps: Deps, lane: Lane, wanted: Filter, limit: int, cursor: str | None) -> Page:
    """One page of dead letters or reviews, newest first; a filter may leave it short of `limit`."""
    until = wanted.until if wanted.until is not None else deps.now()
    ids, following = deps.store.attention(lane.value, wanted.since or 0, until, limit, cursor)
    jobs = [job for job in _read(deps, ids) if job.lane is lane and job.closed_at is None and wanted.matches(job)]
    return [brief(job) for job in jobs], following


def _read(deps: Deps, ids: list[str]) -> list[Job]:
    found = deps.store.get_many(ids) if ids else {}
    return [found[one] for one in ids if one in found and retained(found[one], deps.now())]


_BRIEF = (
    "job_id",
    "owner_key",
    "workflow",
    "status",
    "reason",
    "lane",
    "generation",
    "attempt",
    "route_key",
    "last_error_class",
    "http_status",
    "created_at",
    "completed_at",
    "review_expires_at",
    "cost_micros",
)


def brief(job: Job) -> dict[str, Any]:
    """One line of a list."""
    values = ((name, getattr(job, name)) for name in _BRIEF)
    return {name: getattr(value, "value", value) for name, value in values if value is not None}


def whole(deps: Deps, job: Job) -> dict[str, Any]:
    """Everything about a job but its content."""
    more = {"replay_id": job.replay_id, "closed_at": job.closed_at, "closed_by": job.closed_by}
    return {**view(deps, job), **{name: value for name, value in more.items() if value is not None}}


def state_of(job: Job) -> dict[str, Any]:
    """What the audit keeps of a job."""
    return {
        "status": job.status.value,
        "reason": job.reason.value,
        "lane": job.lane.value,
        "generation": job.generation,
        "route_key": job.route_key,
    }


def note(desk: Desk, what: str, target: str, why: str) -> Mapping[str, Any]:
    """Put into the audit what was done outside this API, such as a secret that was rotated."""
    action = Action(what=what, target=target, why=why)
    return audited(desk, action, lambda: ({"what": what, "target": target}, {}))
