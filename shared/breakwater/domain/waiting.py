"""When is the next call on this route, and what if attempts or time don't allow one?

A hint is a floor and kept to the ms; without one, our own back-off. Where the next call would begin too late: another
approved route now, else the background lane if the policy promises it, else rest.
"""

from __future__ import annotations

from breakwater.domain import events as ev
from breakwater.domain.backoff import delay_ms
from breakwater.domain.budget import PEOPLE_WAIT, attempts_left, attempts_on_route, fits
from breakwater.domain.case import Case, Decision, Plan, rest
from breakwater.domain.fallback import fall_back
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Lane, Reason

_BREAKS_STREAM = frozenset(
    {
        ErrorClass.OUTCOME_UNKNOWN,
        ErrorClass.STREAM_INCOMPLETE,
        ErrorClass.UNKNOWN,
        ErrorClass.OVERLOAD,
        ErrorClass.SERVER_FAULT,
    }
)


def retry(case: Case, plan: Plan) -> Decision:
    """Wait and call again; where attempts or time don't allow it, what else there is."""
    lane = _lane(case)
    if attempts_left(case.job, case.policy, lane) == 0:
        return _exhausted(case, lane, plan)
    wait = max(case.hint or _backoff(case, lane), plan.floor)
    at = case.now + wait
    if not fits(case.job, lane, at, case.call_ms):
        return _too_late(case, lane, at, plan)
    at_once = case.in_run and lane in PEOPLE_WAIT and wait <= case.policy.retry_now_max_ms
    event = _scheduled(case, lane, at, plan, plan.reason or _reason(case, at_once=at_once))
    return Decision(event=event, why=_why(case, wait, plan), retry_now=at_once, close=plan.close)


def _scheduled(case: Case, lane: Lane, at: int, plan: Plan, reason: Reason) -> ev.RetryScheduled:
    moves = lane is not case.job.lane
    return ev.RetryScheduled(
        at=at,
        reason=reason,
        signal=case.signal,
        possible_duplicate=plan.duplicate,
        lane=lane if moves else None,
        max_attempts=case.policy.total_attempts(lane) if moves else None,
    )


def _lane(case: Case) -> Lane:
    """A stream that breaks before its first token goes on in its own lane."""
    broke = case.job.stream and case.signal.error_class in _BREAKS_STREAM
    if broke and case.job.lane is Lane.INTERACTIVE_ADMISSION:
        return Lane.STREAM_RECOVERY
    return case.job.lane


def _backoff(case: Case, lane: Lane) -> int:
    return delay_ms(case.policy.lane(lane).backoff, max(1, attempts_on_route(case.job)), case.draw)


def _reason(case: Case, *, at_once: bool) -> Reason:
    if at_once:
        return Reason.SHORT_BOUNDED_WAIT
    return Reason.PROVIDER_WAIT_HINT if case.hint else Reason.BACKOFF


def _why(case: Case, wait: int, plan: Plan) -> str:
    if wait == case.hint:
        source = "waits exactly as long as the provider asked"
    else:
        source = "waits before anyone looks again" if wait == plan.floor else "waits our own back-off"
    return f"{case.signal.error_class.value}: {source}"


def _exhausted(case: Case, lane: Lane, plan: Plan) -> Decision:
    """No attempt is left on this route. A job whose caller waits in `/run` may go on without them."""
    at = case.now + max(case.hint or _backoff(case, lane), plan.floor)
    done = not case.in_run or plan.duplicate or case.closed_for(Reason.MAX_ATTEMPTS_EXHAUSTED)
    return _otherwise(case, Reason.MAX_ATTEMPTS_EXHAUSTED, plan, None if done else _to_background(case, lane, at, plan))


def _too_late(case: Case, lane: Lane, at: int, plan: Plan) -> Decision:
    """The next call would begin too late. Moving to the background needs a known outcome: it may not be a duplicate."""
    own = Reason.DEADLINE_EXCEEDED if lane in PEOPLE_WAIT else Reason.MAX_QUEUE_AGE_EXCEEDED
    reason = Reason.RETRY_AFTER_EXCEEDS_DEADLINE if case.hint == at - case.now else own
    instead = None if plan.duplicate or case.closed_for(reason) else _to_background(case, lane, at, plan)
    return _otherwise(case, reason, plan, instead)


def _otherwise(case: Case, reason: Reason, plan: Plan, instead: Decision | None = None) -> Decision:
    """No call on this route any more: an approved other route, what there is instead, or rest."""
    moved = None if case.closed_for(reason) else fall_back(case, reason, plan)
    if moved is not None and (instead is None or isinstance(moved.event, ev.FellBack)):
        return moved
    why = f"{case.signal.error_class.value}: {reason.value.replace('_', ' ')}"
    return instead or rest(case, reason, why, plan.close)


def _to_background(case: Case, lane: Lane, at: int, plan: Plan) -> Decision | None:
    """A person waits no longer, the work may, where the policy promises that."""
    target, background = Lane.BACKGROUND_RETRY, case.policy.lanes.background_retry
    if lane not in PEOPLE_WAIT or background is None or (background.require_idempotency_key and not case.job.key_given):
        return None
    if not attempts_left(case.job, case.policy, target) or not fits(case.job, target, at, case.call_ms):
        return None
    event = _scheduled(case, target, at, plan, plan.reason or _reason(case, at_once=False))
    return Decision(
        event=event,
        why="too late for the person who waits; it goes on in the background",
        close=plan.close,
    )
