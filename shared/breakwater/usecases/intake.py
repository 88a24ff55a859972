"""What happens to a verified webhook? It is recorded with a `due_at`, then nudged.

The record is the truth: a crash between the two leaves a due delivery that the sweep nudges again, and a repeated
delivery whose record is not processed yet is nudged again too. So neither can be lost without the other being repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

from breakwater.domain.errors import QueueUnavailable
from breakwater.domain.obligations import Nudge, Queue
from breakwater.domain.records import Delivery
from breakwater.domain.sizes import INLINE_BYTES
from breakwater.domain.timing import DAY, NUDGE_GRACE
from breakwater.domain.values import dataclass
from breakwater.ports import Clock, JobStore, Log, Payloads, Queues

KEEP_DAYS = 7
REOPENED = frozenset({"given_up", "not_found", "body_gone"})  # closed without its job having heard of it


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeDeps:
    """What the intake function needs; less than the other use cases, to start lean.

    `payloads` is built when a body is first too large for the table: most never are.
    """

    store: JobStore
    queues: Queues
    payloads: Callable[[], Payloads]
    clock: Clock
    log: Log


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a delivery says, as its endpoint's description reads it. `carries_result`: its body is kept until then."""

    event_type: str
    provider_job_id: str | None = None
    job_id: str | None = None
    execution_id: str | None = None
    outcome: str | None = None
    carries_result: bool = False


def take(deps: IntakeDeps, endpoint: str, webhook_id: str, body: bytes, facts: Facts) -> str:
    """Record and nudge one verified delivery, and say how it was known.

    `recorded`; `repeated`; `reopened` (it had been closed without being worked on); `conflicting` (same id, another
    body). Raises `StoreUnavailable` when it could not be recorded; the sender then delivers again.
    """
    now = deps.clock.now()
    delivery = Delivery(
        endpoint=endpoint,
        webhook_id=webhook_id,
        event_type=facts.event_type[:80],
        body_sha=hashlib.sha256(body).hexdigest(),
        received_at=now,
        provider_job_id=facts.provider_job_id,
        job_id=facts.job_id,
        execution_id=facts.execution_id,
        outcome=facts.outcome,
        due_at=now + NUDGE_GRACE,
        ttl=(now + KEEP_DAYS * DAY) // 1000,
    )
    if facts.carries_result:
        delivery = _with_body(deps, delivery, body)
    standing = deps.store.record_delivery(delivery)
    verdict = _verdict(delivery, standing)
    if verdict == "conflicting":
        _keep_evidence(deps, delivery)
    if standing is not None and verdict == "reopened":
        deps.store.reopen_delivery(standing, delivery)  # lost to another redelivery: that one stands, and is nudged
    if standing is None or standing.processed_at is None or verdict == "reopened":
        _nudge(deps, delivery, now)
    deps.log.note(
        "delivery_taken",
        endpoint=endpoint,
        webhook_id=webhook_id,
        event_type=delivery.event_type,
        job_id=facts.job_id,
        verdict=verdict,
    )
    return verdict


def _with_body(deps: IntakeDeps, delivery: Delivery, body: bytes) -> Delivery:
    """The delivery with what it carries: nobody can be asked for it again. A large one is stored first."""
    if len(body) <= INLINE_BYTES:
        return replace(delivery, body=body.decode())
    key = f"deliveries/{delivery.endpoint}/{delivery.body_sha}.json"
    return replace(delivery, blob=deps.payloads().put(key, body))


def _verdict(delivery: Delivery, standing: Delivery | None) -> str:
    if standing is None:
        return "recorded"
    if standing.body_sha != delivery.body_sha:
        return "conflicting"
    return "reopened" if standing.verdict in REOPENED else "repeated"


def _keep_evidence(deps: IntakeDeps, delivery: Delivery) -> None:
    """Another body under a known id: kept under a name of its own, never worked on."""
    kept = Delivery(
        endpoint=delivery.endpoint,
        webhook_id=f"{delivery.webhook_id}#{delivery.body_sha[:16]}",
        event_type=delivery.event_type,
        body_sha=delivery.body_sha,
        received_at=delivery.received_at,
        processed_at=delivery.received_at,
        verdict="conflicting",
        ttl=delivery.ttl,
    )
    deps.store.record_delivery(kept)


def _nudge(deps: IntakeDeps, delivery: Delivery, now: int) -> None:
    try:
        deps.queues.nudge("delivery", delivery.id, [Nudge(Queue.COMPLETION, now)], delivery.endpoint, now)
    except QueueUnavailable:
        deps.log.note("nudge_lost", delivery=delivery.id, queues=[Queue.COMPLETION.value])
