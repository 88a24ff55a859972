"""What is there to know about one job? Gathered from META, its children and its route; judged by pure rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from itertools import product
from typing import Any

from breakwater.domain.diagnosis import Action, Case, Diagnosis, Finding, Seen
from breakwater.domain.diagnosis_rules import diagnose
from breakwater.domain.job import Job
from breakwater.domain.records import Delivery
from breakwater.domain.states import Status
from breakwater.domain.timing import DAY
from breakwater.ports import DueItem
from breakwater.usecases.deps import Deps
from breakwater.usecases.notify import notify_key

_SHARDS = 8
_PAGE = 100
_PAGES = 10  # of a shard, read for a diagnosis at most; beyond them nothing is claimed
_DELIVERIES = 300  # and so many of the deliveries in them
_DEFAULT_EXPECTED_MS = 30_000


def diagnosis(deps: Deps, job: Job, *, deliveries: bool = False) -> Diagnosis:
    """The verdict on a job. `deliveries`: also look for webhooks that are recorded but not worked on."""
    policy, route = deps.catalogue.policy(job.workflow), deps.catalogue.route(job.route_key)
    seen = Seen(
        input_present=deps.store.child(job.job_id, job.input_ref) is not None,
        executions=(*_closed(deps, job), *_processed(deps, job)),
        **_effects(deps, job),
        deliveries=_unprocessed(deps, job) if deliveries else None,
        webhook_expected=route is not None and route.capabilities.webhook is not None,
        expected_ms=policy.expected_duration_ms if policy else _DEFAULT_EXPECTED_MS,
    )
    return diagnose(Case(job=job, seen=seen, route=deps.store.route(job.route_key), now=deps.now()))


def _closed(deps: Deps, job: Job) -> list[Mapping[str, Any]]:
    found = [child for prefix in ("EXEC#", "RESULT#") for child in deps.store.children(job.job_id, prefix)]
    return [{"kind": "execution", **child.data.get("execution", {})} for child in found]


def _processed(deps: Deps, job: Job) -> list[Mapping[str, Any]]:
    return [{"kind": "delivery", **child.data} for child in deps.store.children(job.job_id, "SEEN#")]


def _effects(deps: Deps, job: Job) -> dict[str, Any]:
    """What was told outside, and what was given up and why. Of a callback the job itself knows the latest."""
    records = {one.sk.partition("#")[2]: one.data.get("given_up") for one in deps.store.children(job.job_id, "EFFECT#")}
    if notify_key(job) in records:
        records[notify_key(job)] = None if notify_key(job) in job.owed else job.notify_reason
    return {
        "delivered": tuple(key for key, why in records.items() if not why and key not in job.owed),
        "given_up": {key: str(why) for key, why in records.items() if why},
    }


def _unprocessed(deps: Deps, job: Job) -> tuple[Mapping[str, Any], ...] | None:
    """Deliveries of the `due` index that speak of this job. The index holds only what is unfinished.

    None: there is too much in it to say that there are none.
    """
    if job.status is not Status.PROCESSING:
        return ()
    recorded, all_read = [], True
    for shard, again in product(range(_SHARDS), (False, True)):
        items, read = _due(deps, shard, again=again)
        all_read = all_read and read
        recorded += [item.id for item in items if item.kind == "delivery"]
    read_now = (deps.store.delivery(one) for one in recorded[:_DELIVERIES])
    found = [
        {"id": one.id, "received_at": one.received_at, "nudges": one.nudges}
        for one in read_now
        if one is not None and _speaks_of(one, job)
    ]
    return tuple(found) if found or (all_read and len(recorded) <= _DELIVERIES) else None


def _due(deps: Deps, shard: int, *, again: bool) -> tuple[list[DueItem], bool]:
    """What is unfinished in one shard, and whether that is all."""
    items, cursor = deps.store.due(shard, deps.now() + DAY, _PAGE, again=again)
    for _ in range(_PAGES - 1):
        if cursor is None:
            break
        page, cursor = deps.store.due(shard, deps.now() + DAY, _PAGE, cursor, again=again)
        items += page
    return items, cursor is None


def _speaks_of(delivery: Delivery, job: Job) -> bool:
    """By our own id, or by the provider's."""
    named = delivery.provider_job_id is not None and delivery.provider_job_id == job.provider_job_id
    return named or delivery.job_id == job.job_id


def shown(found: Diagnosis, *, by: tuple[str, ...] = ("owner",)) -> dict[str, Any]:
    """A diagnosis as plain data; `by` names whose actions are listed."""
    return {
        "job_id": found.job_id,
        "layer": found.layer.value,
        "condition": found.condition.value,
        "verdict": found.verdict,
        "next": {name: value for name, value in asdict(found.next).items() if value is not None},
        "can_do": [_action(one) for one in found.can_do if one.by in by],
        "evidence": [_finding(one) for one in found.evidence],
    }


def _action(one: Action) -> dict[str, str]:
    return {"by": one.by, "says": one.says, "command": one.command}


def _finding(one: Finding) -> dict[str, Any]:
    return {"layer": one.layer.value, "mark": one.mark.value, **one.facts}
