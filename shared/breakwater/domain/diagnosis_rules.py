"""The verdict: which layer holds a job, and how does it stand there? Rules in order; the first that speaks decides.

A job is *stuck* where something should have happened by now and did not: a nudge that nobody answered within its
grace, a lease that ran out and was not taken over, an effect that failed again and again. All else waits for a time
that is known, or for a person.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from breakwater.domain.diagnosis import Action, Case, Condition, Diagnosis, Layer, Next, Where, evidence
from breakwater.domain.diagnosis_reasons import DEAD_IN, HELD_IN, STOPPED_SAYS, WAITS_IN
from breakwater.domain.job import Job
from breakwater.domain.obligations import obligations
from breakwater.domain.states import EffectKind, Status
from breakwater.domain.timing import CLOCK_SKEW, MINUTE, NUDGE_GRACE, nudge_grace

_LATE = 2 * MINUTE  # the sweep comes every minute; twice that without it is late
_MANY_TRIES = 3
_TOLD = frozenset({EffectKind.NOTIFY, EffectKind.BUS_EVENT, EffectKind.DEAD_LETTER})
_UNTOLD = (Layer.ADMISSION, "It waits for a person's decision.")

_GOES_ON = {
    "ready": "a worker looks at it",
    "recheck": "it is looked at again, unless free capacity wakes it before",
    "expiry": "its age limit ends it",
    "review": "the review's own limit ends it",
    "lease": "if the worker is gone by then, another takes over",
    "poll": "the provider is asked",
    "provider_deadline": "the provider's time is up",
    "effect": "what is owed is delivered",
    "cancel": "the provider is told to stop",
}


def diagnose(case: Case) -> Diagnosis:
    """The layer that holds the job, with the evidence of all, what comes next and what can be done."""
    where = next(found for rule in _RULES if (found := rule(case)) is not None)
    return Diagnosis(
        job_id=case.job.job_id,
        layer=where.layer,
        condition=where.condition,
        verdict=where.says,
        evidence=evidence(case, where.layer),
        next=upcoming(case.job, where),
        can_do=tuple(actions(case, where)),
    )


def upcoming(job: Job, where: Where) -> Next:
    """What happens by itself, and when."""
    if not (found := obligations(job)):
        needs = where.condition is Condition.NEEDS_A_PERSON
        return Next(what="nothing happens until a person acts" if needs else "nothing more is due")
    first = min(found, key=lambda one: one.at)
    return Next(what=_GOES_ON[first.kind.value], at=max(first.at, job.due_at or first.at))


# --- rules ----------------------------------------------------------------------------------------------------------


def _owes(case: Case) -> Where | None:
    """Settled, but something outside does not know yet."""
    job = case.job
    if not job.owed or job.status not in (Status.SUCCEEDED, Status.CANCELLED):
        return None
    first = min(job.owed.values(), key=lambda one: one.next_at)
    stuck = first.tries >= _MANY_TRIES or case.now - first.next_at > NUDGE_GRACE + _LATE
    names = ", ".join(sorted({key.partition("#")[0] for key in job.owed}))
    tried = f", tried {first.tries} times" if first.tries else ""
    return Where(
        layer=Layer.EFFECTS,
        condition=Condition.STUCK if stuck else Condition.IN_PROGRESS,
        says=f"The job is {job.status.value}; still owed outside: {names}{tried}.",
    )


def _given_up(case: Case) -> Where | None:
    """Settled, and something outside will not hear of it by itself."""
    job = case.job
    if job.status not in (Status.SUCCEEDED, Status.CANCELLED) or job.closed_at is not None:
        return None
    untold = [key for key in case.seen.given_up if _matters(key, job)]
    if not untold:
        return None
    names = ", ".join(f"{key.partition('#')[0]} ({case.seen.given_up[key]})" for key in sorted(untold))
    says = f"The job is {job.status.value}, and this was given up: {names}."
    return Where(layer=Layer.EFFECTS, condition=Condition.NEEDS_A_PERSON, says=says)


def _matters(key: str, job: Job) -> bool:
    """What is missing outside now; not what an earlier generation could not tell, nor a stop that nobody confirmed."""
    kind, _, of = key.partition("#")
    return kind == EffectKind.USAGE or (kind in _TOLD and of == str(job.generation))


def _finished(case: Case) -> Where | None:
    job = case.job
    if job.status is Status.SUCCEEDED:
        says = "The result is stored. A client that still waits has stopped asking, or never asked."
        return Where(layer=Layer.FINISHED, condition=Condition.DONE, says=says)
    if job.status is Status.CANCELLED or job.closed_at is not None:
        who = job.closed_by or job.cancelled_by or "somebody"
        says = f"{STOPPED_SAYS.get(job.reason, 'Closed')} by {who}."
        return Where(layer=Layer.FINISHED, condition=Condition.STOPPED_BY_A_PERSON, says=says)
    return None


def _dead(case: Case) -> Where | None:
    if case.job.status is not Status.DEAD_LETTER:
        return None
    layer, says = DEAD_IN.get(case.job.reason, _UNTOLD)
    if layer is Layer.QUEUE and case.job.waits:
        layer = Layer.ROUTE  # it grew old because a route or limit kept saying no
    return Where(layer=layer, condition=Condition.NEEDS_A_PERSON, says=says)


def _held(case: Case) -> Where | None:
    if not case.job.in_review:
        return None
    layer, says = HELD_IN.get(case.job.reason, _UNTOLD)
    return Where(layer=layer, condition=Condition.NEEDS_A_PERSON, says=says)


def _leased(case: Case) -> Where | None:
    job = case.job
    if job.status is not Status.PROCESSING or job.locked_until is None:
        return None
    if job.lease_live(case.now):
        says = f"A worker holds attempt {job.attempt} of {job.max_attempts} and calls the provider."
        return Where(layer=Layer.WORKER, condition=Condition.IN_PROGRESS, says=says)
    late = case.now - job.locked_until > CLOCK_SKEW + _LATE
    says = "The worker's lease ran out without an outcome; the takeover " + ("is overdue." if late else "comes next.")
    return Where(layer=Layer.WORKER, condition=Condition.STUCK if late else Condition.WAITING, says=says)


def _at_provider(case: Case) -> Where | None:
    job, seen = case.job, case.seen
    if job.status is not Status.PROCESSING:
        return None
    if seen.deliveries:
        late = case.now - min(one["received_at"] for one in seen.deliveries) > NUDGE_GRACE
        says = "The provider's webhook is recorded but not worked on yet."
        return Where(layer=Layer.WEBHOOK, condition=Condition.STUCK if late else Condition.IN_PROGRESS, says=says)
    overdue = case.now - max(job.poll_at or 0, 0) > NUDGE_GRACE + _LATE
    if overdue:
        layer = Layer.WEBHOOK if seen.webhook_expected else Layer.PROVIDER
        says = "No webhook came and the poll that should replace it is overdue."
        return Where(layer=layer, condition=Condition.STUCK, says=says)
    age = case.now - (job.execution.opened_at if job.execution else job.updated_at)
    slow = " It takes longer than usual." if age > seen.expected_ms else ""
    says = f"The provider has the job and {job.polls} polls found it running.{slow}"
    return Where(layer=Layer.PROVIDER, condition=Condition.IN_PROGRESS, says=says)


def _no_input(case: Case) -> Where | None:
    if case.seen.input_present:
        return None
    says = "The job is recorded, its input is not there: the next worker ends it."
    return Where(layer=Layer.ADMISSION, condition=Condition.STUCK, says=says)


def _crashing(case: Case) -> Where | None:
    if not case.job.crashes:
        return None
    says = f"Handlers crashed on it {case.job.crashes} times; at three it becomes a dead letter."
    return Where(layer=Layer.WORKER, condition=Condition.STUCK, says=says)


def _waits(case: Case) -> Where | None:
    job = case.job
    in_line = job.waiting_scope is not None and case.now <= (job.recheck_at or job.ready_at) + NUDGE_GRACE + _LATE
    if job.ready_at <= case.now and not in_line:
        return None
    layer, says = WAITS_IN.get(job.reason, (Layer.QUEUE, "It is released later."))
    return Where(layer=layer, condition=Condition.WAITING, says=says)


def _route_closed(case: Case) -> Where | None:
    route = case.route
    if route is None or not route.closed(case.now):
        return None
    says = f"The route {route.route_key} is closed ({route.reason or 'no reason given'}), so no call is made."
    return Where(layer=Layer.ROUTE, condition=Condition.WAITING, says=says)


def _queued(case: Case) -> Where:
    job = case.job
    sent = job.nudged_for or job.nudged_at or job.ready_at
    late = job.nudges > 1 or case.now - sent > nudge_grace(job.nudges) + _LATE
    if not late:
        return Where(layer=Layer.QUEUE, condition=Condition.IN_PROGRESS, says="It is nudged and waits for a worker.")
    says = f"It is ready and was nudged {job.nudges_total} times; no worker took it."
    return Where(layer=Layer.QUEUE, condition=Condition.STUCK, says=says)


_RULES: tuple[Callable[[Case], Where | None], ...] = (
    _owes,
    _given_up,
    _finished,
    _dead,
    _held,
    _leased,
    _at_provider,
    _no_input,
    _crashing,
    _waits,
    _route_closed,
    _queued,
)


# --- what can be done -----------------------------------------------------------------------------------------------


def actions(case: Case, where: Where) -> list[Action]:
    """What the owner and the operator can do now, the most useful first."""
    job = case.job
    found = [] if where.condition is Condition.DONE else [_act(job, *row) for row in _BY_LAYER.get(where.layer, ())]
    if job.in_review:
        found = [_act(job, *row) for row in _REVIEW] + found
    elif job.status is Status.DEAD_LETTER and job.closed_at is None:
        found = [_act(job, *row) for row in _DEAD] + found
    if not job.final:
        found.append(_act(job, "owner", "stop it", "breakwater cancel {job}"))
    return found


def _act(job: Job, by: str, says: str, command: str) -> Action:
    return Action(by=by, says=says, command=command.format(job=job.job_id, route=job.route_key))


_REVIEW = (
    ("operator", "let it go on", "breakwater review approve {job} --why …"),
    ("operator", "stop it for good", "breakwater review reject {job} --why …"),
)
_DEAD = (
    ("operator", "see whether a replay is safe", "breakwater preview {job}"),
    ("operator", "put it to rest", "breakwater close {job} --why …"),
)
_BY_LAYER: Mapping[Layer, tuple[tuple[str, str, str], ...]] = {
    Layer.CLIENT: (("owner", "send a corrected request under a new key", "breakwater submit …"),),
    Layer.ADMISSION: (("operator", "read its executions", "breakwater job {job} --executions"),),
    Layer.QUEUE: (("operator", "see what is paused", "breakwater switch list"),),
    Layer.WORKER: (("operator", "read the executions and their log ids", "breakwater job {job} --executions"),),
    Layer.ROUTE: (
        ("operator", "see the route", "breakwater routes show {route}"),
        ("operator", "open it if the cause is gone", "breakwater routes open {route} --why …"),
    ),
    Layer.PROVIDER: (("operator", "read what the provider said", "breakwater job {job} --executions"),),
    Layer.WEBHOOK: (("operator", "compare with the provider's own webhook log", "breakwater job {job} --executions"),),
    Layer.EFFECTS: (
        ("owner", "ask for the notification once more", "POST /v1/jobs/{job}/notify"),
        ("operator", "see what is owed or was given up, and why", "breakwater job {job}"),
    ),
}
