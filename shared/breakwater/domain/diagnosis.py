"""Which layer is a job in, since when, and what happens next? Values, and the evidence each layer left.

Evidence is listed in the order in which a job passes the layers: recorded? nudged? leased by whom until when? route
open? provider job id? delivery seen? effects owed? The verdict (`diagnosis_rules.py`) names one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any

from breakwater.domain.job import Job
from breakwater.domain.records import RouteState
from breakwater.domain.values import dataclass


class Layer(StrEnum):
    """The layers a job passes, in order."""

    CLIENT = "client"
    ADMISSION = "admission"
    QUEUE = "queue"
    WORKER = "worker"
    ROUTE = "route"  # the route and our own limits
    PROVIDER = "provider"
    WEBHOOK = "webhook"
    EFFECTS = "effects"
    FINISHED = "finished"


class Condition(StrEnum):
    """How it stands there; more than a yes or no."""

    IN_PROGRESS = "in_progress"  # as it should be
    WAITING = "waiting"  # for a known time
    STUCK = "stuck"  # something should have happened by now
    NEEDS_A_PERSON = "needs_a_person"  # held, or dead until somebody decides
    STOPPED_BY_A_PERSON = "stopped_by_a_person"
    DONE = "done"


class Mark(StrEnum):
    """What the evidence of a layer comes to."""

    PASSED = "passed"
    HERE = "here"
    NOT_REACHED = "not_reached"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What stands beside META. `deliveries` is None where nobody looked for unprocessed ones, or not at all of them."""

    input_present: bool = True
    executions: tuple[Mapping[str, Any], ...] = ()
    delivered: tuple[str, ...] = ()  # keys of effects that have their record
    given_up: Mapping[str, str] = field(default_factory=dict)  # and of those that nobody took, with the reason
    deliveries: tuple[Mapping[str, Any], ...] | None = None  # recorded, not processed yet, about this provider job
    webhook_expected: bool = False
    expected_ms: int = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A job with everything that is known about it now."""

    job: Job
    seen: Seen
    route: RouteState | None
    now: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The evidence of one layer."""

    layer: Layer
    mark: Mark
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The verdict: the layer, how it stands there, and one sentence."""

    layer: Layer
    condition: Condition
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What happens by itself, and when; nothing where a person has to act."""

    what: str
    at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What somebody can do now: `by` is `owner` or `operator`."""

    by: str
    says: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The whole answer."""

    job_id: str
    layer: Layer
    condition: Condition
    verdict: str
    evidence: tuple[Finding, ...]
    next: Next
    can_do: tuple[Action, ...] = field(default=())


def evidence(case: Case, where: Layer) -> tuple[Finding, ...]:
    """What each layer left, in order, marked against the layer of the verdict."""
    found, passed = [], Mark.PASSED
    for layer in Layer:
        mark = Mark.HERE if layer is where else passed
        passed = Mark.NOT_REACHED if layer is where else passed
        facts = {name: value for name, value in _FACTS[layer](case).items() if value is not None}
        found.append(Finding(layer=layer, mark=mark, facts=facts))
    return tuple(found)


def _client(case: Case) -> dict[str, Any]:
    job = case.job
    return {
        "request_id": job.request_id,
        "idempotency_key": "given" if job.key_given else "derived",
        "cancel_requested_at": job.cancel_requested_at,
        "cancelled_by": job.cancelled_by,
    }


def _admission(case: Case) -> dict[str, Any]:
    job = case.job
    return {
        "recorded_at": job.created_at,
        "input_present": case.seen.input_present,
        "lane": job.lane.value,
        "generation": job.generation,
        "expires_at": job.expires_at,
        "review_expires_at": job.review_expires_at if job.in_review else None,
    }


def _queue(case: Case) -> dict[str, Any]:
    job = case.job
    return {
        "ready_at": job.ready_at,
        "last_nudged_at": job.nudged_at,
        "nudge_visible_at": job.nudged_for,
        "nudges_unanswered": job.nudges,
        "nudges_in_all": job.nudges_total,
        "handlers_crashed": job.crashes or None,
        "due_at": job.due_at,
    }


def _worker(case: Case) -> dict[str, Any]:
    job, execution = case.job, case.job.execution
    return {
        "attempts": job.attempt,
        "max_attempts": job.max_attempts,
        "lease_epoch": job.lease_epoch,
        "locked_until": job.locked_until,
        "execution_id": execution.id if execution else None,
        "opened_at": execution.opened_at if execution else None,
        "lambda_request_id": execution.lambda_request_id if execution else None,
        "message_id": execution.message_id if execution else None,
        "closed_executions": len(case.seen.executions) or None,
    }


def _route(case: Case) -> dict[str, Any]:
    job, route = case.job, case.route
    closed = route is not None and route.closed(case.now)
    return {
        "route_key": job.route_key,
        "open": not closed,
        "closed_until": route.closed_until if route and closed else None,
        "closed_because": route.reason if route and closed else None,
        "closed_by": route.closed_by if route and closed else None,
        "waits": job.waits,
        "waiting_for": job.waiting_scope,
        "fallback": job.fallback_allowed,
    }


def _provider(case: Case) -> dict[str, Any]:
    job = case.job
    return {
        "provider_job_id": job.provider_job_id,
        "provider_request_id": job.execution.provider_request_id if job.execution else None,
        "polls": job.polls,
        "next_poll_at": job.poll_at,
        "provider_deadline_at": job.provider_deadline_at,
        "last_error_class": job.last_error_class,
        "last_error_type": job.last_error_type,
        "http_status": job.http_status,
        "retry_after_ms": job.retry_after_ms,
    }


def _webhook(case: Case) -> dict[str, Any]:
    waiting = case.seen.deliveries
    processed = [one for one in case.seen.executions if one.get("kind") == "delivery"]
    return {
        "expected": case.seen.webhook_expected,
        "processed": len(processed),
        "last_processed_at": max((one.get("processed_at", 0) for one in processed), default=None),
        "recorded_but_not_processed": None if waiting is None else len(waiting),
    }


def _effects(case: Case) -> dict[str, Any]:
    owed = {key: {"next_at": one.next_at, "tries": one.tries} for key, one in case.job.owed.items()}
    return {"owed": owed, "delivered": list(case.seen.delivered), "given_up": dict(case.seen.given_up) or None}


def _finished(case: Case) -> dict[str, Any]:
    job = case.job
    return {
        "status": job.status.value,
        "reason": job.reason.value,
        "final": job.final,
        "completed_at": job.completed_at,
        "result": job.result_ref is not None,
        "closed_at": job.closed_at,
        "closed_by": job.closed_by,
    }


_FACTS: Mapping[Layer, Callable[[Case], dict[str, Any]]] = {
    Layer.CLIENT: _client,
    Layer.ADMISSION: _admission,
    Layer.QUEUE: _queue,
    Layer.WORKER: _worker,
    Layer.ROUTE: _route,
    Layer.PROVIDER: _provider,
    Layer.WEBHOOK: _webhook,
    Layer.EFFECTS: _effects,
    Layer.FINISHED: _finished,
}
