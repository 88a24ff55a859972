"""How does a cancel reach the provider's own job? It is owed, and repeated until confirmed or given up."""

from __future__ import annotations

from breakwater.domain.errors import SecretUnavailable
from breakwater.domain.job import Job, Owed
from breakwater.domain.machine import Step, amend
from breakwater.domain.records import Child, effect_child_key
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import EffectKind
from breakwater.domain.timing import HOUR, MINUTE
from breakwater.usecases.change import change
from breakwater.usecases.deps import Deps

GIVE_UP_TRIES = 24
_PREFIX = EffectKind.PROVIDER_CANCEL + "#"


def cancel_owed(deps: Deps, job: Job) -> Step | None:
    """Tell the provider to stop what nobody waits for; the record comes before the debt goes."""
    step: Step | None = None
    for key, owed in job.owed.items():
        if key.startswith(_PREFIX) and owed.next_at <= deps.now():
            step = _one(deps, step.job if step else job, key, owed) or step
    return step


def _one(deps: Deps, job: Job, key: str, owed: Owed) -> Step | None:
    why = _ask(deps, job, key, owed)
    now = deps.now()
    if why is not None and owed.tries + 1 < GIVE_UP_TRIES:
        later = Owed(next_at=now + min(HOUR, MINUTE << owed.tries), tries=owed.tries + 1, ref=owed.ref)
        return change(
            deps,
            job,
            lambda standing: (
                amend(
                    standing,
                    deps.now(),
                    why="CancelPostponed",
                    owed={**standing.owed, key: later},
                )
                if key in standing.owed
                else None
            ),
        )
    data = {"at": now, "tries": owed.tries + 1, "ref": owed.ref or "", "given_up": why or ""}
    deps.store.put_child(job.job_id, Child(sk=effect_child_key(key), data=data), job.ttl)
    return change(
        deps,
        job,
        lambda standing: (
            amend(
                standing,
                deps.now(),
                why="CancelDelivered",
                owed={name: one for name, one in standing.owed.items() if name != key},
            )
            if key in standing.owed
            else None
        ),
    )


def _ask(deps: Deps, job: Job, key: str, owed: Owed) -> str | None:
    """Why the provider could not be told, None when it was."""
    route_key = _route_of(deps, job, key)
    if owed.ref is None or route_key is None or deps.providers is None:
        return None
    try:
        signal = deps.providers.for_route(route_key).cancel(owed.ref)
    except SecretUnavailable:
        return "credential unavailable"
    if signal is None or signal.error_class in (ErrorClass.NOT_FOUND, ErrorClass.CALLER_FAULT):
        return None
    return signal.error_class.value


def _route_of(deps: Deps, job: Job, key: str) -> str | None:
    """The route the execution ran on: from its archived record, else the job's own route."""
    suffix = key[len(_PREFIX) :]
    child = deps.store.child(job.job_id, f"EXEC#{suffix}")
    if child is not None:
        return str(child.data["execution"]["route_key"])
    return job.route_key if deps.catalogue.route(job.route_key) else None
