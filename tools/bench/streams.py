"""What does a streamed answer cost in writes? At most one for each 250 ms and for each 4 KB, however small the pieces.

The real worker over the real store and the emulator's table; provider and clock are the tests' own, so that an answer
of half a minute takes none and the pauses between its pieces are exact. Beside the segments a job has its usual writes:
the claim, the boundary, the result and the end.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from breakwater.domain.segments import FLUSH_BYTES, FLUSH_MS
from breakwater.domain.states import Status
from breakwater.domain.stream_events import Done, StreamEvent, TextDelta
from breakwater.store.table import DynamoJobStore
from tests.fakes.outside import answer
from tests.support.cloud import create_table
from tests.support.streams import stream_world
from tools.bench.clients import product_client
from tools.bench.meter import Meter
from tools.localcloud.cloud import client

_ANSWERS = (  # name, pieces, bytes of each, ms between them
    ("30 s of small pieces", 1_200, 5, 25),
    ("30 s of slow pieces", 30, 20, 1_000),
    ("400 KB at once", 4_000, 100, 0),
    ("60 s and 1 MB", 6_000, 170, 10),
)


@dataclass(frozen=True, slots=True)
class Stream:
    """One answer: how long and large it was, and what was written for it."""

    name: str
    pieces: int
    seconds: float
    kilobytes: float
    segments: int
    allowed: int  # the first at once, then one for each 250 ms and for each 4 KB, and the last
    writes: float  # units of all writes of the worker


def measure(endpoint: str) -> list[Stream]:
    """Every answer in a world of its own."""
    return [_measure(endpoint, *one) for one in _ANSWERS]


def _measure(endpoint: str, name: str, pieces: int, size: int, pause: int) -> Stream:
    meter = Meter(client(endpoint, "dynamodb"))
    table = create_table(meter.peek, "JobsTable")
    store = DynamoJobStore(meter.attach(product_client(endpoint, "dynamodb")), table, lambda: uuid.uuid4().hex[:20])
    world = stream_world(store=store)
    line: list[StreamEvent | int] = []
    for _ in range(pieces):
        line += [TextDelta(text="x" * size), *([pause] if pause else [])]
    world.provider.streams = [[*line, Done(result=answer("x" * size * pieces))]]
    job_id = world.submit("chat", stream=True).job.job_id
    written = meter.writes
    world.worker(job_id)
    job = world.job(job_id)
    assert job.status is Status.SUCCEEDED, job  # noqa: S101 - a figure of a failed stream is none
    seconds, bytes_ = pieces * pause / 1000, pieces * size
    return Stream(
        name=name,
        pieces=pieces,
        seconds=seconds,
        kilobytes=bytes_ / 1024,
        segments=sum(not one.data.get("sealed") for one in store.children(job_id, "SEG#", 10_000)),
        allowed=2 + int(seconds * 1000) // FLUSH_MS + bytes_ // FLUSH_BYTES,
        writes=meter.writes - written,
    )
