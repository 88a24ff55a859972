"""Each window makes one job, whoever looks how often; and the rules for overlaps, missed runs and pauses hold."""

from __future__ import annotations

import pytest

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.records import RouteState
from breakwater.domain.schedule_request import unfit
from breakwater.domain.schedules import load_schedules
from breakwater.domain.sizes import INLINE_BYTES
from breakwater.domain.states import Status
from breakwater.domain.windows import Window
from breakwater.ports import Scheduled
from breakwater.usecases.tick import look, tick, window_job
from breakwater.wiring import NoPayloads
from tests.support.catalogue import catalogue, policy
from tests.support.world import World

MINUTE = 60_000
HOUR = 60 * MINUTE
START = 1_800_000_000_000 // HOUR * HOUR  # a full hour
INPUT = {"messages": [{"role": "user", "content": "window ${window_start}"}]}


def schedule(**more):
    """One schedule every ten minutes, as its file would say it."""
    base = {"name": "nightly", "workflow": "sync", "owner_key": "acme", "every": "10m", "input": INPUT}
    return load_schedules([{**base, **more}])["nightly"]


def world_at(offset_ms=0):
    """A world whose clock stands at the full hour, or a little later."""
    world = World()
    world.clock._now = START + offset_ms
    return world


def run(world, one):
    """One minute's tick."""
    return dict(tick(world.deps, [one], lambda: 50_000))


def jobs(world):
    """Every job there is, oldest window first."""
    keys = [item for (pk, sk), item in world.store.items.items() if pk.startswith("JOB#") and sk == "META"]
    return sorted(
        (world.job(item["pk"]["S"].removeprefix("JOB#")) for item in keys), key=lambda job: job.idempotency_key
    )


def test_a_due_window_makes_one_job_under_its_own_name():
    """The planned time is the key, the owner and the input are the schedule's; nothing is worked on here."""
    world, one = world_at(3_000), schedule(user_ref="night")

    assert run(world, one)["created"] == 1

    (job,) = jobs(world)
    assert job.idempotency_key == "schedule:nightly:2027-01-15T08:00:00Z"
    assert (job.owner_key, job.user_ref, job.workflow, job.status) == ("acme", "night", "sync", Status.PENDING)
    assert world.provider.calls == []
    assert world.store.scheduled("nightly") == Scheduled(name="nightly", last_window_ms=START, job_id=job.job_id, rev=1)


def test_two_schedulers_and_late_repeats_make_one_job():
    """CR-02: the same window thrice is one job, and nobody is told of an error."""
    world, one = world_at(), schedule()

    told = [run(world, one)]
    world.clock.advance(40)
    told.append(run(world, one))
    world.clock.advance(55_000)
    told.append(run(world, one))

    assert len(jobs(world)) == 1
    assert [done["created"] for done in told] == [1, 0, 0]
    assert all(done["failed"] == 0 for done in told)


def test_two_schedulers_that_read_the_same_make_one_job():
    """Both think it is theirs: the second finds the job and the place taken, and changes nothing."""
    world, one = world_at(), schedule()
    world.store.scheduled = lambda _name: None

    told = [run(world, one), run(world, one)]

    assert [(done["created"], done["repeated"]) for done in told] == [(1, 0), (0, 1)]
    assert len(jobs(world)) == 1


@pytest.mark.parametrize("call", ["create", "put_scheduled"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_tick_that_crashes_anywhere_leaves_one_job(call, when):
    """The next minute finds what was made, or makes it."""
    world, one = world_at(), schedule()

    def crash(name, at):
        if (name, at) == (call, when):
            raise StoreUnavailable

    world.store._hook = crash
    assert run(world, one)["failed"] == 1
    world.store._hook = lambda _name, _when: None
    world.clock.advance(MINUTE)
    run(world, one)

    assert len(jobs(world)) == 1
    assert world.store.scheduled("nightly").job_id == jobs(world)[0].job_id


def test_a_job_that_a_crashed_tick_left_holds_up_the_next_window():
    """It was made, but nobody wrote that down: it still counts as running."""
    world, one = world_at(), schedule()
    run(world, one)
    world.settle()
    world.clock._now = START + 10 * MINUTE
    world.store._hook = lambda name, when: _fail() if (name, when) == ("put_scheduled", "before") else None
    run(world, one)
    world.store._hook = lambda _name, _when: None
    world.clock._now = START + 20 * MINUTE

    told = run(world, one)

    assert (told["created"], told["passed_over"]) == (0, 1)
    assert len(jobs(world)) == 2


def _fail():
    raise StoreUnavailable


def test_skip_passes_over_windows_while_a_run_is_at_it():
    """CR-03: a run that takes three windows is never overtaken; the fourth window runs."""
    world, one = world_at(), schedule(overlap="skip")
    told = [run(world, one)]

    for _ in range(2):
        world.clock.advance(10 * MINUTE)
        told.append(run(world, one))
    world.settle()
    world.clock._now = START + 30 * MINUTE
    told.append(run(world, one))

    assert [done["created"] for done in told] == [1, 0, 0, 1]
    assert [done["passed_over"] for done in told] == [0, 1, 1, 0]
    assert ("windows_passed_over", {"schedule": "nightly", "windows": 1, "why": "overlap"}) in world.log.notes


def test_queue_lets_one_window_wait():
    """While a run is at it the windows wait; then the latest runs."""
    world, one = world_at(), schedule(overlap="queue")
    run(world, one)
    world.clock.advance(20 * MINUTE)
    waiting = run(world, one)
    world.settle(minutes=5)

    told = run(world, one)

    assert (waiting["created"], waiting["passed_over"]) == (0, 0)
    assert told["created"] == 1
    assert jobs(world)[-1].idempotency_key.endswith("08:20:00Z")


def test_allow_lets_runs_stand_side_by_side():
    """Nobody asks whether the earlier one is done."""
    world, one = world_at(), schedule(overlap="allow")

    run(world, one)
    world.clock.advance(10 * MINUTE)
    run(world, one)

    assert [job.status for job in jobs(world)] == [Status.PENDING, Status.PENDING]


def test_a_run_that_crashed_frees_its_schedule_after_the_limit():
    """CR-03: the lock is a job that is not final, and it counts only so long."""
    world, one = world_at(), schedule(overlap="skip", overlap_limit="30m")
    run(world, one)

    world.clock.advance(20 * MINUTE)
    held = run(world, one)
    world.clock.advance(10 * MINUTE)
    freed = run(world, one)

    assert (held["created"], freed["created"]) == (0, 1)


def test_a_scheduler_that_was_away_makes_up_for_it_once():
    """CR-03: six hours of a one-minute schedule are one catch-up run, and the others are counted."""
    world, one = world_at(), schedule(every="1m", missed="run_once")
    run(world, one)
    world.settle()
    world.clock._now = START + 6 * HOUR

    told = run(world, one)

    assert (told["created"], told["passed_over"]) == (1, 359)


def test_a_backfill_is_bounded_and_in_order():
    """The latest four of what was missed, oldest first, one behind the other."""
    world, one = world_at(), schedule(overlap="queue", missed="backfill", max_backfill=4)
    run(world, one)
    world.settle()
    world.clock._now = START + 2 * HOUR
    told = []

    for _ in range(6):
        told.append(run(world, one)["created"])
        world.pump()

    assert told == [1, 1, 1, 1, 0, 0]
    assert [job.idempotency_key[-9:-4] for job in jobs(world)[1:]] == ["09:30", "09:40", "09:50", "10:00"]


def test_a_new_schedule_makes_up_for_nothing():
    """Its first tick comes long after the window: it only remembers where it stands."""
    world, one = world_at(5 * MINUTE), schedule()

    assert run(world, one)["created"] == 0
    assert world.store.scheduled("nightly").last_window_ms == START


def test_a_schedule_that_is_switched_on_again_makes_up_for_nothing():
    """While it was off its windows went by, uncounted."""
    world = world_at()
    off = run(world, schedule(enabled=False))
    world.clock.advance(15 * MINUTE)
    run(world, schedule(enabled=False))

    on = run(world, schedule())

    assert (off["created"], off["passed_over"], on["created"]) == (0, 0, 0)


def test_a_pause_that_skips_schedules_drops_their_windows():
    """And nothing of it is made up for afterwards."""
    world, one = world_at(), schedule()
    world.control.thrown = {"pause": {"workflows": ["sync"], "schedules": "skip"}}
    held = run(world, one)
    world.clock.advance(10 * MINUTE)
    held_again = run(world, one)

    world.control.thrown = {}
    after = run(world, one)

    assert (held["passed_over"], held_again["passed_over"], after["created"]) == (1, 1, 0)
    assert world.log.notes[-2][0] != "schedule_failed"


def test_a_pause_that_waits_makes_the_jobs_and_lets_them_wait():
    """The backlog is kept; the jobs themselves stand behind the pause."""
    world, one = world_at(), schedule()
    world.control.thrown = {"pause": {"workflows": ["sync"]}}

    assert run(world, one)["created"] == 1
    world.pump()
    assert jobs(world)[0].reason.value == "paused"


def test_runs_are_skipped_while_the_route_is_closed_where_the_policy_says_so():
    """`schedule_pause` is about the workflow's own route."""
    routes = catalogue()
    routes.policies["resting"] = policy("resting", schedule_pause=True)
    world, one = World(routes=routes), schedule(workflow="resting")
    world.clock._now = START
    world.store.put_route(None, RouteState(route_key="plain", closed_until=START + HOUR))

    assert run(world, one) == {"created": 0, "repeated": 0, "passed_over": 1, "failed": 0}


def test_a_schedule_that_fails_holds_up_no_other():
    """A workflow that was taken away, an input that no longer fits: told, and tried again."""
    world = world_at()
    broken = load_schedules([{**schedule().model_dump(exclude_none=True), "name": "broken", "workflow": "gone"}])
    misfit = load_schedules([{**schedule().model_dump(exclude_none=True), "name": "misfit", "input": {"text": "no"}}])

    told = tick(world.deps, [broken["broken"], misfit["misfit"], schedule()], lambda: 50_000)

    assert (told["failed"], told["created"]) == (2, 1)
    failed = [more for name, more in world.log.notes if name == "schedule_failed"]
    assert [one["schedule"] for one in failed] == ["broken", "misfit"]
    assert world.store.scheduled("broken") is None


def test_a_window_whose_input_changed_with_a_deploy_is_not_run_twice():
    """The job made before the deploy stands for it."""
    world = world_at()
    run(world, schedule())
    del world.store.items["SCHEDULE#nightly", "META"]

    told = run(world, schedule(input={"messages": [{"role": "user", "content": "other words"}]}))

    assert (told["repeated"], told["failed"]) == (1, 0)
    assert len(jobs(world)) == 1


def test_a_tick_stops_in_time():
    """What it did not reach is for the next minute."""
    world = world_at()

    told = tick(world.deps, [schedule()], lambda: 1_000)

    assert told["out_of_time"] == 1
    assert jobs(world) == []


def test_an_idle_tick_writes_nothing():
    """A schedule with nothing due costs reads."""
    world, one = world_at(), schedule()
    run(world, one)
    calls = []
    world.store._hook = lambda name, when: calls.append(name) if when == "before" else None
    world.clock.advance(MINUTE)

    run(world, one)

    assert calls == ["scheduled", "get"]


def test_a_look_names_the_jobs_of_its_windows():
    """Whoever asks for a window finds its job by name."""
    world, one = world_at(), schedule()

    done = look(world.deps, one)

    (job,) = jobs(world)
    assert done.jobs == (job.job_id,)
    assert window_job(one, Window(START, "")) == job.job_id


def test_an_input_that_could_never_become_a_job_is_found_before_it_is_shipped():
    """`breakwater policy check` names the schedule and the field; a good one is silent."""
    good, bad = schedule(), schedule(input={"messages": [{"role": "user", "content": "x"}], "prompt": "y"})
    unknown = schedule(input={"text": "${window_start}"})

    assert list(unfit([good])) == []
    found = list(unfit([good, bad, unknown]))
    assert [line.partition(":")[0] for line in found] == ["schedules[1].input", "schedules[2].input.text"]


def test_an_input_too_long_for_the_scheduler_is_found_before_it_is_shipped():
    """It has no bucket for large bodies; what passes the check is kept in the table."""
    said = {"messages": [{"role": "user", "content": "x" * INLINE_BYTES}]}
    fits = {"messages": [{"role": "user", "content": "x" * (INLINE_BYTES - 400)}]}

    found = list(unfit([schedule(input=fits), schedule(input=said)]))
    assert [line.partition(":")[0] for line in found] == ["schedules[1].input"]


def test_a_schedule_that_can_not_be_kept_holds_up_no_other():
    """One that came past the check all the same is told each minute; the next one gets its job."""
    world = world_at()
    world.deps.payloads.put = NoPayloads().put
    large = {"messages": [{"role": "user", "content": "x" * INLINE_BYTES}]}
    long = load_schedules([{**schedule(input=large).model_dump(exclude_none=True), "name": "long"}])

    told = tick(world.deps, [long["long"], schedule()], lambda: 50_000)

    assert (told["failed"], told["created"]) == (1, 1)
