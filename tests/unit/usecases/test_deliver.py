"""Webhooks that come early, late, twice, out of order, or about nobody: one state change at most, and no ghost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakwater.domain.errors import NotFound
from breakwater.domain.results import Completed, Found, Refused, Running
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import Reason, Status
from breakwater.domain.timing import CLOCK_SKEW, DAY, LEASE
from breakwater.usecases.admit import Principal
from breakwater.usecases.again import again
from breakwater.usecases.read import own_job
from tests.crash.checks import children, everything
from tests.fakes.outside import answer, refusal
from tests.support.catalogue import catalogue
from tests.support.world import OWNER, World


def at_provider(workflow="summary"):
    """A job whose provider runs it as resp_1."""
    world = World()
    job_id = world.submit(workflow).job.job_id
    world.pump()
    return world, job_id


def verdict(world, name):
    """How a delivery ended."""
    return world.store.delivery(f"openai#{name}").verdict


def finals(world):
    """Every move into a final state."""
    return [event for event, before, after in world.log.steps if after.final and not (before and before.final)]


def test_one_delivery_moves_the_job_once():
    """The provider is asked, and its word counts, not the delivery's."""
    world, job_id = at_provider()
    world.provider.finish("resp_1")
    world.webhook("resp_1", "wh-1")
    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED
    assert verdict(world, "wh-1") == "settled"
    everything(world)


def test_the_same_delivery_again_and_again_is_one():
    """Repeated before and after it was worked on: recorded once, worked on once."""
    world, job_id = at_provider()
    world.provider.finish("resp_1")

    told = [world.webhook("resp_1", "wh-1") for _ in range(3)]
    world.pump()
    before = world.job(job_id)
    told.append(world.webhook("resp_1", "wh-1"))
    world.settle()

    assert told == ["recorded", "repeated", "repeated", "repeated"]
    assert finals(world) == ["Succeeded"]
    assert world.job(job_id).generation == before.generation
    everything(world)


def test_other_deliveries_about_the_same_provider_job_change_nothing_more():
    """Three ids, one state change, one result, one usage line."""
    world, job_id = at_provider()
    world.provider.finish("resp_1")
    for name in ("wh-1", "wh-2", "wh-3"):
        world.webhook("resp_1", name)
    world.settle()
    settled = world.job(job_id)
    world.clock.advance(DAY)
    world.webhook("resp_1", "wh-4")
    world.settle()

    assert finals(world) == ["Succeeded"]
    assert sorted(verdict(world, name) for name in ("wh-1", "wh-2", "wh-3")) == [
        "already_settled", "already_settled", "settled",
    ]  # fmt: skip
    assert world.job(job_id) == settled
    assert len(world.store.lines) == 1
    everything(world)


def test_the_same_id_with_another_body_is_evidence_and_changes_nothing():
    """It is kept under a name of its own."""
    world, job_id = at_provider()
    world.webhook("resp_1", "wh-1", b"one")

    assert world.webhook("resp_1", "wh-1", b"two") == "conflicting"
    kept = [pk for pk, _ in world.store.items if pk.startswith("DELIVERY#openai#wh-1#")]
    assert len(kept) == 1
    assert world.job(job_id).status is Status.PROCESSING


def test_a_webhook_before_the_create_call_is_answered_is_enough():
    """20 ms after the call, 480 ms before its answer: the job ends once, the late `queued` never moves it back."""
    world = World()
    job_id = world.submit("summary").job.job_id

    def slow(call):
        taken = world.provider.accept(call)
        world.clock.advance(20)
        world.provider.finish(taken.provider_job_id)
        assert world.webhook(taken.provider_job_id, "wh-1") == "recorded"
        world.pump()
        assert world.job(job_id).status is Status.SUCCEEDED
        world.clock.advance(480)
        return taken

    world.provider.script = [slow]
    world.worker(job_id)
    world.settle()

    job = world.job(job_id)
    assert (job.status, job.provider_job_id, len(world.provider.calls)) == (Status.SUCCEEDED, "resp_1", 1)
    assert world.provider.cancelled == []
    assert finals(world) == ["Succeeded"]
    everything(world)


def test_a_create_call_that_times_out_is_not_repeated_when_the_webhook_comes():
    """The outcome is unknown to the worker; the webhook knows it."""
    world = World()
    job_id = world.submit("summary").job.job_id

    def cut(call):
        world.provider.accept(call)
        return Refused(signal=Signal(error_class=ErrorClass.OUTCOME_UNKNOWN, rule="read_timeout"))

    world.provider.script = [cut]
    world.worker(job_id)
    world.provider.finish("resp_1")
    world.webhook("resp_1", "wh-1")
    world.settle()

    job = world.job(job_id)
    assert (job.status, len(world.provider.calls)) == (Status.SUCCEEDED, 1)
    everything(world)


def test_a_job_can_be_read_straight_after_it_was_accepted():
    """200, never 404."""
    world = World()
    job_id = world.submit("summary").job.job_id

    assert own_job(world.deps, OWNER, job_id).job_id == job_id


def test_a_webhook_for_work_that_still_runs_changes_nothing():
    """`in_progress` delivered early or out of order; the job goes on waiting."""
    world, job_id = at_provider()
    before = world.job(job_id)
    world.webhook("resp_1", "wh-1")
    world.pump()

    assert verdict(world, "wh-1") == "still_running"
    assert world.job(job_id) == before


def test_a_failure_reported_after_the_success_moves_nothing():
    """Reordered: `completed` first, an older `failed` afterwards."""
    world, job_id = at_provider()
    world.provider.finish("resp_1")
    world.webhook("resp_1", "wh-1")
    world.settle()
    settled = world.job(job_id)
    world.provider.jobs["resp_1"]["outcome"] = refusal(ErrorClass.SERVER_FAULT, 200)
    world.webhook("resp_1", "wh-0")
    world.settle()

    assert world.job(job_id) == settled


def test_a_provider_job_that_failed_is_followed_like_any_refusal():
    """A webhook about a failure schedules the retry."""
    world, job_id = at_provider()
    world.provider.jobs["resp_1"]["outcome"] = refusal(ErrorClass.SERVER_FAULT, 200)
    world.webhook("resp_1", "wh-1")
    world.pump()
    assert world.job(job_id).status is Status.FAILED
    world.webhook("resp_1", "wh-2")
    world.pump()

    job = world.job(job_id)
    assert (job.status, job.attempt, job.http_status) == (Status.FAILED, 1, 200)
    assert [verdict(world, name) for name in ("wh-1", "wh-2")] == ["settled", "already_settled"]
    assert finals(world) == []


def test_a_late_webhook_revives_no_job_that_was_cleaned_away():
    """No row afterwards, and the sender got its 2xx."""
    world, job_id = at_provider()
    world.provider.finish("resp_1")
    for key in [key for key in world.store.items if key[0] == f"JOB#{job_id}"]:
        del world.store.items[key]

    assert world.webhook("resp_1", "wh-1") == "recorded"
    world.settle()
    world.clock.advance(DAY)
    world.sweep()

    assert verdict(world, "wh-1") == "job_gone"
    assert not [key for key in world.store.items if key[0] == f"JOB#{job_id}"]


def test_a_late_webhook_for_a_job_past_its_retention_is_closed():
    """The row waits for the cleaner and is not touched."""
    world, job_id = at_provider()
    world.provider.finish("resp_1")
    world.webhook("resp_1", "wh-1")
    world.settle()
    before = dict(world.store.items[f"JOB#{job_id}", "META"])
    world.clock.advance(40 * DAY)
    world.webhook("resp_1", "wh-2")
    world.settle()

    assert verdict(world, "wh-2") == "job_gone"
    assert world.store.items[f"JOB#{job_id}", "META"] == before


@pytest.mark.parametrize(
    "execution_id",
    ["{job}.{born}.1.1.1", "{job}.{born}.a.b", "{job}.{born}.9.9", "{job}.{born}.", "{job}.1.1.1", "other", "{job}"],
)
def test_metadata_of_somebody_else_under_our_names_is_not_ours(execution_id):
    """Another system in the same provider account may write anything; it moves and crashes nothing."""
    world, job_id = at_provider()
    job = world.job(job_id)
    world.provider.jobs["theirs"] = {
        "job_id": job_id,
        "execution_id": execution_id.format(job=job_id, born=job.created_at),
        "outcome": Completed(result=answer("forged")),
    }

    world.webhook("theirs", "wh-x")
    world.pump()

    assert verdict(world, "wh-x") == "not_ours"
    assert world.job(job_id) == job


def test_a_provider_job_of_another_system_is_not_ours():
    """No metadata of ours at all."""
    world, job_id = at_provider()
    world.provider.fetch_script = [Found(outcome=Completed(result=answer()))]

    world.webhook("foreign", "wh-x")
    world.pump()

    assert verdict(world, "wh-x") == "not_ours"
    assert world.job(job_id).status is Status.PROCESSING


def test_a_delivery_without_a_provider_job_is_closed():
    """An event about something else."""
    world, _ = at_provider()

    world.webhook(None, "wh-x")
    world.pump()

    assert verdict(world, "wh-x") == "no_provider_job"


def test_a_provider_that_knows_no_such_job_ends_the_delivery():
    """404 at every credential."""
    world, _ = at_provider()

    world.webhook("resp_404", "wh-x")
    world.settle(minutes=60)

    assert verdict(world, "wh-x") == "not_found"


@pytest.mark.parametrize("trouble", ["keyless", "fault"])
def test_a_provider_that_cant_be_asked_is_asked_again(trouble):
    """The delivery stays due until somebody answers."""
    world, job_id = at_provider()
    world.provider.finish("resp_1")
    world.provider.keyless = trouble == "keyless"
    if trouble == "fault":
        world.provider.fetch_script = [Found(outcome=refusal(ErrorClass.SERVER_FAULT, 503))]
    world.webhook("resp_1", "wh-1")
    world.pump()
    assert world.store.delivery("openai#wh-1").processed_at is None
    world.provider.keyless = False

    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED
    everything(world)


def test_a_delivery_nobody_can_work_on_is_given_up_one_day():
    """After three days it is closed, and says so."""
    world, _ = at_provider()
    world.provider.keyless = True
    world.webhook("resp_1", "wh-1")

    world.settle(minutes=3 * 24 * 60 + 60)

    assert verdict(world, "wh-1") == "given_up"


def test_a_delivery_that_crashes_its_handler_is_given_up_too():
    """Even if no handler ever gets as far as to count it."""
    world, _ = at_provider()
    world.webhook("resp_1", "wh-1")
    record = world.store.delivery("openai#wh-1")
    world.clock.advance(3 * DAY + 1)

    assert world.deliver("openai#wh-1") == "given_up"
    assert world.store.delivery("openai#wh-1").due_at is None
    assert record.due_at is not None


def test_a_delivery_is_worked_on_once_though_two_hold_it():
    """A second message about it finds it processed."""
    world, _ = at_provider()
    world.provider.finish("resp_1")
    world.webhook("resp_1", "wh-1")

    assert world.deliver("openai#wh-1") == "settled"
    assert world.deliver("openai#wh-1") == "already_processed"
    assert world.deliver("openai#nobody") == "already_processed"


def test_a_lost_nudge_of_a_delivery_is_made_up_for_by_the_sweep():
    """Recorded, never nudged: it is due after its grace."""
    world, job_id = at_provider()
    world.provider.finish("resp_1")
    world.queues.broken = True
    assert world.webhook("resp_1", "wh-1") == "recorded"
    world.queues.broken = False

    for _ in range(3):
        world.clock.advance(60_000)
        world.sweep()
        world.pump()

    assert verdict(world, "wh-1") in ("settled", "already_settled"), "the poll may have been faster"
    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_result_of_an_earlier_attempt_settles_the_job_and_stops_the_later_one():
    """The first call was executed after all; the second provider job has nobody waiting for it."""
    world = World()
    job_id = world.submit("summary").job.job_id

    def cut(call):
        world.provider.accept(call)
        return Refused(signal=Signal(error_class=ErrorClass.OUTCOME_UNKNOWN, rule="read_timeout"))

    world.provider.script = [cut]
    world.worker(job_id)
    world.clock.advance(130_000)
    world.pump()
    assert world.job(job_id).attempt == 2
    world.provider.finish("resp_1")
    world.webhook("resp_1", "wh-1")
    world.settle()

    job = world.job(job_id)
    assert (job.status, job.provider_job_id, job.possible_duplicate) == (Status.SUCCEEDED, "resp_1", True)
    assert world.provider.cancelled == ["resp_2"]
    assert [one.data["execution"]["outcome"] for one in children(world, job, "EXEC#")] == ["unknown", "overtaken"]
    everything(world)


def test_a_result_for_a_dead_letter_is_in_the_books_and_moves_nothing():
    """The provider's deadline had passed; its result is evidence, on the bill once."""
    world, job_id = at_provider("summary")
    world.provider.fetch_script = [Found(outcome=Running(provider_job_id="resp_1")) for _ in range(3)]
    world.clock.advance(3_600_001)
    world.provider.jobs["resp_1"]["outcome"] = None
    world.sweep()
    world.pump(most=50)
    job = world.job(job_id)
    assert (job.status, job.reason) == (Status.DEAD_LETTER, Reason.PROVIDER_DEADLINE_EXCEEDED)
    world.provider.fetch_script = []
    world.provider.jobs["resp_1"]["outcome"] = Completed(result=answer(provider_job_id="resp_1"))
    for name in ("wh-1", "wh-2"):
        world.webhook("resp_1", name)
    world.settle()

    job = world.job(job_id)
    assert (job.status, job.result_ref, job.cost_micros) == (Status.DEAD_LETTER, None, 300)
    assert len(world.store.lines) == 1
    everything(world)


def test_a_refusal_that_cost_something_and_came_late_is_in_the_books():
    """A truncated answer whose worker had lost its lease was paid for all the same."""
    world = World()
    job_id = world.submit().job.job_id

    def too_slow(_call):
        world.clock.advance(LEASE + CLOCK_SKEW)
        world.complete(job_id)
        signal = Signal(error_class=ErrorClass.TRUNCATED, http_status=200, rule="length")
        return Refused(signal=signal, partial=answer("half of it"))

    world.provider.script = [too_slow]
    world.worker(job_id)
    world.settle()

    job = world.job(job_id)
    assert (job.status, job.attempt, job.cost_micros) == (Status.SUCCEEDED, 2, 600)
    assert len(world.store.lines) == 2
    everything(world)


def test_a_result_that_could_not_save_its_own_generation_does_not_end_the_next():
    """The wrong model answered, a person replayed, and the old webhook comes again: the new generation goes on."""
    world = World()
    world.provider.script = [Completed(result=answer(model="another-model"))]
    job_id = world.submit("compared").job.job_id
    world.settle()
    dead = world.job(job_id)
    assert dead.reason is Reason.SERVED_MODEL_MISMATCH
    again(world.deps, dead, world.deps.catalogue.need_policy("compared"), "acme")
    old = children(world, dead, "RESULT#")[0].data["execution"]["id"]
    world.provider.jobs["resp_old"] = {
        "job_id": job_id,
        "execution_id": old,
        "outcome": Completed(result=answer(model="another-model")),
    }
    world.webhook("resp_old", "wh-1")
    world.deliver("openai#wh-1")
    assert world.job(job_id).status is Status.PENDING
    world.settle()

    job = world.job(job_id)
    assert (job.status, job.generation, job.served_model) == (Status.SUCCEEDED, 2, "gpt-5.2")
    assert job.cost_micros == 600
    everything(world)


def test_nobody_reads_another_owners_job():
    """Neither what it is nor that it is there."""
    world, job_id = at_provider()
    stranger = Principal(owner_key="beta", key_id="k", scopes=frozenset({"read"}))

    with pytest.raises(NotFound):
        own_job(world.deps, stranger, job_id)


def test_a_processed_delivery_is_not_made_due_again():
    """The sweep and the handler race; the one that comes second changes nothing."""
    world, _ = at_provider()
    world.webhook("resp_1", "wh-1")
    read = world.store.delivery("openai#wh-1")
    world.deliver("openai#wh-1")

    assert not world.store.update_delivery(read, replace(read, due_at=1))
    assert world.store.delivery("openai#wh-1").due_at is None


def test_each_credential_that_reports_to_an_endpoint_is_asked_once():
    """Two routes of one account, a third of another: two questions, until somebody knows the job."""
    routes = catalogue()
    hook = routes.routes["hook"]
    routes.routes["same"] = replace(hook, route_key="same")
    routes.routes["third"] = replace(hook, route_key="third", credential="second")
    world = World(routes=routes)
    asked = []
    real = world.provider.for_route
    world.provider.for_route = lambda key: asked.append(key) or real(key)

    world.webhook("resp_of_others", "wh-1")
    world.pump()

    assert asked == ["hook", "third"]
