"""What does the clock ask for now? Each minute every schedule is looked at, and a job is made for each window due.

The window's name is the idempotency key, so looking twice, late, or by two schedulers at once makes one job. Where a
schedule stands is written after its jobs: a crash in between is found at the next look and adopted, not repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from breakwater.domain import identity, windows
from breakwater.domain.errors import BreakwaterError, KeyReused
from breakwater.domain.schedule_request import request_of
from breakwater.domain.schedules import Overlap, Schedule
from breakwater.domain.switches import paused
from breakwater.domain.timing import SECOND
from breakwater.domain.values import dataclass
from breakwater.domain.windows import Tick, Window
from breakwater.ports import Scheduled
from breakwater.usecases.admit import admit
from breakwater.usecases.deps import Deps
from breakwater.usecases.principal import Principal

_RESERVE = 5 * SECOND
_ADOPTED = 10  # windows of a backlog in which a job is looked for that a crashed tick left


@dataclass(frozen=True, slots=True)
class Ticked:
    """What one look at a schedule did. `held`: why a window that was due made no job, if one did not."""

    jobs: tuple[str, ...] = ()
    created: int = 0
    passed_over: int = 0
    held: str | None = None


def tick(deps: Deps, schedules: Iterable[Schedule], remaining_ms: Callable[[], int]) -> Counter[str]:
    """Look at every schedule once; what was done, by kind. One that fails holds up no other."""
    told: Counter[str] = Counter(created=0, repeated=0, passed_over=0, failed=0)
    for schedule in schedules:
        if remaining_ms() < _RESERVE:
            told["out_of_time"] += 1
            break
        told.update(_told(deps, schedule))
    deps.log.note("ticked", **told)
    return told


def _told(deps: Deps, schedule: Schedule) -> Counter[str]:
    try:
        done = look(deps, schedule)
    except BreakwaterError as error:  # the next minute tries again
        rule = getattr(error, "rule", None)
        deps.log.note("schedule_failed", schedule=schedule.name, error=type(error).__name__, rule=rule)
        return Counter(failed=1)
    repeated = len(done.jobs) - done.created
    return Counter(created=done.created, repeated=repeated, passed_over=done.passed_over)


def look(deps: Deps, schedule: Schedule, asked: Window | None = None) -> Ticked:
    """Make the jobs that a schedule's rules ask for now. `asked`: somebody outside wants this window, even if late.

    Raises what `admit` raises; nothing is remembered then, so that the next look tries again.
    """
    now = max(deps.now(), asked.start_ms if asked else 0)
    read = deps.store.scheduled(schedule.name)
    state = _adopted(deps, schedule, read, now)
    running = _running(deps, schedule, state, now)
    skipped = schedule.enabled and _skipped(deps, schedule, now)
    found = _found(schedule, state, now, None if skipped else asked, running=running, skipped=skipped)
    jobs = [_job(deps, schedule, window) for window in found.create]
    _remember(deps, schedule, read, state, found, jobs)
    if found.passed_over and schedule.enabled:
        why = "paused" if skipped else "overlap" if running else "missed"
        deps.log.note("windows_passed_over", schedule=schedule.name, windows=found.passed_over, why=why)
    return Ticked(
        jobs=tuple(job_id for job_id, _ in jobs),
        created=sum(1 for _, new in jobs if new),
        passed_over=found.passed_over if schedule.enabled else 0,
        held="paused" if skipped else "running" if running else None,
    )


def window_job(schedule: Schedule, window: Window) -> str:
    """The id of the job that stands for a window, made or not."""
    key = windows.idempotency_key(schedule, window)
    return identity.job_id(schedule.owner_key, schedule.user_ref, schedule.workflow, key)


# --- what is due ----------------------------------------------------------------------------------------------------


def _found(
    schedule: Schedule, state: Scheduled | None, now: int, asked: Window | None, *, running: bool, skipped: bool
) -> Tick:
    last = state.last_window_ms if state else None
    if skipped:
        held_up = schedule.model_copy(update={"overlap": Overlap.SKIP})
        return windows.tick(held_up, last, now, running=True)
    found = windows.tick(schedule, last, now, running=running)
    late = asked is not None and not found.create and asked.start_ms > (-1 if last is None else last)
    if asked is None or not late or running:
        return found
    return Tick((asked,), asked.start_ms, max(0, found.passed_over - 1))


def _running(deps: Deps, schedule: Schedule, state: Scheduled | None, now: int) -> bool:
    """Whether the job of an earlier window holds up later ones."""
    if state is None or state.job_id is None or schedule.overlap is Overlap.ALLOW or not schedule.enabled:
        return False
    job = deps.store.get(state.job_id)
    return job is not None and windows.still_running(schedule, job.created_at, now, final=job.final)


def _adopted(deps: Deps, schedule: Schedule, state: Scheduled | None, now: int) -> Scheduled | None:
    """Where the schedule really stands: a tick may have made a job and crashed before it wrote that down."""
    if state is None or state.last_window_ms is None or schedule.overlap is Overlap.ALLOW:
        return state
    backlog = windows.windows(schedule, state.last_window_ms, now, _ADOPTED)
    for window in reversed(backlog[:-1]):
        job_id = window_job(schedule, window)
        if deps.store.get(job_id) is not None:
            return replace(state, last_window_ms=window.start_ms, job_id=job_id)
    return state


def _skipped(deps: Deps, schedule: Schedule, now: int) -> bool:
    """Whether a pause (or the workflow's closed route, where its policy says so) drops scheduled runs."""
    policy = deps.catalogue.policy(schedule.workflow)
    if policy is None:
        return False
    held = paused(deps.control.switches(), now, schedule.workflow, policy.priority)
    if held is not None and held.schedules == "skip":
        return True
    route = deps.catalogue.route(policy.route) if policy.schedule_pause else None
    state = deps.store.route(route.route_key) if route is not None else None
    return state is not None and state.closed(now)


# --- what is done ---------------------------------------------------------------------------------------------------


def _job(deps: Deps, schedule: Schedule, window: Window) -> tuple[str, bool]:
    """The window's job, and whether it is new."""
    who = Principal(owner_key=schedule.owner_key, key_id=f"schedule:{schedule.name}", scopes=frozenset({"submit"}))
    key = windows.idempotency_key(schedule, window)
    try:
        admitted = admit(deps, who, request_of(schedule, window), key, key)
    except KeyReused:  # made with an earlier deploy's input; it stands for this window all the same
        return window_job(schedule, window), False
    return admitted.job.job_id, not admitted.replayed


def _remember(
    deps: Deps,
    schedule: Schedule,
    read: Scheduled | None,
    state: Scheduled | None,
    found: Tick,
    jobs: list[tuple[str, bool]],
) -> None:
    """Another scheduler may have been faster: it saw the same windows, so nothing is lost."""
    latest = jobs[-1][0] if jobs else state.job_id if state else None
    after = Scheduled(
        name=schedule.name, last_window_ms=found.last_window_ms, job_id=latest, rev=read.rev if read else 0
    )
    if after != read and not (read is None and found.last_window_ms is None):
        deps.store.put_scheduled(read, after)
