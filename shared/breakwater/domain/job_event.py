"""What does an event about a job's end say? One documented, versioned set of fields; ids, words and numbers only.

The same detail goes to the team's bus and into notifications. Within a version fields are only added, and a reader
ignores those it does not know; a field that goes or changes its meaning raises the version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from breakwater.domain.job import Job
from breakwater.domain.values import dataclass

VERSION = 1
KINDS = {
    "job.succeeded": "The result is stored: read it with `GET /v1/jobs/{job_id}`.",
    "job.dead_letter": "A limit is reached or it can't recover; `reason` says which. It may be replayed, and then ends "
    "once more, under the next `generation`.",
    "job.cancelled": "Its owner or an operator stopped it.",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its name, its JSON type, what it means, and where it comes from."""

    name: str
    type: str
    meaning: str
    of: Callable[[Job], Any]


FIELDS: tuple[Field, ...] = (
    Field("version", "integer", "of this set of fields", lambda _: VERSION),
    Field("job_id", "string", "the job", lambda job: job.job_id),
    Field("workflow", "string", "its workflow", lambda job: job.workflow),
    Field("owner_key", "string", "the owner it belongs to", lambda job: job.owner_key),
    Field("user_ref", "string or null", "the owner's own name for an end user", lambda job: job.user_ref),
    Field("idempotency_key", "string", "the key of the intent: your own reference", lambda job: job.idempotency_key),
    Field("status", "string", "`succeeded`, `dead_letter` or `cancelled`", lambda job: job.status.value),
    Field("reason", "string", "why; one of a closed set of words", lambda job: job.reason.value),
    Field(
        "error_class", "string or null", "of the last refusal, where there was one", lambda job: job.last_error_class
    ),
    Field("generation", "integer", "1, and one more for each replay or manual retry", lambda job: job.generation),
    Field("attempts", "integer", "calls made in this generation", lambda job: job.attempt),
    Field("route_key", "string", "the route taken last", lambda job: job.route_key),
    Field("requested_model", "string", "the model asked for", lambda job: job.requested_model),
    Field("served_model", "string or null", "the model that answered", lambda job: job.served_model),
    Field(
        "possible_duplicate", "boolean", "an earlier call may have been executed too", lambda j: j.possible_duplicate
    ),
    Field("cost_micros", "integer", "micro-dollars spent so far, by all its calls", lambda job: job.cost_micros),
    Field("usage_units", "integer", "tokens (or images) used so far", lambda job: job.usage_units),
    Field("created_at", "integer", "when it was accepted, in ms since 1970 UTC", lambda job: job.created_at),
    Field("completed_at", "integer or null", "when it ended, in ms since 1970 UTC", lambda job: job.completed_at),
)


def bus_detail(job: Job) -> dict[str, Any]:
    """The detail of a job's event: ids, status, reason, money; never content."""
    return {one.name: one.of(job) for one in FIELDS}


def kind_of(job: Job) -> str:
    """The name of the event."""
    return f"job.{job.status.value}"
