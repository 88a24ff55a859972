"""Does a busy table make the minute's sweep, an admission or a claim dearer? It must not: the figures stay flat.

The table is filled with settled jobs (stored, nothing due), then the same number of jobs is due each time. Requests and
units are counted at the wire, time is the emulator's and only good as a ratio within one run.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from breakwater.domain.slots import Slot
from breakwater.domain.states import Status
from breakwater.store.items import job_attributes
from breakwater.store.wire import to_wire
from tests.support.builders import make_job
from tests.support.limited import limited, owner
from tools.bench.calls import Bench, catalogue

_BATCH, _FILLERS = 25, 4
_HOT = 2_000  # the limit of a hot route


@dataclass(frozen=True, slots=True)
class Point:
    """One action at one size of what lies around it."""

    action: str
    around: str
    requests: int
    reads: float
    writes: float
    ms: float


def measure(endpoint: str, stored: tuple[int, ...], due: int, backlog: tuple[int, ...]) -> list[Point]:
    """The sweep beside stored jobs, admission and claim beside a backlog."""
    points = []
    bench, settled = Bench(endpoint, catalogue()), 0
    for target in stored:
        _fill(bench, target - settled)
        settled = target
        for n in range(due):
            bench.world.submit("sync", f"due-{target}-{n}")
        _drop_messages(bench)
        bench.world.clock.advance(180_000)  # their nudges count as lost
        points.append(_point(bench, "sweep", f"{target:,} stored, {due} due", bench.world.sweep))
        bench.pump()
    deep, waiting = Bench(endpoint, catalogue()), 0
    for depth in backlog:
        for n in range(waiting, depth):
            deep.world.submit("sync", f"wait-{n}", owner=owner(f"owner-{n % 1000}"))
        waiting = depth
        _drop_messages(deep)
        key = uuid.uuid4().hex
        points.append(_point(deep, "admit", f"{depth:,} waiting", partial(deep.world.submit, "sync", key)))
        job_id = deep.world.submit("sync", key).job.job_id
        points.append(_point(deep, "attempt", f"{depth:,} waiting", partial(deep.world.worker, job_id)))
    return points + _hot_route(endpoint)


def _hot_route(endpoint: str) -> list[Point]:
    """An attempt where hundreds of calls are in flight already: the first of a process, and one right after it."""
    points = []
    bench = Bench(endpoint, limited(concurrency=_HOT))
    held = [
        Slot(scope="route:plain", n=n, job_id=f"job_{uuid.uuid4().hex}", epoch=1, taken_at=0, verify_at=10**14)
        for n in range(_HOT // 2 - 10)
    ]
    taken = 0
    for number in (10, _HOT // 2 - 10):
        bench.meter.muted = True
        for start in range(taken, number, _BATCH):
            bench.world.store.take_slots(held[start : min(start + _BATCH, number)])
        bench.meter.muted, taken = False, number
        bench.world.deps.noticed.scopes.forget("route:plain")
        for when in ("first look", "right after"):
            job_id = bench.world.submit("sync", uuid.uuid4().hex).job.job_id
            around = f"{number} of {_HOT:,} in flight, {when}"
            points.append(_point(bench, "attempt, hot route", around, partial(bench.world.worker, job_id)))
    return points


def _fill(bench: Bench, number: int) -> None:
    """Settled jobs straight into the table; 25 a request, and nobody counts."""
    template = make_job(status=Status.SUCCEEDED)

    def put(start: int) -> None:
        size = min(_BATCH, number - start)
        jobs = [
            template.with_(job_id=f"job_{uuid.uuid4().hex}", owner_key=f"owner-{(start + n) % 1000}")
            for n in range(size)
        ]
        puts = [{"PutRequest": {"Item": to_wire(job_attributes(one.with_(due_at=None)))}} for one in jobs]
        bench.meter.peek.batch_write_item(RequestItems={bench.table: puts})

    with ThreadPoolExecutor(_FILLERS) as pool:
        deque(pool.map(put, range(0, number, _BATCH)), maxlen=0)


def _drop_messages(bench: Bench) -> None:
    for messages in bench.world.queues.sent.values():
        messages.clear()


def _point(bench: Bench, action: str, around: str, work: Callable[[], Any]) -> Point:
    meter = bench.meter
    requests, reads, writes = sum(meter.requests.values()), meter.reads, meter.writes
    begun = time.perf_counter()
    work()
    ms = (time.perf_counter() - begun) * 1000
    return Point(
        action, around, sum(meter.requests.values()) - requests, meter.reads - reads, meter.writes - writes, ms
    )
