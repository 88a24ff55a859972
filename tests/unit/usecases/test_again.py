"""The user's own second try, and what a repeated key gets after a dead letter, a cancel and retention."""

from __future__ import annotations

import pytest

from breakwater.domain.errors import InvalidRequest, KeyReused, TooLate, TooMany
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Reason, Status
from breakwater.domain.timing import DAY
from breakwater.usecases.again import again
from breakwater.usecases.read import own_job, story, view
from tests.crash.checks import children, everything
from tests.fakes.outside import answer, refusal
from tests.support.builders import make_job
from tests.support.world import OWNER, World

FAULT = refusal(ErrorClass.SERVER_FAULT, 500)


def dead(workflow="sync", outcomes=(FAULT, FAULT, FAULT)):
    """A job whose attempts are used up."""
    world = World()
    world.provider.script = list(outcomes)
    job_id = world.submit(workflow).job.job_id
    world.settle()
    assert world.job(job_id).status is Status.DEAD_LETTER
    return world, job_id


def retry(world, job_id):
    """As the API does it."""
    job = world.job(job_id)
    return again(world.deps, job, world.deps.catalogue.need_policy(job.workflow), "acme")


# --- the manual retry


def test_a_user_may_bring_a_dead_letter_back_once():
    """A new generation with a fresh budget; everything that was stays readable."""
    world, job_id = dead()

    after = retry(world, job_id)
    assert (after.status, after.generation, after.attempt, after.manual_retries) == (Status.PENDING, 2, 0, 1)
    world.settle()

    job = world.job(job_id)
    assert (job.status, job.generation, job.attempt) == (Status.SUCCEEDED, 2, 1)
    assert len(story(world.deps, job)) == 4
    kept = children(world, job, "GEN#")[0].data
    assert (kept["status"], kept["reason"], kept["attempts"]) == ("dead_letter", "max_attempts_exhausted", 3)
    audit = children(world, job, "AUDIT#")[0].data
    assert (audit["what"], audit["by"], audit["generation"]) == ("retry", "acme", 1)
    everything(world)


def test_the_policys_number_of_manual_retries_is_a_limit():
    """Beyond it an operator has to look."""
    world, job_id = dead()
    retry(world, job_id)
    world.provider.script = [FAULT] * 3
    world.settle()
    assert world.job(job_id).status is Status.DEAD_LETTER

    with pytest.raises(TooMany):
        retry(world, job_id)


def test_two_retries_at_once_are_one():
    """Both read the same dead letter; one generation begins."""
    world, job_id = dead()
    job, policy = world.job(job_id), world.deps.catalogue.need_policy("sync")

    first = again(world.deps, job, policy, "acme")
    second = again(world.deps, job, policy, "acme")

    assert (first.generation, second.generation, second.manual_retries) == (2, 2, 1)
    world.settle()
    assert len(world.provider.calls) == 4
    everything(world)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (refusal(ErrorClass.CALLER_FAULT, 400), Reason.CALLER_FAULT),
        (refusal(ErrorClass.CONTENT_REFUSED, 400), Reason.CONTENT_REFUSED),
        (refusal(ErrorClass.TRUNCATED, 200), Reason.ANSWER_TRUNCATED),
    ],
)
def test_what_would_only_be_refused_again_is_not_tried_again(outcome, reason):
    """The same question gets the same answer."""
    world, job_id = dead(outcomes=[outcome])
    assert world.job(job_id).reason is reason

    with pytest.raises(TooLate):
        retry(world, job_id)


def test_work_with_side_effects_is_not_repeated_by_its_user():
    """A repeat could double the effect; an operator has to prove that it doesn't."""
    world, job_id = dead("paid", outcomes=[FAULT, FAULT, FAULT])

    with pytest.raises(TooLate):
        retry(world, job_id)


@pytest.mark.parametrize("built", ["pending", "processing", "failed", "succeeded", "cancelled", "closed", "review"])
def test_only_open_dead_letters_are_retried(built):
    """Everything else says why not."""
    world = World()
    job = world.store.create(make_job(built), world.clock.now()).job

    with pytest.raises(TooLate) as refused:
        retry(world, job.job_id)
    assert refused.value.ids["job_status"] == job.status.value


def test_a_dead_letter_that_is_closed_meanwhile_stays_closed():
    """An operator put it to rest between the user's look and the user's retry."""
    world, job_id = dead()
    job, policy = world.job(job_id), world.deps.catalogue.need_policy("sync")
    world.store.commit(job, job.with_(closed_at=world.clock.now(), closed_by="ops"))

    assert again(world.deps, job, policy, "acme").closed_by == "ops"
    assert world.job(job_id).generation == 1


def test_a_retry_begins_on_the_workflows_own_route():
    """Not on the fallback where the last generation ended."""
    world, job_id = dead("fallback", outcomes=[FAULT] * 4)
    assert world.job(job_id).route_key == "other"

    after = retry(world, job_id)

    assert (after.route_key, after.fallback_allowed, after.fallbacks) == ("plain", None, 0)


def test_a_paid_result_that_came_after_the_end_is_taken_and_not_paid_for_again():
    """The provider finished after the deadline had passed; the retry finds it and calls nobody."""
    world = World()
    job_id = world.submit("summary").job.job_id
    world.pump()
    world.provider.cancel_signal = refusal(ErrorClass.CALLER_FAULT, 400).signal
    world.settle(minutes=70)
    job = world.job(job_id)
    assert job.status is Status.DEAD_LETTER
    world.provider.finish("resp_1")
    world.webhook("resp_1")
    world.settle()
    assert (world.job(job_id).status, world.job(job_id).cost_micros) == (Status.DEAD_LETTER, 300)
    stuck = world.job(job_id)
    world.store.commit(stuck, stuck.with_(reason=Reason.MAX_ATTEMPTS_EXHAUSTED))

    retry(world, job_id)
    world.settle()

    after = world.job(job_id)
    assert (after.status, after.generation, after.attempt, after.cost_micros) == (Status.SUCCEEDED, 2, 0, 300)
    assert len(world.provider.calls) == 1
    everything(world)


# --- a repeated key


def test_a_key_of_a_dead_letter_gives_the_dead_letter_and_the_way_to_retry_it():
    """Never a bare success, never a silent second run."""
    world, job_id = dead()

    told = world.submit()

    assert (told.replayed, told.job.job_id, told.job.status) == (True, job_id, Status.DEAD_LETTER)
    assert view(world.deps, told.job)["final"] is True
    assert len(world.provider.calls) == 3
    assert retry(world, job_id).status is Status.PENDING


def test_a_key_of_a_cancelled_job_gives_the_cancelled_job():
    """Who wants it after all takes a new key."""
    world = World()
    job_id = world.submit().job.job_id
    world.cancel(job_id)
    world.settle()

    told = world.submit()
    assert (told.replayed, told.job.status) == (True, Status.CANCELLED)
    assert world.submit(key="k-2").job.status is Status.PENDING
    assert told.job.job_id == job_id


def test_a_key_of_a_success_gives_the_result_again():
    """The answer of the first time, and no second call."""
    world = World()
    job_id = world.submit().job.job_id
    world.settle()

    told = world.submit()

    assert (told.replayed, told.job.job_id, told.job.status) == (True, job_id, Status.SUCCEEDED)
    assert len(world.provider.calls) == 1


def test_a_key_past_its_retention_is_a_new_job_though_the_row_still_stands():
    """Cleaning lags by days; the new incarnation shares nothing with the old one."""
    world = World()
    job_id = world.submit().job.job_id
    world.settle()
    born = world.job(job_id).created_at
    world.clock.advance(30 * DAY + 1_000)

    told = world.submit()
    world.settle()

    job = world.job(job_id)
    assert (told.replayed, told.job.job_id, job.created_at > born) == (False, job_id, True)
    assert (job.status, job.attempt, job.generation) == (Status.SUCCEEDED, 1, 1)
    assert len(world.provider.calls) == 2
    assert world.provider.calls[0].execution_id != world.provider.calls[1].execution_id


def test_a_webhook_of_the_earlier_incarnation_does_not_touch_the_later_one():
    """Its execution names another birth."""
    world = World()
    job_id = world.submit("summary").job.job_id
    world.pump()
    world.cancel(job_id)
    world.settle()
    world.clock.advance(30 * DAY + 1_000)
    world.submit("summary")
    world.pump()
    current = world.job(job_id)
    world.provider.jobs["resp_1"]["outcome"] = None
    world.provider.finish("resp_1")

    world.webhook("resp_1", "wh-old")
    world.pump()

    assert world.store.delivery("openai#wh-old").verdict == "not_ours"
    assert world.job(job_id) == current


def test_another_payload_under_a_known_key_is_refused_whatever_became_of_the_job():
    """Pending, dead or done: the payload is compared first."""
    for minutes in (0, 10):
        world = World()
        world.submit()
        world.settle(minutes)
        with pytest.raises(KeyReused):
            world.submit(text="something else")


def test_a_refused_request_binds_no_key():
    """The corrected body is accepted under the same key."""
    world = World()
    with pytest.raises(InvalidRequest):
        world.submit("no such workflow", key="k-8")

    assert world.submit("sync", key="k-8").replayed is False


def test_an_open_job_is_never_past_its_retention():
    """Every limit a job is given moves its retention with it."""
    world = World()
    job_id = world.submit("guarded").job.job_id
    job = world.job(job_id)
    short = job.with_(ttl=world.clock.now() // 1000 + 60)
    world.store.commit(job, short)

    world.worker(job_id)

    held = world.job(job_id)
    assert held.in_review
    assert held.ttl * 1000 >= held.review_expires_at + DAY
    assert own_job(world.deps, OWNER, job_id).job_id == job_id
    assert answer().text
