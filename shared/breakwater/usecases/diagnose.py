"""What is there to know about one job? Gathered from META, its children and its route; judged by pure rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from itertools import product
from typing import Any

from breakwater.domain.diagnosis import Action, Case, Diagnosis, Finding, Seen
from breakwater.domain.diagnosis_rules import diagnose
from breakwater.domain.job import Job
from breakwater.domain.states import Status
from breakwater.domain.timing import DAY
from breakwater.usecases.deps import Deps

_SHARDS = 8
_PAGE = 100
_DEFAULT_EXPECTED_MS = 30_000


def diagnosis(deps: Deps, job: Job, *, deliveries: bool = False) -> Diagnosis:
    """The verdict on a job. `deliveries`: also look for webhooks that are recorded but not worked on."""
    policy, route = deps.catalogue.policy(job.workflow), deps.catalogue.route(job.route_key)
    seen = Seen(
        input_present=deps.store.child(job.job_id, job.input_ref) is not None,
        executions=(*_closed(deps, job), *_processed(deps, job)),
        delivered=tuple(child.sk.partition("#")[2] for child in deps.store.children(job.job_id, "EFFECT#")),
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


def _unprocessed(deps: Deps, job: Job) -> tuple[Mapping[str, Any], ...]:
    """Deliveries of the `due` index that speak of this job's provider job. The index holds only what is unfinished."""
    if job.status is not Status.PROCESSING or job.provider_job_id is None:
        return ()
    found = []
    for shard, again in product(range(_SHARDS), (False, True)):
        page, _ = deps.store.due(shard, deps.now() + DAY, _PAGE, again=again)
        for item in page:
            delivery = deps.store.delivery(item.id) if item.kind == "delivery" else None
            if delivery is not None and delivery.provider_job_id == job.provider_job_id:
                found.append({"id": delivery.id, "received_at": delivery.received_at, "nudges": delivery.nudges})
    return tuple(found)


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
