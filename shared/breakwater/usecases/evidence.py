"""What did an execution leave behind, and how is it written and read back?

Children come first: a result child alone suffices to settle, an execution child keeps what a refusal said, a late
child keeps what a worker learned after it lost its lease. All are put if absent, so whoever is second reads the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from breakwater.domain import events as ev
from breakwater.domain.identity import encode
from breakwater.domain.job import Execution, Job
from breakwater.domain.pricing import cost_micros
from breakwater.domain.records import (
    Child,
    effect_child_key,
    execution_data,
    execution_key,
    execution_of,
    late_key,
    result_key,
)
from breakwater.domain.results import ESTIMATED, Refused, Result, Usage
from breakwater.domain.routes import Route
from breakwater.domain.signals import ErrorClass, LimitDimension, Signal
from breakwater.usecases.bodies import paid_child
from breakwater.usecases.deps import Deps

_USAGE = tuple(Usage.__dataclass_fields__)
# Outcomes of an execution that somebody closed without having heard from its worker or provider.
UNHEARD = frozenset({"lost", "overtaken", "cancelled", "crashed", "provider_deadline"})


def usage_data(usage: Usage) -> dict[str, int]:
    """Usage as plain numbers."""
    return {name: getattr(usage, name) for name in _USAGE}


def usage_of(data: Mapping[str, Any] | None) -> Usage | None:
    """The reverse of `usage_data`."""
    return None if data is None else Usage(**{name: int(data[name]) for name in _USAGE if name in data})


def result_body(result: Result) -> dict[str, Any]:
    """The part of a result that the user gets."""
    return {
        "text": result.text,
        "structured": result.structured,
        "tool_calls": [dict(one) for one in result.tool_calls],
        "media": [dict(one) for one in result.media],
        "finish_reason": result.finish_reason,
    }


def closed(execution: Execution, result: Result | None, route: Route | None, now: int, outcome: str) -> Execution:
    """An execution as it ended, priced by the route table."""
    cost = cost_of(result, route)
    return replace(
        execution,
        closed_at=now,
        outcome=outcome,
        served_model=result.served_model if result else None,
        usage=usage_data(result.usage) if result else None,
        cost_micros=cost,
        provider_request_id=(result.provider_request_id if result else None) or execution.provider_request_id,
        provider_job_id=(result.provider_job_id if result else None) or execution.provider_job_id,
    )


def cost_of(result: Result | None, route: Route | None) -> int | None:
    """What a result cost: the route's prices for what was counted, else what the gateway reports, else unknown.

    What nobody counted is not free: a price that is reported says more than an estimate of ours.
    """
    if result is None:
        return None
    prices = route.prices if route is not None else None
    priced = cost_micros(result.usage, prices) if prices is not None else None
    counted = result.usage.units > 0 and result.evidence.get("usage") != ESTIMATED
    if priced is None or (not counted and result.reported_cost_micros is not None):
        return result.reported_cost_micros
    return priced


def put_result(
    deps: Deps, job: Job, execution: Execution, result: Result, route: Route | None, trace: Child | None = None
) -> Child:
    """Store a paid result, and beside it how it became known; what stands there then, ours or what was first."""
    done = closed(execution, result, route, deps.now(), "completed")
    data = {
        "execution": execution_data(done),
        "finish_reason": result.finish_reason,
        "evidence": dict(result.evidence),
        "reported_cost_micros": result.reported_cost_micros or 0,
    }
    child = paid_child(deps, job.job_id, result_key(execution.id), encode(result_body(result)), data)
    if trace is None:
        return deps.store.put_child(job.job_id, child, job.ttl)
    put, _ = deps.store.put_children(job.job_id, [child, trace], job.ttl)
    return child if put else deps.store.child(job.job_id, child.sk) or child


def succeeded_by(child: Child) -> ev.Succeeded:
    """The event that a result child stands for; the same whoever reads it."""
    execution = execution_of(child.data["execution"])
    return ev.Succeeded(
        execution_id=execution.id,
        result_ref=child.sk,
        usage=usage_of(execution.usage) or Usage(),
        cost_micros=execution.cost_micros,
        served_model=execution.served_model,
        finish_reason=str(child.data.get("finish_reason", "stop")),
        provider_request_id=execution.provider_request_id,
        provider_job_id=execution.provider_job_id,
    )


def put_refusal(deps: Deps, job: Job, execution: Execution, refused: Refused, route: Route | None) -> Child:
    """Archive an execution that ended without success, with the partial answer that was paid for.

    Where it was closed unheard, what is known now is appended as late evidence. Gives back the one that says most.
    """
    standing = _put_refused(deps, job, execution_key(execution.id), execution, refused, route)
    if standing.data["execution"].get("outcome") not in UNHEARD:
        return standing
    return _put_refused(deps, job, late_key(execution.id, "refused"), execution, refused, route)


def _put_refused(
    deps: Deps,
    job: Job,
    sk: str,
    execution: Execution,
    refused: Refused,
    route: Route | None,
) -> Child:
    signal = refused.signal
    done = replace(
        closed(execution, refused.partial, route, deps.now(), _outcome(signal)),
        error_class=signal.error_class.value,
        error_type=signal.provider_error_type,
        error_code=signal.provider_error_code,
        http_status=signal.http_status,
        rule=signal.rule,
        retry_after_ms=signal.retry_after_ms,
        provider_request_id=signal.provider_request_id or execution.provider_request_id,
        provider_job_id=refused.provider_job_id or execution.provider_job_id,
    )
    data: dict[str, Any] = {"execution": execution_data(done)}
    if signal.limit_dimension is not None:
        data["limit_dimension"] = signal.limit_dimension.value
    if refused.partial is None:
        return deps.store.put_child(job.job_id, Child(sk=sk, data=data), job.ttl)
    body = encode(result_body(refused.partial))
    return deps.store.put_child(job.job_id, paid_child(deps, job.job_id, sk, body, data), job.ttl)


def _outcome(signal: Signal) -> str:
    return "unknown" if signal.error_class is ErrorClass.OUTCOME_UNKNOWN else "refused"


def put_unheard(deps: Deps, job: Job, execution: Execution, outcome: str) -> Child:
    """Archive an execution that ends before its worker or provider was heard: an outcome of `UNHEARD`."""
    done = replace(execution, closed_at=deps.now(), outcome=outcome)
    child = Child(sk=execution_key(execution.id), data={"execution": execution_data(done)})
    return deps.store.put_child(job.job_id, child, job.ttl)


def signal_of(child: Child) -> Signal:
    """The signal that an archived execution stands for, without its waiting hint's age."""
    execution = execution_of(child.data["execution"])
    dimension = child.data.get("limit_dimension")
    return Signal(
        error_class=ErrorClass(execution.error_class or ErrorClass.OUTCOME_UNKNOWN),
        http_status=execution.http_status,
        provider_error_type=execution.error_type,
        provider_error_code=execution.error_code,
        retry_after_ms=execution.retry_after_ms,
        limit_dimension=LimitDimension(dimension) if dimension else None,
        route_key=execution.route_key,
        provider_request_id=execution.provider_request_id,
        rule=execution.rule or "unknown",
    )


def put_late(deps: Deps, job: Job, execution: Execution, what: str, **facts: Any) -> None:
    """Append what a worker learned after it lost its lease; never thrown away, never overwriting."""
    known = {name: value for name, value in facts.items() if value is not None}
    data = {"execution_id": execution.id, "seen_at": deps.now(), **known}
    deps.store.put_child(job.job_id, Child(sk=late_key(execution.id, what), data=data), job.ttl)


def owed_or_delivered(deps: Deps, job: Job, key: str) -> bool:
    """Whether an effect is in the books: still owed, or with a record of its own."""
    return key in job.owed or deps.store.child(job.job_id, effect_child_key(key)) is not None
