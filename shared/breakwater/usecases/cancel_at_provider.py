"""How does a cancel reach the provider's own job, and what did that job cost?

The debt is repeated until the provider's job is over, or given up. A job that is open again leaves its orphan running
as long as it may still settle it. What the provider finished nevertheless is evidence: it settles an open job, and is
in the books of every other.
"""

from __future__ import annotations

from breakwater.domain.errors import SecretUnavailable
from breakwater.domain.job import Execution, Job, Owed
from breakwater.domain.machine import Step, amend
from breakwater.domain.records import Child, effect_child_key, execution_of
from breakwater.domain.results import Completed, Refused
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import EffectKind
from breakwater.domain.telling import tells
from breakwater.domain.timing import CLOCK_SKEW, HOUR, MINUTE
from breakwater.ports import Provider
from breakwater.usecases.change import change
from breakwater.usecases.conclude import conclude
from breakwater.usecases.deps import Deps

GIVE_UP_TRIES = 24
_PREFIX = EffectKind.PROVIDER_CANCEL + "#"
_NOTHING_TO_STOP = (ErrorClass.NOT_FOUND, ErrorClass.CALLER_FAULT)


def cancel_owed(deps: Deps, job: Job) -> Job:
    """Settle the debts that are due; the job as it stands afterwards. The record comes before the debt goes."""
    for key, owed in job.owed.items():
        if key.startswith(_PREFIX) and owed.next_at <= deps.now() + CLOCK_SKEW:
            _one(deps, job, key, owed)
            job = deps.store.get(job.job_id) or job
    return job


def _one(deps: Deps, job: Job, key: str, owed: Owed) -> None:
    why = _stop(deps, job, key, owed)
    now = deps.now()
    if why is not None and owed.tries + 1 < GIVE_UP_TRIES:
        later = Owed(next_at=now + min(HOUR, MINUTE << owed.tries), tries=owed.tries + 1, ref=owed.ref)
        change(deps, job, lambda standing: _with_owed(deps, standing, key, later, "CancelPostponed"))
        return
    data = {"at": now, "tries": owed.tries + 1, "ref": owed.ref or "", "given_up": why or ""}
    deps.store.put_child(job.job_id, Child(sk=effect_child_key(key), data=data), job.ttl)
    change(deps, job, lambda standing: _with_owed(deps, standing, key, None, "CancelDelivered"))


def _with_owed(deps: Deps, job: Job, key: str, owed: Owed | None, why: str) -> Step | None:
    if key not in job.owed:
        return None
    others = {name: one for name, one in job.owed.items() if name != key}
    return amend(job, deps.now(), why=why, owed=others if owed is None else {**others, key: owed})


def _stop(deps: Deps, job: Job, key: str, owed: Owed) -> str | None:
    """Why the provider's job may still run, None when it is over and what it cost is known."""
    execution = _execution_of(deps, job, key)
    if owed.ref is None or execution is None or deps.providers is None:
        return None
    try:
        provider = deps.providers.for_route(execution.route_key)
    except SecretUnavailable:
        return "credential unavailable"
    if job.final:
        signal = provider.cancel(owed.ref)
        if signal is not None and signal.error_class not in _NOTHING_TO_STOP:
            return signal.error_class.value
    if tells(deps.catalogue, deps.catalogue.route(execution.route_key)):
        return None  # it is not asked: what it finished nevertheless, its webhook tells
    return _hear(deps, job, execution, provider, owed.ref)


def _hear(deps: Deps, job: Job, execution: Execution, provider: Provider, provider_job_id: str) -> str | None:
    """How the provider's job ended: what it finished or how it failed is made to count."""
    found = provider.fetch(provider_job_id)
    outcome = found.outcome
    if isinstance(outcome, Completed) or (isinstance(outcome, Refused) and found.ended):
        conclude(deps, job, execution, outcome)
        return None
    if isinstance(outcome, Refused):
        return None if outcome.signal.error_class in _NOTHING_TO_STOP else outcome.signal.error_class.value
    return "still running"


def _execution_of(deps: Deps, job: Job, key: str) -> Execution | None:
    """The execution that the debt is about: its archived record."""
    child = deps.store.child(job.job_id, f"EXEC#{key.removeprefix(_PREFIX)}")
    return execution_of(child.data["execution"]) if child is not None else None
