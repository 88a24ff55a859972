"""What does this process remember of the numbers in use, and when may it rely on that?

Looking at a scope costs a read, and where there is much room the look tells nothing: any free number will do, and the
condition of the write is what keeps two from holding it. So a scope that was seen roomy a moment ago may be used
without a look. Not where a ramp narrows it, where its limit changed since, or where numbers above the limit were in
use (`slots.py`): there the look is what keeps the limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from breakwater.domain.bounded import Bounded
from breakwater.domain.job import SlotRef
from breakwater.domain.slots import ScopeLimit, Slot, roomy
from breakwater.domain.timing import SECOND

LATELY = SECOND


class Scopes:
    """Scopes as they were seen, with what this process did to them since."""

    def __init__(self) -> None:
        self._seen: Bounded[str, tuple[int, int, set[int]]] = Bounded()  # when, under which limit, numbers in use

    def saw(self, limit: ScopeLimit, taken: Sequence[Slot], now: int) -> None:
        """A look at `now`; only one that can be relied on is kept."""
        used = {slot.n for slot in taken}
        if limit.ramp is not None or any(n >= limit.limit for n in used):
            self.forget(limit.scope)
            return
        self._seen[limit.scope] = now, limit.limit, used

    def free(self, limit: ScopeLimit, now: int) -> tuple[int, ...]:
        """Numbers that may be asked for without a look; none where it takes one."""
        at, most, used = self._seen.get(limit.scope, (0, 0, set[int]()))
        if limit.ramp is not None or most != limit.limit or not 0 <= now - at <= LATELY or not roomy(most, len(used)):
            return ()
        return tuple(n for n in range(most) if n not in used)

    def took(self, slot: SlotRef) -> None:
        """It is ours now."""
        if slot.scope in self._seen:
            self._seen[slot.scope][2].add(slot.n)

    def freed(self, slot: SlotRef) -> None:
        """It was given back."""
        if slot.scope in self._seen:
            self._seen[slot.scope][2].discard(slot.n)

    def forget(self, scope: str) -> None:
        """What was remembered proved wrong."""
        self._seen.pop(scope, None)
