"""`python -m tools.drills NAME…|all`: breaks something on purpose, one PASS or FAIL line each.

On the local cloud as it stands, or in a pre-production account: BREAKWATER_URL, BREAKWATER_API_KEY, and for some drills
BREAKWATER_SIMULATOR, BREAKWATER_WEBHOOK_SECRET and BREAKWATER_STAGE. Exit 0: all passed, 1: one failed, 2: not held.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence

from tools.drills import scenes
from tools.drills.stand import BrokenPromiseError, DrillError, Stand, place

DRILLS: Mapping[str, Callable[[Stand], str]] = {
    "worker": scenes.worker,
    "idempotency": scenes.idempotency,
    "webhook-replay": scenes.webhook_replay,
    "dead-letter": scenes.dead_letter,
    "lease-recovery": scenes.lease_recovery,
}


def hold(name: str) -> bool:
    """One drill, and its line."""
    started = time.monotonic()
    with Stand(place()) as stand:
        try:
            measured = DRILLS[name](stand)
        except BrokenPromiseError as error:
            print(f"FAIL  {name:<15} {time.monotonic() - started:6.1f} s  {error}", flush=True)
            return False
    print(f"PASS  {name:<15} {time.monotonic() - started:6.1f} s  {measured}", flush=True)
    return True


def main(arguments: Sequence[str]) -> int:
    """Hold the named drills in turn."""
    names = list(DRILLS) if list(arguments) == ["all"] else list(arguments)
    if not names or any(name not in DRILLS for name in names):
        print(f"usage: python -m tools.drills {'|'.join(DRILLS)}|all")
        return 2
    try:
        held = [hold(name) for name in names]
        return 0 if all(held) else 1
    except DrillError as error:
        print(error)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
