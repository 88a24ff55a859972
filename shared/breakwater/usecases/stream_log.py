"""How is the log of an answer read, and how is it closed for whoever wrote it before?

`domain/segments.py` says what a log is. Reading follows the seals from the epoch that META names; closing puts our own
seal on the first free number, and finds out on the way where the old log really ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from breakwater.domain.job import Job
from breakwater.domain.segments import Answer, Segment, log_prefix, segment_child, segment_key, segment_of
from breakwater.ports import JobStore

if TYPE_CHECKING:
    from breakwater.usecases.deps import Deps


class Stored(Protocol):
    """Whatever has the table."""

    @property
    def store(self) -> JobStore:
        """The table."""
        ...


_PAGE = 100


@dataclass(slots=True)
class Log:
    """A chain of logs as far as it was read: its end, and what it tells."""

    epoch: int
    n: int = -1
    sequence: int | None = None
    segments: int = 0
    sealed: bool = False
    answer: Answer = field(default_factory=Answer)

    def take(self, segment: Segment) -> None:
        """Go one segment further."""
        self.epoch, self.n = segment.epoch, segment.n
        if segment.sealed:
            self.sealed = segment.next_epoch is None
            self.epoch, self.n = (self.epoch, self.n) if self.sealed else (segment.next_epoch or 0, -1)
            return
        self.segments += 1
        self.answer.add(segment.deltas)
        self.sequence = self.sequence if segment.sequence is None else segment.sequence


def put(deps: Deps, job: Job, segment: Segment) -> bool:
    """Append one segment. False: somebody closed the log, or took the number."""
    child = segment_child(job.created_at, job.generation, segment)
    standing = deps.store.put_child(job.job_id, child, job.ttl)
    return standing.body == child.body and dict(standing.data) == dict(child.data)


def follow(deps: Stored, job: Job, epoch: int, n: int = -1, page: int = _PAGE) -> Iterator[Segment]:
    """Segments behind a place, seals too, across the logs of the chain, until there are no more."""
    while True:
        prefix = log_prefix(job.created_at, job.generation, epoch)
        after = segment_key(job.created_at, job.generation, epoch, n) if n >= 0 else None
        children = deps.store.children_after(job.job_id, prefix, after, page)
        moved = False
        for segment in map(segment_of, children):
            yield segment
            moved, n = True, segment.n
            if segment.sealed:
                if segment.next_epoch is None:
                    return
                epoch, n = segment.next_epoch, -1
                break
        if not moved:
            return


def collected(deps: Stored, job: Job) -> Log | None:
    """Everything that is visible of a job's answer; None where nothing is."""
    if job.stream_epoch is None:
        return None
    log = Log(job.stream_epoch)
    for segment in follow(deps, job, log.epoch):
        log.take(segment)
    return log


def take_over(deps: Deps, job: Job, epoch: int) -> Log | None:
    """Close the visible log for all who wrote it, with a seal that names `epoch`. None: a later holder was faster."""
    log = collected(deps, job)
    while log is not None and log.epoch < epoch and not log.sealed:
        seal = Segment(epoch=log.epoch, n=log.n + 1, sealed=True, next_epoch=epoch)
        if put(deps, job, seal):
            log.take(seal)
            break
        before = log.epoch, log.n
        for segment in follow(deps, job, *before):
            log.take(segment)
    return log if log is not None and log.epoch == epoch else None


def close(deps: Deps, job: Job) -> None:
    """Nobody may go on with this answer: where it ends is decided now."""
    log = collected(deps, job)
    while log is not None and not log.sealed:
        seal = Segment(epoch=log.epoch, n=log.n + 1, sealed=True)
        if put(deps, job, seal):
            return
        for segment in follow(deps, job, log.epoch, log.n):
            log.take(segment)
