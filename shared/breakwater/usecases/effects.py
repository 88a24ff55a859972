"""How is an owed effect delivered? Recorded once, delivered at least once, under one stable id.

All effects that are due are delivered, receivers outside last; then each gets its own record (put if absent, all in
one request), then their entries leave `owed` in one META write. A crash in between delivers again under the same id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from breakwater.domain.errors import Unavailable
from breakwater.domain.job import Job, Owed
from breakwater.domain.job_event import bus_detail, kind_of
from breakwater.domain.machine import Step, amend
from breakwater.domain.records import (
    RESULTS,
    Child,
    effect_child_key,
    execution_key,
    generation_key,
    late_key,
    result_key,
)
from breakwater.domain.slots import refs_of
from breakwater.domain.states import EffectKind, Reason, Status
from breakwater.domain.timing import CLOCK_SKEW, HOUR, SECOND
from breakwater.usecases.capacity import free
from breakwater.usecases.change import change
from breakwater.usecases.deps import Deps
from breakwater.usecases.latest import remember
from breakwater.usecases.notify import GivenUp, Later, Outcome, notify, notify_key
from breakwater.usecases.releaser import release
from breakwater.usecases.retention import retained

GIVE_UP_TRIES = 30
_ONCE_A_GENERATION = frozenset({EffectKind.DEAD_LETTER, EffectKind.BUS_EVENT, EffectKind.NOTIFY})
_RESULTS_READ = 8  # with META; more than one stands there only after a replay or a late answer
_SLOW = HOUR
Deliver = Callable[[Deps, Job, str, Owed, Sequence[Child]], Outcome]


def effects(deps: Deps, job_id: str) -> str:
    """Deliver what a job owes and is due; says how it went."""
    job, results = deps.store.get_with(job_id, RESULTS, _RESULTS_READ)
    if job is None or not retained(job, deps.now()):
        return "gone"
    due = _due(job, deps.now())
    if not due:
        return "nothing"
    outcomes = {key: _deliver(deps, job, key, job.owed[key], results) for key in due}
    deps.store.put_children(job.job_id, list(_records(deps, job, outcomes)), job.ttl)
    change(deps, job, lambda standing: _paid(deps, job, standing, outcomes))
    return "postponed" if any(isinstance(one, Later) for one in outcomes.values()) else "delivered"


def _due(job: Job, now: int) -> list[str]:
    """What is due, receivers outside last and one at a time: they may be slow, and what is left is nudged again.

    The nudge came by the clock of whoever sent it, which may be ahead of ours.
    """
    due = [key for key, owed in job.owed.items() if owed.next_at <= now + CLOCK_SKEW and _kind(key) in DELIVER]
    ours = [key for key in due if _kind(key) is not EffectKind.NOTIFY]
    return ours + sorted(key for key in due if _kind(key) is EffectKind.NOTIFY)[:1]


def _kind(key: str) -> EffectKind:
    return EffectKind(key.partition("#")[0])


def _deliver(deps: Deps, job: Job, key: str, owed: Owed, results: Sequence[Child]) -> Outcome:
    """Delivered, given up, or when to try again."""
    try:
        outcome = DELIVER[_kind(key)](deps, _as_it_was(deps, job, key), key, owed, results)
    except Unavailable as error:
        outcome = _unavailable(deps, owed, type(error).__name__)
    if isinstance(outcome, Later):
        deps.log.note("effect_postponed", job_id=job.job_id, effect=key, tries=outcome.owed.tries, why=outcome.why)
    elif isinstance(outcome, GivenUp):
        name = "notification_given_up" if _kind(key) is EffectKind.NOTIFY else "effect_given_up"
        deps.log.note(name, job_id=job.job_id, effect=key, why=outcome.why)
    return outcome


def _records(deps: Deps, job: Job, outcomes: Mapping[str, Outcome]) -> Iterator[Child]:
    """That an effect was delivered or given up, each by its own name; of a release nobody outside hears."""
    for key, outcome in outcomes.items():
        if isinstance(outcome, Later) or _kind(key) is EffectKind.RELEASE:
            continue
        record: dict[str, Any] = {"at": deps.now(), "tries": job.owed[key].tries + 1, "id": effect_id(job, key)}
        yield Child(sk=effect_child_key(key), data=record if outcome is None else {**record, "given_up": outcome.why})


def _unavailable(deps: Deps, owed: Owed, why: str) -> Later | GivenUp:
    if owed.tries + 1 >= GIVE_UP_TRIES:
        return GivenUp(why)
    wait = min(_SLOW, (SECOND * 10) << min(owed.tries, 10))
    return Later(Owed(next_at=deps.now() + wait, tries=owed.tries + 1, ref=owed.ref), why)


def _paid(deps: Deps, job: Job, standing: Job, outcomes: Mapping[str, Outcome]) -> Step | None:
    """Only of the debts as they were when they were delivered: what somebody asked for meanwhile is a new one."""
    owed = dict(standing.owed)
    told = standing.notify_reason
    for key, outcome in outcomes.items():
        if key not in owed or (owed[key].ref, owed[key].tries) != (job.owed[key].ref, job.owed[key].tries):
            continue
        if isinstance(outcome, Later):
            owed[key] = outcome.owed
        else:
            del owed[key]
        if key == notify_key(standing):
            told = None if outcome is None else outcome.why
    if owed == standing.owed:
        return None
    return amend(standing, deps.now(), why="EffectsDelivered", owed=owed, notify_reason=told)


def effect_id(job: Job, key: str) -> str:
    """The stable id of an effect: the same whenever and however often it is delivered."""
    return f"{job.job_id}.{job.created_at}.{key.replace('#', '.')}"


def _as_it_was(deps: Deps, job: Job, key: str) -> Job:
    """The job as it ended in the generation an effect tells about: a replay may have begun before it was told."""
    number = key.partition("#")[2]
    if _kind(key) not in _ONCE_A_GENERATION or not number.isdigit() or int(number) >= job.generation:
        return job
    child = deps.store.child(job.job_id, generation_key(job.created_at, int(number)))
    if child is None:
        return job
    was = child.data
    return job.with_(
        generation=int(number),
        status=Status(was["status"]),
        reason=Reason(was["reason"]),
        attempt=was["attempts"],
        completed_at=was["completed_at"] or None,
        route_key=was["route_key"],
        last_error_class=was["last_error_class"] or None,
        last_error_type=was["last_error_type"] or None,
        result_ref=was["result_ref"] or None,
        cost_micros=was["cost_micros"],
    )


# --- one function a kind --------------------------------------------------------------------------------------------


def _usage(deps: Deps, job: Job, _key: str, owed: Owed, results: Sequence[Child]) -> None:
    """One line in the ledger for one execution, found in its own record."""
    child = _record_of(deps, job, owed, results)
    if child is None:
        deps.log.note("usage_without_record", job_id=job.job_id, execution_id=owed.ref)
        return
    deps.store.count_usage(usage_line(job, child.data["execution"]))


def _record_of(deps: Deps, job: Job, owed: Owed, results: Sequence[Child]) -> Child | None:
    """The record that knows what it cost: a result, else what was learned later, else the archived execution."""
    ref = owed.ref or ""
    found = next((one for one in results if one.sk == result_key(ref)), None)
    if found is not None:
        return found
    keys = (result_key(ref), late_key(ref, "refused"), execution_key(ref))
    return next((child for key in keys if (child := deps.store.child(job.job_id, key)) is not None), None)


def usage_line(job: Job, execution: Mapping[str, Any]) -> dict[str, Any]:
    """What the ledger keeps of an execution: ids, numbers, models; never content."""
    usage = execution.get("usage") or {}
    day = datetime.fromtimestamp(execution.get("closed_at", job.updated_at) / 1000, UTC)
    return {
        "owner_key": job.owner_key,
        "workflow": job.workflow,
        "period": day.strftime("%Y-%m"),
        "execution_id": execution["id"],
        "job_id": job.job_id,
        "at": execution.get("closed_at", job.updated_at),
        "route_key": execution["route_key"],
        "requested_model": execution["requested_model"],
        "served_model": execution.get("served_model") or "",
        "cost_micros": execution.get("cost_micros") or 0,
        "usage_units": usage.get("input_tokens", 0) + usage.get("output_tokens", 0) or usage.get("images", 0),
        "input_tokens": usage.get("input_tokens", 0),
        "cached_tokens": usage.get("cached_tokens", 0),
        "output_tokens": usage.get("output_tokens", 0),
        "reasoning_tokens": usage.get("reasoning_tokens", 0),
        "outcome": execution.get("outcome", ""),
        "possible_duplicate": bool(execution.get("possible_duplicate")),
    }


def _dead_letter(deps: Deps, job: Job, key: str, _owed: Owed, _results: Sequence[Child]) -> None:
    deps.queues.dead_letter(dead_letter_reference(job, effect_id(job, key)))


def dead_letter_reference(job: Job, reference_id: str) -> dict[str, Any]:
    """What a person finds in the queue: references, class, attempts and times; nothing private."""
    return {
        "reference_id": reference_id,
        "job_id": job.job_id,
        "workflow": job.workflow,
        "owner_key": job.owner_key,
        "generation": job.generation,
        "reason": job.reason.value,
        "error_class": job.last_error_class,
        "provider_error_type": job.last_error_type,
        "http_status": job.http_status,
        "attempts": job.attempt,
        "route_key": job.route_key,
        "created_at": job.created_at,
        "dead_at": job.completed_at,
    }


def _bus(deps: Deps, job: Job, key: str, _owed: Owed, _results: Sequence[Child]) -> None:
    """Told once it ended, and kept as the last result where the policy serves one."""
    remember(deps, job)
    if deps.bus is not None:
        deps.bus.put(effect_id(job, key), kind_of(job), bus_detail(job), job.completed_at or deps.now())


def _release(deps: Deps, job: Job, _key: str, owed: Owed, _results: Sequence[Child]) -> None:
    """Repeat what whoever ended the execution did at once: slots back, waiters woken."""
    if owed.ref is None:
        return
    epoch, slots = refs_of(owed.ref)
    held = deps.store.held_slots(slots, job.job_id, epoch)  # hardly ever any
    for scope in free(deps, job.job_id, epoch, held):
        release(deps, scope, job.owner_key)


def _notify(deps: Deps, job: Job, key: str, owed: Owed, _results: Sequence[Child]) -> Outcome:
    return notify(deps, job, effect_id(job, key), bus_detail(job), owed)


DELIVER: Mapping[EffectKind, Deliver] = {
    EffectKind.RELEASE: _release,
    EffectKind.USAGE: _usage,
    EffectKind.DEAD_LETTER: _dead_letter,
    EffectKind.BUS_EVENT: _bus,
    EffectKind.NOTIFY: _notify,
}
