"""Which other items stand beside a job's META?

Children (immutable, put-if-absent), deliveries, routes, keys. Their keys name incarnation, generation and attempt, so
that a late writer can overwrite nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from breakwater.domain.job import Execution, execution_suffix
from breakwater.domain.timing import MINUTE
from breakwater.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """An immutable record under a job. `body` is JSON text kept inline, `blob` points into the object store."""

    sk: str
    data: Mapping[str, Any] = field(default_factory=dict)
    body: str | None = None
    blob: str | None = None


INPUTS, RESULTS = "INPUT#", "RESULT#"  # where these children begin


def input_key(incarnation: int, sha: str) -> str:
    """Where the admitted input stands."""
    return f"{INPUTS}{incarnation:013d}#{sha}"


def result_key(execution_id: str) -> str:
    """Where the paid result of an execution stands; it is also the record of a successful execution."""
    return f"RESULT#{execution_suffix(execution_id)}"


def execution_key(execution_id: str) -> str:
    """Where a closed execution stands."""
    return f"EXEC#{execution_suffix(execution_id)}"


def late_key(execution_id: str, what: str) -> str:
    """Where late evidence about an execution stands: `what` names the kind (accepted, refused, completed)."""
    return f"LATE#{execution_suffix(execution_id)}#{what}"


def generation_key(incarnation: int, generation: int) -> str:
    """Where the outcome of an earlier generation stands."""
    return f"GEN#{incarnation:013d}#{generation:04d}"


def effect_child_key(effect_key: str) -> str:
    """Where a delivered (or given up) effect is recorded."""
    return f"EFFECT#{effect_key}"


def audit_key(at: int, tag: str) -> str:
    """Where what a user or the system did stands, in order of time."""
    return f"AUDIT#{at:013d}#{tag}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One webhook delivery as recorded: who it is about and whether it was worked on.

    Its content only where the sender is never asked for the outcome: JSON text in `body`, or in the object store.
    """

    endpoint: str
    webhook_id: str
    event_type: str
    body_sha: str
    received_at: int
    provider_job_id: str | None = None
    job_id: str | None = None
    execution_id: str | None = None
    outcome: str | None = None
    due_at: int | None = None
    nudges: int = 0
    processed_at: int | None = None
    verdict: str | None = None  # settled, still_running, not_ours, given_up … as `usecases/deliver.py` says
    body: str | None = None
    blob: str | None = None
    ttl: int | None = None

    @property
    def id(self) -> str:
        """`endpoint#webhook-id`, as a nudge carries it."""
        return f"{self.endpoint}#{self.webhook_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderJob:
    """Whose work a provider job is, where its provider can't return our metadata."""

    endpoint: str  # where its deliveries come in
    provider_job_id: str
    job_id: str
    execution_id: str
    ttl: int | None = None


def seen_key(delivery: Delivery) -> str:
    """Where a job keeps that a delivery about it was worked on."""
    return f"SEEN#{delivery.received_at:013d}#{delivery.body_sha[:16]}"


PACE_LOST = 2 * MINUTE  # behind its time a line's clock has stopped: its nudges and a sweep's are lost


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteState:
    """What everybody must know about a route: open, or closed until T because R; `ramp.py` moves the rest."""

    route_key: str
    closed_until: int | None = None
    reason: str | None = None
    closed_by: str | None = None
    since: int | None = None
    limit: int | None = None  # calls at once; None: as configured, 0: open circuit, then one probe
    ramp_since: int | None = None  # calls from here on count against `limit`
    changed_at: int | None = None
    faults: int = 0  # in a row
    fault_at: int | None = None
    opens: int = 0  # how often the circuit opened since the route was last as configured
    due_at: int | None = None  # when it opens, and its waiters have to be woken
    paced_until: int | None = None  # jobs stand in line for its rates; when the next ones go
    rev: int = 0

    def closed(self, now: int) -> bool:
        """Whether no call may go out now."""
        return self.closed_until is not None and self.closed_until > now

    def paced(self, now: int) -> bool:
        """Whether a line for its rates moves: who comes now stands behind it. A clock nobody winds says nothing."""
        return self.paced_until is not None and now - self.paced_until <= PACE_LOST


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """Who a key speaks for. Only the hash of the key is stored."""

    key_hash: str
    key_id: str
    owner_key: str
    scopes: frozenset[str]
    created_at: int = 0
    revoked_at: int | None = None
    expires_at: int | None = None

    def usable(self, now: int) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)


def execution_data(execution: Execution) -> dict[str, Any]:
    """An execution as plain data, without what is not known."""
    names = Execution.__dataclass_fields__
    return {name: value for name in names if (value := getattr(execution, name)) is not None}


def execution_of(data: Mapping[str, Any]) -> Execution:
    """The reverse of `execution_data`, tolerant of fields a newer version wrote."""
    return Execution(**{name: data[name] for name in Execution.__dataclass_fields__ if name in data})
