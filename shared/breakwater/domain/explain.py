"""What does a policy do with every signal, in words its owner can read?

Nothing is described here: each row asks `decide` about a made-up job and writes down its answer, so the table can't
differ from what happens. Waits are given as the range between the luckiest and the unluckiest draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from itertools import groupby

from breakwater.domain import events as ev
from breakwater.domain.budget import PEOPLE_WAIT
from breakwater.domain.decide import Decision, decide
from breakwater.domain.job import Job
from breakwater.domain.places import place
from breakwater.domain.policy import Policy
from breakwater.domain.routes import Catalogue, Route
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import Lane, Reason, Status, Visibility
from breakwater.domain.timing import DAY, HOUR, MINUTE, SECOND
from breakwater.domain.values import dataclass

_NOW = 1_800_000_000_000
_UNLUCKY = 1 - 1e-9
WORKING_LANES = (Lane.INTERACTIVE_ADMISSION, Lane.STREAM_RECOVERY, Lane.BACKGROUND_RETRY)


class Moment(StrEnum):
    """When the signal comes."""

    FIRST = "first attempt"
    SHORT_HINT = "provider asks for 1 s"
    HINT = "provider asks for 30 s"
    LONG_HINT = "provider asks for 13 h"
    LAST = "attempts used up"
    PARTIAL = "part of the answer was seen"


_HINTS = {Moment.SHORT_HINT: SECOND, Moment.HINT: 30 * SECOND, Moment.LONG_HINT: 13 * HOUR}

WORDS: Mapping[ErrorClass, str] = {
    ErrorClass.PACING: "too many requests or tokens per minute",
    ErrorClass.QUOTA: "a daily or assigned amount is used up",
    ErrorClass.SPEND: "credit, billing or spend limit",
    ErrorClass.OVERLOAD: "the provider has no capacity",
    ErrorClass.SERVER_FAULT: "the provider failed",
    ErrorClass.LOCKED: "something is locked for a moment",
    ErrorClass.CALLER_FAULT: "the request is wrong",
    ErrorClass.CREDENTIAL: "the key is refused",
    ErrorClass.PERMISSION: "the key may not do this",
    ErrorClass.DATA_BOUNDARY: "region or residency forbids it",
    ErrorClass.CONTENT_REFUSED: "refused by a content filter or the model",
    ErrorClass.TRUNCATED: "the answer stopped at a token limit",
    ErrorClass.STREAM_INCOMPLETE: "the stream ended before its end",
    ErrorClass.CANCELLED: "cancelled at the provider",
    ErrorClass.NOT_SENT: "no connection: never sent",
    ErrorClass.OUTCOME_UNKNOWN: "no answer: it may have been done",
    ErrorClass.NOT_FOUND: "the provider does not know the model or job",
    ErrorClass.UNKNOWN: "an answer no rule knows",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What happens at some moments of one error class."""

    lane: Lane
    error_class: ErrorClass
    moments: tuple[Moment, ...]
    action: str
    when: str
    reason: str
    rests_in: str | None
    closes_route: str | None
    why: str


def explain(policy: Policy, catalogue: Catalogue) -> tuple[Row, ...]:
    """Every signal in every lane the workflow works in; moments with the same outcome share a row."""
    route = catalogue.route(policy.route)
    if route is None:
        return ()
    kinds = [(lane, kind) for lane in WORKING_LANES if _works_in(policy, lane) for kind in ErrorClass]
    return tuple(row for lane, kind in kinds for row in _rows(policy, catalogue, route, lane, kind))


def of_lane(rows: Iterable[Row], lane: Lane) -> tuple[Row | None, tuple[Row, ...]]:
    """The rows of one lane for people: what is the same for every signal once, and the rest."""
    mine = [row for row in rows if row.lane is lane]
    seen = [row for row in mine if row.moments == (Moment.PARTIAL,)]
    same = len({replace(row, error_class=ErrorClass.UNKNOWN) for row in seen}) == 1 and len(seen) == len(ErrorClass)
    return (seen[0], tuple(row for row in mine if row not in seen)) if same else (None, tuple(mine))


def length(ms: int) -> str:
    """A length of time as people say it."""
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if ms >= unit and ms % unit == 0:
            return f"{ms // unit} {name}"
    return f"{ms / SECOND:g} s"


def example_job(policy: Policy, route: Route, lane: Lane, attempt: int, now: int) -> Job:
    """A job of this workflow one second after it was admitted, in the given attempt."""
    began, budget = now - SECOND, policy.lane(lane)
    return Job(
        job_id="job_example",
        owner_key="owner",
        workflow=policy.workflow,
        idempotency_key="key",
        fingerprint="",
        created_at=began,
        round_started_at=began,
        status=Status.PROCESSING,
        lane=lane,
        attempt=attempt,
        max_attempts=policy.total_attempts(lane),
        side_effects=policy.side_effects,
        stream=policy.output_contract.streaming,
        route_key=route.route_key,
        expires_at=began + budget.max_queue_age_ms,
        deadline_at=began + policy.deadline_ms if lane in PEOPLE_WAIT else None,
    )


def _works_in(policy: Policy, lane: Lane) -> bool:
    if lane is Lane.STREAM_RECOVERY:
        return policy.lanes.stream_recovery is not None
    return policy.has_lane(lane)


def _rows(
    policy: Policy,
    catalogue: Catalogue,
    route: Route,
    lane: Lane,
    error_class: ErrorClass,
) -> Iterator[Row]:
    single = [_row(policy, catalogue, route, lane, error_class, moment) for moment in Moment]
    for _, group in groupby(single, key=lambda row: replace(row, moments=())):
        rows = list(group)
        yield replace(rows[0], moments=tuple(moment for row in rows for moment in row.moments))


def _row(
    policy: Policy,
    catalogue: Catalogue,
    route: Route,
    lane: Lane,
    error_class: ErrorClass,
    moment: Moment,
) -> Row:
    attempt = policy.lane(lane).max_attempts if moment is Moment.LAST else 1
    job = example_job(policy, route, lane, attempt, _NOW)
    partial = moment is Moment.PARTIAL
    signal = Signal(
        error_class=error_class,
        route_key=route.route_key,
        retry_after_ms=_HINTS.get(moment),
        visibility_state=Visibility.PARTIAL_OUTPUT if partial else Visibility.BEFORE_FIRST_TOKEN,
    )
    in_run = lane is Lane.INTERACTIVE_ADMISSION and not job.stream
    lucky, unlucky = (
        decide(job, signal, policy, catalogue, route, _NOW, draw, in_run=in_run) for draw in (0.0, _UNLUCKY)
    )
    return Row(
        lane=lane,
        error_class=error_class,
        moments=(moment,),
        action=_action(lucky, policy, lane),
        when=_when(lucky, unlucky),
        reason=lucky.reason.value if lucky.reason else "",
        rests_in=_rests(lucky, policy),
        closes_route=length(lucky.close.until - _NOW) if lucky.close else None,
        why=lucky.why,
    )


def _action(decision: Decision, policy: Policy, lane: Lane) -> str:
    event = decision.event
    if isinstance(event, ev.RetryScheduled):
        if decision.retry_now:
            return "retry at once"
        moved = event.lane is not None and event.lane is not lane
        return f"wait and retry in {event.lane}" if moved else "wait and retry"
    if isinstance(event, ev.FellBack):
        return f"approved fallback {event.fallback}"
    if isinstance(event, ev.Cancelled):
        return "cancelled"
    return f"stop: {_rests(decision, policy)}"


def _when(lucky: Decision, unlucky: Decision) -> str:
    first, last = lucky.event, unlucky.event
    if isinstance(first, ev.RetryScheduled) and isinstance(last, ev.RetryScheduled):
        least, most = first.at - _NOW, last.at - _NOW + (last.at > first.at)
        return length(least) if least == most else f"{length(least)} to {length(most)}"
    if isinstance(first, ev.HeldForReview):
        return f"until a person decides, at most {length(first.review_expires_at - _NOW)}"
    return "now"


def _rests(decision: Decision, policy: Policy) -> str | None:
    stopped = isinstance(decision.event, ev.HeldForReview | ev.DeadLettered)
    return place(decision.reason or Reason.CALLER_FAULT, policy).value if stopped else None
