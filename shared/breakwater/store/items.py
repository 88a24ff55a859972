"""How does a value become an item, and back?

META keeps only what differs from the default: every transition pays for its whole size. Index attributes are derived
here and nowhere else. Readers ignore attributes they don't know, so a newer version may have written them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any
from zlib import crc32

from breakwater.domain.errors import CorruptItem
from breakwater.domain.job import Job, SlotRef
from breakwater.domain.records import Child, Delivery, ProviderJob, RouteState
from breakwater.domain.release import turn_name
from breakwater.domain.states import Lane, Priority, Reason, Status
from breakwater.store.packing import (
    packed,
    packed_execution,
    packed_owed,
    unpacked,
    unpacked_execution,
    unpacked_owed,
)
from breakwater.store.wire import from_wire

DUE_SHARDS = 8
RANK_UNIT = 10**13  # ties by `created_at`, which has 13 digits until the year 2286
META = "META"

_ENUMS = {"status": Status, "lane": Lane, "reason": Reason, "priority": Priority}
_DEFAULTS = {one.name: one.default for one in fields(Job) if one.default is not MISSING}
_ALWAYS = frozenset({"status", "lane", "reason", "attempt", "max_attempts", "generation", "rev", "priority"})
_NAMES = tuple(one.name for one in fields(Job))


def job_key(job_id: str) -> dict[str, Any]:
    """The key of a job's META, typed."""
    return {"pk": {"S": f"JOB#{job_id}"}, "sk": {"S": META}}


def due_shard(item_id: str, *, again: bool = False) -> str:
    """The partition of the `due` index that lists this item.

    What the sweep has nudged before stands apart: a flood of unanswered nudges can't hide what has just become due.
    """
    return f"{due_name(again=again)}#{crc32(item_id.encode()) % DUE_SHARDS}"


def due_name(*, again: bool) -> str:
    """The two halves of the index."""
    return "again" if again else "due"


def job_attributes(job: Job) -> dict[str, Any]:
    """A job as the attributes of META, keys and index attributes included."""
    item: dict[str, Any] = {"pk": f"JOB#{job.job_id}", "sk": META}
    for name in _NAMES:
        value = _plain(job, name, getattr(job, name))
        if name in _ALWAYS or (value is not None and value != _DEFAULTS.get(name, MISSING) and value not in ([], {})):
            item[name] = value
    return {**packed(item, job), **_index(job)}


def _plain(job: Job, name: str, value: Any) -> Any:
    if name == "execution":
        return None if value is None else packed_execution(value, job)
    if name == "slots":
        return [f"{slot.scope}|{slot.n}" for slot in value]
    if name == "owed":
        return packed_owed(value, job.job_id)
    return value.value if name in _ENUMS else value


def _index(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = {"owner_shard": job.owner_key}
    if job.due_at is not None:
        found["due_shard"] = due_shard(job.job_id, again=job.sweeps > 0)
    if job.waiting_scope is not None:
        found["ready_scope"] = job.waiting_scope
        found["ready_rank"] = (job.waiting_rank or 0) * RANK_UNIT + job.created_at
        found["ready_turn"] = f"{turn_name(job.owner_key)}#{max(0, job.waiting_rank or 0):014d}{job.created_at:013d}"
    if job.counted and not job.in_review and job.status in (Status.PENDING, Status.FAILED):
        found["standing_lane"] = job.lane.value
        found["standing_place"] = f"{turn_name(job.owner_key)}#{job.round_started_at:013d}"
    if (job.status is Status.DEAD_LETTER and job.closed_at is None) or job.in_review:
        found["attention_shard"], found["attention_at"] = job.lane.value, job.completed_at or job.updated_at
    return found


def job_of(item: Mapping[str, Any]) -> Job:
    """META as a job. Raises `CorruptItem` naming the id when it doesn't read."""
    plain = from_wire(item)
    try:
        named = {**_DEFAULTS, **unpacked(plain)}
        return Job(**{name: _value(named, name, named[name]) for name in _NAMES if name in named})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CorruptItem(f"META does not read: {type(error).__name__}", item=plain.get("pk")) from error


def _value(named: Mapping[str, Any], name: str, value: Any) -> Any:
    if name == "execution":
        return None if value is None else unpacked_execution(value, named)
    if name == "slots":
        return tuple(SlotRef(scope=scope, n=int(n)) for scope, n in (one.rsplit("|", 1) for one in value))
    if name == "owed":
        return unpacked_owed(value, named["job_id"])
    return _ENUMS[name](value) if name in _ENUMS else value


def child_attributes(job_id: str, child: Child, ttl: int | None) -> dict[str, Any]:
    """A child as an item."""
    item: dict[str, Any] = {"pk": f"JOB#{job_id}", "sk": child.sk}
    item |= {"data": dict(child.data)} if child.data else {}
    item |= {"body": child.body} if child.body is not None else {}
    item |= {"blob": child.blob} if child.blob is not None else {}
    return item | ({"ttl": ttl} if ttl is not None else {})


def child_of(item: Mapping[str, Any]) -> Child:
    """An item as a child."""
    plain = from_wire(item)
    return Child(sk=plain["sk"], data=plain.get("data", {}), body=plain.get("body"), blob=plain.get("blob"))


def delivery_attributes(delivery: Delivery) -> dict[str, Any]:
    """A delivery as an item; listed in `due` until it is processed."""
    item = {name: value for name in Delivery.__dataclass_fields__ if (value := getattr(delivery, name)) is not None}
    item |= {"pk": f"DELIVERY#{delivery.id}", "sk": META}
    shard = due_shard(delivery.id, again=delivery.nudges > 0)
    return item | ({"due_shard": shard} if delivery.due_at is not None else {})


def delivery_of(item: Mapping[str, Any]) -> Delivery:
    """An item as a delivery."""
    plain = from_wire(item)
    return Delivery(**{name: plain[name] for name in Delivery.__dataclass_fields__ if name in plain})


def provider_job_attributes(known: ProviderJob) -> dict[str, Any]:
    """Whose a provider job is, as an item."""
    item = {name: value for name in ProviderJob.__dataclass_fields__ if (value := getattr(known, name)) is not None}
    return item | {"pk": f"PROVIDER#{known.endpoint}#{known.provider_job_id}", "sk": META}


def provider_job_of(item: Mapping[str, Any]) -> ProviderJob:
    """An item as whose a provider job is."""
    plain = from_wire(item)
    return ProviderJob(**{name: plain[name] for name in ProviderJob.__dataclass_fields__ if name in plain})


def route_attributes(state: RouteState) -> dict[str, Any]:
    """A route's state as an item; listed in `due` while it waits to open."""
    item = {name: value for name in RouteState.__dataclass_fields__ if (value := getattr(state, name)) is not None}
    item |= {"pk": f"ROUTE#{state.route_key}", "sk": META}
    return item | ({"due_shard": due_shard(state.route_key)} if state.due_at is not None else {})


def route_of(item: Mapping[str, Any]) -> RouteState:
    """An item as a route's state."""
    plain = from_wire(item)
    return RouteState(**{name: plain[name] for name in RouteState.__dataclass_fields__ if name in plain})
