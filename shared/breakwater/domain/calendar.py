"""At which instants does a schedule run, in a zone whose clock jumps?

The cron library only answers which *local* times match: it never sees a zone. Here the line of UTC time is cut into
pieces of one offset; within a piece local time runs evenly, so matches map to instants one to one and in order. Only at
the joints something can go wrong, and two rules say what then happens:

- a local time that does not exist (the clock jumps forward): `skip` it, or `shift` it to the moment of the jump;
- a local time that happens twice (the clock falls back): run at the `first`, the `second`, or `both`.

By default a schedule that names hours keeps to the wall clock: once per local time, shifted rather than lost (`shift`,
`first`). One that runs in every hour keeps to elapsed time: nothing to shift, nothing to leave out (`skip`, `both`).
A rate (`every: 2h`) knows no local time at all: it counts whole steps from 1970-01-01T00:00Z.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import count

from cronsim import CronSim, CronSimError

from breakwater.domain.timing import DAY, SECOND
from breakwater.domain.values import dataclass
from breakwater.domain.zones import local, offset_ms, zone_of

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local times carry no zone here
_CHUNK = 7 * DAY  # no zone changes its offset twice within it
_FIELDS = 5
_SLACK = 2 * DAY  # more than any two offsets differ


class Nonexistent(StrEnum):
    """What becomes of a local time that the clock jumps over."""

    SKIP = "skip"
    SHIFT = "shift"


class Ambiguous(StrEnum):
    """What becomes of a local time that the clock shows twice."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Cron:
    """Five fields, a zone and the two rules. Build it with `cron`, which checks and fills in the defaults."""

    expression: str
    zone: str
    nonexistent: Nonexistent
    ambiguous: Ambiguous


@dataclass(frozen=True, slots=True)
class Rate:
    """Every so many ms of elapsed time, counted from the epoch."""

    every_ms: int


Rhythm = Cron | Rate


def cron(
    expression: str, zone: str, nonexistent: Nonexistent | None = None, ambiguous: Ambiguous | None = None
) -> Cron:
    """A checked calendar with its defaults filled in; raises ValueError with a text for its author."""
    hourly = _parsed(expression).hours == set(range(24))
    if ambiguous is Ambiguous.BOTH and not hourly:
        raise ValueError("ambiguous: both is for schedules that run in every hour; this one would run twice that day")
    zone_of(zone)
    return Cron(
        expression,
        zone,
        nonexistent or (Nonexistent.SKIP if hourly else Nonexistent.SHIFT),
        ambiguous or (Ambiguous.BOTH if hourly else Ambiguous.FIRST),
    )


def runs_after(rhythm: Rhythm, after_ms: int) -> Iterator[int]:
    """The planned instants later than this one, in order; without end unless the calendar has one."""
    if isinstance(rhythm, Rate):
        return count((after_ms // rhythm.every_ms + 1) * rhythm.every_ms, rhythm.every_ms)
    return _after(rhythm, after_ms + 1)


def runs_until(rhythm: Rhythm, until_ms: int) -> Iterator[int]:
    """The planned instants up to and with this one, latest first."""
    if isinstance(rhythm, Rate):
        return count(until_ms // rhythm.every_ms * rhythm.every_ms, -rhythm.every_ms)
    return _until(rhythm, until_ms)


def _after(rhythm: Cron, at: int | None) -> Iterator[int]:
    while at is not None:
        piece = _piece(rhythm.zone, at)
        yield from _forward(rhythm, piece, at)
        at = _next_piece(rhythm, piece)


def _until(rhythm: Cron, at: int | None) -> Iterator[int]:
    while at is not None:
        piece = _piece(rhythm.zone, at)
        yield from _backward(rhythm, piece, at)
        at = _previous_piece(rhythm, piece)


# --- pieces of one offset ---


@dataclass(frozen=True, slots=True)
class _Piece:
    """UTC time from `start` up to `end` (ms) in which local time is `offset` ahead. `was`: the offset just before."""

    start: int
    end: int
    offset: int
    was: int
    then: int


def _piece(zone: str, at: int) -> _Piece:
    chunk = at // _CHUNK
    first, *rest = _pieces(zone, chunk)
    return rest[0] if rest and at >= rest[0].start else first


@lru_cache(maxsize=2048)
def _pieces(zone: str, chunk: int) -> tuple[_Piece, ...]:
    """One piece for a week of one offset, two for a week in which the clock jumps."""
    start, end = chunk * _CHUNK, (chunk + 1) * _CHUNK
    before, first, last, after = (offset_ms(zone, at) for at in (start - SECOND, start, end - SECOND, end))
    if first == last:
        return (_Piece(start, end, first, before, after),)
    jump = _jump(zone, start, end, first)
    return (_Piece(start, jump, first, before, last), _Piece(jump, end, last, first, after))


def _jump(zone: str, start: int, end: int, first: int) -> int:
    """The second from which the offset is no longer `first`."""
    while end - start > SECOND:
        middle = (start + end) // 2 // SECOND * SECOND
        start, end = (middle, end) if offset_ms(zone, middle) == first else (start, middle)
    return end


def _next_piece(rhythm: Cron, piece: _Piece) -> int | None:
    """Where to go on: at the joint, or near the next match where the offset does not change; None: nowhere."""
    if piece.then != piece.offset:
        return piece.end
    match = next(_matches(rhythm, piece.end + piece.offset), None)
    return None if match is None else max(piece.end, match - piece.offset - _SLACK)


def _previous_piece(rhythm: Cron, piece: _Piece) -> int | None:
    if piece.was != piece.offset:
        return piece.start - 1
    match = next(_matches_back(rhythm, piece.start + piece.offset - 1), None)
    return None if match is None else min(piece.start - 1, match - piece.offset + _SLACK)


# --- runs within a piece ---


def _forward(rhythm: Cron, piece: _Piece, at: int) -> Iterator[int]:
    shifted = at <= piece.start and _shifted(rhythm, piece)
    if shifted:
        yield piece.start
    for match in _matches(rhythm, at + piece.offset):
        run = match - piece.offset
        if run >= piece.end:
            return
        if _kept(rhythm, run) and not (shifted and run == piece.start):
            yield run


def _backward(rhythm: Cron, piece: _Piece, at: int) -> Iterator[int]:
    shifted = _shifted(rhythm, piece)
    for match in _matches_back(rhythm, at + piece.offset):
        run = match - piece.offset
        if run < piece.start:
            break
        if _kept(rhythm, run) and not (shifted and run == piece.start):
            yield run
    if shifted:
        yield piece.start


def _shifted(rhythm: Cron, piece: _Piece) -> bool:
    """Whether the jump that opens this piece swallowed a local time that is made up for at once."""
    if rhythm.nonexistent is Nonexistent.SKIP or piece.was >= piece.offset:
        return False
    lost = next(_matches(rhythm, piece.start + piece.was), None)
    return lost is not None and lost < piece.start + piece.offset


def _kept(rhythm: Cron, run: int) -> bool:
    """Whether this one of two equal local times is meant."""
    if rhythm.ambiguous is Ambiguous.BOTH:
        return True
    shown = local(run, rhythm.zone)
    if rhythm.ambiguous is Ambiguous.FIRST:
        return shown.fold == 0
    return shown.fold == 1 or shown.replace(fold=1).utcoffset() == shown.utcoffset()


# --- local times, as the cron library sees them ---


def _matches(rhythm: Cron, local_ms: int) -> Iterator[int]:
    """Matching local times not before this one, in ms since a local 1970."""
    first = -(-local_ms // SECOND) - 1
    return (_ms(match) for match in CronSim(rhythm.expression, _EPOCH + timedelta(seconds=first)))


def _matches_back(rhythm: Cron, local_ms: int) -> Iterator[int]:
    """Matching local times not after this one, latest first."""
    last = local_ms // SECOND + 1
    return (_ms(match) for match in CronSim(rhythm.expression, _EPOCH + timedelta(seconds=last), reverse=True))


def _ms(naive: datetime) -> int:
    return (naive - _EPOCH) // timedelta(milliseconds=1)


def _parsed(expression: str) -> CronSim:
    if len(expression.split()) != _FIELDS:
        raise ValueError("needs five fields: minute, hour, day of month, month, day of week")
    try:
        parsed = CronSim(expression, _EPOCH)
    except CronSimError as error:
        raise ValueError(f"is no calendar: {error}") from error
    if next(CronSim(expression, _EPOCH), None) is None:
        raise ValueError("matches no day within fifty years")
    return parsed
