"""How are many dead letters replayed? From a frozen selection, a few at a time, by ticks that survive everybody.

A tick looks at the open jobs, counts those that are over, opens the next ones in one conditional write, and only then
replays them. Each replay has a request id of the batch, so whatever is repeated after a crash finds itself. Where a
batch stands, who was refused and what became of each job is in the table; nobody has to stay connected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed
from typing import Any

from breakwater.domain.errors import NotFound, QueueUnavailable, Rejected, StaleVersion, TooLate
from breakwater.domain.job import Job
from breakwater.domain.obligations import Nudge, Queue
from breakwater.domain.records import Child
from breakwater.domain.replay import BatchTerms, Terms
from breakwater.domain.replay_batch import (
    CHUNK,
    Batch,
    BatchStatus,
    Outcome,
    Ref,
    ended,
    opened,
    planned,
    room,
    shown,
    turned,
)
from breakwater.domain.states import Status
from breakwater.domain.timing import CLOCK_SKEW, DAY, NUDGE_GRACE
from breakwater.usecases.deps import Deps
from breakwater.usecases.preview import previews, select
from breakwater.usecases.replay import replay

KEEP_DAYS = 400
_TRIES = 5


def create(deps: Deps, wanted: BatchTerms, by: str, owner_key: str) -> tuple[Batch, dict[str, str]]:
    """Freeze the selection and start. Also says who was refused at once, and why.

    The same request id finds its batch. Raises `TooLate` when nothing can be replayed.
    """
    batch_id = wanted.terms.request_id
    if (known := deps.store.batch(batch_id)) is not None:
        return known, _refused(deps, known.id)
    refs, refused = _selection(deps, wanted)
    if not refs:
        raise TooLate(
            "Nothing that the filter means can be replayed.", field="filter", rule="selection", fix="see the preview"
        )
    now = deps.now()
    ttl = (now + KEEP_DAYS * DAY) // 1000
    for start in range(0, len(refs), CHUNK):
        chunk = [f"{one.job_id}|{one.generation}" for one in refs[start : start + CHUNK]]
        deps.store.put_batch_line(batch_id, Child(sk=f"ITEMS#{start // CHUNK:04d}", data={"refs": chunk}), ttl)
    for job_id, why in refused.items():
        deps.store.put_batch_line(batch_id, Child(sk=f"REFUSED#{job_id}", data={"why": why}), ttl)
    batch = Batch(
        id=batch_id,
        created_at=now,
        created_by=by,
        owner_key=owner_key,
        terms=wanted.model_dump(mode="json", exclude_none=True),
        total=_frozen(deps, batch_id),
        rate_per_minute=wanted.rate_per_minute,
        at_once=wanted.at_once,
        error_threshold=wanted.error_threshold,
        start_at=now,
        tick_at=now,
        due_at=now + NUDGE_GRACE,
        ttl=ttl,
    )
    if deps.store.put_batch(None, batch):
        deps.log.note("batch_created", batch_id=batch_id, total=batch.total, refused=len(refused))
    _nudge(deps, batch)
    return need_batch(deps, batch_id), refused


def _selection(deps: Deps, wanted: BatchTerms) -> tuple[list[Ref], dict[str, str]]:
    jobs, _ = select(deps, wanted.filter, wanted.size)
    refs, refused = [], {}
    for seen in previews(deps, jobs, wanted.terms.route):
        if seen.refused is None:
            refs.append(Ref(job_id=seen.job.job_id, generation=seen.job.generation))
        else:
            refused[seen.job.job_id] = f"{seen.refused.item.value}: {seen.refused.says}"
    return refs, refused


def _frozen(deps: Deps, batch_id: str) -> int:
    """What was frozen first counts, also when creating crashed halfway and was asked for again."""
    return sum(len(line.data["refs"]) for line in deps.store.batch_lines(batch_id, "ITEMS#"))


def need_batch(deps: Deps, batch_id: str) -> Batch:
    """A batch; raises `NotFound`."""
    batch = deps.store.batch(batch_id)
    if batch is None:
        raise NotFound("There is no batch of this id.", field="batch_id", rule="exists", fix="list the batches")
    return batch


def tick(deps: Deps, batch_id: str) -> str:
    """Count what is over, open what may be opened, replay it; says how the batch stands."""
    batch = deps.store.batch(batch_id)
    now = deps.now()
    if batch is None or batch.tick_at is None:
        return "nothing"
    if batch.tick_at > now + CLOCK_SKEW:
        return "too_early"
    outcomes = {ref: found for ref in batch.open if (found := _look(deps, batch, ref)) is not None}
    for ref, outcome in outcomes.items():
        line = Child(sk=f"DONE#{ref.job_id}", data={"outcome": outcome.value, "at": now})
        deps.store.put_batch_line(batch.id, line, batch.ttl)
    after = ended(batch, outcomes)
    fresh = _next(deps, after, room(after, now))
    after = planned(opened(after, fresh, now), now)
    if not deps.store.put_batch(batch, after):
        return "overtaken"
    if after.status is not batch.status:
        deps.log.note("batch_ended", batch_id=batch.id, status=after.status.value, counts=dict(after.counts))
    for ref in fresh:
        _look(deps, after, ref)
    _nudge(deps, after)
    return after.status.value


def _next(deps: Deps, batch: Batch, most: int) -> list[Ref]:
    """The next jobs of the frozen selection."""
    found: list[Ref] = []
    at = batch.next
    while len(found) < most:
        lines = deps.store.batch_lines(batch.id, f"ITEMS#{at // CHUNK:04d}", 1)
        if not lines:
            break
        part = lines[0].data["refs"][at % CHUNK :][: most - len(found)]
        if not part:
            break
        found += [Ref(job_id=job_id, generation=int(number)) for job_id, number in (one.rsplit("|", 1) for one in part)]
        at += len(part)
    return found


# --- one job of a batch ---------------------------------------------------------------------------------------------


def _look(deps: Deps, batch: Batch, ref: Ref) -> Outcome | None:
    """What became of an open job; replays it first if that was not done yet. None: it is on its way."""
    job = deps.store.get(ref.job_id)
    if job is None:
        return Outcome.SUPERSEDED
    if job.generation == ref.generation:
        return _send(deps, batch, job)
    if job.generation > ref.generation + 1 or job.replay_id != batch.id:
        return Outcome.SUPERSEDED
    if job.in_review:
        return Outcome.FAILED
    return _FINAL.get(job.status)


_FINAL = {
    Status.SUCCEEDED: Outcome.SUCCEEDED,
    Status.DEAD_LETTER: Outcome.FAILED,
    Status.CANCELLED: Outcome.CANCELLED,
}


def _send(deps: Deps, batch: Batch, job: Job) -> Outcome | None:
    if batch.status is not BatchStatus.RUNNING:
        return None if batch.status is BatchStatus.PAUSED else Outcome.SKIPPED
    terms = Terms.model_validate(batch.terms["terms"])
    try:
        replay(deps, job, terms, batch.created_by, batch_id=batch.id)
    except Rejected as error:
        data = {"why": f"{error.rule}: {error}"}
        deps.store.put_batch_line(batch.id, Child(sk=f"REFUSED#{job.job_id}", data=data), batch.ttl)
        return Outcome.REFUSED
    return None


# --- what its operator does -----------------------------------------------------------------------------------------


def turn(deps: Deps, batch_id: str, status: BatchStatus, why: str) -> Batch:
    """Pause, resume or abort. Raises `TooLate` when it is over, or stands so already."""
    for _ in range(_TRIES):
        batch = need_batch(deps, batch_id)
        after = turned(batch, status, why, deps.now())
        if after is None:
            raise TooLate(
                f"The batch is {batch.status.value}.", field="batch_id", rule="status", fix="nothing was changed"
            )
        if deps.store.put_batch(batch, after):
            _nudge(deps, after)
            return need_batch(deps, batch_id)
    raise StaleVersion(batch=batch_id)


def progress(deps: Deps, batch: Batch) -> dict[str, Any]:
    """Where a batch stands, with what became of each job so far."""
    done = deps.store.batch_lines(batch.id, "DONE#")
    return {
        **shown(batch),
        "outcomes": {line.sk.partition("#")[2]: line.data["outcome"] for line in done},
        "refused": _refused(deps, batch.id),
    }


def _refused(deps: Deps, batch_id: str) -> dict[str, str]:
    return {line.sk.partition("#")[2]: str(line.data["why"]) for line in deps.store.batch_lines(batch_id, "REFUSED#")}


def listed(deps: Deps, limit: int, cursor: str | None) -> tuple[Sequence[dict[str, Any]], str | None]:
    """Batches, newest first."""
    ids, following = deps.store.attention("batch", 0, deps.now(), limit, cursor)
    found = [batch for one in ids if (batch := deps.store.batch(one)) is not None]
    return [shown(one) for one in found], following


def swept(deps: Deps, batch_id: str) -> str:
    """What the sweep does with a batch that is due: move it forward, then nudge."""
    batch = deps.store.batch(batch_id)
    now = deps.now()
    if batch is None or batch.due_at is None or batch.due_at > now:
        return "moved_meanwhile"
    later = changed(batch, due_at=now + (NUDGE_GRACE << min(batch.nudges, 3)), nudges=batch.nudges + 1)
    if not deps.store.put_batch(batch, later):
        return "moved_meanwhile"
    deps.queues.nudge_all(Queue.COMPLETION, [("batch", batch.id, batch.owner_key)])
    return "nudged_batch"


def _nudge(deps: Deps, batch: Batch) -> None:
    if batch.tick_at is None:
        return
    now = deps.now()
    try:
        deps.queues.nudge("batch", batch.id, [Nudge(Queue.COMPLETION, max(batch.tick_at, now))], batch.owner_key, now)
    except QueueUnavailable:
        deps.log.note("nudge_lost", batch_id=batch.id, queues=[Queue.COMPLETION.value])
