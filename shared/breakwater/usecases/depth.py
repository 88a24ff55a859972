"""How much stands in a lane ahead of new work? Counted where a policy limits it; nobody else pays for it.

What is counted are the jobs themselves, in an index derived from META: everything that waits to be worked on, whether
in a queue, for capacity, behind a closed route or for its next try. A queue's own length would leave out those who wait
in the table, and count repeated nudges twice. No counter is kept, so none can leak. A process counts at most every two
seconds and no further than the limit, and adds what it lets in itself; so processes side by side may overshoot the
limit by what they let in within two seconds.
"""

from __future__ import annotations

from dataclasses import replace

from breakwater.domain.errors import Unavailable
from breakwater.domain.job import Job
from breakwater.domain.policy import Policy
from breakwater.domain.states import Lane
from breakwater.domain.timing import SECOND
from breakwater.ports import Backlog
from breakwater.usecases.deps import Deps

_LATELY = 2 * SECOND
_SHARE = 10  # come again when about a tenth of the places is free


def drains_in(deps: Deps, lane: Lane, owner_key: str | None, most: int, waited: int) -> int | None:
    """None: there is room for one more. Else in how many ms about a tenth of the places is free again.

    At the pace seen: workers say how long the jobs they took had waited, which is how long it took everything ahead of
    them to drain; where they say nothing, as long as the older of what stands has stood.
    """
    found = _lately(deps, lane, owner_key, most)
    if found is None or found.depth < most:
        return None
    stood = waited or (deps.now() - found.since if found.since is not None else 0)
    return max(SECOND, stood // _SHARE)


def let_in(deps: Deps, job: Job, policy: Policy) -> None:
    """One more stands there; costs nothing, and nothing is kept where nobody counts."""
    limit = policy.depth(job.lane)
    for owner_key, most in ((None, limit.lane), (job.owner_key, limit.owner)):
        kept = None if most is None else deps.noticed.depths.get((job.lane, owner_key, most))
        if most is not None and kept is not None and kept[1] is not None:
            one_more = replace(kept[1], depth=kept[1].depth + 1)
            deps.noticed.depths[job.lane, owner_key, most] = (kept[0], one_more)


def _lately(deps: Deps, lane: Lane, owner_key: str | None, most: int) -> Backlog | None:
    place, now = (lane, owner_key, most), deps.now()
    kept = deps.noticed.depths.get(place)
    if kept is None or now - kept[0] > _LATELY:
        kept = (now, _counted(deps, lane, owner_key, most))
        deps.noticed.depths[place] = kept
    return kept[1]


def _counted(deps: Deps, lane: Lane, owner_key: str | None, most: int) -> Backlog | None:
    """A count that fails turns nobody away: it is there to protect, and what it protects answers for itself."""
    try:
        return deps.store.backlog(lane, owner_key, most)
    except Unavailable as error:
        deps.log.note("depth_unknown", lane=lane.value, why=type(error).__name__)
        return None
