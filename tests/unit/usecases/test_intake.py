"""A delivery that was taken is worked on once, whatever breaks on the way and however often it comes."""

from __future__ import annotations

import pytest

from breakwater.domain.results import Found
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Status
from breakwater.domain.timing import NUDGE_GRACE
from breakwater.telemetry import note_metrics
from tests.fakes.outside import refusal
from tests.support.webhooks import completed, deliver
from tests.support.world import World

MINUTE = 60_000


def at_provider(world):
    """A job that runs at the provider as `resp_1`."""
    job_id = world.submit("summary").job.job_id
    world.pump()
    return job_id


def standing(world, webhook_id="msg_case_0001"):
    """The delivery as recorded."""
    return world.store.delivery(f"openai#{webhook_id}")


def pass_minutes(world, minutes):
    """Sweep and work, a minute at a time."""
    for _ in range(minutes):
        world.clock.advance(MINUTE)
        world.sweep()
        world.pump()


def test_a_message_that_can_not_be_sent_is_made_up_for_by_the_sweep():
    """WH-08: the record has a `due_at`, so the answer may be 200 all the same."""
    world = World()
    job_id = at_provider(world)
    world.provider.finish("resp_1")
    world.queues.broken = True

    assert deliver(world, completed("resp_1")) == (200, "recorded")
    world.queues.broken = False
    pass_minutes(world, 3)

    assert world.job(job_id).status is Status.SUCCEEDED
    assert standing(world).verdict == "settled"


def test_a_process_that_dies_between_record_and_message_loses_nothing():
    """WH-08: neither the next delivery of the same id nor its absence matters."""
    world = World()
    job_id = at_provider(world)
    world.provider.finish("resp_1")

    def die(name, when):
        if (name, when) == ("send", "before"):
            raise KeyboardInterrupt

    world.queues.hook = die
    with pytest.raises(KeyboardInterrupt):
        deliver(world, completed("resp_1"))
    world.queues.hook = lambda _name, _when: None
    pass_minutes(world, 3)

    assert world.job(job_id).status is Status.SUCCEEDED


def test_the_senders_repetition_of_a_lost_one_is_worked_on():
    """WH-08: it is known, but not done, so it is nudged again."""
    world = World()
    job_id = at_provider(world)
    world.provider.finish("resp_1")
    world.queues.lossy = True
    deliver(world, completed("resp_1"))
    world.queues.lossy = False

    assert deliver(world, completed("resp_1")) == (200, "repeated")
    world.pump()

    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_delivery_whose_handler_crashed_is_reopened_by_a_later_redelivery():
    """WH-08: an hour later the provider delivers again; it is not accepted and dropped."""
    world = World()
    job_id = at_provider(world)
    world.provider.finish("resp_1")
    world.queues.lossy = True
    deliver(world, completed("resp_1"))
    world.queues.lossy = False
    world.clock._now += 3_600_000

    assert deliver(world, completed("resp_1")) == (200, "repeated")
    world.pump()

    assert standing(world).processed_at is not None
    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_redelivery_of_one_that_was_given_up_is_worked_on():
    """Nobody could be asked for three days; then the provider, or a person there, sends it again."""
    world = World()
    job_id = at_provider(world)
    world.provider.finish("resp_1")
    world.provider.keyless = True
    deliver(world, completed("resp_1"))
    world.clock.advance(3 * 24 * 60 * MINUTE + 1)
    world.deliver("openai#msg_case_0001")
    assert standing(world).verdict == "given_up"
    world.provider.keyless = False

    assert deliver(world, completed("resp_1")) == (200, "reopened")
    assert standing(world).due_at is not None
    world.pump()

    assert standing(world).verdict == "settled"
    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_redelivery_of_one_whose_job_was_not_found_is_asked_about_again():
    """It was closed after ten minutes; sent again, it is as good as new."""
    world = World()
    deliver(world, completed("resp_of_others"))
    pass_minutes(world, 20)
    assert standing(world).verdict == "not_found"

    assert deliver(world, completed("resp_of_others")) == (200, "reopened")
    assert deliver(world, completed("resp_of_others")) == (200, "repeated")
    assert deliver(world, completed("resp_9")) == (200, "conflicting")

    assert standing(world).processed_at is None
    assert standing(world).due_at is not None


def test_two_redeliveries_at_once_reopen_it_once():
    """The loser finds it open, and both nudge the same record."""
    world = World()
    deliver(world, completed("resp_of_others"))
    pass_minutes(world, 20)
    real = world.store.reopen_delivery

    def raced(before, after):
        assert real(before, after)
        world.store.reopen_delivery = real
        return real(before, after)

    world.store.reopen_delivery = raced

    assert deliver(world, completed("resp_of_others")) == (200, "reopened")

    assert standing(world).processed_at is None


def test_a_repetition_of_one_that_is_done_does_nothing():
    """No message, no question to the provider."""
    world = World()
    at_provider(world)
    world.provider.finish("resp_1")
    deliver(world, completed("resp_1"))
    world.settle()
    asked = len(world.provider.fetched)

    assert deliver(world, completed("resp_1")) == (200, "repeated")

    assert not any(world.queues.sent.values())
    assert len(world.provider.fetched) == asked


def test_another_body_under_a_known_id_is_kept_and_counted_never_worked_on():
    """Evidence for a person; what was recorded first stands."""
    world = World()
    at_provider(world)
    deliver(world, completed("resp_1"))

    assert deliver(world, completed("resp_9")) == (200, "conflicting")

    name, more = world.log.notes[-1]
    assert ("DeliveryConflict", 1, "Count") in note_metrics(name, more)
    assert standing(world).provider_job_id == "resp_1"
    kept = [key for key, _ in world.store.items if key.startswith("DELIVERY#openai#msg_case_0001#")]
    assert len(kept) == 1
    assert world.store.delivery(kept[0].removeprefix("DELIVERY#")).verdict == "conflicting"


def test_a_delivery_before_the_create_call_returned_settles_its_job():
    """WH-10: the late `queued` answer never moves it back, and nobody calls twice."""
    world = World()

    def hurry(call):
        taken = world.provider.accept(call)
        world.provider.finish(taken.provider_job_id)
        assert deliver(world, completed(taken.provider_job_id)) == (200, "recorded")
        world.pump()
        return taken

    world.provider.script = [hurry]
    job_id = world.submit("summary").job.job_id
    world.settle()

    job = world.job(job_id)
    assert (job.status, len(world.provider.calls)) == (Status.SUCCEEDED, 1)
    assert [event for event, _, after in world.log.steps if after.job_id == job_id].count("Succeeded") == 1


def test_a_create_call_that_timed_out_is_settled_by_its_delivery_without_a_second():
    """WH-10: the answer was lost, the work was not."""
    world = World()

    def cut(call):
        world.provider.accept(call)
        return refusal(ErrorClass.OUTCOME_UNKNOWN)

    world.provider.script = [cut]
    job_id = world.submit("summary").job.job_id
    world.pump()
    world.provider.finish("resp_1")
    world.clock.advance(30_000)
    deliver(world, completed("resp_1"))
    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED
    assert len(world.provider.calls) == 1


def test_a_delivery_about_a_job_the_provider_does_not_know_yet_waits():
    """It is asked about again while it is young, and then settles its job."""
    world = World()
    job_id = at_provider(world)
    world.provider.finish("resp_1")
    world.provider.fetch_script = [Found(outcome=refusal(ErrorClass.NOT_FOUND, 404))]
    deliver(world, completed("resp_1"))
    world.pump()
    assert standing(world).processed_at is None

    pass_minutes(world, 5)

    assert standing(world).verdict in {"settled", "already_settled"}  # the poll may have been faster
    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_delivery_about_somebody_elses_job_is_closed_in_the_end():
    """A project shared with others sends us theirs too."""
    world = World()
    deliver(world, completed("resp_of_others"))

    pass_minutes(world, 20)

    assert standing(world).verdict == "not_found"
    assert len(world.provider.fetched) <= 5


@pytest.mark.parametrize("first", ["response.in_progress", "response.completed"])
def test_deliveries_out_of_order_settle_once(first):
    """Progress after the end, the end twice: the provider's own word decides."""
    world = World()
    job_id = at_provider(world)
    world.provider.finish("resp_1")
    late = completed("resp_1").replace(b"response.completed", first.encode())

    deliver(world, completed("resp_1"), "msg_1")
    deliver(world, late, "msg_2")
    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED
    assert len(world.store.lines) == 1


def test_a_delivery_is_due_until_it_is_done():
    """So the sweep finds it whatever happens."""
    world = World()
    deliver(world, completed("resp_1"))

    assert standing(world).due_at == world.clock.now() + NUDGE_GRACE
