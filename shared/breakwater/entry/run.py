"""The interactive path over HTTP: `POST /v1/run` answers with a result, a queued job, a last result, or a problem."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from breakwater.domain.errors import FailedClosed, NotFound
from breakwater.domain.job import Job
from breakwater.domain.request import idempotency_key, parse
from breakwater.domain.states import Reason, Status
from breakwater.entry.http import answered, header, json_body, principal_of, response, stale
from breakwater.usecases.deps import Deps
from breakwater.usecases.read import view, with_result
from breakwater.usecases.run import Kind, Ran, TurnedAway, Waiter, run
from breakwater.usecases.step import Told

_RETRY_AFTER = 30_000
_OWN_FAULT = frozenset({Reason.CALLER_FAULT, Reason.CONTENT_REFUSED, Reason.ANSWER_TRUNCATED, Reason.INPUT_MISSING})


def run_api(deps: Deps, event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    """Answer one request."""
    return answered(event, deps.log, lambda: _run(deps, event, context))


def _run(deps: Deps, event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    about = event["requestContext"]
    if (about["http"]["method"], about["http"]["path"]) != ("POST", "/v1/run"):
        raise NotFound("There is nothing at this path.", field="path", rule="route", fix="see the API reference")
    caller, request = principal_of(event), parse(json_body(event))
    key = idempotency_key(header(event, "idempotency-key"))
    waiter = Waiter(
        arrived_at=min(int(about.get("timeEpoch") or deps.now()), deps.now()),
        remaining_ms=context.get_remaining_time_in_millis,
        sleep=lambda ms: time.sleep(ms / 1000),
        told=Told(lambda_request_id=context.aws_request_id),
    )
    return answer(deps, run(deps, caller, request, key, about.get("requestId"), waiter))


def answer(deps: Deps, ran: Ran | TurnedAway) -> dict[str, Any]:
    """One shape for each way a request can end; all name the job, but where there is none."""
    if isinstance(ran, TurnedAway):
        return _turned_away(ran)
    headers = {"location": f"/v1/jobs/{ran.job.job_id}"}
    if ran.replayed:
        headers["idempotency-replayed"] = "true"
    if ran.kind is Kind.RESULT:
        return response(200, {**with_result(deps, ran.job), "replayed": ran.replayed}, headers)
    if ran.kind is Kind.LATEST:
        told = {"job": view(deps, ran.job), "latest": dict(ran.latest or {}), "live": False}
        return response(200, told, {**headers, **stale(ran.latest or {})})
    if ran.kind is Kind.CLOSED:
        raise failed_closed(deps, ran.job)
    shown = {**view(deps, ran.job), "replayed": ran.replayed}
    wait = shown.get("next_poll_after_ms", 0)
    return response(202, shown, {**headers, "retry-after": str(max(1, -(-wait // 1000)))})


def _turned_away(ran: TurnedAway) -> dict[str, Any]:
    """A last result where new work is refused: why there is no job, and when asking again can make one."""
    refusal, wait = ran.refusal, ran.refusal.retry_after_ms or 0
    told = {"status": refusal.status, "detail": str(refusal), "rule": refusal.rule, "retry_after_ms": wait}
    headers = {"retry-after": str(max(1, -(-wait // 1000))), **stale(ran.latest)}
    return response(200, {"refused": told, "latest": dict(ran.latest), "live": False}, headers)


def failed_closed(deps: Deps, job: Job) -> FailedClosed:
    """The controlled end of a request: why no further call is made, and when asking again can help."""
    if job.status is Status.CANCELLED:
        return FailedClosed("The job was cancelled.", status=409, job=job.job_id, reason=job.reason.value)
    if job.reason in _OWN_FAULT:
        return FailedClosed(
            "The provider refused the request as it is; the same request would be refused again.",
            status=422,
            field="input",
            rule=job.reason.value,
            fix="read the job, and send a corrected request with a new key",
            job=job.job_id,
            reason=job.reason.value,
        )
    held = "A person has to decide." if job.in_review else "No further call is made."
    return FailedClosed(
        f"{held} Reason: {job.reason.value}.",
        status=503,
        rule=job.reason.value,
        fix="look at the job under its id; a new request may be sent after the time given, with a new key",
        retry_after_ms=_retry_after(deps, job),
        job=job.job_id,
        reason=job.reason.value,
    )


def _retry_after(deps: Deps, job: Job) -> int:
    """When a new request has a chance: the route's own time, else the provider's hint, else a while."""
    state, now = deps.store.route(job.route_key), deps.now()
    if state is not None and state.closed_until is not None and state.closed(now):
        return max(1_000, state.closed_until - now)
    return max(1_000, job.retry_after_ms or _RETRY_AFTER)
