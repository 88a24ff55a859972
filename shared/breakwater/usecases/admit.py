"""How does an intent become a job? Once, whoever asks how often.

The id is derived from (owner, user_ref, workflow, key); the input child is put first, then META under the condition
that nothing stands there. What stands there already is compared by fingerprint before anything else is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakwater.domain import identity
from breakwater.domain.errors import InvalidRequest, KeyReused, Overloaded, StaleVersion, TooMany
from breakwater.domain.job import Job
from breakwater.domain.machine import Step
from breakwater.domain.obligations import Nudge, lane_queue, schedule
from breakwater.domain.policy import Policy
from breakwater.domain.pricing import estimate, estimate_tokens
from breakwater.domain.records import input_key
from breakwater.domain.request import JobRequest
from breakwater.domain.routes import Route
from breakwater.domain.states import PRIORITY_RANK, Lane, Status
from breakwater.domain.timing import RESPONSE_RESERVE, SECOND
from breakwater.domain.values import dataclass
from breakwater.ports import Committed
from breakwater.usecases.bodies import child_with_body
from breakwater.usecases.change import landed, send
from breakwater.usecases.deps import Deps
from breakwater.usecases.depth import let_in
from breakwater.usecases.notify import check_callback
from breakwater.usecases.principal import Principal
from breakwater.usecases.protect import check
from breakwater.usecases.retention import keep_until, retained

_RENUDGE_AFTER = 10 * SECOND
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Intent:
    """What is asked, by whom, under which policy, and when."""

    principal: Principal
    request: JobRequest
    key: str | None
    request_id: str | None
    policy: Policy
    route: Route
    payload: Mapping[str, Any]
    now: int
    interactive: bool
    counts_tokens: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The job behind the intent; `replayed` when it was there before."""

    job: Job
    policy: Policy
    replayed: bool


def admit(
    deps: Deps,
    principal: Principal,
    request: JobRequest,
    key: str | None,
    request_id: str | None,
    *,
    interactive: bool = False,
    arrived_at: int | None = None,
) -> Admitted:
    """Store the intent and nudge a worker, or find the job that stands for it already.

    Raises `InvalidRequest`, `NotAuthorised`, `KeyReused` (same key, other payload) before anything is stored, and
    `StoreUnavailable` when nothing could be stored; an error before a job exists binds no key. `Overloaded` and
    `TooMany` turn new work away that would only wait until it is too old.

    `arrived_at`: a caller waits since then, and works on the job itself. Nobody is nudged, and `due_at` lies behind the
    deadline.
    """
    principal.need("submit")
    policy, route = _place(deps, request)
    check_callback(deps, principal.owner_key, request.callback_url)
    now = deps.now()
    intent = _Intent(
        principal=principal,
        request=request,
        key=key,
        request_id=request_id,
        policy=policy,
        route=route,
        payload=request.payload,
        now=now,
        interactive=interactive,
        counts_tokens=_counts_tokens(deps, policy, route),
    )
    job = _new_job(intent).with_(counted=deps.catalogue.counts_depth())
    if arrived_at is not None and job.deadline_at is not None:
        job = job.with_(deadline_at=arrived_at + policy.deadline_ms)
    standing = _turned_away(deps, job, policy, now)
    if standing is not None:
        return standing
    for _ in range(_TRIES):
        _store_input(deps, job, request.payload)
        planned, nudges = _planned(job, now, here=arrived_at is not None)
        answer = deps.store.create(planned, now)
        if isinstance(answer, Committed):
            landed(deps, Step(None, answer.job, "Admitted", nudges))
            let_in(deps, answer.job, policy)
            return Admitted(job=answer.job, policy=policy, replayed=answer.job.rev != 1)
        if answer.current is not None:
            return _known(deps, answer.current, job, policy, now)
    raise StaleVersion(job=job.job_id)


def _planned(job: Job, now: int, *, here: bool) -> tuple[Job, tuple[Nudge, ...]]:
    """The first look: nudged at once, or, for a job that is worked on here, only if this process is lost."""
    if here and job.deadline_at is not None:
        return job.with_(due_at=job.deadline_at + RESPONSE_RESERVE), ()
    return schedule(None, job, now)


def _turned_away(deps: Deps, job: Job, policy: Policy, now: int) -> Admitted | None:
    """New work only: an intent that was admitted before is answered however long the queue is."""
    try:
        check(deps, job, policy)
    except (Overloaded, TooMany):
        standing = deps.store.get(job.job_id)
        if standing is None or not retained(standing, now):
            raise
        return _known(deps, standing, job, policy, now)
    return None


def _place(deps: Deps, request: JobRequest) -> tuple[Policy, Route]:
    policy = deps.catalogue.policy(request.workflow)
    if policy is None:
        raise InvalidRequest(
            "There is no workflow of this name.",
            field="workflow",
            rule="known_workflow",
            fix="use one of: " + ", ".join(deps.catalogue.workflows()),
        )
    route = deps.catalogue.route(policy.route)
    if route is None:
        raise InvalidRequest(
            "The workflow has no route.",
            field="workflow",
            rule="route",
            fix="deploy the route its policy names",
        )
    media = bool(route.capabilities.media)
    if media != request.prompts:
        raise InvalidRequest(
            "The input does not fit the workflow.",
            field="input",
            rule="input_shape",
            fix="send `input.prompt` to a media workflow" if media else "send `input.messages` to this workflow",
        )
    return policy, route


def _new_job(intent: _Intent) -> Job:
    principal, request, policy, route = intent.principal, intent.request, intent.policy, intent.route
    payload, now = intent.payload, intent.now
    lane = policy.start_lane(interactive=intent.interactive or request.stream)
    used = intent.key or _derived(intent)
    print_ = {"input": payload, "target": request.side_effect_target, "stream": request.stream}
    budget = policy.lane(lane)
    deadline = now + policy.deadline_ms if lane is Lane.INTERACTIVE_ADMISSION else None
    return Job(
        job_id=identity.job_id(principal.owner_key, request.user_ref, request.workflow, used),
        owner_key=principal.owner_key,
        user_ref=request.user_ref,
        workflow=request.workflow,
        idempotency_key=used,
        key_given=intent.key is not None,
        fingerprint=identity.fingerprint(print_),
        created_at=now,
        round_started_at=now,
        input_ref=input_key(now, identity.input_sha(identity.encode(payload))),
        request_id=intent.request_id,
        lane=lane,
        priority=_priority(policy, request),
        side_effects=policy.side_effects,
        callback_url=request.callback_url,
        stream=request.stream,
        max_attempts=policy.total_attempts(lane),
        ready_at=now,
        expires_at=now + budget.max_queue_age_ms,
        deadline_at=deadline,
        updated_at=now,
        route_key=route.route_key,
        requested_model=route.model,
        estimated_cost=_estimate(payload, route, policy),
        estimated_tokens=_tokens(payload, policy) if intent.counts_tokens else None,
        ttl=keep_until(policy, now + budget.max_queue_age_ms, now),
    )


def _estimate(payload: Mapping[str, Any], route: Route, policy: Policy) -> int | None:
    if route.prices is None:
        return None
    return estimate(payload, route.prices, policy.output_contract.max_output_tokens)


def _tokens(payload: Mapping[str, Any], policy: Policy) -> int:
    """What a call is charged in tokens per minute before it is made."""
    return estimate_tokens(payload) + policy.output_contract.max_output_tokens


def _counts_tokens(deps: Deps, policy: Policy, route: Route) -> bool:
    """Whether a route that the job may take has such a limit: an outage moves the work to where nobody had counted."""
    others = [deps.catalogue.route(one.route) for one in policy.fallbacks]
    limits = [one.limits.tokens_per_minute for one in (route, *others) if one is not None]
    return not route.capabilities.media and any(one is not None for one in limits)


def _derived(intent: _Intent) -> str:
    """The key of an intent that brought none, where the policy allows that."""
    lane = intent.policy.lanes.background_retry
    if lane is not None and lane.require_idempotency_key:
        raise InvalidRequest(
            "This workflow needs an idempotency key.",
            field="Idempotency-Key",
            rule="required",
            fix="send the header `Idempotency-Key` with one value per business intent, for example a UUID",
        )
    return identity.derived_key(
        owner=intent.principal.owner_key,
        user_ref=intent.request.user_ref,
        workflow=intent.request.workflow,
        payload=intent.payload,
        target=intent.request.side_effect_target,
        window_ms=intent.policy.dedupe_window_ms,
        now=intent.now,
    )


def _priority(policy: Policy, request: JobRequest) -> Any:
    """The policy's priority; a request may only lower it."""
    wanted = request.priority
    if wanted is None or PRIORITY_RANK[wanted] >= PRIORITY_RANK[policy.priority]:
        return policy.priority
    return wanted


def _store_input(deps: Deps, job: Job, payload: Mapping[str, Any]) -> None:
    child = child_with_body(deps, job.job_id, job.input_ref, identity.encode(payload), {})
    deps.store.put_child(job.job_id, child, job.ttl)


def _known(deps: Deps, standing: Job, wanted: Job, policy: Policy, now: int) -> Admitted:
    """The intent was here before: the payload is compared first, then the standing job is the answer."""
    if standing.fingerprint != wanted.fingerprint:
        raise KeyReused(
            field="Idempotency-Key",
            rule="same_payload",
            fix="send the original payload with this key, or a new key for the new payload",
            job=standing.job_id,
        )
    stale = standing.nudged_at is not None and now - standing.nudged_at > _RENUDGE_AFTER
    if standing.status is Status.PENDING and not standing.in_review and stale and standing.ready_at <= now:
        send(deps, Step(standing, standing, "Renudged", (Nudge(lane_queue(standing.lane), now),)))
    return Admitted(job=standing, policy=policy, replayed=True)
