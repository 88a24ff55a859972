"""The minute's scan: each kind of thing that can be left behind is found, made good, and counted."""

from __future__ import annotations

import pytest

from breakwater.domain.errors import Unavailable
from breakwater.domain.states import Reason, Status
from breakwater.telemetry import note_metrics
from breakwater.usecases.sweep import sweep
from tests.support.webhooks import completed, deliver
from tests.support.world import World

MINUTE = 60_000


class DeathError(Exception):
    """A process that is gone."""


def minutes(world, number):
    """So many minutes, with a scan each; what the scans repaired, by kind, without the idle ones."""
    told: dict[str, int] = {}
    for _ in range(number):
        world.clock.advance(MINUTE)
        for kind, count in world.sweep().items():
            told[kind] = told.get(kind, 0) + count
        world.pump()
    return told


def whys(world):
    """Which obligations the scans met late, in order."""
    return [after.job_id for event, _, after in world.log.steps if event == "Swept"]


def test_an_expired_lease_is_taken_over():
    """The worker died in its call: a minute or two later the job goes on."""
    world = World()

    def die(_call):
        raise DeathError

    world.provider.script = [die]
    job_id = world.submit().job.job_id
    with pytest.raises(DeathError):
        world.worker(job_id)
    assert world.job(job_id).locked_until is not None

    told = minutes(world, 5)

    assert told["nudged_completion"] >= 1
    assert world.job(job_id).status is Status.SUCCEEDED
    assert "lease_expired" in [name for name, _ in world.log.notes]


def test_a_pending_job_that_nobody_looked_at_is_nudged():
    """Its only message was lost on the day it was admitted."""
    world = World()
    world.queues.lossy = True
    job_id = world.submit().job.job_id
    world.queues.lossy = False

    told = minutes(world, 3)

    assert told["nudged_background"] == 1
    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_provider_job_whose_webhook_is_late_is_asked_about():
    """The poll is the safety net of the webhook."""
    world = World()
    job_id = world.submit("summary").job.job_id
    world.pump()
    world.provider.finish("resp_1")

    told = minutes(world, 5)

    assert told["nudged_completion"] >= 1
    assert (world.job(job_id).status, len(world.provider.calls)) == (Status.SUCCEEDED, 1)


def test_effects_that_are_still_owed_are_delivered():
    """The job settled and the process died before anybody was told."""
    world = World()
    job_id = world.submit().job.job_id
    world.queues.lossy = True
    world.worker(job_id)
    world.queues.lossy = False
    assert world.job(job_id).owed != {}

    told = minutes(world, 3)

    assert told["nudged_effects"] == 1
    assert world.job(job_id).owed == {}
    assert len(world.bus.events) == 1


def test_a_delivery_that_was_recorded_and_not_processed_is_nudged():
    """The intake died between its two calls."""
    world = World()
    job_id = world.submit("summary").job.job_id
    world.pump()
    world.provider.finish("resp_1")
    world.queues.lossy = True
    deliver(world, completed("resp_1"))
    world.queues.lossy = False

    told = minutes(world, 3)

    assert told["nudged_delivery"] >= 1
    assert world.job(job_id).status is Status.SUCCEEDED


@pytest.mark.parametrize(
    ("workflow", "lossy", "reason"),
    [
        ("sync", True, Reason.MAX_QUEUE_AGE_EXCEEDED),
        ("guarded", False, Reason.REVIEW_EXPIRED),
        ("summary", False, Reason.PROVIDER_DEADLINE_EXCEEDED),
    ],
)
def test_every_age_limit_ends_what_is_too_old(workflow, lossy, reason):
    """A queue's age, a review's, a provider's deadline: each ends in a dead letter with its own reason."""
    world = World()
    job_id = world.submit(workflow).job.job_id
    if lossy:
        world.queues.sent = {queue: [] for queue in world.queues.sent}
        world.clock.advance(1_000_000)
    else:
        world.pump()

    minutes(world, 3 if lossy else 70)
    if workflow == "guarded":
        world.clock.advance(8 * 24 * 3_600_000)
        minutes(world, 3)

    assert (world.job(job_id).status, world.job(job_id).reason) == (Status.DEAD_LETTER, reason)


def test_a_scan_is_bounded_and_the_next_goes_on_where_it_stopped(monkeypatch):
    """Two hundred lost messages, some fifty a run: all are found, none twice."""
    monkeypatch.setattr("breakwater.usecases.sweep.PAGE", 2)
    world = World()
    world.queues.lossy = True
    for number in range(200):
        world.submit(key=f"k-{number}")
    world.queues.lossy = False
    world.clock.advance(3 * MINUTE)

    nudged = []
    for _ in range(8):
        done = sweep(world.deps, lambda: 50_000, most=50)
        nudged.append(done["nudged_background"])

    assert sum(nudged) == 200
    assert max(nudged) < 100
    assert len(set(whys(world))) == 200


def test_a_scan_that_runs_out_of_time_says_so():
    """The next minute goes on."""
    world = World()
    world.queues.lossy = True
    world.submit()
    world.clock.advance(3 * MINUTE)

    assert dict(sweep(world.deps, lambda: 1_000)) == {"out_of_time": 1}


def test_what_was_repaired_is_a_metric_by_kind():
    """So that a trend shows which crash path is in use."""
    told = note_metrics("swept", {"nudged_completion": 3, "nudged_delivery": 1})

    assert ("Swept_nudged_completion", 3.0, "Count") in told
    assert ("Swept_nudged_delivery", 1.0, "Count") in told


def test_an_item_that_fails_does_not_stop_the_scan():
    """The others are looked at all the same."""
    world = World()
    world.queues.lossy = True
    first, second = (world.submit(key=f"k-{n}").job.job_id for n in range(2))
    world.queues.lossy = False
    world.clock.advance(3 * MINUTE)
    failing = iter([True])

    def fail(name, when):
        if (name, when) == ("commit", "before") and next(failing, False):
            raise Unavailable

    world.store._hook = fail

    done = dict(world.sweep())

    assert (done["unavailable"], done["nudged_background"]) == (1, 1)
    assert {first, second} > set(whys(world))
