"""What does a reader get who comes to a stream, at whatever place it stands?

One answer of bounded size and time: what is visible behind the reader's place, and the terminal event once the job has
come to its end. META is read first and segments after it, so everything that an end stands for is there when it is
seen. A place names a segment, so coming back repeats nothing and misses nothing. Where a job was settled by a poll or a
webhook while nobody streamed, what is left of the answer comes from the stored result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from breakwater.domain.errors import NotFound
from breakwater.domain.job import Job, execution_id
from breakwater.domain.records import execution_key, result_key
from breakwater.domain.results import Result
from breakwater.domain.segments import Answer, plain, remainder
from breakwater.domain.states import Reason, Status
from breakwater.domain.stream_ends import DONE, FAILED, ending, terminal
from breakwater.domain.stream_events import Delta, TextDelta
from breakwater.domain.stream_ids import Place
from breakwater.domain.timing import SECOND
from breakwater.domain.values import dataclass
from breakwater.ports import Clock, JobStore, Log, Payloads
from breakwater.usecases import stream_log
from breakwater.usecases.retention import retained

HOLD_MS = 1_800  # with the reads around it less than 2 s
_LOOK_MS = 200
_LOOK_WAITING_MS = 500
_LARGEST = 1024 * 1024
_PIECE = 64 * 1024
_SOON, _LATER, _LATEST = 250, SECOND, 5 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamDeps:
    """The outside of a reader: it reads, and waits."""

    store: JobStore
    payloads: Payloads
    clock: Clock
    log: Log
    pause: Callable[[int], None]  # ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event for a reader; without a name it is a message."""

    place: Place
    data: str
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What one request gets. Without events: nothing new yet."""

    events: tuple[Event, ...] = ()
    retry_ms: int = _SOON
    over: bool = False


def read(deps: StreamDeps, job_id: str, owner_key: str, place: Place | None) -> Answered | None:
    """What is new behind `place`, waiting a short while for it. None: the end was told already.

    Raises `NotFound` for a job that is not there, not the owner's, or past its retention.
    """
    until = deps.clock.monotonic() + HOLD_MS
    while True:
        job = _own(deps, job_id, owner_key)
        if place is not None and place.ended:
            return None
        events = _events(deps, job, place)
        left = until - deps.clock.monotonic()
        if events or left <= 0:
            return Answered(events=events, retry_ms=_retry(deps, job), over=bool(events) and events[-1].place.ended)
        deps.pause(min(left, _LOOK_MS if job.status is Status.PROCESSING else _LOOK_WAITING_MS))


def _own(deps: StreamDeps, job_id: str, owner_key: str) -> Job:
    job = deps.store.get(job_id)
    if job is None or job.owner_key != owner_key or not retained(job, deps.clock.now()):
        raise NotFound("There is no job of this id.", field="job_id", rule="exists", fix="check the id")
    return job


def _retry(deps: StreamDeps, job: Job) -> int:
    """When to come back: soon while it speaks, later while it waits."""
    if job.status is Status.PROCESSING:
        return _SOON
    return min(_LATEST, max(_LATER, job.ready_at - deps.clock.now()))


def _events(deps: StreamDeps, job: Job, place: Place | None) -> tuple[Event, ...]:
    if place is not None and place.generation != job.generation:
        return (_began_anew(job, place),)
    found: list[Event] = []
    size = 0
    for event in _told(deps, job, place):
        found.append(event)
        size += len(event.data)
        if size > _LARGEST:  # the rest when the reader comes back
            break
    return tuple(found)


def _told(deps: StreamDeps, job: Job, place: Place | None) -> Iterator[Event]:
    """Everything behind a place, in order."""
    last = place
    if place is None or place.told is None:
        for event in _segments(deps, job, place):
            last = event.place
            yield event
    name = ending(job)
    if name is None:
        return
    log = stream_log.collected(deps, job)
    answer = log.answer if log is not None else Answer()
    if name == DONE:
        yield from _rest(deps, job, answer, last)
    data = terminal(
        job,
        segments=log.segments if log is not None else 0,
        characters=len(answer.text),
        provider_request_id=_provider_request_id(deps, job),
    )
    yield Event(place=Place(generation=job.generation, ended=True), name=name, data=_json(data))


def _segments(deps: StreamDeps, job: Job, place: Place | None) -> Iterator[Event]:
    if job.stream_epoch is None:
        return
    behind = place is not None and place.epoch is not None
    epoch, n = (place.epoch, place.n) if behind and place is not None else (job.stream_epoch, -1)
    for segment in stream_log.follow(deps, job, epoch or job.stream_epoch, n):
        if segment.deltas:
            here = Place(generation=job.generation, epoch=segment.epoch, n=segment.n)
            yield Event(place=here, data=_deltas(segment.deltas))


def _rest(deps: StreamDeps, job: Job, answer: Answer, last: Place | None) -> Iterator[Event]:
    """What of a finished answer stands in no segment."""
    result, streamed = _result(deps, job)
    if streamed or result is None:
        return
    if last is not None and last.told is not None:
        if last.told >= len(result.text):
            return
        answer = Answer(parts=[result.text[: last.told]], calls=answer.calls)
    rest = remainder(answer, result) or ()
    told, total = len(answer.text), len(result.text)
    pieces = [one for delta in rest if isinstance(delta, TextDelta) for one in _cut(delta.text)]
    others = tuple(delta for delta in rest if not isinstance(delta, TextDelta))
    for number, piece in enumerate(pieces or ([""] if others else [])):
        told += len(piece)
        text: tuple[Delta, ...] = (TextDelta(text=piece),) if piece else ()
        closing = others if number >= len(pieces) - 1 else ()
        yield Event(place=Place(generation=job.generation, told=min(told, total)), data=_deltas((*text, *closing)))


def _cut(text: str) -> list[str]:
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]


def _result(deps: StreamDeps, job: Job) -> tuple[Result | None, bool]:
    """The stored result, and whether every piece of it was streamed."""
    child = deps.store.child(job.job_id, job.result_ref) if job.result_ref else None
    if child is None:
        return None, False
    if child.data.get("evidence", {}).get("stream_segments") is not None and job.stream_epoch is not None:
        return None, True
    raw = child.body.encode() if child.body is not None else deps.payloads.get(child.blob) if child.blob else None
    if raw is None:
        return None, False
    body = json.loads(raw)
    return Result(text=body.get("text") or "", tool_calls=tuple(body.get("tool_calls") or ())), False


def _provider_request_id(deps: StreamDeps, job: Job) -> str | None:
    """What to tell the provider's support, from the record of the last attempt."""
    if job.attempt == 0:
        return None
    last = execution_id(job.job_id, job.created_at, job.generation, job.attempt)
    for key in (result_key(last), execution_key(last)):
        child = deps.store.child(job.job_id, key)
        if child is not None:
            found = child.data.get("execution", {}).get("provider_request_id")
            return str(found) if found else None
    return None


def _began_anew(job: Job, place: Place) -> Event:
    """The reader saw an earlier life of the job: that answer is over, another is never spliced behind it."""
    data = {
        **terminal(job, segments=0, characters=0, provider_request_id=None),
        "reason": Reason.REPLAYED.value,
        "complete": False,
        "what_to_do": "The job began anew: open the stream again without `Last-Event-ID`.",
    }
    return Event(place=Place(generation=place.generation, ended=True), name=FAILED, data=_json(data))


def _deltas(deltas: tuple[Delta, ...]) -> str:
    return _json({"deltas": [plain(one) for one in deltas]})


def _json(data: object) -> str:
    """All ASCII: no reader that cuts lines where it should not can break it."""
    return json.dumps(data, separators=(",", ":"))
