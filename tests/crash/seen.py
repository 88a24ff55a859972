"""What a run over real tables and queues left behind, in the shape that the checks look at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from breakwater.domain.results import Completed, Refused
from breakwater.store.items import from_wire
from tests.crash.processes import RealStage


@dataclass
class Seen:
    """What is left of a run, in the shape the checks look at."""

    store: Any
    queues: Any
    bus: Any
    provider: Any
    clock: Any
    log: Any = None


@dataclass
class _Store:
    items: dict[tuple[str, str], dict[str, Any]]
    lines: dict[str, dict[str, Any]]
    taken: dict[Any, Any] = field(default_factory=dict)


@dataclass
class _Bag:
    sent: dict[Any, Any] = field(default_factory=dict)
    dlq: dict[Any, Any] = field(default_factory=dict)
    dead: list[Any] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    jobs: dict[str, Any] = field(default_factory=dict)


def look(stage: RealStage) -> Seen:
    """Everything about this run's job, read back from the table, the queues and the outside."""
    items = {}
    for job_id in stage.job_ids():
        items |= {(one["pk"]["S"], one["sk"]["S"]): one for one in stage.partition(f"JOB#{job_id}")}
    calls = stage.journal.read("call")
    for name in [one["name"] for one in calls if one["name"]]:
        key = f"DELIVERY#openai#{stage.delivery(name)}"
        items |= {(one["pk"]["S"], one["sk"]["S"]): one for one in stage.partition(key)}
    usage = [from_wire(one) for one in stage.partition(f"OWNER#{stage.owner.owner_key}")]
    lines = {one["execution_id"]: one for one in usage if one["sk"].startswith("USAGE#")}
    totals = [one for one in usage if one["sk"].startswith("TOTAL#")]
    assert sum(one["executions"] for one in totals) == len(lines), "a total counted twice"
    events = [(one["event_id"], one["name"], one["detail"]) for one in stage.journal.read("event")]
    jobs = {one["name"]: {"outcome": _over(stage, one["name"])} for one in calls if one["name"]}
    made = [type("Made", (), {"job_id": one["job_id"], "execution_id": one["execution_id"]}) for one in calls]
    return Seen(
        _Store(items, lines),
        _Bag(sent={"all": stage.peek()}, dead=stage.dead_letters()),
        _Bag(events=events),
        _Bag(calls=made, jobs=jobs),
        stage.clock,
    )


def _over(stage: RealStage, name: str) -> Any:
    outcome = stage.provider.outcome(name)
    return outcome if isinstance(outcome, Completed | Refused) else None
