"""How long does a worker try to write down what was paid for?

For as long as its function runs: a result that is known only to this process is lost with it, and would be paid again.
Only for writes that may be repeated: all of a conclusion's are put if absent, or planned anew over what stands there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from breakwater.domain.errors import Unavailable
from breakwater.domain.timing import RESPONSE_RESERVE
from breakwater.usecases.deps import Deps

_FIRST, _LONGEST = 250, 4_000  # ms between tries
T = TypeVar("T")


def insist(deps: Deps, remaining_ms: Callable[[], int], write: Callable[[], T]) -> T:
    """What `write` gives, tried again while a store is away and there is time. Raises `Unavailable` after it."""
    until, pause = deps.clock.monotonic() + remaining_ms() - RESPONSE_RESERVE, _FIRST
    while True:
        try:
            return write()
        except Unavailable as error:
            if deps.clock.monotonic() + pause >= until:
                raise
            deps.log.note("write_repeated", error=type(error).__name__, after_ms=pause)
        deps.clock.sleep(pause)
        pause = min(2 * pause, _LONGEST)
