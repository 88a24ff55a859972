"""What does the completion function do with a recorded webhook delivery?

The delivery says which provider job moved; the provider is asked what became of it, and its own metadata says which of
our executions it was. So an early, late, repeated or reordered delivery all lead to the same question and answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from breakwater.domain.errors import SecretUnavailable
from breakwater.domain.job import Execution, Job
from breakwater.domain.records import Child, Delivery, execution_key, execution_of, result_key, seen_key
from breakwater.domain.results import Completed, Found, Refused
from breakwater.domain.routes import Route
from breakwater.domain.signals import ErrorClass
from breakwater.domain.timing import DAY, MINUTE, nudge_grace
from breakwater.usecases.conclude import conclude
from breakwater.usecases.deps import Deps
from breakwater.usecases.retention import retained

GIVE_UP_AFTER = 3 * DAY
EARLY = 10 * MINUTE  # a provider may tell of a job before its own reads know it


def deliver(deps: Deps, delivery_id: str) -> str:
    """Work on one delivery until its job knows what it said; says what became of it."""
    delivery = deps.store.delivery(delivery_id)
    if delivery is None or delivery.processed_at is not None:
        return "already_processed"
    if deps.now() - delivery.received_at > GIVE_UP_AFTER:
        return _close(deps, delivery, "given_up")
    if delivery.provider_job_id is None:
        return _close(deps, delivery, "no_provider_job")
    found = _ask(deps, delivery)
    if found is None:
        return _postpone(deps, delivery)
    verdict = _apply(deps, delivery, found)
    if verdict == "not_found" and deps.now() - delivery.received_at < EARLY:
        return _postpone(deps, delivery)
    return _close(deps, delivery, verdict, found.job_id)


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


def _apply(deps: Deps, delivery: Delivery, found: Found) -> str:
    outcome = found.outcome
    if isinstance(outcome, Refused) and not found.ended:
        return "not_found"
    job_id, execution_id = found.job_id or delivery.job_id, found.execution_id or delivery.execution_id
    if job_id is None or execution_id is None:
        return "not_ours"
    job = deps.store.get(job_id)
    if job is None or not retained(job, deps.now()):
        return "job_gone"
    execution = _execution(deps, job, execution_id)
    if execution is None:
        return "not_ours"
    _leave_trace(deps, job, delivery)
    if not isinstance(outcome, Completed | Refused):
        return "still_running"
    if isinstance(outcome, Completed) and outcome.result.provider_job_id is None:
        outcome = Completed(result=replace(outcome.result, provider_job_id=delivery.provider_job_id))
    step = conclude(deps, job, execution, outcome)
    return "already_settled" if step is None else "settled"


def _leave_trace(deps: Deps, job: Job, delivery: Delivery) -> None:
    """The job's own record that a webhook came: a diagnosis can't search deliveries by job."""
    data = {
        "delivery_id": delivery.id,
        "event_type": delivery.event_type,
        "received_at": delivery.received_at,
        "processed_at": deps.now(),
    }
    deps.store.put_child(job.job_id, Child(sk=seen_key(delivery), data=data), job.ttl)


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
