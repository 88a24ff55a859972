"""The users' API: which request is which use case? Routes under `/v1`, dispatched by method and path.

A table of routes instead of a router library: eight rows don't repay 115 ms of import in a function people wait for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from breakwater.domain.errors import InvalidRequest, NotFound
from breakwater.domain.request import idempotency_key, parse
from breakwater.entry.http import answered, header, json_body, principal_of, response, stale
from breakwater.usecases.admit import admit
from breakwater.usecases.again import again
from breakwater.usecases.cancel import cancel
from breakwater.usecases.deps import Deps
from breakwater.usecases.diagnose import diagnosis, shown
from breakwater.usecases.latest import latest
from breakwater.usecases.principal import Principal
from breakwater.usecases.read import etag, listed, own_job, story, view, with_result
from breakwater.usecases.redeliver import redeliver
from breakwater.usecases.stream_token import stream_token
from breakwater.usecases.usage import usage

Call = Callable[[Deps, Principal, Mapping[str, Any], str], dict[str, Any]]
_MAX_PAGE = 100


def api(deps: Deps, event: Mapping[str, Any]) -> dict[str, Any]:
    """Answer one request."""
    return answered(event, deps.log, lambda: _dispatch(deps, event))


def _dispatch(deps: Deps, event: Mapping[str, Any]) -> dict[str, Any]:
    http = event["requestContext"]["http"]
    for method, pattern, call in ROUTES:
        found = pattern.fullmatch(http["path"])
        if found and method == http["method"]:
            return call(deps, principal_of(event), event, next(iter(found.groupdict().values()), ""))
    raise NotFound("There is nothing at this path.", field="path", rule="route", fix="see the API reference")


def _submit(deps: Deps, caller: Principal, event: Mapping[str, Any], _job_id: str) -> dict[str, Any]:
    key = idempotency_key(header(event, "idempotency-key"))
    request_id = (event.get("requestContext") or {}).get("requestId")
    admitted = admit(deps, caller, parse(json_body(event)), key, request_id)
    shown = {**view(deps, admitted.job), "replayed": admitted.replayed}
    headers = {"location": f"/v1/jobs/{admitted.job.job_id}", **_again_after(shown)}
    if admitted.replayed:
        headers["idempotency-replayed"] = "true"
    return response(200 if admitted.job.final else 202, shown, headers)


def _again_after(shown: Mapping[str, Any]) -> dict[str, str]:
    wait = shown.get("next_poll_after_ms")
    return {} if wait is None else {"retry-after": str(-(-wait // 1000))}


def _read(deps: Deps, caller: Principal, event: Mapping[str, Any], job_id: str) -> dict[str, Any]:
    caller.need("read")
    job = own_job(deps, caller, job_id)
    tag = etag(job)
    if tag in [one.strip() for one in (header(event, "if-none-match") or "").split(",")]:
        return response(304, headers={"etag": tag, **_again_after(view(deps, job))})
    shown = with_result(deps, job)
    return response(200, shown, {"etag": tag, **_again_after(shown)})


def _list(deps: Deps, caller: Principal, event: Mapping[str, Any], _job_id: str) -> dict[str, Any]:
    caller.need("read")
    query = event.get("queryStringParameters") or {}
    jobs, following = listed(deps, caller, _limit(query.get("limit")), _cursor(query.get("cursor")))
    return response(200, {"jobs": jobs, **({"next_cursor": following} if following else {})})


def _limit(text: str | None) -> int:
    if text is None:
        return 25
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= _MAX_PAGE:
        raise InvalidRequest("`limit` can't be used.", field="limit", rule="1..100", fix="send a number from 1 to 100")
    return int(text)


def _cursor(text: str | None) -> str | None:
    if text is not None and not re.fullmatch(r"[0-9]{1,15}\.job_[a-z2-7]{1,40}", text):
        raise InvalidRequest(
            "`cursor` can't be used.",
            field="cursor",
            rule="from_previous_page",
            fix="send `next_cursor` as it came",
        )
    return text


def _executions(deps: Deps, caller: Principal, _event: Mapping[str, Any], job_id: str) -> dict[str, Any]:
    caller.need("read")
    return response(200, {"job_id": job_id, "executions": story(deps, own_job(deps, caller, job_id))})


def _diagnosis(deps: Deps, caller: Principal, _event: Mapping[str, Any], job_id: str) -> dict[str, Any]:
    caller.need("read")
    return response(200, shown(diagnosis(deps, own_job(deps, caller, job_id))))


def _cancel(deps: Deps, caller: Principal, _event: Mapping[str, Any], job_id: str) -> dict[str, Any]:
    caller.need("submit")
    job = cancel(deps, own_job(deps, caller, job_id), caller.owner_key)
    return response(200 if job.final else 202, view(deps, job), {"location": f"/v1/jobs/{job_id}"})


def _retry(deps: Deps, caller: Principal, _event: Mapping[str, Any], job_id: str) -> dict[str, Any]:
    caller.need("submit")
    job = own_job(deps, caller, job_id)
    renewed = again(deps, job, deps.catalogue.need_policy(job.workflow), caller.owner_key)
    return response(202, view(deps, renewed), {"location": f"/v1/jobs/{job_id}"})


def _notify(deps: Deps, caller: Principal, _event: Mapping[str, Any], job_id: str) -> dict[str, Any]:
    caller.need("submit")
    job = redeliver(deps, own_job(deps, caller, job_id), caller.owner_key)
    return response(202, view(deps, job), {"location": f"/v1/jobs/{job_id}"})


def _stream_token(deps: Deps, caller: Principal, _event: Mapping[str, Any], job_id: str) -> dict[str, Any]:
    caller.need("read")
    return response(201, stream_token(deps, own_job(deps, caller, job_id)))


def _usage(deps: Deps, caller: Principal, event: Mapping[str, Any], _job_id: str) -> dict[str, Any]:
    caller.need("read")
    period = (event.get("queryStringParameters") or {}).get("period", "")
    return response(200, usage(deps, caller.owner_key, period))


def _latest(deps: Deps, caller: Principal, event: Mapping[str, Any], workflow: str) -> dict[str, Any]:
    caller.need("read")
    found = latest(deps, caller, workflow, (event.get("queryStringParameters") or {}).get("user_ref"))
    return response(200, found, stale(found))


_JOB = r"/v1/jobs/(?P<job_id>[^/]{1,64})"
ROUTES: tuple[tuple[str, re.Pattern[str], Call], ...] = tuple(
    (method, re.compile(path), call)
    for method, path, call in (
        ("POST", r"/v1/jobs", _submit),
        ("GET", r"/v1/jobs", _list),
        ("GET", _JOB, _read),
        ("GET", _JOB + "/executions", _executions),
        ("GET", _JOB + "/diagnosis", _diagnosis),
        ("POST", _JOB + "/cancel", _cancel),
        ("POST", _JOB + "/retry", _retry),
        ("POST", _JOB + "/notify", _notify),
        ("POST", _JOB + "/stream-token", _stream_token),
        ("GET", r"/v1/usage", _usage),
        ("GET", r"/v1/workflows/(?P<workflow>[a-z0-9_]{1,64})/latest", _latest),
    )
)
