"""Is there another approved route for this job, now?

Candidates are the policy's approved fallbacks after the present one, in order. One is taken only if every clause of its
contract holds, its route can help against what went wrong, is open in time, and has attempts of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from breakwater.domain import events as ev
from breakwater.domain.budget import current_fallback, fits
from breakwater.domain.case import Case, Decision, Plan, rest
from breakwater.domain.contract import Clauses, Verdict, check, needs_of, not_kept, verdict
from breakwater.domain.policy import Fallback
from breakwater.domain.routes import OPEN, Route
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Reason
from breakwater.domain.values import dataclass

_ACCOUNT = frozenset({ErrorClass.QUOTA, ErrorClass.SPEND, ErrorClass.CREDENTIAL, ErrorClass.PERMISSION})


@dataclass(frozen=True, slots=True)
class Candidate:
    """One approved fallback, as it stands now. `opens_at` is None where nobody knows."""

    fallback: Fallback
    route: Route
    clauses: Clauses
    verdict: Verdict
    opens_at: int | None


def fall_back(case: Case, reason: Reason, plan: Plan) -> Decision | None:
    """The change of route that this policy allows now, what keeps it from one, or None where it offers none."""
    found = tuple(candidates(case))
    usable = [one for one in found if one.verdict is Verdict.HOLDS and one.opens_at is not None]
    if usable:
        return _taken(case, min(usable, key=lambda one: one.opens_at or 0), reason, plan)
    return _refused(case, found, plan)


def candidates(case: Case) -> Iterator[Candidate]:
    """Approved fallbacks that come after the present route and could help, with their contracts checked."""
    if not case.policy.may_fall_back or case.job.attempt >= case.policy.total_attempts(case.job.lane):
        return
    needs = needs_of(case.policy, stream=case.job.stream)
    origin = case.catalogue.route(case.policy.route) or case.route
    for fallback in _later(case):
        route = case.catalogue.route(fallback.route)
        if route is not None and _helps(case, route):
            clauses = check(case.policy, origin, route, needs)
            yield Candidate(fallback, route, clauses, verdict(clauses), _opens_at(case, route))


def _later(case: Case) -> tuple[Fallback, ...]:
    """A job goes forward through the list, so each fallback's budget is spent at most once."""
    fallbacks = case.policy.fallbacks
    present = current_fallback(case.job, case.policy)
    start = fallbacks.index(present) + 1 if present else 0
    return tuple(one for one in fallbacks[start:] if one.route != case.route.route_key)


def _helps(case: Case, route: Route) -> bool:
    """Account faults follow the credential, a forbidden region follows the provider's region."""
    if case.signal.error_class in _ACCOUNT:
        return route.credential != case.route.credential
    if case.signal.error_class is ErrorClass.DATA_BOUNDARY:
        return (route.provider, route.region) != (case.route.provider, case.route.region)
    return True


def _opens_at(case: Case, route: Route) -> int | None:
    opens = case.states.get(route.route_key, OPEN).opens_at(case.now)
    if opens is None or not fits(case.job, case.job.lane, opens, case.call_ms):
        return None
    return opens


def _taken(case: Case, best: Candidate, reason: Reason, plan: Plan) -> Decision:
    if case.policy.fallback_needs_approval:
        why = f"fallback {best.fallback.name} needs a person's approval"
        return rest(case, Reason.APPROVAL_REQUIRED, why, plan.close)
    event = ev.FellBack(
        route_key=best.route.route_key,
        requested_model=best.route.model,
        fallback=best.fallback.name,
        contract_version=best.fallback.contract_version,
        reason=reason,
        clauses=best.clauses,
        signal=case.signal,
        at=best.opens_at or case.now,
        possible_duplicate=plan.duplicate,
    )
    return Decision(event=event, why=f"the contract of approved fallback {best.fallback.name} holds", close=plan.close)


def _refused(case: Case, found: tuple[Candidate, ...], plan: Plan) -> Decision | None:
    """What keeps it here: an unknown contract is a person's to decide, a broken one ends it if the policy says so."""
    for outcome, reason in (
        (Verdict.UNKNOWN, Reason.FALLBACK_CONTRACT_UNKNOWN),
        (Verdict.MISMATCH, Reason.FALLBACK_CONTRACT_MISMATCH),
    ):
        one = next((one for one in found if one.verdict is outcome), None)
        if one is not None and (outcome is Verdict.UNKNOWN or case.closed_for(reason)):
            word = "unknown" if outcome is Verdict.UNKNOWN else "broken"
            why = f"fallback {one.fallback.name}: {', '.join(not_kept(one.clauses))} {word}"
            return rest(case, reason, why, plan.close)
    return None
