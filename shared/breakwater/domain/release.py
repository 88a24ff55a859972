"""Whose turn is it when capacity is freed? Round robin over owners: who has least in use goes next, then first in line.

Owners take turns by what they have in use, so that no memory of the last turn is needed and a flood of one owner's
jobs, however early they came, can't keep another's waiting.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from breakwater.domain.timing import MINUTE

FIRST_RECHECK = MINUTE
LONGEST_RECHECK = 15 * MINUTE


def turns(line: Sequence[tuple[str, str]], busy: Mapping[str, int], most: int) -> list[str]:
    """The next `most` jobs of a line of (job id, owner), given how much each owner has in use."""
    queues: dict[str, deque[tuple[int, str]]] = {}
    for place, (job_id, owner) in enumerate(line):
        queues.setdefault(owner, deque()).append((place, job_id))
    load = Counter(busy)
    chosen: list[str] = []
    while queues and len(chosen) < most:
        owner = min(queues, key=lambda one: (load[one], queues[one][0][0]))
        chosen.append(queues[owner].popleft()[1])
        load[owner] += 1
        if not queues[owner]:
            del queues[owner]
    return chosen


def recheck_at(now: int, waits: int) -> int:
    """When a waiter that nobody woke looks for itself: slow and doubling, since this is only the safety net."""
    return now + min(LONGEST_RECHECK, FIRST_RECHECK << min(waits, 10))
