"""What does the HTTP surface look like? Writes docs/reference/openapi.json; `--check` compares.

Paths and methods come from the code's own route tables, bodies from its models, a job's fields from `Job` itself. What
each operation is for is said here, and a route without a word here is an error.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter

from breakwater.domain.job import Job
from breakwater.domain.request_model import JobRequest
from breakwater.domain.states import Lane, Reason, Status
from breakwater.entry import api, ops_desk, ops_jobs
from breakwater.usecases.read import PUBLIC
from tools.docs.pages import ROOT, keep

PAGE = ROOT / "docs" / "reference" / "openapi.json"
_ONE = re.compile(r"\(\?P<([a-z_]+)>[^)]*\)")

SUMMARIES: Mapping[str, str] = {
    "POST /v1/jobs": "Submit a job; the same key and payload is the same job",
    "GET /v1/jobs": "List the caller's jobs, newest first",
    "GET /v1/jobs/{job_id}": "Read a job, and its result once it is there",
    "GET /v1/jobs/{job_id}/executions": "Read every attempt in order, late evidence included",
    "GET /v1/jobs/{job_id}/diagnosis": "Say which layer the job is in, why, and what happens next",
    "GET /v1/jobs/{job_id}/stream": "Read the answer as server-sent events; resumes after `Last-Event-ID`",
    "POST /v1/jobs/{job_id}/stream-token": "Get a short-lived token for `/stream`, where headers can't be sent",
    "POST /v1/jobs/{job_id}/cancel": "Cancel; repeating it is harmless",
    "POST /v1/jobs/{job_id}/retry": "Ask for a dead job again, within the policy's limit",
    "POST /v1/jobs/{job_id}/notify": "Deliver the job's notification again, under the same id",
    "POST /v1/run": "Ask for an answer within the workflow's deadline",
    "GET /v1/workflows/{workflow}/latest": "Read the last successful result with its age",
    "GET /v1/usage": "Read what was spent in a month",
    "POST /v1/webhooks/{endpoint}": "Take a provider's signed webhook",
    "GET /v1/cron/{schedule}": "Trigger a schedule from outside (bearer `CRON_SECRET`)",
    "POST /v1/cron/{schedule}": "Trigger a schedule from outside (bearer `CRON_SECRET`)",
    "GET /v1/ops/jobs": "Search jobs",
    "GET /v1/ops/jobs/{job_id}": "Read any job",
    "GET /v1/ops/jobs/{job_id}/executions": "Read any job's attempts",
    "GET /v1/ops/jobs/{job_id}/diagnosis": "Diagnose any job",
    "GET /v1/ops/jobs/{job_id}/preview": "Preview a replay: a checklist with a verdict per item",
    "POST /v1/ops/jobs/{job_id}/replay": "Replay a dead letter as a new generation",
    "POST /v1/ops/jobs/{job_id}/close": "Put a dead letter to rest",
    "POST /v1/ops/jobs/{job_id}/cancel": "Cancel any job",
    "POST /v1/ops/jobs/{job_id}/approve": "Let a held job go on",
    "POST /v1/ops/jobs/{job_id}/reject": "Stop a held job",
    "GET /v1/ops/dead-letters": "List dead letters",
    "GET /v1/ops/reviews": "List what waits for a decision",
    "POST /v1/ops/preview": "Preview the replay of many",
    "GET /v1/ops/batches": "List batch replays",
    "POST /v1/ops/batches": "Start a batch replay over a frozen selection",
    "GET /v1/ops/batches/{batch_id}": "Read a batch's progress",
    "POST /v1/ops/batches/{batch_id}/{turn}": "Pause, resume or abort a batch",
    "GET /v1/ops/keys": "List API keys",
    "POST /v1/ops/keys": "Create an API key; it is shown once",
    "POST /v1/ops/keys/{key_id}/revoke": "Revoke an API key",
    "GET /v1/ops/owners/{owner_key}": "Read an owner's limits and budgets",
    "POST /v1/ops/owners/{owner_key}": "Set an owner's limits and budgets",
    "GET /v1/ops/switches": "Read the degradation switches",
    "POST /v1/ops/switches/{name}": "Throw a switch",
    "POST /v1/ops/switches/{name}/lift": "Lift a switch",
    "GET /v1/ops/routes": "List routes and their state",
    "GET /v1/ops/routes/{route_key}": "Read a route's state",
    "POST /v1/ops/routes/{route_key}/close": "Close a route until a time, for everybody",
    "POST /v1/ops/routes/{route_key}/open": "Open a route",
    "GET /v1/ops/audit": "Read the operators' audit",
    "POST /v1/ops/audit": "Add a note to the audit",
    "GET /v1/ops/usage": "Read an owner's usage",
}
_APART = (
    ("POST", "/v1/run"),
    ("POST", "/v1/webhooks/{endpoint}"),
    ("GET", "/v1/cron/{schedule}"),
    ("POST", "/v1/cron/{schedule}"),
    ("GET", "/v1/jobs/{job_id}/stream"),
)
_KEYLESS = ("/v1/webhooks", "/v1/cron", "/stream")
_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
_KEY_HEADER = {
    "name": "Idempotency-Key",
    "in": "header",
    "schema": {"type": "string", "maxLength": 255},
    "description": "One value for each business intent. Required where the workflow's policy says so.",
}


def routes() -> Iterator[tuple[str, str]]:
    """(method, path) of every operation that the code serves, named groups as OpenAPI parameters."""
    tables: tuple[tuple[str, Sequence[tuple[Any, ...]]], ...] = (
        ("", api.ROUTES),
        ("", ops_jobs.ROUTES),
        ("", ops_desk.ROUTES),
    )
    for prefix, table in tables:
        for method, pattern, *_ in table:
            yield method, prefix + _ONE.sub(r"{\1}", pattern.pattern)
    yield from _APART


_LAST = {
    "description": "The job, final. While the operator serves the last result (`live` is false): it as `latest`, with "
    "its age, beside the `job` that goes on, or beside `refused`, which says why no job was made",
    "content": {
        "application/json": {
            "schema": {
                "anyOf": [
                    {"$ref": "#/components/schemas/Job"},
                    {
                        "type": "object",
                        "required": ["latest", "live"],
                        "properties": {
                            "latest": {"type": "object"},
                            "live": {"const": False},
                            "job": {"$ref": "#/components/schemas/Job"},
                            "refused": {"type": "object"},
                        },
                    },
                ]
            }
        }
    },
}


def document() -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    paths: dict[str, dict[str, Any]] = {}
    for method, path in routes():
        paths.setdefault(path, {})[method.lower()] = _operation(method, path)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Breakwater", "version": "1", "license": {"name": "Apache-2.0"}},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": {"Job": _job(), "JobRequest": _request(), "Problem": _problem()},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(method: str, path: str) -> dict[str, Any]:
    names = re.findall(r"{([a-z_]+)}", path)
    operation: dict[str, Any] = {
        "summary": SUMMARIES[f"{method} {path}"],
        "operationId": re.sub(r"[^a-z]+", "_", f"{method} {path}".lower()).strip("_"),
        "security": [] if any(part in path for part in _KEYLESS) and "token" not in path else [{"key": []}],
        "parameters": [{"name": one, "in": "path", "required": True, "schema": {"type": "string"}} for one in names],
        "responses": {"default": {"description": "What went wrong, and what to do", "content": _PROBLEM}},
    }
    if (method, path) in (("POST", "/v1/jobs"), ("POST", "/v1/run")):
        operation["parameters"].append(_KEY_HEADER)
        schema = {"$ref": "#/components/schemas/JobRequest"}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    operation["responses"] |= _answers(method, path)
    return operation


def _answers(method: str, path: str) -> dict[str, Any]:
    job = {"application/json": {"schema": {"$ref": "#/components/schemas/Job"}}}
    about_job = path in ("/v1/jobs", "/v1/run") or re.fullmatch(r"/v1/jobs/{job_id}(/cancel|/retry)?", path)
    if method == "POST" and about_job:
        return {
            "200": _LAST if path == "/v1/run" else {"description": "The job, final", "content": job},
            "202": {"description": "The job, on its way; look again after `Retry-After`", "content": job},
        }
    if path == "/v1/jobs/{job_id}":
        return {"200": {"description": "The job", "content": job}, "304": {"description": "Unchanged since `ETag`"}}
    if path.endswith("/stream"):
        events = {"text/event-stream": {"schema": {"type": "string"}}}
        return {"200": {"description": "Events", "content": events}, "204": {"description": "Nothing more will come"}}
    return {"200": {"description": "Done", "content": {"application/json": {"schema": {"type": "object"}}}}}


def _job() -> dict[str, Any]:
    """A job's public fields, with the types of `Job` itself. Times are ms since the epoch, money micro-dollars."""
    whole = TypeAdapter(Job).json_schema()["properties"]
    fields = {name: _plain(whole[name]) for name in PUBLIC}
    fields |= {
        "status": {"enum": [one.value for one in Status]},
        "lane": {"enum": [one.value for one in Lane]},
        "reason": {"enum": [one.value for one in Reason]},
        "final": {"type": "boolean", "description": "Nothing late moves it; stop polling"},
        "owed": {"type": "array", "items": {"type": "string"}, "description": "Effects not yet delivered"},
        "next_poll_after_ms": {"type": "integer", "description": "Absent when final"},
        "replayed": {"type": "boolean", "description": "The intent was known already"},
        "result": {"type": "object", "description": "Text, structured output, tool calls, media, usage, cost"},
        "result_url": {"type": "string", "description": "In place of `result` above 4 MiB; short-lived"},
        "result_expired": {"type": "boolean", "description": "In place of `result` whose body was cleaned away"},
    }
    return {"type": "object", "properties": dict(sorted(fields.items()))}


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in ("$ref", "default", "title")}


def _request() -> dict[str, Any]:
    whole = JobRequest.model_json_schema(ref_template="#/components/schemas/JobRequest/$defs/{model}")
    return dict(whole)


def _problem() -> dict[str, Any]:
    names = ("type", "title", "detail", "field", "rule", "fix", "request_id", "job_id", "latest")
    fields: dict[str, Any] = {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": {**fields, "status": {"type": "integer"}}, "description": "RFC 9457"}


def page() -> str:
    """The document as text."""
    return json.dumps(document(), indent=1, sort_keys=False) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the page, or with `--check` say whether it is fresh."""
    return keep(PAGE, page(), "openapi", arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
