"""How is nothing ever forgotten? Every minute: find what is due, move `due_at` forward, then nudge. Nothing else.

One recovery path for every crash point. Each shard of the index is read from both ends, oldest and newest, so that a
flood of old work can't hide what has just become due; what was nudged before and is due again has shards of its own, so
that it can't either. The run is bounded in items and time, and since each item moves forward before it is nudged, the
next run goes on where this one stopped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from breakwater.domain.errors import Unavailable
from breakwater.domain.job import Job
from breakwater.domain.obligations import Queue, obligations, swept
from breakwater.domain.timing import MINUTE, SECOND, nudge_grace
from breakwater.ports import Committed, DueItem
from breakwater.usecases import batch, circuit
from breakwater.usecases.deps import Deps

SHARDS = 8
PAGE = 50
MOST_ITEMS = 2_000
_RESERVE = 5 * SECOND


@dataclass
class _End:
    """From where a shard is read, and how far that got."""

    shard: int
    newest: bool = False
    again: bool = False
    begun: bool = False
    cursor: Mapping[str, Any] | None = None


def sweep(deps: Deps, remaining_ms: Callable[[], int], most: int = MOST_ITEMS) -> Counter[str]:
    """One run: what was repaired, by kind. Bounded by `most` items and the function's remaining time.

    Neither a shard that can't be read nor an item that nobody can handle keeps the others from being found.
    """
    told: Counter[str] = Counter()
    for item in _due(deps, most, told):
        if remaining_ms() < _RESERVE:
            told["out_of_time"] += 1
            break
        try:
            told[_one(deps, item)] += 1
        except Unavailable:
            told["unavailable"] += 1
        except Exception as error:  # noqa: BLE001 - the last line of an item: say it, the rest goes on
            told["failed"] += 1
            deps.log.note("sweep_failed", kind=item.kind, id=item.id, error=type(error).__name__)
    deps.log.note("swept", **told)
    return told


def _due(deps: Deps, most: int, told: Counter[str]) -> Iterator[DueItem]:
    """Due items, a page an end in turn, until all is read or `most` is reached.

    The first shard changes with the minute, so that none is always last.
    """
    now = deps.now()
    first = now // MINUTE % SHARDS
    ends = [_End(shard=(first + n) % SHARDS, again=again) for again in (False, True) for n in range(SHARDS)]
    left = most
    while ends and left > 0:
        for end in ends.copy():
            try:
                page, cursor = deps.store.due(
                    end.shard, now, min(PAGE, left), end.cursor, newest=end.newest, again=end.again
                )
            except Unavailable:
                told["shard_unavailable"] += 1
                page, cursor = [], None
            yield from page
            left -= len(page)
            if not end.begun and cursor is not None and not end.again:  # more than a page: from its newest end as well
                ends.append(_End(shard=end.shard, newest=True, begun=True))
            end.begun, end.cursor = True, cursor
            if cursor is None:
                ends.remove(end)
            if left <= 0:
                return


def _one(deps: Deps, item: DueItem) -> str:
    if item.kind == "job":
        return _job(deps, item)
    if item.kind == "delivery":
        return _delivery(deps, item)
    if item.kind == "route":
        return _route(deps, item)
    if item.kind == "batch":
        return batch.swept(deps, item.id)
    return "unknown_kind"


def _job(deps: Deps, item: DueItem) -> str:
    """The index lags: META is read again, and the move is conditional on what was read."""
    job = deps.store.get(item.id)
    now = deps.now()
    if job is None or job.due_at is None or job.due_at > now:
        return "moved_meanwhile"
    moved, nudges = swept(job, now)
    answer = deps.store.commit(job, moved)
    if not isinstance(answer, Committed):
        return "moved_meanwhile"
    if not nudges:
        return "corrected"
    deps.log.step("Swept", job, answer.job, why=_why(job, now))
    deps.queues.nudge("job", job.job_id, nudges, job.owner_key, now)
    return f"nudged_{nudges[0].queue.value}"


def _why(job: Job, now: int) -> str:
    """Which kind of obligation was met late."""
    kinds = [one.kind.value for one in obligations(job) if one.at <= now]
    return kinds[0] if kinds else "none"


def _delivery(deps: Deps, item: DueItem) -> str:
    delivery = deps.store.delivery(item.id)
    now = deps.now()
    if delivery is None or delivery.due_at is None or delivery.due_at > now:
        return "moved_meanwhile"
    later = replace(delivery, due_at=now + nudge_grace(delivery.nudges + 1), nudges=delivery.nudges + 1)
    if not deps.store.update_delivery(delivery, later):
        return "moved_meanwhile"
    deps.queues.nudge_all(Queue.COMPLETION, [("delivery", delivery.id, delivery.endpoint)])
    return "nudged_delivery"


def _route(deps: Deps, item: DueItem) -> str:
    state = deps.store.route(item.id)
    now = deps.now()
    if state is None or state.due_at is None or state.due_at > now:
        return "moved_meanwhile"
    if not deps.store.put_route(state, circuit.swept(state, now)):
        return "moved_meanwhile"
    deps.queues.nudge_all(Queue.COMPLETION, [("route", item.id, item.id)])
    return "nudged_route"
