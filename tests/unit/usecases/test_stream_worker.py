"""A worker reads a stream under its lease: the boundary, the pace, the ends, and who goes on."""

from __future__ import annotations

import itertools

import pytest

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.job import Execution
from breakwater.domain.records import execution_of
from breakwater.domain.results import Completed, Result, Usage
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import Lane, Reason, Status
from breakwater.domain.stream_events import (
    Done,
    EffectBegun,
    Failed,
    Opened,
    Progress,
    Resume,
    TextDelta,
    ToolCallDelta,
    UsageSeen,
)
from breakwater.usecases.conclude import conclude
from breakwater.usecases.step import Told, step
from tests.fakes.outside import answer
from tests.support.reader import reader_of
from tests.support.streams import numbered, stream_world


def failed(error_class=ErrorClass.STREAM_INCOMPLETE, *, told=False, **more):
    """A stream that fails."""
    return Failed(signal=Signal(error_class=error_class, http_status=200, rule="scripted", **more), told=told)


def texts(*pieces):
    """Pieces of text."""
    return [TextDelta(text=piece) for piece in pieces]


def started(world, workflow="chat", **more):
    """A streamed job, admitted."""
    return world.submit(workflow, stream=True, **more).job.job_id


def logged(world, job_id):
    """What stands in the segments, in order, seals left out."""
    children = world.store.children(job_id, "SEG#")
    return [child.body for child in children if not child.data.get("sealed")]


# --- a whole answer ----------------------------------------------------------------------------------------------


def test_an_answer_is_streamed_and_stored():
    """Pieces are visible as they come, the result is whole, and one call was made."""
    world = stream_world()
    world.provider.streams = [[*texts("Hel", "lo"), Done(result=answer("Hello"))]]
    job_id = started(world)

    world.settle()

    job = world.job(job_id)
    assert (job.status, job.attempt, job.finish_reason) == (Status.SUCCEEDED, 1, "stop")
    assert (job.partial_output_committed, job.stream_epoch) == (True, 1)
    assert (job.usage_units, job.cost_micros) == (120, 300)
    assert logged(world, job_id) == ['[{"text":"Hel"}]', '[{"text":"lo"}]']
    assert len(world.provider.streamed) == 1
    reader = reader_of(world, job_id).read_all()
    assert (reader.text, reader.end[0], reader.end[1]["complete"]) == ("Hello", "done", True)


def test_a_streamed_job_starts_where_people_wait():
    """In interactive_admission, with the client's own deadline."""
    world = stream_world()

    job = world.job(started(world))

    assert job.lane is Lane.INTERACTIVE_ADMISSION
    assert job.deadline_at is not None


def test_a_route_that_cannot_stream_answers_in_one_piece():
    """The whole answer is submitted for, and readers get it from the result."""
    world = stream_world()
    job_id = started(world, "polled")

    world.worker(job_id)
    world.provider.finish("resp_1")
    world.settle()

    assert not world.provider.streamed
    reader = reader_of(world, job_id).read_all()
    assert (reader.text, reader.end[0]) == ("answer of resp_1", "done")


def test_what_the_last_event_adds_is_told_before_the_end():
    """A terminal event that carries more than the pieces did loses nothing for the reader."""
    world = stream_world()
    call = {"id": "c", "name": "look", "arguments": '{"n":1}'}
    whole = Result(text="Hello", tool_calls=(call,), usage=Usage(input_tokens=1, output_tokens=2))
    world.provider.streams = [[*texts("He"), Done(result=whole)]]
    job_id = started(world)

    world.settle()

    reader = reader_of(world, job_id).read_all()
    assert (reader.text, reader.calls) == ("Hello", {0: '{"n":1}'})


def test_an_answer_that_is_another_than_was_shown_is_no_success():
    """Nothing is spliced: the shown part stands, the job ends under the boundary rule."""
    world = stream_world()
    world.provider.streams = [[*texts("Hello"), Done(result=answer("Goodbye"))]]
    job_id = started(world)

    world.settle()

    job = world.job(job_id)
    assert (job.status, job.reason) == (Status.DEAD_LETTER, Reason.PARTIAL_OUTPUT_COMMITTED)
    assert reader_of(world, job_id).read_all().text == "Hello"


# --- the boundary ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first", [TextDelta(text="H"), ToolCallDelta(index=0, id="c", name="look"), EffectBegun(kind="mcp_call")]
)
def test_the_boundary_stands_before_anybody_can_see_anything(first):
    """Text, calls of tools and tools at the provider count; META flips after the segment and before the next event."""
    world = stream_world()
    seen = []

    def look():
        job = world.job(job_id)
        seen.append((job.partial_output_committed, len(logged(world, job_id)), job.status))

    world.provider.streams = [[look, Progress(), look, first, look, failed()]]
    job_id = started(world)

    world.worker(job_id)

    assert seen == [(False, 0, "processing"), (False, 0, "processing"), (True, 1, "processing")]
    assert world.job(job_id).reason is Reason.PARTIAL_OUTPUT_COMMITTED


def test_a_segment_whose_boundary_was_not_written_is_seen_by_nobody():
    """A crash between the two leaves a record that nothing names; the next attempt is shown alone."""
    world = stream_world()
    writes = []

    def hook(name, when):
        if (name, when) == ("put_child", "after") and any(sk.startswith("SEG#") for _, sk in world.store.items):
            writes.append(name)
            if len(writes) == 1:
                raise RuntimeError("the process dies")

    world.store._hook = hook
    world.provider.streams = [[*texts("Lost"), 60_000], [*texts("Found"), Done(result=answer("Found"))]]
    job_id = started(world)
    with pytest.raises(RuntimeError):
        world.worker(job_id)

    assert not world.job(job_id).partial_output_committed
    assert reader_of(world, job_id).connect()["body"].endswith(": nothing new yet\n\n")
    world.clock.advance(70_000)
    world.sweep()
    world.settle()
    # A minute is more than a person waits: the chat ends, and nothing of the first try is ever shown.
    reader = reader_of(world, job_id).read_all()
    assert reader.text in ("", "Found")


@pytest.mark.parametrize("workflow", ["chat", "chat_fallback"])
def test_after_the_first_piece_nothing_is_sent_again(workflow):
    """PR-04 b and c: no retry and no other route; the partial is kept, and never a success."""
    world = stream_world()
    world.provider.streams = [[*texts("Hello "), failed(ErrorClass.OVERLOAD, provider_error_type="overloaded_error")]]
    job_id = started(world, workflow)

    world.settle()

    job = world.job(job_id)
    assert (job.status, job.reason, job.result_ref is not None) == (
        Status.DEAD_LETTER,
        Reason.PARTIAL_OUTPUT_COMMITTED,
        True,
    )
    assert job.last_error_type == "overloaded_error"
    assert len(world.provider.streamed) == 1
    reader = reader_of(world, job_id).read_all()
    assert (reader.text, reader.end[0], reader.end[1]["partial"]) == ("Hello ", "failed", True)
    assert reader.end[1]["request_id"] == "request-1"


def test_an_error_before_the_first_piece_is_tried_again_in_its_own_lane():
    """PR-04 a: overloaded inside a 200 is a 529, retried though no fallback is set; stream_recovery takes it."""
    world = stream_world()
    world.provider.streams = [[failed(ErrorClass.OVERLOAD)], [*texts("Hello"), Done(result=answer("Hello"))]]
    job_id = started(world)

    world.worker(job_id)
    job = world.job(job_id)
    assert (job.status, job.lane, job.partial_output_committed) == (Status.FAILED, Lane.STREAM_RECOVERY, False)
    world.clock.advance(1_000)
    world.pump()

    assert world.job(job_id).status is Status.SUCCEEDED
    assert reader_of(world, job_id).read_all().text == "Hello"


def test_a_fallback_before_the_first_piece_is_the_whole_answer():
    """PR-04 c, in time: what is stored and shown is the fallback's answer, never a mixture."""
    world = stream_world()
    bad = [failed(ErrorClass.OVERLOAD)]
    world.provider.streams = [bad, bad, [*texts("Hello world"), Done(result=answer("Hello world"))]]
    job_id = started(world, "chat_fallback")

    for _ in range(6):
        world.pump()
        world.clock.advance(2_000)

    job = world.job(job_id)
    assert (job.status, job.route_key) == (Status.SUCCEEDED, "other")
    assert reader_of(world, job_id).read_all().text == "Hello world"


def test_what_may_not_be_repeated_is_held_when_it_breaks_unseen():
    """A paid call whose outcome nobody knows waits for a person; the reader is told now."""
    world = stream_world()
    world.provider.streams = [[failed()]]
    job_id = started(world, "paid_chat")

    world.pump()

    assert world.job(job_id).lane is Lane.OWNER_REVIEW
    reader = reader_of(world, job_id).read_all()
    assert (reader.end[0], reader.end[1]["reason"]) == ("failed", "outcome_unknown")
    assert "person" in reader.end[1]["what_to_do"]


@pytest.mark.parametrize(
    ("error_class", "advice"),
    [
        (ErrorClass.TRUNCATED, "token limit"),
        (ErrorClass.CONTENT_REFUSED, "filter"),
        (ErrorClass.UNKNOWN, "nothing is sent again"),
    ],
)
def test_each_end_has_its_own_outcome_with_its_cost(error_class, advice):
    """PR-06: truncated, filtered and failed are told apart, cost what they cost, and none is a success."""
    world = stream_world()
    usage = Usage(input_tokens=10, output_tokens=16)
    partial = Result(text="Hel", finish_reason="length", usage=usage)
    signal = Signal(error_class=error_class, http_status=200, rule="scripted")
    world.provider.streams = [[*texts("Hel"), Failed(signal=signal, partial=partial, told=True)]]
    job_id = started(world)

    world.settle()

    job = world.job(job_id)
    assert (job.status, job.last_error_class) == (Status.DEAD_LETTER, error_class.value)
    assert (job.usage_units, job.cost_micros) == (26, 170)
    end = reader_of(world, job_id).read_all().end
    assert end[0] == "failed"
    assert advice in end[1]["what_to_do"]


def test_a_cut_answer_counts_where_the_policy_takes_it():
    """`accept_truncated`: the token limit is a success with its own finish reason."""
    world = stream_world()
    partial = Result(text="Hel", finish_reason="length", usage=Usage(input_tokens=1, output_tokens=2))
    signal = Signal(error_class=ErrorClass.TRUNCATED, http_status=200, rule="scripted")
    world.provider.streams = [[*texts("Hel"), Failed(signal=signal, partial=partial, told=True)]]
    job_id = started(world, "cut_is_fine")

    world.settle()

    assert (world.job(job_id).status, world.job(job_id).finish_reason) == (Status.SUCCEEDED, "length")
    assert reader_of(world, job_id).read_all().end[0] == "done"


def test_a_cut_answer_costs_an_estimate_where_nobody_counted():
    """Usage in every case: what was shown is counted by its length, and marked as a guess."""
    world = stream_world()
    world.provider.streams = [[*texts("x" * 400), failed()]]
    job_id = started(world, text="y" * 40)

    world.settle()

    job = world.job(job_id)
    assert job.usage_units >= 100
    (record,) = world.store.children(job_id, "EXEC#")
    assert record.data["execution"]["usage"]["output_tokens"] == 100


# --- the pace ----------------------------------------------------------------------------------------------------


def test_writes_keep_their_pace():
    """The first piece at once, then at most one write per 250 ms and per 4 KB, however small the pieces."""
    world = stream_world()
    pieces = [f"{n:04d} " for n in range(1_000)]
    line = [part for piece in pieces for part in (TextDelta(text=piece), 10)]
    world.provider.streams = [[*line, Done(result=answer("".join(pieces)))]]
    job_id = started(world)

    world.worker(job_id)

    written = logged(world, job_id)
    assert written[0] == '[{"text":"0000 "}]'
    assert len(written) <= 2 + 10_000 // 250
    assert reader_of(world, job_id).read_all().text == "".join(pieces)


def test_a_fast_stream_is_cut_by_size():
    """Without any pause the 4 KB decide, so no segment is large and readers see progress."""
    world = stream_world()
    pieces = ["x" * 100] * 500
    world.provider.streams = [[*texts(*pieces), Done(result=answer("".join(pieces)))]]
    job_id = started(world)

    world.worker(job_id)

    written = logged(world, job_id)
    assert len(written) <= 2 + 50_000 // 4_096
    assert max(len(one) for one in written) < 4_096 + 200


def test_a_pause_of_the_provider_does_not_hold_back_what_came():
    """What waits goes out after 250 ms though nothing new comes."""
    world = stream_world()
    seen = []
    world.provider.streams = [
        [
            *texts("a", "b"),
            249,
            lambda: seen.append(len(logged(world, job_id))),
            5,
            lambda: seen.append(len(logged(world, job_id))),
            Done(result=answer("ab")),
        ]
    ]
    job_id = started(world)

    world.worker(job_id)

    assert seen[0] == 1
    assert len(logged(world, job_id)) == 2


def test_a_table_that_fails_for_a_moment_loses_nothing():
    """The piece is put again, unchanged, also when only the answer to the write was lost."""
    for when in ("before", "after"):
        world = stream_world()
        troubles = itertools.chain([1, 1], itertools.repeat(0))

        def hook(name, at, when=when, troubles=troubles, world=world):
            begun = any(sk.startswith("SEG#") for _, sk in world.store.items) or at == "before"
            if name == "put_child" and at == when and begun and next(troubles):
                raise StoreUnavailable

        world.provider.streams = [[*texts("He"), 600, *texts("llo"), 600, Done(result=answer("Hello"))]]
        job_id = started(world)
        world.store._hook = hook

        world.worker(job_id)

        assert world.job(job_id).status is Status.SUCCEEDED
        assert reader_of(world, job_id).read_all().text == "Hello"


# --- cancel, silence, time ---------------------------------------------------------------------------------------


def test_a_cancel_stops_the_stream_within_a_second():
    """CA-01: the holder notices, hangs up, and the record says how far it got; a late finish changes nothing."""
    world = stream_world()
    stopped = []
    world.provider.streams = [
        [
            *texts("Hel"),
            300,
            lambda: stopped.append(world.clock.now()),
            lambda: world.cancel(job_id),
            *texts("lo"),
            30_000,
        ]
    ]
    job_id = started(world)

    world.worker(job_id)

    assert world.clock.now() - stopped[0] <= 1_000
    job = world.job(job_id)
    assert (job.status, job.reason) == (Status.CANCELLED, Reason.CANCELLED_BY_USER)
    assert job.usage_units > 0
    reader = reader_of(world, job_id).read_all()
    assert (reader.text, reader.end[0], reader.end[1]["characters"]) == ("Hello", "cancelled", 5)


def test_a_cancel_wins_over_an_end_that_comes_after_it():
    """CA-01, first race: accepted, then the worker finishes; the result is evidence, the job is cancelled."""
    world = stream_world()
    world.provider.streams = [[*texts("Hel"), lambda: world.cancel(job_id), Done(result=answer("Hello"))]]
    job_id = started(world)

    world.settle()

    assert world.job(job_id).status is Status.CANCELLED
    assert world.job(job_id).usage_units == 120
    assert reader_of(world, job_id).read_all().end[0] == "cancelled"


def test_a_cancel_before_the_first_piece_shows_nothing():
    """The boundary is not crossed for an answer that nobody wants any more."""
    world = stream_world()
    world.provider.streams = [[lambda: world.cancel(job_id), *texts("Hel"), 30_000]]
    job_id = started(world)

    world.worker(job_id)

    job = world.job(job_id)
    assert (job.status, job.partial_output_committed) == (Status.CANCELLED, False)
    assert reader_of(world, job_id).read_all().text == ""


def test_silence_before_the_first_piece_leaves_time_for_another_try():
    """B102: half of what a person still waits; the second try answers in time."""
    world = stream_world()
    world.provider.streams = [[Progress()], [*texts("Hello"), Done(result=answer("Hello"))]]
    job_id = started(world)
    begun = world.clock.now()

    world.worker(job_id)
    assert world.job(job_id).lane is Lane.STREAM_RECOVERY
    assert world.clock.now() - begun <= 13_000
    world.clock.advance(1_000)
    world.pump()

    assert world.job(job_id).status is Status.SUCCEEDED


def test_silence_after_the_first_piece_ends_the_answer():
    """B100, B103: a controlled end with the request id, and nothing else is tried."""
    world = stream_world()
    world.provider.streams = [[*texts("Hel")]]
    job_id = started(world)

    world.worker(job_id)

    job = world.job(job_id)
    assert (job.reason, job.last_error_class) == (Reason.PARTIAL_OUTPUT_COMMITTED, "stream_incomplete")
    assert reader_of(world, job_id).read_all().text == "Hel"


def ticking(world, ms):
    """The time that is left of a function that has `ms`."""
    end = world.clock.now() + ms
    return lambda: end - world.clock.now()


def test_a_function_near_its_end_stops_in_time():
    """Where nobody can go on, the part that was shown is kept, and the function is not killed over it."""
    world = stream_world()
    world.provider.streams = [[part for _ in range(100) for part in (TextDelta(text="x"), 1_000)]]
    job_id = started(world)
    left = ticking(world, 20_000)

    step(world.deps, job_id, left, Told())

    assert left() > 0
    assert world.job(job_id).reason is Reason.PARTIAL_OUTPUT_COMMITTED


# --- who goes on -------------------------------------------------------------------------------------------------


def test_a_holder_near_its_end_hands_over():
    """The next one resumes behind the last number, in the same attempt, and the reader notices nothing."""
    world = stream_world()
    first = [Opened(provider_job_id="resp_1", sequence=0), TextDelta(text="Hel", sequence=1), 9_000]
    world.provider.streams = [first, [TextDelta(text="lo", sequence=2), Done(result=answer("Hello"))]]
    job_id = started(world, "told")

    step(world.deps, job_id, ticking(world, 10_000), Told())
    job = world.job(job_id)
    assert (job.status, job.locked_until, job.resume_at) == (Status.PROCESSING, None, world.clock.now())
    world.pump()

    job = world.job(job_id)
    assert (job.status, job.attempt, job.lease_epoch) == (Status.SUCCEEDED, 1, 2)
    assert world.provider.streamed[1][1] == Resume(provider_job_id="resp_1", after=1)
    reader = reader_of(world, job_id).read_all()
    assert (reader.text, reader.end[0]) == ("Hello", "done")


def test_a_cut_is_resumed_at_once_by_the_same_holder():
    """While there is time the holder itself goes on, behind the last event it saw, stored or not."""
    world = stream_world()
    world.provider.streams = [
        [*numbered("a", "b"), failed()],
        [TextDelta(text="c", sequence=3), Done(result=answer("abc"))],
    ]
    job_id = started(world, "told")

    world.worker(job_id)

    assert world.provider.streamed[1][1] == Resume(provider_job_id="resp_1", after=2)
    assert reader_of(world, job_id).read_all().text == "abc"
    assert world.job(job_id).lease_epoch == 1


def test_two_cuts_without_progress_hand_over():
    """A connection that gives nothing is left to the next holder, a moment later."""
    world = stream_world()
    world.provider.streams = [[*numbered("a"), failed()], [failed()], [Done(result=answer("ab"))]]
    job_id = started(world, "told")

    world.worker(job_id)
    assert world.job(job_id).resume_at == world.clock.now() + 1_000
    world.clock.advance(1_000)
    world.pump()

    assert world.job(job_id).status is Status.SUCCEEDED
    assert reader_of(world, job_id).read_all().text == "ab"


def crashed(world, line, job_id):
    """A worker that dies in mid-stream; afterwards its lease runs out."""

    def die():
        raise RuntimeError("the process dies")

    world.provider.streams = [[*line, die]]
    with pytest.raises(RuntimeError):
        world.worker(job_id)
    world.clock.advance(70_000)
    world.sweep()


def test_after_a_crash_the_next_holder_resumes():
    """What was stored is not told twice; what was read and not stored comes again, once."""
    world = stream_world()
    job_id = started(world, "told")
    crashed(world, numbered("a", "b", "c"), job_id)
    world.provider.streams = [
        lambda _call, resume: [*numbered("a", "b", "c", "d", start=resume.after), Done(result=answer("abcd"))]
    ]

    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED
    reader = reader_of(world, job_id).read_all()
    assert (reader.text, reader.end[0]) == ("abcd", "done")


def test_after_a_crash_nobody_can_go_on_with_another_stream():
    """It ends under the boundary rule, with what was shown as its partial and an estimate of its cost."""
    world = stream_world()
    job_id = started(world)
    crashed(world, texts("Hel"), job_id)

    world.settle()

    job = world.job(job_id)
    assert (job.status, job.reason) == (Status.DEAD_LETTER, Reason.PARTIAL_OUTPUT_COMMITTED)
    assert job.usage_units > 0
    assert len(world.provider.streamed) == 1
    assert reader_of(world, job_id).read_all().text == "Hel"


def test_a_slow_holder_that_was_taken_for_dead_adds_nothing():
    """The seal stands where its next piece would: two holders never both tell the same part."""
    world = stream_world()

    def overtaken():
        world.clock.advance(70_000)
        world.sweep()
        world.provider.streams = [
            lambda _call, resume: [*numbered("a", "b", "c", start=resume.after), Done(result=answer("abc"))]
        ]
        world.pump()

    line = [*numbered("a"), overtaken, TextDelta(text="b", sequence=2), 400, TextDelta(text="c", sequence=3), 400]
    world.provider.streams = [line]
    job_id = started(world, "told")

    world.worker(job_id)
    world.settle()

    reader = reader_of(world, job_id).read_all()
    assert (reader.text, reader.end[0]) == ("abc", "done")
    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_poll_may_settle_what_nobody_streams():
    """The reader gets what is left from the stored result, in the same stream."""
    world = stream_world()
    job_id = started(world, "told")
    crashed(world, numbered("Hel"), job_id)
    assert world.complete(job_id) == "handed_over"
    done = Completed(result=answer("Hello there", provider_job_id="resp_1"))
    world.provider.jobs["resp_1"] = {"job_id": job_id, "execution_id": "x", "outcome": done}
    reader = reader_of(world, job_id)
    reader.connect()
    world.clock.advance(40_000)

    assert world.complete(job_id) == "settled_by_poll"

    assert reader.text == "Hel"
    reader.read_all()
    assert (reader.text, reader.end[0]) == ("Hello there", "done")


def test_a_late_result_of_an_earlier_attempt_does_not_replace_what_is_shown():
    """Part of one answer was seen, so another paid one is only in the books."""
    world = stream_world()
    earlier = [Opened(provider_job_id="resp_1", sequence=0), failed(ErrorClass.SERVER_FAULT, told=True)]
    late = []

    def arrives():
        (record,) = world.store.children(job_id, "EXEC#")
        found: Execution = execution_of(record.data["execution"])
        late.append(conclude(world.deps, world.job(job_id), found, Completed(result=answer("Other"))))

    world.provider.streams = [earlier, [*texts("Hel"), arrives, *texts("lo"), Done(result=answer("Hello"))]]
    job_id = started(world, "told")
    world.worker(job_id)
    world.clock.advance(1_000)

    world.worker(job_id)
    world.settle()

    assert late[0].event == "LateCost"
    assert world.job(job_id).status is Status.SUCCEEDED
    assert reader_of(world, job_id).read_all().text == "Hello"


def test_a_cancel_while_nobody_holds_it_is_owed_to_the_provider():
    """Between two holders the job stops at once, and the provider is told."""
    world = stream_world()
    job_id = started(world, "told")
    world.provider.jobs["resp_1"] = {"job_id": job_id, "execution_id": "x", "outcome": None}
    crashed(world, numbered("Hel"), job_id)
    world.complete(job_id)

    world.cancel(job_id)
    world.settle()

    assert world.job(job_id).status is Status.CANCELLED
    assert world.provider.cancelled == ["resp_1"]
    assert reader_of(world, job_id).read_all().end[0] == "cancelled"


def test_usage_of_a_cut_stream_is_what_the_provider_counted():
    """Where it was counted on the way, no guess takes its place."""
    world = stream_world()
    usage = UsageSeen(usage=Usage(input_tokens=50, output_tokens=7))
    world.provider.streams = [[*texts("Hello"), usage, failed()]]
    job_id = started(world)

    world.settle()

    assert world.job(job_id).usage_units == 57


def test_a_whole_answer_that_nobody_counted_costs_an_estimate():
    """Usage comes behind the model's last word and may be cut off; the answer is whole all the same."""
    world = stream_world()
    world.provider.streams = [[*texts("x" * 400), Done(result=Result(text="x" * 400))]]
    job_id = started(world)

    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED
    assert world.job(job_id).usage_units >= 100
