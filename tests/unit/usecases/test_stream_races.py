"""Two who think they hold one stream, and tables that fail at the worst moment: one log, one answer."""

from __future__ import annotations

import itertools

import pytest

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.results import Completed
from breakwater.domain.segments import Segment
from breakwater.domain.states import Reason, Status
from breakwater.domain.stream_events import Done, Opened, Progress, TextDelta
from breakwater.ports import Guard
from breakwater.usecases import stream_log
from breakwater.usecases.lease import LeaseKeeper
from breakwater.usecases.read import with_result
from breakwater.usecases.stream_handover import MOST_HOLDERS, hand_over
from breakwater.usecases.stream_worker import resume
from tests.fakes.outside import answer
from tests.support.builders import NOW, make_execution, make_job
from tests.support.reader import reader_of
from tests.support.streams import numbered, stream_world

FULL = lambda: 60_000  # noqa: E731 - the time that is left, always enough


def started(world, workflow="told"):
    """A streamed job, admitted."""
    return world.submit(workflow, stream=True).job.job_id


def let_the_lease_run_out(world):
    """As if the holder had been away for more than a minute."""
    world.clock.advance(70_000)
    world.sweep()


def handed_over(world, pieces=("a", "b")):
    """A job whose first holder died after these pieces; nobody goes on yet."""

    def die():
        raise RuntimeError("the process dies")

    world.provider.streams = [[part for event in numbered(*pieces) for part in (event, 300)] + [die]]
    job_id = started(world)
    with pytest.raises(RuntimeError):
        world.worker(job_id)
    let_the_lease_run_out(world)
    assert world.complete(job_id) == "handed_over"
    return job_id


# --- the old holder ----------------------------------------------------------------------------------------------


def test_a_holder_without_a_name_that_was_taken_for_dead_only_brings_its_cost():
    """The stream is another's, or nobody's, by then; what it read is in the books, once."""
    world = stream_world()

    def overtaken():
        let_the_lease_run_out(world)
        world.pump()

    world.provider.streams = [[TextDelta(text="Hel"), overtaken, Progress(), 1_500, TextDelta(text="lo"), 300]]
    job_id = started(world, "chat")

    world.worker(job_id)
    world.settle()

    job = world.job(job_id)
    assert (job.status, job.reason) == (Status.DEAD_LETTER, Reason.PARTIAL_OUTPUT_COMMITTED)
    reader = reader_of(world, job_id).read_all()
    assert (reader.text, with_result(world.deps, job)["partial_result"]["text"]) == ("Hel", "Hel")
    assert len(world.store.lines) == 1


def test_a_holder_that_lost_its_lease_says_nothing_more(monkeypatch):
    """The keeper of the lease knows it first; whoever takes over goes on."""
    world = stream_world()
    keepers = []
    entered = LeaseKeeper.__enter__
    monkeypatch.setattr(LeaseKeeper, "__enter__", lambda self: (keepers.append(self), entered(self))[1])
    world.provider.streams = [[*numbered("a"), lambda: setattr(keepers[0], "lost", True), 200, TextDelta(text="b")]]
    job_id = started(world)

    world.worker(job_id)

    job = world.job(job_id)
    assert (job.status, job.lease_epoch, job.locked_until is None) == (Status.PROCESSING, 1, False)
    assert reader_of(world, job_id).connect()["body"].count("data:") == 1


def test_a_name_that_comes_too_late_is_not_written_over_another_holder():
    """Nothing of an old holder reaches META."""
    world = stream_world()

    def overtaken():
        let_the_lease_run_out(world)
        world.pump()

    late = [overtaken, Opened(provider_job_id="resp_late", sequence=0), TextDelta(text="x", sequence=1), 2_000]
    world.provider.streams = [late]
    job_id = started(world)

    world.worker(job_id)

    job = world.job(job_id)
    assert job.provider_job_id is None
    assert job.stream_epoch is None
    assert reader_of(world, job_id).connect()["body"].count("data:") <= 1


def test_a_finished_answer_of_a_holder_that_lost_still_settles():
    """It is the same response, paid once: whoever has it whole may say so, and readers get the rest of it."""
    world = stream_world()

    def overtaken():
        let_the_lease_run_out(world)
        world.complete(job_id)
        resumed = resume(world.deps, world.job(job_id), FULL, "m-2")
        assert resumed.outcome is None

    whole = answer("abc")
    world.provider.streams = [
        [*numbered("a"), overtaken, Done(result=whole)],
        [TextDelta(text="b", sequence=2)],
    ]
    job_id = started(world)

    world.worker(job_id)
    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED
    assert reader_of(world, job_id).read_all().text == "abc"


def test_a_first_piece_that_comes_too_late_is_seen_by_nobody():
    """The boundary is written under the epoch of the lease, so the log of a lost one never becomes visible."""
    world = stream_world()

    def overtaken():
        let_the_lease_run_out(world)
        world.pump()

    world.provider.streams = [[overtaken, TextDelta(text="late"), 300]]
    job_id = started(world, "chat")

    world.worker(job_id)
    world.settle()

    assert not world.job(job_id).partial_output_committed
    assert reader_of(world, job_id).read_all().text == ""


# --- the seal ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["goes on", "ends"])
def test_a_piece_that_comes_in_before_the_seal_counts(how):
    """The table decides: the seal stands behind it, and it is told once."""
    world = stream_world()
    job_id = handed_over(world)
    job = world.job(job_id)
    late = Segment(epoch=1, n=2, deltas=(TextDelta(text="c"),), sequence=3)
    once = itertools.chain([True], itertools.repeat(False))

    def hook(name, when):
        if (name, when) == ("put_child", "before") and next(once):
            stream_log.put(world.deps, job, late)

    world.store._hook = hook
    if how == "ends":
        stream_log.close(world.deps, job)
        log = stream_log.collected(world.deps, job)
        stream_log.close(world.deps, job)
    else:
        log = stream_log.take_over(world.deps, job, 2)

    assert (log.answer.text, log.sequence) == ("abc", 3)
    assert not stream_log.put(world.deps, job, Segment(epoch=1, n=3, deltas=(TextDelta(text="d"),)))


def test_a_later_holder_wins():
    """Who comes after the seal of a later one has lost, and tells nothing."""
    world = stream_world()
    job_id = handed_over(world)
    job = world.job(job_id)
    assert stream_log.take_over(world.deps, job, 5) is not None
    calls = len(world.provider.streamed)

    assert stream_log.take_over(world.deps, job, 2) is None
    assert resume(world.deps, job, FULL, None) is None
    assert len(world.provider.streamed) == calls


def test_a_closed_log_is_nobodys_to_take():
    """Where an answer ended for good, nobody goes on."""
    world = stream_world()
    job_id = handed_over(world)
    stream_log.close(world.deps, world.job(job_id))

    assert stream_log.take_over(world.deps, world.job(job_id), 2) is None


# --- who goes on -------------------------------------------------------------------------------------------------


def test_two_workers_that_want_to_go_on_are_one():
    """The claim is conditional on the item as read."""
    world = stream_world()
    job_id = handed_over(world)
    read = world.job(job_id)
    world.provider.streams = [[Done(result=answer("ab"))]] * 2

    assert resume(world.deps, read, FULL, None) is not None
    assert resume(world.deps, read, FULL, None) is None


def test_nobody_goes_on_without_input_or_key():
    """The poll stands behind it; without a key the next holder tries a moment later."""
    world = stream_world()
    job_id = handed_over(world)
    world.provider.keyless = True
    found = resume(world.deps, world.job(job_id), FULL, None)
    assert found.outcome is None
    assert world.job(job_id).resume_at > world.clock.now()

    job = world.job(job_id)
    del world.store.items[f"JOB#{job_id}", job.input_ref]
    world.clock.advance(10_000)
    assert world.worker(job_id) == "busy"


def test_a_hand_over_of_somebody_else_is_none():
    """Neither of another execution nor of a lease that was renewed meanwhile; after many only polls are left."""
    world = stream_world()
    execution = make_execution("job_h", provider_job_id="resp_1")
    job = make_job("processing", job_id="job_h", execution=execution, stream=True, created_at=NOW, polls=MOST_HOLDERS)
    world.store.create(job, NOW)
    job = world.job("job_h")

    assert hand_over(world.deps, job, make_execution("job_h", attempt=2)) is None
    assert hand_over(world.deps, job, execution, guard=Guard(epoch=1, locked_until=NOW + 1)) is None
    step = hand_over(world.deps, job, execution, guard=Guard(epoch=1, locked_until=job.locked_until))
    assert (step.job.resume_at, step.job.poll_at) == (None, world.clock.now() + 30_000)


# --- tables that fail --------------------------------------------------------------------------------------------


def failing(world, names, forever=False):
    """Make these calls fail once there is a segment; says how often they did."""
    failed = []

    def hook(name, when):
        begun = any(sk.startswith("SEG#") for _, sk in world.store.items)
        if when == "before" and name in names and begun and (forever or len(failed) < 3):
            failed.append(name)
            raise StoreUnavailable

    world.store._hook = hook
    return failed


def test_a_table_that_stays_away_ends_the_holder():
    """After five seconds it gives up: recovery decides, and nothing is told that is not stored."""
    world = stream_world()
    line = [part for n in range(30) for part in (TextDelta(text=f"{n} "), 400)]
    world.provider.streams = [line]
    job_id = started(world, "chat")
    failing(world, {"put_child"}, forever=True)

    with pytest.raises(StoreUnavailable):
        world.worker(job_id)

    assert reader_of(world, job_id).connect()["body"].count("data:") == 1


def test_what_the_table_did_not_take_at_the_end_comes_from_the_result():
    """The last pieces are in the result; readers get them from there."""
    world = stream_world()
    world.provider.streams = [
        [TextDelta(text="He"), 300, TextDelta(text="l"), 100, TextDelta(text="lo"), Done(result=answer("Hello"))]
    ]
    job_id = started(world, "chat")
    failed = failing(world, {"put_child"})

    world.worker(job_id)

    assert len(failed) == 3
    assert world.job(job_id).status is Status.SUCCEEDED
    reader = reader_of(world, job_id).read_all()
    assert (reader.text, reader.ids[-2]) == ("Hello", "1.rest.5")


def test_a_look_that_fails_is_no_reason_to_stop():
    """The next second looks again."""
    world = stream_world()
    world.provider.streams = [[TextDelta(text="He"), 5_000, TextDelta(text="llo"), Done(result=answer("Hello"))]]
    job_id = started(world, "chat")
    failed = failing(world, {"get"})

    world.worker(job_id)

    assert failed
    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_piece_that_no_item_can_hold_is_not_told():
    """It ends like any other break: what was told stands."""
    world = stream_world()
    world.provider.streams = [[TextDelta(text="Hi "), TextDelta(text="x" * 400_000), 300]]
    job_id = started(world, "chat")

    world.worker(job_id)

    job = world.job(job_id)
    assert (job.reason, job.status) == (Reason.PARTIAL_OUTPUT_COMMITTED, Status.DEAD_LETTER)
    assert reader_of(world, job_id).read_all().text == "Hi "


# --- records that are gone ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("gone", ["RESULT#", "blob", "EXEC#"])
def test_a_reader_is_told_the_end_though_records_are_gone(gone):
    """Retention removed something: no reader hangs on it."""
    world = stream_world()
    job_id = started(world, "polled")
    world.worker(job_id)
    world.provider.finish("resp_1", Completed(result=answer("x" * 20_000)))
    world.settle()
    for key in [key for key in world.store.items if key[1].startswith(("RESULT#", "EXEC#")) and gone != "blob"]:
        del world.store.items[key]
    if gone == "blob":
        world.payloads.kept.clear()

    reader = reader_of(world, job_id).read_all()

    assert (reader.text, reader.end[0]) == ("", "done")


def test_a_reader_torn_off_before_the_end_is_told_the_end_alone():
    """All of the stored result was told, so only the end is left."""
    world = stream_world()
    job_id = started(world, "polled")
    world.worker(job_id)
    world.provider.finish("resp_1")
    world.settle()
    reader = reader_of(world, job_id, tear=lambda body: body.split("id: 1.end")[0])
    reader.connect()
    reader.tear = lambda body: body

    reader.read_all()

    assert (reader.text, reader.end[0], reader.ids) == ("answer of resp_1", "done", ["1.rest.16", "1.end"])
