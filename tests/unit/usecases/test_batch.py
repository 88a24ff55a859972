"""A replay of many: frozen, slow at first, stopped by itself, and never in need of its operator."""

from __future__ import annotations

from collections import Counter

import pytest

from breakwater.domain.errors import NotFound, StaleVersion, TooLate
from breakwater.domain.records import Child
from breakwater.domain.replay_batch import BatchStatus, Outcome
from breakwater.domain.results import Completed
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Status
from breakwater.usecases.batch import create, listed, need_batch, progress, swept, tick, turn
from breakwater.usecases.close import close
from breakwater.usecases.replay import replay
from tests.fakes.outside import answer, refusal
from tests.support.builders import make_job
from tests.support.dead import batch_terms, dead, terms
from tests.support.world import World


def many_dead(world, count, **more):
    """Dead jobs as storage has them; quicker than letting each die."""
    names = []
    for number in range(count):
        job = make_job("dead_letter", job_id=f"job_dead{number:04d}", ttl=None, **more)
        job = job.with_(completed_at=world.clock.now() - count + number)
        world.store.create(job, world.clock.now())
        world.store.put_child(job.job_id, _input(job), None)
        names.append(job.job_id)
    return names


def _input(job):
    return Child(sk=job.input_ref, body='{"messages":[{"role":"user","content":"hello"}]}')


def run(world, batch_id="batch-1", minutes=240):
    """Let time pass until the batch is over and nothing is open."""
    for _ in range(minutes * 4):
        world.pump(100_000)
        if (found := world.store.batch(batch_id)).tick_at is None and found.status is not BatchStatus.PAUSED:
            return found
        world.clock.advance(15_000)
        if world.clock.now() % 60_000 < 15_000:
            world.sweep()
    return world.store.batch(batch_id)


def start(world, **more):
    """Create a batch as the API does."""
    return create(world.deps, batch_terms(**more), "ops/k1", "ops")


def test_a_batch_brings_all_back():
    """Every job of the selection runs once in a new generation."""
    world = World()
    names = [dead(world, key=f"k{number}") for number in range(5)]
    calls = len(world.provider.calls)

    start(world)
    batch = run(world)

    assert (batch.status, batch.count(Outcome.SUCCEEDED)) == (BatchStatus.DONE, 5)
    assert all(world.job(name).status is Status.SUCCEEDED for name in names)
    assert len(world.provider.calls) == calls + 5


def test_five_hundred_into_a_provider_that_fails_again_stop_by_themselves():
    """At the threshold, with no effect repeated and the rest untouched."""
    world = World()
    names = many_dead(world, 500)
    world.provider.script = [refusal(ErrorClass.CALLER_FAULT, 400)] * 2_000

    start(world, error_threshold=10)
    batch = run(world)

    assert (batch.status, batch.count(Outcome.FAILED)) == (BatchStatus.STOPPED, 10)
    assert "threshold" in batch.why
    touched = [name for name in names if world.job(name).generation > 1]
    assert len(touched) == 10
    assert len(world.provider.calls) == 10
    assert max(Counter(call.job_id for call in world.provider.calls).values()) == 1
    told = Counter((one["job_id"], one["generation"]) for one in world.queues.dead)
    assert set(told.values()) == {1}
    assert Counter(event_id for event_id, _, _ in world.bus.events).most_common(1)[0][1] == 1


def test_a_healthy_provider_takes_them_all():
    """Nothing is left open, and each was called once."""
    world = World()
    names = many_dead(world, 120)

    start(world, at_once=50)
    batch = run(world)

    assert (batch.status, batch.count(Outcome.SUCCEEDED)) == (BatchStatus.DONE, 120)
    assert len(world.provider.calls) == 120
    assert all(world.job(name).final for name in names)


def test_a_provider_that_breaks_midway_costs_no_more_than_the_threshold():
    """What has gone well widens the window, failures close it."""
    world = World()
    many_dead(world, 100)
    good = 30

    def breaks(call):
        world.provider.script.append(breaks)
        if len(world.provider.calls) > good:
            return refusal(ErrorClass.CALLER_FAULT, 400)
        assert call.job_id
        return Completed(result=answer())

    world.provider.script = [breaks]
    start(world, error_threshold=5, at_once=8)
    batch = run(world)

    assert batch.status is BatchStatus.STOPPED
    assert batch.count(Outcome.SUCCEEDED) == good
    assert 5 <= batch.count(Outcome.FAILED) <= 5 + 8


def test_the_rate_is_kept():
    """Six a minute are six a minute, whatever the provider could take."""
    world = World()
    many_dead(world, 20)
    start(world, rate_per_minute=6)

    begun = world.clock.now()
    while world.clock.now() - begun < 120_000:
        world.pump(1_000)
        world.clock.advance(5_000)
        if world.clock.now() % 60_000 == 0:
            world.sweep()

    assert 10 <= world.store.batch("batch-1").next <= 13


def test_a_batch_that_would_repeat_effects_refuses_those_and_says_why():
    """The others come back; the refused stay dead."""
    world = World()
    good = dead(world, key="good")
    bad = dead(world, key="bad")
    job = world.job(bad)
    world.store.commit(job, job.with_(partial_output_committed=True))

    batch, refused = start(world)
    run(world)

    assert batch.total == 1
    assert list(refused) == [bad]
    assert "second one" in refused[bad]
    assert (world.job(good).generation, world.job(bad).generation) == (2, 1)
    assert progress(world.deps, need_batch(world.deps, "batch-1"))["refused"] == refused


def test_what_changes_between_selection_and_turn_is_looked_at_again():
    """Refused at its turn, replayed by somebody else, closed: each is counted for what it is."""
    world = World()
    names = many_dead(world, 4)
    start(world)
    del world.store.items[f"JOB#{names[0]}", world.job(names[0]).input_ref]
    replay(world.deps, world.job(names[1]), terms("mine"), "me")
    close(world.deps, world.job(names[2]), "me")

    batch = run(world)

    assert batch.counts == {"refused": 2, "superseded": 1, "succeeded": 1}
    assert progress(world.deps, batch)["outcomes"][names[3]] == "succeeded"


def test_a_job_that_vanishes_is_passed_over():
    """Retention may end while a batch waits."""
    world = World()
    names = many_dead(world, 2)
    start(world)
    del world.store.items[f"JOB#{names[0]}", "META"]

    batch = run(world)

    assert batch.counts == {"superseded": 1, "succeeded": 1}


def test_a_job_that_is_held_again_counts_as_failed():
    """The cause is not gone when a person has to decide once more."""
    world = World()
    many_dead(world, 3)
    world.provider.script = [refusal(ErrorClass.SPEND, 429)] * 10

    start(world, error_threshold=1)
    batch = run(world)

    assert (batch.status, batch.count(Outcome.FAILED)) == (BatchStatus.STOPPED, 1)


def test_pause_lets_open_jobs_end_and_resume_goes_on():
    """Nothing new is opened meanwhile, and progress is kept."""
    world = World()
    many_dead(world, 6)
    start(world, at_once=2)
    world.clock.advance(1_000)
    tick(world.deps, "batch-1")

    turn(world.deps, "batch-1", BatchStatus.PAUSED, "looking")
    world.settle(30)
    paused = need_batch(world.deps, "batch-1")
    assert (paused.status, paused.next, paused.open) == (BatchStatus.PAUSED, 2, ())
    turn(world.deps, "batch-1", BatchStatus.RUNNING, "go on")
    batch = run(world)

    assert (batch.status, batch.count(Outcome.SUCCEEDED)) == (BatchStatus.DONE, 6)


def test_abort_is_for_good():
    """What is open ends, what was not opened stays dead, and nothing turns it on again."""
    world = World()
    names = many_dead(world, 6)
    start(world, at_once=2)
    world.clock.advance(1_000)
    tick(world.deps, "batch-1")

    turn(world.deps, "batch-1", BatchStatus.ABORTED, "wrong ones")
    batch = run(world)

    assert batch.status is BatchStatus.ABORTED
    assert sum(world.job(name).generation > 1 for name in names) == 2
    with pytest.raises(TooLate):
        turn(world.deps, "batch-1", BatchStatus.RUNNING, "again")


def test_the_same_request_finds_its_batch():
    """Asking twice freezes once."""
    world = World()
    many_dead(world, 3)
    first, _ = start(world)

    second, _ = start(world)

    assert second.id == first.id
    assert run(world).total == 3


def test_nothing_to_replay_is_said():
    """An empty selection is no batch."""
    with pytest.raises(TooLate):
        start(World())
    with pytest.raises(NotFound):
        need_batch(World().deps, "batch-1")


def test_a_batch_survives_every_crash():
    """Whatever call the process dies at, the next tick goes on and nothing is done twice."""
    points = []

    def note(name, when):
        points.append((name, when))

    trial = World()
    many_dead(trial, 3)
    start(trial)
    trial.store._hook = note
    tick(trial.deps, "batch-1")

    for place in range(len(points)):
        world = World()
        names = many_dead(world, 3)
        start(world)
        left = [place]

        def dies(_name, _when, left=left):
            left[0] -= 1
            if left[0] == -1:
                raise KeyboardInterrupt

        world.store._hook = dies
        with pytest.raises(KeyboardInterrupt):
            tick(world.deps, "batch-1")
        world.store._hook = lambda _name, _when: None
        world.clock.advance(180_000)
        world.sweep()
        batch = run(world)

        assert batch.counts == {"succeeded": 3}, points[place]
        assert {world.job(name).generation for name in names} == {2}
        assert len(world.provider.calls) == 3


def test_a_lost_nudge_is_made_up_for_by_the_sweep():
    """The batch has its own due_at, so no terminal and no message is needed."""
    world = World()
    many_dead(world, 3)
    world.queues.broken = True
    start(world)
    world.queues.broken = False

    world.clock.advance(180_000)
    world.sweep()
    batch = run(world)

    assert batch.status is BatchStatus.DONE
    assert world.log.notes


def test_late_and_repeated_nudges_do_nothing():
    """A tick looks at the clock and at the table, not at the message."""
    world = World()
    many_dead(world, 3)
    start(world, at_once=1)

    assert tick(world.deps, "batch-1") == "running"
    assert tick(world.deps, "batch-1") in ("running", "too_early")
    assert tick(world.deps, "unknown") == "nothing"
    run(world)
    assert tick(world.deps, "batch-1") == "nothing"


def test_batches_are_listed_newest_first():
    """Also those that are over."""
    world = World()
    many_dead(world, 1)
    start(world)
    run(world)

    found, following = listed(world.deps, 10, None)

    assert [one["batch_id"] for one in found] == ["batch-1"]
    assert following is None


def test_two_ticks_at_once_have_one_winner():
    """The other one finds the revision gone and has changed nothing."""
    world = World()
    many_dead(world, 3)
    start(world)
    world.clock.advance(1_000)
    read = world.store.batch
    once = []

    def overtaken(batch_id):
        found = read(batch_id)
        if not once:
            once.append(batch_id)
            tick(world.deps, batch_id)
        return found

    world.store.batch = overtaken

    assert tick(world.deps, "batch-1") == "overtaken"
    world.store.batch = read
    assert run(world).counts == {"succeeded": 3}


def test_what_was_opened_and_not_sent_waits_for_a_resume_or_is_skipped():
    """A crash after the batch's own write: a pause keeps those jobs, an abort lets them be."""
    for status, counts in ((BatchStatus.PAUSED, {}), (BatchStatus.ABORTED, {"skipped": 3})):
        world = World()
        names = many_dead(world, 3)
        start(world)
        world.clock.advance(1_000)
        _die_after(world, "put_batch")

        turn(world.deps, "batch-1", status, "stop it here")
        world.clock.advance(20_000)
        tick(world.deps, "batch-1")

        assert need_batch(world.deps, "batch-1").counts == counts
        assert {world.job(name).generation for name in names} == {1}


def _die_after(world, call):
    def dies(name, when):
        if (name, when) == (call, "after"):
            raise KeyboardInterrupt

    world.store._hook = dies
    with pytest.raises(KeyboardInterrupt):
        tick(world.deps, "batch-1")
    world.store._hook = lambda _name, _when: None


def test_turning_gives_up_after_five_faster_others():
    """Somebody else writes between every read and write."""
    world = World()
    many_dead(world, 1)
    start(world)
    world.store.put_batch = lambda _before, _after: False

    with pytest.raises(StaleVersion):
        turn(world.deps, "batch-1", BatchStatus.PAUSED, "never lands")


def test_the_sweep_leaves_a_batch_alone_that_moved():
    """Not due any more, gone, or written by somebody else."""
    world = World()
    many_dead(world, 1)
    start(world)

    assert swept(world.deps, "batch-1") == "moved_meanwhile"
    assert swept(world.deps, "unknown") == "moved_meanwhile"
    world.clock.advance(180_000)
    put, world.store.put_batch = world.store.put_batch, lambda _before, _after: False
    assert swept(world.deps, "batch-1") == "moved_meanwhile"
    world.store.put_batch = put
    assert swept(world.deps, "batch-1") == "nudged_batch"


def test_a_selection_that_ends_early_ends_the_batch_s_turn():
    """A frozen piece that is gone opens nothing; what was opened still ends."""
    world = World()
    many_dead(world, 2)
    start(world)
    world.clock.advance(1_000)
    item = world.store.items["BATCH#batch-1", "ITEMS#0000"]
    world.store.items["BATCH#batch-1", "ITEMS#0000"] = {
        **item,
        "data": {"M": {"refs": {"L": item["data"]["M"]["refs"]["L"][:1]}}},
    }

    assert tick(world.deps, "batch-1") == "running"
    world.clock.advance(20_000)
    del world.store.items["BATCH#batch-1", "ITEMS#0000"]
    assert tick(world.deps, "batch-1") == "running"
    assert need_batch(world.deps, "batch-1").next == 1


def test_creating_survives_somebody_faster():
    """Two requests of one id freeze one selection."""
    world = World()
    many_dead(world, 2)
    put = world.store.put_batch

    def late(before, after):
        put(before, after)
        return False

    world.store.put_batch = late

    assert start(world)[0].total == 2
