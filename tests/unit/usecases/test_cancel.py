"""A cancel and everything it can race with: exactly one winner, and everybody tells the same story."""

from __future__ import annotations

import itertools

import pytest

from breakwater.domain import events as ev
from breakwater.domain.errors import StaleVersion, TooLate
from breakwater.domain.machine import advance
from breakwater.domain.results import Completed, Found, Refused
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import Reason, Status
from breakwater.domain.timing import CLOCK_SKEW, LEASE
from breakwater.usecases.cancel import cancel
from breakwater.usecases.cancel_at_provider import cancel_owed
from breakwater.usecases.read import view
from tests.crash.checks import children, everything
from tests.crash.stage import Stage
from tests.fakes.outside import answer, refusal
from tests.support.world import World


def at_provider(workflow="summary"):
    """A job whose provider runs it as resp_1."""
    world = World()
    job_id = world.submit(workflow).job.job_id
    world.pump()
    return world, job_id


def stories(world, job_id):
    """What the store, the API and the bus say: one word."""
    job = world.job(job_id)
    told = {kind for _, kind, detail in world.bus.events if detail["job_id"] == job_id}
    assert told <= {f"job.{job.status.value}"}
    assert view(world.deps, job)["status"] == job.status.value
    return job.status


def test_a_cancel_before_the_nudge_calls_nobody():
    """Cancelled while queued, then the message is delivered."""
    world = World()
    job_id = world.submit().job.job_id

    after = world.cancel(job_id)
    world.settle()

    assert (after.status, after.reason, after.cancelled_by) == (Status.CANCELLED, Reason.CANCELLED_BY_USER, "acme")
    assert stories(world, job_id) is Status.CANCELLED
    assert world.provider.calls == []
    everything(world)


def test_a_second_cancel_gives_the_same_answer():
    """Repeating it is harmless, and says the same."""
    world = World()
    job_id = world.submit().job.job_id
    first = world.cancel(job_id)

    assert world.cancel(job_id) == first


@pytest.mark.parametrize("wait", [refusal(ErrorClass.OVERLOAD, 503, retry_after_ms=60_000)])
def test_a_waiting_job_is_cancelled_at_once(wait):
    """Nothing is called when its time comes."""
    world = World()
    world.provider.script = [wait]
    job_id = world.submit().job.job_id
    world.pump()

    world.cancel(job_id)
    world.settle()

    assert stories(world, job_id) is Status.CANCELLED
    assert len(world.provider.calls) == 1
    everything(world)


def test_work_under_a_lease_is_marked_and_stopped_by_its_holder():
    """Five milliseconds later the worker writes its result: cancelled, the cost recorded, the result evidence."""
    world = World()
    job_id = world.submit().job.job_id
    answers = []

    def cancelled_meanwhile(_call):
        answers.extend([world.cancel(job_id), world.cancel(job_id)])
        world.clock.advance(5)
        return Completed(result=answer())

    world.provider.script = [cancelled_meanwhile]
    world.worker(job_id)
    world.settle()

    assert [(one.status, one.reason) for one in answers] == [(Status.PROCESSING, Reason.CANCEL_REQUESTED)] * 2
    job = world.job(job_id)
    assert (job.status, job.result_ref, job.cost_micros) == (Status.CANCELLED, None, 300)
    assert stories(world, job_id) is Status.CANCELLED
    assert len(children(world, job, "RESULT#")) == 1
    everything(world)


@pytest.mark.parametrize(
    "outcome",
    [
        refusal(ErrorClass.OVERLOAD, 503),
        refusal(ErrorClass.CALLER_FAULT, 400),
        Refused(signal=Signal(error_class=ErrorClass.OUTCOME_UNKNOWN, rule="cut")),
    ],
)
def test_a_refusal_after_a_cancel_is_not_retried(outcome):
    """The mark is met at the holder's next write, whatever the provider said."""
    world = World()
    job_id = world.submit("paid").job.job_id
    world.provider.script = [lambda _call: (world.cancel(job_id), outcome)[1]]

    world.worker(job_id)
    world.settle()

    assert stories(world, job_id) is Status.CANCELLED
    assert len(world.provider.calls) == 1
    everything(world)


def test_work_the_provider_accepts_after_a_cancel_is_stopped_there():
    """One write takes the provider's id and carries the cancel out; then the provider is told."""
    world = World()
    job_id = world.submit("summary").job.job_id
    world.provider.script = [lambda call: (world.cancel(job_id), world.provider.accept(call))[1]]

    world.worker(job_id)

    assert world.job(job_id).status is Status.CANCELLED
    world.settle()
    assert world.provider.cancelled == ["resp_1"]
    assert stories(world, job_id) is Status.CANCELLED
    everything(world)


def test_a_cancel_reaches_the_providers_own_job_once():
    """At the provider, confirmed, recorded; the webhook that says so changes nothing."""
    world, job_id = at_provider()

    world.cancel(job_id)
    world.settle()
    world.webhook("resp_1")
    world.settle()

    assert world.provider.cancelled == ["resp_1"]
    assert stories(world, job_id) is Status.CANCELLED
    everything(world)


def test_a_cancel_that_the_provider_does_not_take_is_repeated():
    """Until it is confirmed; ever more slowly."""
    world, job_id = at_provider()
    world.provider.cancel_signal = Signal(error_class=ErrorClass.SERVER_FAULT, http_status=500, rule="x")
    world.cancel(job_id)
    for _ in range(6):
        world.clock.advance(60_000)
        world.sweep()
        world.pump()
    world.provider.cancel_signal = None
    world.settle()

    assert 3 <= len(world.provider.cancelled) <= 6
    everything(world)


def test_a_cancel_at_the_provider_is_given_up_one_day():
    """No path loops for ever, and the record says how it ended."""
    world, job_id = at_provider()
    world.provider.cancel_signal = Signal(error_class=ErrorClass.SERVER_FAULT, http_status=500, rule="x")
    world.cancel(job_id)

    world.settle(minutes=3_000)

    job = world.job(job_id)
    assert (job.owed, job.due_at) == ({}, None)
    assert [one.data["given_up"] for one in children(world, job, "EFFECT#provider_cancel")] == ["server_fault"]


def test_a_provider_that_was_faster_is_paid_and_changes_nothing():
    """The result after the cancel is evidence; its cost is in the books, once."""
    world, job_id = at_provider()
    world.cancel(job_id)
    world.provider.finish("resp_1")
    world.webhook("resp_1")
    world.webhook("resp_1")
    world.settle()

    job = world.job(job_id)
    assert (job.status, job.result_ref, job.cost_micros) == (Status.CANCELLED, None, 300)
    assert len(world.store.lines) == 1
    assert stories(world, job_id) is Status.CANCELLED
    everything(world)


def test_the_cost_of_a_cancelled_job_is_found_without_any_webhook():
    """Whoever tells the provider to stop also asks how far it came."""
    world, job_id = at_provider("polled")
    world.provider.finish("resp_1")
    world.cancel(job_id)

    world.settle()

    assert world.job(job_id).cost_micros == 300
    assert len(world.store.lines) == 1
    everything(world)


def test_a_cancel_after_success_says_so_and_changes_nothing():
    """409 with the status; the result is kept."""
    world = World()
    job_id = world.submit().job.job_id
    world.settle()
    before = world.job(job_id)

    with pytest.raises(TooLate) as refused:
        world.cancel(job_id)

    assert refused.value.ids["job_status"] == "succeeded"
    assert world.job(job_id) == before


@pytest.mark.parametrize("error", [ErrorClass.CALLER_FAULT])
def test_a_cancel_of_a_dead_letter_says_so(error):
    """Nothing is left to cancel."""
    world = World()
    world.provider.script = [refusal(error, 400)]
    job_id = world.submit().job.job_id
    world.settle()

    with pytest.raises(TooLate):
        world.cancel(job_id)


def test_a_job_in_review_can_be_cancelled():
    """A person who does not want it any more need not wait for another person."""
    world = World()
    job_id = world.submit("guarded").job.job_id
    world.pump()
    assert world.job(job_id).in_review

    world.cancel(job_id)
    world.settle()

    assert stories(world, job_id) is Status.CANCELLED
    assert world.provider.calls == []


def test_a_cancel_after_the_worker_died_is_carried_out_at_once():
    """There is no lease any more, and nobody to wait for."""
    world = World()
    job_id = world.submit().job.job_id

    class Dead(BaseException):
        pass

    def dies(_call):
        raise Dead

    world.provider.script = [dies]
    with pytest.raises(Dead):
        world.worker(job_id)
    assert world.cancel(job_id).reason is Reason.CANCEL_REQUESTED
    world.clock.advance(LEASE + 1)

    assert world.cancel(job_id).status is Status.CANCELLED
    world.settle()
    everything(world)


def test_a_mark_whose_worker_died_is_carried_out_by_the_takeover():
    """Nobody has to cancel twice."""
    world = World()
    job_id = world.submit().job.job_id

    class Dead(BaseException):
        pass

    def dies(_call):
        world.cancel(job_id)
        raise Dead

    world.provider.script = [dies]
    with pytest.raises(Dead):
        world.worker(job_id)
    world.clock.advance(LEASE + CLOCK_SKEW)
    world.settle()

    assert stories(world, job_id) is Status.CANCELLED
    everything(world)


def test_a_result_that_was_stored_before_the_cancel_wins():
    """It is paid for and only was not told yet: the answer is that the job succeeded."""
    world = World()
    job_id = world.submit().job.job_id

    class Dead(BaseException):
        pass

    commit = world.store.commit

    def dies(before, after, guard=None):
        if after.status is Status.SUCCEEDED:
            raise Dead
        return commit(before, after, guard)

    world.store.commit = dies
    with pytest.raises(Dead):
        world.worker(job_id)
    world.store.commit = commit
    world.clock.advance(LEASE + 1)

    with pytest.raises(TooLate):
        world.cancel(job_id)
    world.settle()

    assert stories(world, job_id) is Status.SUCCEEDED
    assert world.job(job_id).cost_micros == 300
    everything(world)


def test_a_mark_left_at_the_provider_is_carried_out_by_the_next_poll():
    """However the mark got there, somebody looks for it."""
    world, job_id = at_provider()
    job = world.job(job_id)
    world.store.commit(job, job.with_(cancel_requested_at=world.clock.now(), cancelled_by="acme"))

    assert world.complete(job_id) == "cancelled"
    world.settle()

    assert world.provider.cancelled == ["resp_1"]
    everything(world)


def test_a_hundred_races_have_a_hundred_winners():
    """Cancel and completion in the same millisecond: one wins, and everybody agrees which."""
    ended = []
    for n, order in zip(range(100), itertools.cycle(["cancel", "result", "cancel between", "result between"])):
        world, job_id = at_provider()
        world.provider.finish("resp_1")
        race(world, job_id, order)
        world.settle()
        ended.append(stories(world, job_id))
        moves = [event for event, before, after in world.log.steps if after.final and not before.final]
        assert len(moves) == 1, (n, moves)
        assert world.job(job_id).cost_micros == 300
        assert len(world.store.lines) == 1
        everything(world)

    assert {Status.CANCELLED, Status.SUCCEEDED} == set(ended)


def race(world, job_id, order):
    """Both read the same item; who writes first differs, and the other finds out at its write."""
    job = world.job(job_id)
    delivery = f"openai#{world.webhook('resp_1', 'wh-race')}"
    del delivery
    commit = world.store.commit

    def overtaken(other):
        def write(*args):
            world.store.commit = commit
            other()
            return commit(*args)

        return write

    def late_cancel():
        try:
            cancel(world.deps, job, "acme")
        except TooLate:
            assert world.job(job_id).status is Status.SUCCEEDED

    def deliver():
        world.deliver("openai#wh-race")

    if order == "cancel":
        late_cancel()
        deliver()
    elif order == "result":
        deliver()
        late_cancel()
    elif order == "cancel between":
        world.store.commit = overtaken(late_cancel)
        deliver()
    else:
        world.store.commit = overtaken(deliver)
        late_cancel()


def test_an_orphan_found_after_a_cancel_is_stopped_at_the_provider():
    """The worker lost its lease, the user cancelled, and only then the provider's answer came."""
    stage = Stage()
    job_id = stage.ask_for("summary")

    def too_slow(call):
        stage.clock.advance(LEASE + CLOCK_SKEW)
        stage.complete(job_id)
        stage.cancel(job_id)
        return stage.provider.accept(call)

    stage.provider.script = [too_slow]
    stage.provider_takes = 3_600_000
    stage.run()

    job = stage.job(job_id)
    assert (job.status, stage.provider.cancelled) == (Status.CANCELLED, ["resp_1"])
    accepted, stopped = children(stage, job, "LATE#")
    assert accepted.data["provider_job_id"] == "resp_1"
    assert stopped.data["execution"]["error_class"] == "cancelled"
    everything(stage)


def test_an_orphan_of_a_job_that_is_open_again_may_still_settle_it():
    """It is left running, asked, and what it finishes is the result; the attempt that was open instead is stopped."""
    stage = Stage()
    stage.provider_tells = False
    job_id = stage.ask_for("summary")

    def too_slow(call):
        stage.clock.advance(LEASE + CLOCK_SKEW)
        stage.complete(job_id)
        return stage.provider.accept(call)

    stage.provider.script = [too_slow]
    stage.provider_takes = 50_000
    stage.run()

    job = stage.job(job_id)
    assert (job.status, job.attempt, job.provider_job_id) == (Status.SUCCEEDED, 1, "resp_1")
    assert len(stage.provider.calls) == 1
    everything(stage)


def test_a_provider_that_cancels_on_its_own_ends_the_job():
    """The provider says that it was cancelled there: nobody repeats it unasked."""
    world, job_id = at_provider()
    world.provider.jobs["resp_1"]["outcome"] = refusal(ErrorClass.CANCELLED, 200)
    world.webhook("resp_1")
    world.settle()

    job = world.job(job_id)
    assert (job.status, job.reason) == (Status.CANCELLED, Reason.CANCELLED_AT_PROVIDER)
    everything(world)


def test_no_event_cancels_what_is_final():
    """The table says it once more."""
    world = World()
    job_id = world.submit().job.job_id
    world.settle()

    with pytest.raises(Exception, match="may not happen in succeeded"):
        advance(world.job(job_id), ev.Cancelled(by="x"), world.clock.now())


def test_a_provider_that_takes_the_cancel_but_can_not_be_asked_is_asked_again():
    """It is not over until somebody says so."""
    world, job_id = at_provider()
    world.cancel(job_id)
    world.provider.fetch_script = [Found(outcome=refusal(ErrorClass.SERVER_FAULT, 503))]
    world.pump()
    key = next(iter(key for key in world.job(job_id).owed if key.startswith("provider_cancel")))
    assert world.job(job_id).owed[key].tries == 1

    world.settle()
    everything(world)


def test_two_who_tell_the_provider_at_once_pay_the_debt_once():
    """The second finds it paid and writes nothing."""
    world, job_id = at_provider()
    world.cancel(job_id)
    stale = world.job(job_id)
    world.complete(job_id)
    settled = world.job(job_id)
    assert cancel_owed(world.deps, stale).owed == settled.owed

    assert world.job(job_id) == settled


def test_a_job_that_five_others_change_in_a_row_is_left_to_the_next_nudge():
    """Bounded: nobody spins on a hot item."""
    world = World()
    job_id = world.submit().job.job_id
    real, writes = world.store.commit, []

    def always_late(before, after, *guard):
        standing = world.job(job_id)
        real(standing, standing)
        writes.append(after)
        return real(before, after, *guard)

    world.store.commit = always_late
    with pytest.raises(StaleVersion):
        world.cancel(job_id)

    assert len(writes) == 5
