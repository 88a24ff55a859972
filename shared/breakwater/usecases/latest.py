"""What was the last successful result of a workflow, and how old is it? It never poses as a fresh one.

Only for workflows whose policy may serve it. Kept by owner, end user and workflow, written if newer, so a late result
of an old job replaces nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from breakwater.domain.errors import NotFound
from breakwater.domain.job import Job
from breakwater.domain.states import Status
from breakwater.usecases.deps import Deps
from breakwater.usecases.principal import Principal
from breakwater.usecases.read import with_result
from breakwater.usecases.retention import retained


def latest_key(owner_key: str, user_ref: str | None, workflow: str) -> str:
    """Where it stands. An end user is never served what another one asked."""
    return "#".join(quote(one, safe="") for one in (owner_key, user_ref or "", workflow))


def remember(deps: Deps, job: Job) -> None:
    """Keep a success as the last result, where the policy may serve it; repeating it is harmless."""
    policy = deps.catalogue.policy(job.workflow)
    if job.status is not Status.SUCCEEDED or job.completed_at is None or policy is None or not policy.serve_latest:
        return
    key = latest_key(job.owner_key, job.user_ref, job.workflow)
    deps.store.put_latest(key, job.completed_at, {"job_id": job.job_id})


def last_result(deps: Deps, owner_key: str, user_ref: str | None, workflow: str) -> dict[str, Any] | None:
    """The last result with its age, None where there is none (any more)."""
    policy = deps.catalogue.policy(workflow)
    if policy is None or not policy.serve_latest:
        return None
    found = deps.store.latest(latest_key(owner_key, user_ref, workflow))
    job = deps.store.get(str(found["job_id"])) if found else None
    now = deps.now()
    if job is None or job.owner_key != owner_key or job.status is not Status.SUCCEEDED or not retained(job, now):
        return None
    return _labelled(with_result(deps, job), job, now)


def _labelled(shown: Mapping[str, Any], job: Job, now: int) -> dict[str, Any]:
    as_of = job.completed_at or job.updated_at
    result = {name: shown[name] for name in ("result", "result_url", "result_bytes") if name in shown}
    told = {"job_id": job.job_id, "as_of": as_of, "age_ms": max(0, now - as_of), "served_model": job.served_model}
    return {"live": False, "workflow": job.workflow, **told, **result}


def latest(deps: Deps, caller: Principal, workflow: str, user_ref: str | None) -> dict[str, Any]:
    """What `GET /v1/workflows/{workflow}/latest` answers; raises `NotFound` where there is nothing to serve."""
    found = last_result(deps, caller.owner_key, user_ref, workflow)
    if found is None:
        raise NotFound(
            "There is no last result to serve.",
            field="workflow",
            rule="serve_latest",
            fix="submit a job; only workflows whose policy sets `serve_latest` keep a last result",
        )
    return found
