"""What does a person who waits get, and when? An answer before the workflow's deadline, whatever the provider does.

The job is the same as any other: admitted under its key, stepped by the worker's own `step`, in this process and
un-nudged, with `due_at` behind the deadline in case this process dies. A gate that refuses is asked again for as long
as the policy lets people wait; a failed attempt is repeated here only if its wait is short and a whole call still fits.
Then the job goes back to the table, and the caller gets what there is: the result, the queued job, a last result that
says how old it is, or why no further call is made. No call begins unless it can end before the deadline.

Where the work is turned away before it is a job, the same last result is all there is to give, beside the refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from breakwater.domain import events as ev
from breakwater.domain.budget import PEOPLE_WAIT
from breakwater.domain.errors import Later, Overloaded, TooMany, Unavailable
from breakwater.domain.job import Job
from breakwater.domain.machine import Step, advance
from breakwater.domain.obligations import Nudge, Queue
from breakwater.domain.policy import Policy
from breakwater.domain.request import JobRequest
from breakwater.domain.states import Reason, Status
from breakwater.domain.switches import SwitchName, concerning
from breakwater.domain.timing import RESPONSE_RESERVE
from breakwater.domain.values import dataclass
from breakwater.ports import Queues
from breakwater.usecases.admit import Admitted, admit
from breakwater.usecases.change import change
from breakwater.usecases.deps import Deps
from breakwater.usecases.gates import to_background
from breakwater.usecases.latest import last_result
from breakwater.usecases.principal import Principal
from breakwater.usecases.step import Told, Verdict, step

_FIRST_PAUSE = 100
_LONGEST_PAUSE = 500


class Kind(StrEnum):
    """What the caller gets."""

    RESULT = "result"
    QUEUED = "queued"
    LATEST = "latest"  # a last result, labelled, beside the job that goes on
    CLOSED = "closed"  # no further call is made


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a request ended."""

    kind: Kind
    job: Job
    replayed: bool
    latest: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnedAway:
    """No job was made; the last result is served in place of the refusal, which is told with it."""

    latest: Mapping[str, Any]
    refusal: Later


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """Who waits: since when, how much time this process has left, and how it sleeps (ms)."""

    arrived_at: int
    remaining_ms: Callable[[], int]
    sleep: Callable[[int], None]
    told: Told


class _Unnudged:
    """Queues for a job that is stepped here: nobody else is told to take it. All other nudges go out."""

    def __init__(self, queues: Queues, job_id: str) -> None:
        self._queues, self._job_id = queues, job_id

    def nudge(self, kind: str, item_id: str, nudges: Sequence[Nudge], group: str, now: int) -> None:
        """Everything but "take this job" for the job that is taken."""
        here = kind == "job" and item_id == self._job_id
        kept = [one for one in nudges if not (here and one.queue is Queue.INTERACTIVE)]
        if kept:
            self._queues.nudge(kind, item_id, kept, group, now)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queues, name)


def run(
    deps: Deps, caller: Principal, request: JobRequest, key: str | None, request_id: str | None, waiter: Waiter
) -> Ran | TurnedAway:
    """Admit the intent, or find it, and bring it to an answer in time. Raises what `admit` raises.

    A refusal for back-pressure is answered with the last result, where the operator's switch and the policy serve it.
    """
    try:
        return _run(deps, caller, request, key, request_id, waiter)
    except (Overloaded, TooMany) as refusal:
        found = _instead(deps, caller, request)
        if found is None:
            raise
        return TurnedAway(latest=found, refusal=refusal)


def _run(
    deps: Deps, caller: Principal, request: JobRequest, key: str | None, request_id: str | None, waiter: Waiter
) -> Ran:
    policy = deps.catalogue.policy(request.workflow)
    if policy is not None and _queue_at_once(deps, policy):
        return _ran(deps, admit(deps, caller, request, key, request_id))
    admitted = admit(deps, caller, request, key, request_id, interactive=True, arrived_at=waiter.arrived_at)
    job = admitted.job
    if job.lane in PEOPLE_WAIT and not job.final:
        deadline = waiter.arrived_at + admitted.policy.deadline_ms
        _Attempts(deps, admitted.policy, job.job_id, min(deadline, job.deadline_at or deadline), waiter).go_on()
    return _ran(deps, admitted)


def _instead(deps: Deps, caller: Principal, request: JobRequest) -> Mapping[str, Any] | None:
    """The last result for whoever was turned away; a failure to read it leaves the refusal as it is."""
    try:
        return _served(deps, caller.owner_key, request.user_ref, request.workflow)
    except Unavailable:
        return None


def _served(deps: Deps, owner_key: str, user_ref: str | None, workflow: str) -> Mapping[str, Any] | None:
    """The last result, while the operator's switch serves it for this workflow."""
    thrown = concerning(deps.control.switches(), deps.now(), workflow)
    if not any(one.name is SwitchName.SERVE_LAST_RESULT for one in thrown):
        return None
    return last_result(deps, owner_key, user_ref, workflow)


def _queue_at_once(deps: Deps, policy: Policy) -> bool:
    """The first switch: nobody is kept waiting, where the work may go on in the background."""
    thrown = concerning(deps.control.switches(), deps.now(), policy.workflow)
    on = any(one.name is SwitchName.QUEUE_INSTEAD_OF_FAIL for one in thrown)
    return on and policy.lanes.background_retry is not None


class _Attempts:
    """The attempts of one request, until there is an answer or no time for another call."""

    def __init__(self, deps: Deps, policy: Policy, job_id: str, deadline: int, waiter: Waiter) -> None:
        self._deps, self._policy, self._job_id = deps, policy, job_id
        self._deadline, self._waiter = deadline, waiter
        self._pause = _FIRST_PAUSE
        queues: Any = _Unnudged(deps.queues, job_id)
        self._here = replace(deps, queues=queues)

    def go_on(self) -> None:
        """Step until the job is answered or handed over."""
        job = self._job()
        while job is not None and self._mine(job):
            if not self._once(job):
                change(self._deps, job, self._hand_over)
                return
            job = self._job()

    def _job(self) -> Job | None:
        return self._deps.store.get(self._job_id)

    def _mine(self, job: Job) -> bool:
        """Whether a person still waits for this job, and something here can move it."""
        at_provider = job.status is Status.PROCESSING and job.locked_until is None
        return not (job.final or job.in_review or at_provider) and job.lane in PEOPLE_WAIT

    def _once(self, job: Job) -> bool:
        """One look or one attempt; False when the time for that is over."""
        now = self._deps.now()
        left = self._left(now)
        if job.status is Status.PROCESSING:  # the same intent, in another process
            return self._sleep(min(_LONGEST_PAUSE, left - RESPONSE_RESERVE))
        call = self._policy.min_call_ms + RESPONSE_RESERVE
        wait = max(0, job.ready_at - now)
        if wait + call > left or wait > self._policy.retry_now_max_ms:
            return False
        if wait:
            return self._sleep(wait)
        verdict = step(self._here, self._job_id, lambda: self._left(self._deps.now()), self._waiter.told, in_run=True)
        return verdict is not Verdict.NOT_NOW or self._refused()

    def _left(self, now: int) -> int:
        return min(self._deadline - now, self._waiter.remaining_ms())

    def _refused(self) -> bool:
        """A gate said not now: ask again while the policy lets people wait and it can help."""
        job, now = self._job(), self._deps.now()
        if job is None or not self._mine(job):
            return True
        until = self._waiter.arrived_at + self._policy.lane(job.lane).max_wait_ms
        state = self._deps.store.route(job.route_key)
        if now >= until or (state is not None and state.closed(until)):
            return False
        self._pause = min(_LONGEST_PAUSE, self._pause * 2)
        return self._sleep(min(self._pause, until - now))

    def _sleep(self, ms: int) -> bool:
        if ms <= 0:
            return False
        self._waiter.sleep(ms)
        return True

    def _hand_over(self, standing: Job) -> Step | None:
        """Nobody waits any longer: into the background where the policy has it and the outcome is known, else rest."""
        if not self._mine(standing) or standing.status is Status.PROCESSING:
            return None
        now = self._deps.now()
        return advance(standing, self._over(standing, now), now)

    def _over(self, job: Job, now: int) -> ev.Event:
        if job.reason is Reason.OUTCOME_UNKNOWN_REPEAT_SAFE:
            until = now + self._policy.review_max_age_ms
            return ev.HeldForReview(reason=Reason.OUTCOME_UNKNOWN, review_expires_at=until)
        moved = to_background(job, self._policy, self._why(job), now)
        if moved is None:
            return ev.Expired(reason=Reason.DEADLINE_EXCEEDED)
        return replace(moved, at=max(now, job.ready_at))

    def _why(self, job: Job) -> Reason:
        """What it waits for in the background."""
        if job.ready_at > self._deps.now():
            return job.reason
        state = self._deps.store.route(job.route_key)
        shut = state is not None and state.closed(self._deps.now())
        return Reason.ROUTE_CLOSED if shut else Reason.NO_CAPACITY


def _ran(deps: Deps, admitted: Admitted) -> Ran:
    """The answer for the job as it stands now."""
    job = deps.store.get(admitted.job.job_id) or admitted.job
    if job.status is Status.SUCCEEDED:
        return Ran(kind=Kind.RESULT, job=job, replayed=admitted.replayed)
    found = _served(deps, job.owner_key, job.user_ref, job.workflow)
    if found is not None:
        return Ran(kind=Kind.LATEST, job=job, replayed=admitted.replayed, latest=found)
    kind = Kind.CLOSED if job.final or job.in_review else Kind.QUEUED
    return Ran(kind=kind, job=job, replayed=admitted.replayed)
