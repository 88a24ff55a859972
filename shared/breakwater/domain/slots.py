"""Which numbers of a concurrency limit may be taken, and who still holds one?

Theory of operation. A scope with a limit of N has the numbers 0 … N-1. A number in use is one item that says which job
took it and for which lease epoch; a free one has no item. A number is taken *before* the claim, by a conditional put,
so two can't hold the same one; META names its numbers from the claim on. So what an item means can always be told from
META (`standing`): the claim landed and still runs (held), it is over or can't land any more (free), or it has not come
yet (unclaimed). An unclaimed number may be taken away after its `verify_at`, once META's revision was raised: the claim
that was on its way then fails, so nobody calls without a number.

What is unpleasant: a limit that is lowered while more numbers are in use does not end what runs. `free_numbers` then
hands out only so many low numbers that the sum stays within the limit; all who look at the same time choose from the
same few numbers, which is what keeps a ramp narrow without a counter.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from breakwater.domain.job import Job, SlotRef
from breakwater.domain.timing import MINUTE
from breakwater.domain.values import dataclass

VERIFY_AFTER = MINUTE  # how long a number may be held without anybody asking whether it is still used
_WIDE = 8
UNBOUNDED = 10_000  # stands for "no limit of its own", where only a ramp narrows a route


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One number in use."""

    scope: str
    n: int
    job_id: str
    epoch: int  # of the lease it was taken for
    taken_at: int
    verify_at: int
    stamp: int = 0  # tells apart two that took it for the same lease at the same moment
    owner: str = ""  # short name of the job's owner, for taking turns; empty where nobody wrote it

    @property
    def ref(self) -> SlotRef:
        """As META names it."""
        return SlotRef(scope=self.scope, n=self.n)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeLimit:
    """How many numbers a scope has. `ramp` narrows it further, counting only what was taken from `since` on."""

    scope: str
    limit: int
    ramp: int | None = None
    since: int = 0


class Standing(StrEnum):
    """What META says about a number in use."""

    HELD = "held"
    FREE = "free"  # its claim ended, or can't land any more
    UNCLAIMED = "unclaimed"  # its claim may still be on its way


def free_numbers(limit: ScopeLimit, taken: Sequence[Slot]) -> tuple[int, ...]:
    """The numbers that may be taken now, lowest first."""
    used = {slot.n for slot in taken}
    free = [n for n in range(_ceiling(limit.limit, used)) if n not in used]
    if limit.ramp is None:
        return tuple(free)
    recent = sum(slot.taken_at >= limit.since for slot in taken)
    return tuple(free[: max(0, limit.ramp - recent)])


def roomy(limit: int, in_use: int) -> bool:
    """So much room that nobody waits. Narrow limits have a line even when all their numbers were just given back."""
    return limit >= _WIDE and in_use * 2 < limit


def _ceiling(limit: int, used: set[int]) -> int:
    """The most numbers from 0 on that, with everything in use above them, stay within the limit."""
    ceiling, above = limit, sum(n >= limit for n in used)
    while ceiling > 0 and ceiling + above > limit:
        ceiling -= 1
        above += ceiling in used
    return ceiling


def standing(job: Job | None, slot: Slot) -> Standing:
    """Whether a number is still in use, by the job that took it."""
    if job is not None and slot.ref in job.slots and job.slots_epoch == slot.epoch:
        return Standing.HELD
    if job is None or job.lease_epoch >= slot.epoch:
        return Standing.FREE
    return Standing.UNCLAIMED


def release_ref(job: Job) -> str:
    """The numbers of a job's open execution as one line: its epoch, then `scope|n`, parted by blanks."""
    return " ".join([str(job.slots_epoch), *(f"{slot.scope}|{slot.n}" for slot in job.slots)])


def refs_of(text: str) -> tuple[int, tuple[SlotRef, ...]]:
    """The reverse of `release_ref`."""
    epoch, *named = text.split(" ")
    parts = (one.rsplit("|", 1) for one in named)
    return int(epoch), tuple(SlotRef(scope=scope, n=int(n)) for scope, n in parts)
