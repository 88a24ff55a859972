"""How does a dead job come back? Checked again at its turn, recorded under its request, in one conditional write.

The record under the request id comes first (what was asked, and what the checklist said then), then the archived
outcome, then META, which names the request that won. So the same request twice finds itself, and a second replay of
one generation finds the generation gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from breakwater.domain import events as ev
from breakwater.domain.errors import KeyReused, NotFound, TooLate
from breakwater.domain.job import Job
from breakwater.domain.machine import Step, advance
from breakwater.domain.records import Child, generation_key
from breakwater.domain.replay import ReplayReason, Terms
from breakwater.domain.states import Status
from breakwater.domain.values import dataclass
from breakwater.usecases.again import archive
from breakwater.usecases.change import change
from breakwater.usecases.deps import Deps
from breakwater.usecases.preview import Preview, Target, preview
from breakwater.usecases.retention import retained


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The job in its new generation; `repeated` when this very request was carried out before."""

    job: Job
    repeated: bool
    checks: tuple[Mapping[str, Any], ...] = ()


def replay_key(job: Job, request_id: str) -> str:
    """Where the record of a replay request stands."""
    return f"REPLAY#{job.created_at:013d}#{hashlib.sha256(request_id.encode()).hexdigest()[:24]}"


def need_job(deps: Deps, job_id: str) -> Job:
    """Any owner's job; raises `NotFound` for one that is not there or past its retention."""
    job = deps.store.get(job_id) if job_id.startswith("job_") and len(job_id) <= 64 else None  # noqa: PLR2004
    if job is None or not retained(job, deps.now()):
        raise NotFound(
            "There is no job of this id: it was never recorded here, or its retention is over.",
            field="job_id",
            rule="exists",
            fix="ask the client for the id or the idempotency key it sent",
        )
    return job


def replay(deps: Deps, job: Job, terms: Terms, by: str, *, batch_id: str | None = None) -> Replay:
    """Start a new generation. Raises `TooLate` naming what stands against it, `KeyReused` for other terms."""
    sk = replay_key(job, terms.request_id)
    known = deps.store.child(job.job_id, sk)
    if known is not None:
        _same_terms(job, known, terms)
        if _carried_out(deps, job, known, terms):
            return Replay(job=job, repeated=True, checks=tuple(known.data["idempotency_result"]))
    _open(job)
    seen = preview(deps, job, terms.route, proof=terms.proof is not None, override=_override(terms, batch_id))
    if seen.refused is not None:
        raise _refused(job, seen)
    record = deps.store.put_child(job.job_id, Child(sk=sk, data=_record(job, terms, by, seen, batch_id)), job.ttl)
    _same_terms(job, record, terms)
    archive(deps, job)
    return _start(deps, job, terms, by, seen)


def _override(terms: Terms, batch_id: str | None) -> bool:
    """An owner's override holds for one job that somebody looked at, never for a batch."""
    return terms.reason is ReplayReason.OWNER_OVERRIDE and batch_id is None


def _start(deps: Deps, job: Job, terms: Terms, by: str, seen: Preview) -> Replay:
    event = _event(deps, job, terms, by, seen.target)

    def plan(standing: Job) -> Step | None:
        dead = standing.status is Status.DEAD_LETTER and standing.closed_at is None
        return advance(standing, event, deps.now()) if dead and standing.generation == job.generation else None

    step = change(deps, job, plan)
    after = step.job if step else deps.store.get(job.job_id)
    if after is None or after.replay_id != terms.request_id:
        raise _late(job, "Somebody else was faster: this generation is replayed or closed already.")
    return Replay(job=after, repeated=step is None, checks=_checks(seen))


def _event(deps: Deps, job: Job, terms: Terms, by: str, chosen: Target) -> ev.Replayed:
    """A fresh budget, no larger than the policy's and no larger than the stop condition."""
    policy = deps.catalogue.need_policy(job.workflow)
    assert chosen.route is not None  # noqa: S101 - the checklist refuses a job without a route
    now = deps.now()
    lane = policy.start_lane(interactive=False)
    allowed, age = policy.total_attempts(lane), policy.lane(lane).max_queue_age_ms
    return ev.Replayed(
        by=by,
        at=now,
        max_attempts=min(allowed, terms.stop.max_attempts or allowed),
        expires_at=now + min(age, terms.stop.give_up_after_ms or age),
        lane=lane,
        route_key=chosen.route.route_key,
        fallback=chosen.fallback,
        contract_version=chosen.contract_version,
        request_id=terms.request_id,
    )


def _record(job: Job, terms: Terms, by: str, seen: Preview, batch_id: str | None) -> dict[str, Any]:
    """What was asked and what the checklist said: the proof that no effect is repeated."""
    plain = terms.model_dump(mode="json", exclude_none=True)
    return {
        **plain,
        "fingerprint": terms.fingerprint,
        "generation": job.generation,
        "by": by,
        "batch_id": batch_id or "",
        "route_key": seen.target.route.route_key if seen.target.route else "",
        "estimate_micros": seen.estimate_micros or 0,
        "idempotency_result": list(_checks(seen)),
    }


def _checks(seen: Preview) -> tuple[Mapping[str, Any], ...]:
    return tuple({"item": one.item.value, "verdict": one.verdict.value, "says": one.says} for one in seen.checks)


def _same_terms(job: Job, known: Child, terms: Terms) -> None:
    if known.data["fingerprint"] != terms.fingerprint:
        raise KeyReused(
            "This request id was used with other terms.",
            field="request_id",
            rule="same_terms",
            fix="send the same terms, or a new request id",
            job=job.job_id,
        )


def _carried_out(deps: Deps, job: Job, known: Child, terms: Terms) -> bool:
    """Whether the recorded request began the generation after the one it was for."""
    begun = int(known.data["generation"]) + 1
    if job.generation == begun:
        return job.replay_id == terms.request_id
    if job.generation < begun:
        return False
    kept = deps.store.child(job.job_id, generation_key(job.created_at, begun))
    return kept is not None and kept.data.get("replay_id") == terms.request_id


def _open(job: Job) -> None:
    if job.status is not Status.DEAD_LETTER or job.closed_at is not None:
        raise _late(job, "Only a dead letter that nobody closed is replayed.")


def _late(job: Job, message: str) -> TooLate:
    return TooLate(
        message,
        field="job_id",
        rule="replayable",
        fix="read the job: nothing was changed",
        job=job.job_id,
        job_status=job.status.value,
        generation=job.generation,
    )


def _refused(job: Job, seen: Preview) -> TooLate:
    assert seen.refused is not None  # noqa: S101 - asked by the caller
    item, says = seen.refused.item.value, seen.refused.says
    return TooLate(
        f"The replay is refused: {item}: {says}.",
        field="job_id",
        rule=item,
        fix="see the preview; `proof` answers an unknown, `owner_override` an unfixed cause, else close the job",
        job=job.job_id,
        verdict=seen.refused.verdict.value,
    )
