"""Which lengths of time hold the system together? All in ms unless the name says otherwise; one place for all.

client deadline > gateway > function time-out > provider call + reserve; the template is tested against these.
"""

from __future__ import annotations

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

MAX_QUEUE_DELAY = 900 * SECOND  # the longest delay SQS takes
NUDGE_GRACE = 120 * SECOND  # how long a nudge may stay unanswered
NUDGE_GRACE_MAX = 15 * MINUTE
CLOCK_SKEW = 5 * SECOND  # how far apart two clocks may be
LEASE = 60 * SECOND
RENEW_TIMEOUT = 2 * SECOND  # one renewal's own limit; the store's renewal client is built with it
LEASE_MARGIN = 2 * SECOND  # a lease outlives the function that holds it by this much
NUDGED_POLL_WINDOW = 60 * SECOND  # closer polls are nudged, later ones are left to the minute sweep
GATEWAY_TIMEOUT = 30 * SECOND
WORKER_TIMEOUT = 60 * SECOND  # function time-outs: the template says the same
COMPLETION_TIMEOUT = 60 * SECOND
EFFECTS_TIMEOUT = 30 * SECOND
SWEEP_TIMEOUT = 50 * SECOND
RESPONSE_RESERVE = 3 * SECOND  # kept free after a provider call for persistence and the answer
INTAKE_TIMEOUT = 10 * SECOND


def nudge_grace(nudges: int) -> int:
    """How long the latest of `nudges` nudges may stay unanswered: 120 s, doubling to 15 min."""
    return min(NUDGE_GRACE_MAX, NUDGE_GRACE << min(max(nudges - 1, 0), 10))
