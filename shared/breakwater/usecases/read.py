"""What does a caller see of a job? Its public fields, its result, its story in order; never another owner's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from breakwater.domain.errors import NotFound
from breakwater.domain.job import Job
from breakwater.domain.polling import next_poll_after
from breakwater.domain.records import Child, execution_data
from breakwater.domain.states import Status
from breakwater.domain.switches import concerning
from breakwater.usecases.bodies import read_body
from breakwater.usecases.deps import Deps
from breakwater.usecases.notify import shown as notification
from breakwater.usecases.principal import Principal
from breakwater.usecases.retention import retained
from breakwater.usecases.stream_log import collected

PRESIGN_SECONDS = 300
MAX_ID_CHARS = 64
MAX_INLINE_RESULT = 4 * 1024 * 1024
_DEFAULT_EXPECTED_MS = 30_000

# Read back under the names of the requirements; everything here is safe to show to the owner.
PUBLIC = (
    "job_id",
    "workflow",
    "owner_key",
    "user_ref",
    "idempotency_key",
    "lane",
    "priority",
    "generation",
    "attempt",
    "max_attempts",
    "waits",
    "polls",
    "fallbacks",
    "created_at",
    "updated_at",
    "ready_at",
    "locked_until",
    "expires_at",
    "deadline_at",
    "completed_at",
    "route_key",
    "requested_model",
    "served_model",
    "fallback_allowed",
    "fallback_reason",
    "contract_version",
    "provider_job_id",
    "partial_output_committed",
    "possible_duplicate",
    "last_error_type",
    "last_error_code",
    "last_error_class",
    "http_status",
    "limit_dimension",
    "retry_after_ms",
    "finish_reason",
    "estimated_cost",
    "cost_micros",
    "usage_units",
    "cancel_requested_at",
    "cancelled_by",
    "review_expires_at",
    "nudged_at",
    "nudges_total",
    "poll_at",
    "provider_deadline_at",
    "callback_url",
)


def own_job(deps: Deps, principal: Principal, job_id: str) -> Job:
    """The caller's job; raises `NotFound` for one that is not there, not theirs, or past its retention."""
    job = deps.store.get(job_id) if job_id.startswith("job_") and len(job_id) <= MAX_ID_CHARS else None
    if job is None or job.owner_key != principal.owner_key or not retained(job, deps.now()):
        raise NotFound("There is no job of this id.", field="job_id", rule="exists", fix="check the id")
    return job


def view(deps: Deps, job: Job) -> dict[str, Any]:
    """A job's public fields. `next_poll_after_ms` is absent when it is final."""
    now = deps.now()
    shown: dict[str, Any] = {name: _plain(getattr(job, name)) for name in PUBLIC}
    shown |= {"status": job.status.value, "reason": job.reason.value, "final": job.final}
    shown["owed"] = sorted(job.owed)
    if job.callback_url is not None:
        shown["notification"] = notification(job)
    policy = deps.catalogue.policy(job.workflow)
    wait = next_poll_after(job, policy.expected_duration_ms if policy else _DEFAULT_EXPECTED_MS, now)
    if wait is not None:
        shown["next_poll_after_ms"] = wait
    thrown = concerning(deps.control.switches(), now, job.workflow, job.priority, job.route_key)
    degraded = [] if job.final else [one.shown() for one in thrown]
    if degraded:
        shown["degraded"] = degraded
    return shown


def _plain(value: Any) -> Any:
    return value.value if hasattr(value, "value") else value


def etag(job: Job) -> str:
    """Changes whenever the job does."""
    return f'W/"{job.created_at}-{job.rev}"'


def with_result(deps: Deps, job: Job) -> dict[str, Any]:
    """The public fields, and the result where there is one: inline, or as a short-lived URL above 4 MiB."""
    shown = view(deps, job)
    if job.result_ref is None:
        return {**shown, **_shown_part(deps, job)}
    child = deps.store.child(job.job_id, job.result_ref)
    if child is None:
        return shown
    name = "result" if job.status is Status.SUCCEEDED else "partial_result"
    return {**shown, **_result(deps, child, name)}


def _shown_part(deps: Deps, job: Job) -> dict[str, Any]:
    """What readers of a stream saw of an answer that did not come to its end."""
    log = collected(deps, job) if job.final else None
    if log is None:
        return {}
    part = {"text": log.answer.text, "tool_calls": list(log.answer.tool_calls), "finish_reason": "incomplete"}
    return {"partial_result": part}


def _result(deps: Deps, child: Child, name: str) -> dict[str, Any]:
    body = read_body(deps, child)
    if body is None:
        return {f"{name}_expired": True}
    if len(body) > MAX_INLINE_RESULT and child.blob is not None:
        return {f"{name}_url": deps.payloads.presign(child.blob, PRESIGN_SECONDS), f"{name}_bytes": len(body)}
    execution = child.data.get("execution", {})
    return {name: {**json.loads(body), "usage": execution.get("usage"), "cost_micros": execution.get("cost_micros")}}


def listed(deps: Deps, principal: Principal, limit: int, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """The owner's jobs, newest first; the index lags, so each is read again."""
    ids, following = deps.store.by_owner(principal.owner_key, limit, cursor)
    found = deps.store.get_many(ids) if ids else {}
    now = deps.now()
    jobs = [found[one] for one in ids if one in found and retained(found[one], now)]
    return [view(deps, job) for job in jobs if job.owner_key == principal.owner_key], following


def story(deps: Deps, job: Job) -> list[Mapping[str, Any]]:
    """Every execution of every generation in order, with late evidence after the execution it belongs to."""
    kept = [
        (child.sk.split("#", 1)[1], kind, child)
        for kind, prefix in enumerate(("EXEC#", "RESULT#", "LATE#"))
        for child in deps.store.children(job.job_id, prefix)
    ]
    lines: list[Mapping[str, Any]] = [_line(child) for _, _, child in sorted(kept, key=lambda one: one[:2])]
    if job.execution is not None:
        lines.append({"kind": "open", **execution_data(job.execution)})
    return lines


def _line(child: Child) -> Mapping[str, Any]:
    kind = child.sk.partition("#")[0]
    if kind == "LATE":
        return {"kind": "late_evidence", **child.data}
    return {"kind": "execution", **child.data.get("execution", {})}
