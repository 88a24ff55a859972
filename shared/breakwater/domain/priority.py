"""Who is released first among those that are ready, and who is dropped to keep capacity for people?"""

from __future__ import annotations

from breakwater.domain.policy import Policy
from breakwater.domain.states import PRIORITY_RANK, Lane, Priority
from breakwater.domain.timing import MINUTE, SECOND

# How much earlier than its turn a job stands in line. Finite, so that low priority waits longer but never for ever.
HEAD_START_MS = {Priority.LOW: 0, Priority.NORMAL: 30 * SECOND, Priority.HIGH: 5 * MINUTE}


def effective(policy: Policy, requested: Priority | None) -> Priority:
    """The policy's priority; a request may only lower it."""
    if requested is None:
        return policy.priority
    return min(policy.priority, requested, key=PRIORITY_RANK.__getitem__)


def rank(policy: Policy, priority: Priority, ready_at: int) -> int:
    """Where a job stands among waiters: smaller goes first, ties by `created_at`. Says nothing about *when*."""
    counts = "priority" in policy.ai_api_queueing_strategy.backpressure.release_order
    return ready_at - (HEAD_START_MS[priority] if counts else 0)


def sheds(policy: Policy, lane: Lane, priority: Priority) -> bool:
    """Whether a job of this priority is dropped rather than left to block people's capacity."""
    admission = policy.lanes.interactive_admission
    if lane is not Lane.INTERACTIVE_ADMISSION or admission is None or admission.shed_priority_below is None:
        return False
    return PRIORITY_RANK[priority] < PRIORITY_RANK[admission.shed_priority_below]
