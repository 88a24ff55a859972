"""Whose turn is it when capacity is freed? Round robin over owners, each owner's jobs by rank.

Theory of operation. Owners stand in a circle, by a short name of theirs (`turn_name`), and the owner who had the last
turn is remembered. Of those looked at, who has least in use goes next; of these, the first behind the last turn. Only a
stretch of the circle that begins there is looked at, and the memory never moves over an owner who was not seen. So of N
owners who wait, one with nothing in use has its turn within N releases, whatever the others have in line and however
early it came.

What is unpleasant: priority and age order the jobs of one owner, not of two. A circle by age has no bound: of three
owners with one place among them, the two older floods would take turns until both are gone.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence

from breakwater.domain.timing import MINUTE

FIRST_RECHECK = MINUTE
LONGEST_RECHECK = 15 * MINUTE


def turn_name(owner_key: str) -> str:
    """An owner's place in the circle: 16 hex digits, as short as that because every waiter carries it."""
    return hashlib.sha256(owner_key.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def turns(line: Sequence[tuple[str, str]], busy: Mapping[str, int], last: str, most: int) -> list[str]:
    """The next `most` of a line of (job id, owner), each owner's in order.

    `busy`: how much each owner has in use; `last`: who had the last turn, empty where nobody knows.
    """
    queues: dict[str, deque[str]] = {}
    for job_id, owner in line:
        queues.setdefault(owner, deque()).append(job_id)
    load = Counter(busy)
    chosen: list[str] = []
    while queues and len(chosen) < most:
        last = _next(queues, load, last)
        chosen.append(queues[last].popleft())
        load[last] += 1
        if not queues[last]:
            del queues[last]
    return chosen


def _next(waiting: Iterable[str], load: Mapping[str, int], last: str) -> str:
    """Who has least in use; of these the first behind the last turn, around the circle."""
    return min(waiting, key=lambda one: (load[one], one <= last, one))


def recheck_at(now: int, waits: int) -> int:
    """When a waiter that nobody woke looks for itself: slow and doubling, since this is only the safety net."""
    return now + min(LONGEST_RECHECK, FIRST_RECHECK << min(waits, 10))
