"""What happens to a job after this signal?

Theory of operation. `RULES` is the order of the design, first answer wins, the last rule always answers:

1. settled → nothing; a cancel was asked for → cancelled
2. the signal is about our question, not about the job → ask again
3. visible output → fail closed
4. older than its age limit → dead letter
5. caller fault, truncated, refused, cancelled at the provider → the end, each with its own reason
6. quota, spend, data boundary → another approved route or a person, never a timed retry
7. credential, permission → close the route; the job waits with the others
8. the outcome is not known → repeat what is safe to repeat, hold what is not
9. everything else → wait and retry; when attempts or time are gone, another approved route, another lane, or rest

A provider's hint is a floor and kept to the ms. Clock and dice are arguments. What is unpleasant: queueable work whose
release lies past its own age limit does not wait for a call that may never happen; it falls back or rests at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from breakwater.domain import events as ev
from breakwater.domain.backoff import delay_ms
from breakwater.domain.case import Case, CloseRoute, Decision, Plan, rest
from breakwater.domain.fallback import fall_back
from breakwater.domain.job import Job
from breakwater.domain.policy import Policy
from breakwater.domain.routes import Catalogue, Route, RouteView
from breakwater.domain.signals import ErrorClass, LimitDimension, Signal
from breakwater.domain.states import Reason, Visibility
from breakwater.domain.strategy import Backoff
from breakwater.domain.timing import MINUTE, RESPONSE_RESERVE, SECOND
from breakwater.domain.waiting import retry

CREDENTIAL_RECHECK = 5 * MINUTE  # a new secret reaches every process within one
QUOTA_RECHECK = 15 * MINUTE
_ASKING = Backoff(base_ms=10 * SECOND, cap_ms=5 * MINUTE, min_ms=5 * SECOND)

_ENDS = {
    ErrorClass.CALLER_FAULT: (Reason.CALLER_FAULT, "the request is wrong; repeating it can't help"),
    ErrorClass.TRUNCATED: (Reason.ANSWER_TRUNCATED, "the answer stopped at a token limit"),
    ErrorClass.CONTENT_REFUSED: (Reason.CONTENT_REFUSED, "a content filter or the model refused"),
}
_BLOCKED = {
    ErrorClass.QUOTA: Reason.QUOTA_OR_SPEND_EXHAUSTED,
    ErrorClass.SPEND: Reason.QUOTA_OR_SPEND_EXHAUSTED,
    ErrorClass.DATA_BOUNDARY: Reason.DATA_BOUNDARY_MISMATCH,
}
_WHOLE_ACCOUNT = frozenset({ErrorClass.SPEND, ErrorClass.CREDENTIAL})
_KEY_REFUSED = frozenset({ErrorClass.CREDENTIAL, ErrorClass.PERMISSION})
_MAY_HAVE_RUN = frozenset(
    {
        ErrorClass.OUTCOME_UNKNOWN,
        ErrorClass.STREAM_INCOMPLETE,
        ErrorClass.UNKNOWN,
        ErrorClass.NOT_FOUND,
    }
)


def decide(  # noqa: PLR0913 - everything a decision depends on is an argument
    job: Job,
    signal: Signal,
    policy: Policy,
    catalogue: Catalogue,
    route: Route,
    now: int,
    draw: float,
    *,
    in_run: bool = False,
    asking: bool = False,
    call_budget_ms: int | None = None,
    reserve_ms: int = RESPONSE_RESERVE,
    route_states: Mapping[str, RouteView] | None = None,
) -> Decision:
    """The one event that follows a signal. Pure, total and closed.

    `in_run`: a caller waits in this process. `asking`: the signal answers a question about a provider job.
    `call_budget_ms`: the shortest time worth a call, the policy's `min_call_ms` where it is None.
    """
    call = policy.min_call_ms if call_budget_ms is None else call_budget_ms
    case = Case(
        job=job,
        signal=signal,
        policy=policy,
        catalogue=catalogue,
        route=route,
        now=now,
        draw=draw,
        in_run=in_run,
        asking=asking,
        call_ms=call + reserve_ms,
        states=route_states or {},
    )
    return next(decision for rule in RULES if (decision := rule(case)) is not None)


def acceptable(policy: Policy, signal: Signal) -> bool:
    """Whether a partial answer counts as the result: cut at a token limit, and the policy takes that."""
    return policy.accept_truncated and signal.error_class is ErrorClass.TRUNCATED


def _settled(case: Case) -> Decision | None:
    return Decision(event=None, why="the job is settled") if case.job.final else None


def _cancel_asked(case: Case) -> Decision | None:
    if case.job.cancel_requested_at is None:
        return None
    by = case.job.cancelled_by or case.job.owner_key
    reason = Reason.CANCELLED_BY_USER if by == case.job.owner_key else Reason.CANCELLED_BY_OPERATOR
    return Decision(event=ev.Cancelled(by=by, reason=reason), why="a cancel was asked for")


def _ask_again(case: Case) -> Decision | None:
    """A question that failed is asked again until the provider's deadline; a job it does not know may have run."""
    if not case.asking:
        return None
    deadline = case.job.provider_deadline_at
    if deadline is not None and deadline <= case.now:
        return Decision(event=ev.Expired(reason=Reason.PROVIDER_DEADLINE_EXCEEDED), why="the provider's time is over")
    if case.signal.error_class is ErrorClass.NOT_FOUND and not _may_still_appear(case):
        return None
    wait = case.hint or delay_ms(_ASKING, case.job.polls + 1, case.draw)
    close = _long_closure(case, CREDENTIAL_RECHECK) if case.signal.error_class in _KEY_REFUSED else _hint_closure(case)
    return Decision(event=ev.PollAgain(at=case.now + wait), why="the question failed, not the job", close=close)


def _may_still_appear(case: Case) -> bool:
    """A provider job just made may not be readable yet."""
    opened = case.job.execution.opened_at if case.job.execution else case.now
    return case.now < opened + case.policy.webhook_grace_ms


def _visible(case: Case) -> Decision | None:
    if case.signal.visibility_state is Visibility.PARTIAL_OUTPUT or case.job.partial_output_committed:
        return rest(case, Reason.PARTIAL_OUTPUT_COMMITTED, "part of the answer was seen; nothing may be sent again")
    return None


def _too_old(case: Case) -> Decision | None:
    if case.job.expires_at is not None and case.job.expires_at <= case.now:
        return rest(case, Reason.MAX_QUEUE_AGE_EXCEEDED, "older than its age limit")
    return None


def _ended(case: Case) -> Decision | None:
    if case.signal.error_class is ErrorClass.CANCELLED:
        event = ev.Cancelled(by=case.route.provider, reason=Reason.CANCELLED_AT_PROVIDER)
        return Decision(event=event, why="the provider says it was cancelled there")
    if case.signal.error_class is ErrorClass.NOT_FOUND and not case.asking:
        return rest(case, Reason.CALLER_FAULT, "the provider knows no such thing")
    end = _ENDS.get(case.signal.error_class)
    return rest(case, *end) if end else None


def _blocked(case: Case) -> Decision | None:
    """Time does not help: another account or provider does, or a person."""
    reason = _BLOCKED.get(case.signal.error_class)
    if reason is None:
        return None
    close = None
    if reason is Reason.QUOTA_OR_SPEND_EXHAUSTED:
        close = _long_closure(case, QUOTA_RECHECK)
    moved = None if case.closed_for(reason) else fall_back(case, reason, Plan(close=close))
    if moved is not None and isinstance(moved.event, ev.FellBack):
        return moved
    note = f"; {moved.why}" if moved else ""
    return rest(case, reason, f"{case.signal.error_class.value}: waiting can't help{note}", close)


def _key_refused(case: Case) -> Decision | None:
    if case.signal.error_class not in _KEY_REFUSED:
        return None
    close = _long_closure(case, CREDENTIAL_RECHECK)
    return retry(case, Plan(floor=close.until - case.now, reason=Reason.ROUTE_CLOSED, close=close))


def _outcome_unknown(case: Case) -> Decision | None:
    """The call may have been executed, or, where the outside is touched, may have been executed in part."""
    touched = case.signal.error_class is ErrorClass.SERVER_FAULT and case.job.side_effects == "external"
    if case.signal.error_class not in _MAY_HAVE_RUN and not touched:
        return None
    if not case.safe or case.closed_for(Reason.OUTCOME_UNKNOWN):
        return rest(case, Reason.OUTCOME_UNKNOWN, "it may have been done, and may not be repeated unasked")
    floor = case.policy.webhook_grace_ms if _webhook_can_come(case) else 0
    plan = Plan(floor=floor, reason=Reason.OUTCOME_UNKNOWN_REPEAT_SAFE, duplicate=True, close=_hint_closure(case))
    return retry(case, plan)


def _webhook_can_come(case: Case) -> bool:
    can = case.route.capabilities
    return case.policy.mode == "background" and can.background and can.webhook is not None


def _retry_or_move(case: Case) -> Decision:
    return retry(case, Plan(close=_hint_closure(case)))


RULES: tuple[Callable[[Case], Decision | None], ...] = (
    _settled,
    _cancel_asked,
    _ask_again,
    _visible,
    _too_old,
    _ended,
    _blocked,
    _key_refused,
    _outcome_unknown,
    _retry_or_move,
)


def _hint_closure(case: Case) -> CloseRoute | None:
    """A provider's wait binds everybody on its route, except where it is about one lock."""
    if case.hint is None or case.signal.error_class is ErrorClass.LOCKED:
        return None
    return _closure(case, case.hint)


def _long_closure(case: Case, recheck: int) -> CloseRoute:
    """Money and keys belong to the account, so to every route of the credential; rights and daily limits to a model."""
    signal = case.signal
    whole = signal.error_class in _WHOLE_ACCOUNT or signal.limit_dimension is LimitDimension.SPEND
    return _closure(case, max(case.hint or 0, recheck), credential=case.route.credential if whole else None)


def _closure(case: Case, wait: int, *, credential: str | None = None) -> CloseRoute:
    return CloseRoute(
        route_key=case.route.route_key,
        until=case.now + wait,
        reason=case.signal.error_class.value,
        credential=credential,
    )


__all__ = ["RULES", "CloseRoute", "Decision", "acceptable", "decide"]
