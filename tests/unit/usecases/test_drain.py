"""What a queue's own dead-letter queue means: handlers crashed. Counted, bounded, and nothing disappears."""

from __future__ import annotations

import json

import pytest

from breakwater.domain.errors import QueueUnavailable, StoreUnavailable
from breakwater.domain.obligations import Queue
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Reason, Status
from breakwater.usecases.drain import drain
from tests.crash.checks import children, everything
from tests.crash.stage import Stage
from tests.crash.tap import KillProcess
from tests.fakes.outside import refusal
from tests.support.world import World


def crashed(world, queue, item_id, kind="job"):
    """One message that its queue gave up on."""
    world.queues.dlq[queue][f"r-{len(world.queues.dlq[queue])}"] = json.dumps({"kind": kind, "id": item_id})


@pytest.mark.parametrize(
    "body",
    ["{not json", "null", '{"job_id": 12345}', "", '{"kind": "job", "id": 5}', '{"kind": "job", "id": "job_nobody"}'],
)
def test_a_message_that_belongs_to_nobody_is_kept_for_people(body):
    """Its digest and origin, never its content; and no ghost row."""
    world = World()
    world.queues.dlq[Queue.BACKGROUND]["r"] = body

    assert world.drain() == {"kept_for_people": 1}

    reference = world.queues.dead[0]
    assert (reference["kind"], reference["queue"], reference["body_bytes"]) == ("unreadable", "background", len(body))
    assert len(reference["body_sha256"]) == 64
    assert body == "" or body not in json.dumps(reference)
    assert world.queues.dlq[Queue.BACKGROUND] == {}
    assert world.store.items == {}


def test_one_crash_is_counted_and_the_job_is_nudged_again():
    """A bad minute is no dead letter."""
    world = World()
    job_id = world.submit().job.job_id
    crashed(world, Queue.BACKGROUND, job_id)

    assert world.drain() == {"counted": 1}
    assert world.job(job_id).crashes == 1
    world.settle()

    assert (world.job(job_id).status, world.job(job_id).crashes) == (Status.SUCCEEDED, 0)


def test_three_crashes_without_a_move_end_in_a_dead_letter():
    """A poison job stops circling, with nothing spent and its history kept."""
    world = World()
    job_id = world.submit().job.job_id
    for _ in range(3):
        crashed(world, Queue.BACKGROUND, job_id)
        world.drain()

    job = world.job(job_id)
    assert (job.status, job.reason, job.attempt) == (Status.DEAD_LETTER, Reason.CRASHED_REPEATEDLY, 0)
    world.settle()
    assert world.queues.dead[0]["reason"] == "crashed_repeatedly"
    assert world.provider.calls == []
    everything(world)


def test_a_move_in_between_starts_the_count_anew():
    """Two crashes, one transition, two crashes: it lives."""
    world = World()
    world.provider.script = [refusal(ErrorClass.OVERLOAD, 503)]
    job_id = world.submit().job.job_id
    for _ in range(2):
        crashed(world, Queue.BACKGROUND, job_id)
        world.drain()
    world.worker(job_id)
    assert world.job(job_id).crashes == 0
    for _ in range(2):
        crashed(world, Queue.BACKGROUND, job_id)
        world.drain()

    world.settle()
    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_job_that_poisons_its_worker_ends_by_itself():
    """Every handler call crashes: redelivered five times, drained, three times over; then a dead letter."""
    stage = Stage()
    job_id = stage.ask_for("sync")
    job = stage.job(job_id)
    stage.store.commit(job, job.with_(expires_at=None))  # its age shall not be what ends it

    def poison():
        raise RuntimeError

    stage.control.switches = poison
    stage.run()

    job = stage.job(job_id)
    assert (job.status, job.reason, job.attempt) == (Status.DEAD_LETTER, Reason.CRASHED_REPEATEDLY, 0)
    assert 15 <= [name for name, _ in stage.log.notes].count("nudge_crashed") <= 30
    everything(stage)


def test_a_job_whose_call_kills_its_worker_is_bounded_by_its_attempts():
    """Each death is an attempt with an unknown outcome; the third is the last."""
    stage = Stage()

    def dies(_call):
        raise KillProcess("out of memory")

    stage.provider.script = [dies] * 10
    job_id = stage.ask_for("sync")
    stage.run()

    job = stage.job(job_id)
    assert (job.status, job.reason, job.attempt) == (Status.DEAD_LETTER, Reason.MAX_ATTEMPTS_EXHAUSTED, 3)
    assert len(stage.provider.calls) == 3
    everything(stage)


def test_a_delivery_of_effects_that_crashes_is_given_up_and_the_job_stands():
    """A success does not become a dead letter because nobody could be told."""
    stage = Stage()

    def poison(*_args):
        raise RuntimeError

    stage.bus.put = poison
    job_id = stage.ask_for("sync")
    stage.run()

    job = stage.job(job_id)
    assert (job.status, job.owed, job.due_at) == (Status.SUCCEEDED, {}, None)
    assert children(stage, job, "EFFECT#bus_event")[0].data["given_up"] == "crashed"
    assert "effect_given_up" in [name for name, _ in stage.log.notes]


def test_a_provider_job_of_a_poison_job_is_cancelled():
    """Nobody will ever wait for it."""
    world = World()
    job_id = world.submit("summary").job.job_id
    world.pump()
    for _ in range(3):
        crashed(world, Queue.COMPLETION, job_id)
        world.drain()
    assert world.job(job_id).reason is Reason.CRASHED_REPEATEDLY

    world.settle()

    assert world.provider.cancelled == ["resp_1"]
    assert children(world, world.job(job_id), "EXEC#")[0].data["execution"]["outcome"] == "crashed"
    everything(world)


def test_a_crash_of_something_the_job_no_longer_has_to_do_counts_nothing():
    """An old message about work that is done."""
    world = World()
    job_id = world.submit().job.job_id
    world.settle()
    crashed(world, Queue.BACKGROUND, job_id)
    before = world.job(job_id)

    assert world.drain() == {"moved_on": 1}
    assert world.job(job_id) == before


@pytest.mark.parametrize("kind", ["delivery", "route", "batch"])
def test_other_kinds_come_back_by_their_own_due_at(kind):
    """Their items remember; the message need not."""
    world = World()
    crashed(world, Queue.COMPLETION, "openai#wh-1", kind)

    assert world.drain() == {f"{kind}_left_to_sweep": 1}
    assert world.queues.dead == []


def test_a_drain_is_bounded_and_goes_on_where_it_stopped():
    """A flood of garbage takes several minutes, not one function's life."""
    world = World()
    for n in range(7):
        world.queues.dlq[Queue.EFFECTS][f"r-{n}"] = "garbage"

    counts = [sum(drain(world.deps, 3).values()) for _ in range(4)]

    assert counts == [3, 3, 1, 0]
    assert len(world.queues.dead) == 7


def test_a_message_about_a_job_that_does_not_read_is_kept_for_people():
    """Nobody can count on it; somebody has to look."""
    world = World()
    job_id = world.submit().job.job_id
    world.store.items[f"JOB#{job_id}", "META"]["status"] = {"S": "nonsense"}
    crashed(world, Queue.BACKGROUND, job_id)

    assert world.drain() == {"kept_for_people": 1}


def test_a_queue_that_does_not_answer_keeps_no_other_from_being_drained():
    """Nor the sweep that runs after it."""
    world = World()
    world.queues.dlq[Queue.EFFECTS]["r"] = "garbage"
    real = world.queues.drain

    def down(queue, limit):
        if queue is Queue.INTERACTIVE:
            raise QueueUnavailable
        return real(queue, limit)

    world.queues.drain = down

    assert world.drain() == {"unavailable": 1, "kept_for_people": 1}


def test_a_count_that_cant_be_written_leaves_the_message_where_it_is():
    """Counted first, deleted then."""
    world = World()
    job_id = world.submit().job.job_id
    crashed(world, Queue.BACKGROUND, job_id)

    def down(*_args):
        raise StoreUnavailable

    commit, world.store.commit = world.store.commit, down
    assert world.drain() == {"unavailable": 1}
    world.store.commit = commit

    assert len(world.queues.dlq[Queue.BACKGROUND]) == 1
    assert world.drain() == {"counted": 1}


def test_a_job_that_can_not_be_counted_keeps_nobody_from_the_sweep():
    """Whatever it raises: its message stays for the next minute, the others are counted."""
    world = World()
    poisoned, other = world.submit(key="a").job.job_id, world.submit(key="b").job.job_id
    crashed(world, Queue.BACKGROUND, poisoned)
    crashed(world, Queue.BACKGROUND, other)
    read = world.store.get

    def get(job_id):
        if job_id == poisoned:
            raise RuntimeError
        return read(job_id)

    world.store.get = get

    assert world.drain() == {"failed": 1, "counted": 1}
    assert [json.loads(body)["id"] for body in world.queues.dlq[Queue.BACKGROUND].values()] == [poisoned]
