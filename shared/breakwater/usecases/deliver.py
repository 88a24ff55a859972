"""What does the completion function do with a recorded webhook delivery?

The delivery says which provider job moved; the provider is asked what became of it, and its own metadata says which of
our executions it was. So an early, late, repeated or reordered delivery all lead to the same question and answer. A
sender that is never asked carries the outcome in its delivery, which is kept until here; from there on it is the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from breakwater.domain.errors import SecretUnavailable
from breakwater.domain.job import Execution, Job
from breakwater.domain.records import Child, Delivery, execution_key, execution_of, result_key, seen_key
from breakwater.domain.results import Completed, Found, Outcome, Refused
from breakwater.domain.routes import Route
from breakwater.domain.signals import ErrorClass
from breakwater.domain.telling import carries_result, entry_of, returns_no_metadata
from breakwater.domain.timing import DAY, MINUTE, nudge_grace
from breakwater.usecases.bodies import read_input
from breakwater.usecases.conclude import conclude
from breakwater.usecases.deps import Deps
from breakwater.usecases.retention import retained

if TYPE_CHECKING:
    from breakwater.domain.endpoints import DeliveryFacts, Endpoint

GIVE_UP_AFTER = 3 * DAY
EARLY = 10 * MINUTE  # a provider may tell of a job before its own reads, or ours, know it
_LATER = "not_now"


def deliver(deps: Deps, delivery_id: str) -> str:
    """Work on one delivery until its job knows what it said; says what became of it."""
    delivery = deps.store.delivery(delivery_id)
    if delivery is None or delivery.processed_at is not None:
        return "already_processed"
    age = deps.now() - delivery.received_at
    if age > GIVE_UP_AFTER:
        return _close(deps, delivery, "given_up")
    entry = entry_of(deps.catalogue, delivery.endpoint)
    kept = delivery.body is not None or delivery.blob is not None
    if entry is not None and carries_result(entry) and kept:
        verdict, job_id = _read(deps, delivery, entry)
    else:
        verdict, job_id = _fetch(deps, delivery)
    if verdict == _LATER or (verdict == "not_found" and age < EARLY):
        return _postpone(deps, delivery)
    return _close(deps, delivery, verdict, job_id)


# --- asked for ------------------------------------------------------------------------------------------------------


def _fetch(deps: Deps, delivery: Delivery) -> tuple[str, str | None]:
    """What the provider's own word on its job made of ours: the verdict, and whose it was."""
    if delivery.provider_job_id is None:
        return "no_provider_job", None
    found = _ask(deps, delivery)
    if found is None:
        return _LATER, None
    if isinstance(found.outcome, Refused) and not found.ended:
        return "not_found", None
    whose = _whose(deps, delivery, found.job_id or delivery.job_id, found.execution_id or delivery.execution_id)
    if isinstance(whose, str):
        return whose, found.job_id
    return _apply(deps, delivery, *whose, found.outcome), whose[0].job_id


def _ask(deps: Deps, delivery: Delivery) -> Found | None:
    """The provider's own word on its job; None when nobody could be asked now."""
    assert deps.providers is not None  # noqa: S101 - the completion function is wired with providers
    assert delivery.provider_job_id is not None  # noqa: S101 - checked by the caller
    unsure = False
    last: Found | None = None
    for route in _candidates(deps, delivery.endpoint):
        try:
            found = deps.providers.for_route(route.route_key).fetch(delivery.provider_job_id)
        except SecretUnavailable:
            unsure = True
            continue
        outcome = found.outcome
        if not isinstance(outcome, Refused) or found.ended:
            return found
        last = found
        unsure |= outcome.signal.error_class not in (ErrorClass.NOT_FOUND, ErrorClass.CREDENTIAL, ErrorClass.PERMISSION)
    return None if unsure else last


def _candidates(deps: Deps, endpoint: str) -> Iterator[Route]:
    """One route for each credential whose provider reports to this endpoint."""
    seen = set()
    for key in deps.catalogue.route_keys():
        route = deps.catalogue.route(key)
        if route is None or route.capabilities.webhook != endpoint:
            continue
        place = (route.base_url, route.credential)
        if place not in seen:
            seen.add(place)
            yield route


# --- carried --------------------------------------------------------------------------------------------------------


def _read(deps: Deps, delivery: Delivery, entry: Mapping[str, Any]) -> tuple[str, str | None]:
    """What the delivery's own word made of our job. Its body is read with the paths as they are deployed now."""
    from breakwater.domain.endpoints import endpoints_of, read  # noqa: PLC0415 - most deliveries are fetched

    body = delivery.body if delivery.body is not None else deps.payloads.get(delivery.blob or "")
    if body is None:
        return "body_gone", None
    endpoint = endpoints_of([entry])[delivery.endpoint]
    value = json.loads(body)  # it was read once before it was recorded
    facts = read(endpoint, value)
    whose = _whose(deps, delivery, facts.job_id, facts.execution_id)
    if isinstance(whose, str):
        return whose, facts.job_id
    return _told(deps, delivery, endpoint, facts, value, *whose), whose[0].job_id


def _told(
    deps: Deps,
    delivery: Delivery,
    endpoint: Endpoint,
    facts: DeliveryFacts,
    body: object,
    job: Job,
    execution: Execution,
) -> str:
    """Only who runs an execution may tell of it: its route reports to this endpoint."""
    from breakwater.domain.told import outcome_of  # noqa: PLC0415 - as above

    route = deps.catalogue.route(execution.route_key)
    if route is None:
        return _LATER  # a deploy may bring it back
    if route.capabilities.webhook != endpoint.name:
        return "not_ours"
    asked = read_input(deps, job) or {}
    outcome = outcome_of(
        endpoint, facts, body, route, delivery.received_at, wants_json=asked.get("json_schema") is not None
    )
    return _apply(deps, delivery, job, execution, outcome)


# --- whichever way --------------------------------------------------------------------------------------------------


def _whose(deps: Deps, delivery: Delivery, job_id: str | None, execution_id: str | None) -> tuple[Job, Execution] | str:
    """Whose work it was, by our ids as the provider returned them or as noted under its own id; or why nobody's."""
    if returns_no_metadata(entry_of(deps.catalogue, delivery.endpoint)) and not (job_id and execution_id):
        known = deps.store.provider_job(delivery.endpoint, delivery.provider_job_id or "")
        if known is None:
            return "not_found"  # the create call may not be answered yet
        job_id, execution_id = known.job_id, known.execution_id
    if job_id is None or execution_id is None:
        return "not_ours"
    job = deps.store.get(job_id)
    if job is None or not retained(job, deps.now()):
        return "job_gone"
    execution = _execution(deps, job, execution_id)
    return "not_ours" if execution is None else (job, execution)


def _apply(deps: Deps, delivery: Delivery, job: Job, execution: Execution, outcome: Outcome) -> str:
    """Make the outcome count, once."""
    trace = _trace(deps, delivery)
    if not isinstance(outcome, Completed | Refused):
        deps.store.put_child(job.job_id, trace, job.ttl)
        return "still_running"
    if isinstance(outcome, Completed) and outcome.result.provider_job_id is None:
        outcome = Completed(result=replace(outcome.result, provider_job_id=delivery.provider_job_id))
    step = conclude(deps, job, execution, outcome, trace=trace)
    return "already_settled" if step is None else "settled"


def _trace(deps: Deps, delivery: Delivery) -> Child:
    """The job's own record that a webhook came: a diagnosis can't search deliveries by job."""
    data = {
        "delivery_id": delivery.id,
        "event_type": delivery.event_type,
        "received_at": delivery.received_at,
        "processed_at": deps.now(),
    }
    return Child(sk=seen_key(delivery), data=data)


def _execution(deps: Deps, job: Job, execution_id: str) -> Execution | None:
    """The execution a provider's metadata names, open or archived; None when it is not this job's."""
    if not execution_id.startswith(f"{job.job_id}.{job.created_at}."):
        return None
    if job.execution is not None and job.execution.id == execution_id:
        return job.execution
    try:
        keys = (execution_key(execution_id), result_key(execution_id))
    except ValueError:  # somebody else's metadata under our names
        return None
    child = next((child for key in keys if (child := deps.store.child(job.job_id, key)) is not None), None)
    return execution_of(child.data["execution"]) if child is not None else None


def _close(deps: Deps, delivery: Delivery, verdict: str, job_id: str | None = None) -> str:
    now = deps.now()
    deps.store.update_delivery(delivery, replace(delivery, processed_at=now, verdict=verdict, due_at=None))
    deps.log.note(
        "delivery_processed",
        endpoint=delivery.endpoint,
        webhook_id=delivery.webhook_id,
        verdict=verdict,
        job_id=job_id or delivery.job_id,
        event_type=delivery.event_type,
        delay_ms=now - delivery.received_at,
    )
    return verdict


def _postpone(deps: Deps, delivery: Delivery) -> str:
    """Nobody could be asked: the delivery stays due, until it is too old to matter."""
    now = deps.now()
    later = replace(delivery, due_at=now + nudge_grace(delivery.nudges + 1), nudges=delivery.nudges + 1)
    deps.store.update_delivery(delivery, later)
    return "postponed"
