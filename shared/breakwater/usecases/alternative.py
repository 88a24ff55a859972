"""May a job take its approved other route before its own failed it? Only if the contract holds, clause by clause."""

from __future__ import annotations

from breakwater.domain import events as ev
from breakwater.domain.case import Case, Plan
from breakwater.domain.fallback import fall_back
from breakwater.domain.job import Job
from breakwater.domain.policy import Policy
from breakwater.domain.routes import Route
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import Reason
from breakwater.domain.timing import RESPONSE_RESERVE
from breakwater.usecases.circuit import views
from breakwater.usecases.deps import Deps


def alternative(deps: Deps, job: Job, policy: Policy, route: Route, now: int) -> ev.FellBack | None:
    """The change of route that the policy allows now; None where it allows none without a person."""
    if not policy.may_fall_back:
        return None
    case = Case(
        job=job,
        signal=Signal(error_class=ErrorClass.OVERLOAD, route_key=route.route_key, rule="route_left"),
        policy=policy,
        catalogue=deps.catalogue,
        route=route,
        now=now,
        draw=deps.draw(),
        in_run=False,
        asking=False,
        call_ms=policy.min_call_ms + RESPONSE_RESERVE,
        states=views(deps, [one.route for one in policy.fallbacks]),
    )
    decision = fall_back(case, Reason.ROUTE_CLOSED, Plan())
    event = decision.event if decision is not None else None
    if not isinstance(event, ev.FellBack) or event.at > now:
        return None
    return ev.FellBack(
        route_key=event.route_key,
        requested_model=event.requested_model,
        fallback=event.fallback,
        contract_version=event.contract_version,
        reason=event.reason,
        clauses=event.clauses,
        at=now,
    )
