"""What an outcome makes of its job: children first, one write, and the books agree whatever the event."""

from __future__ import annotations

import pytest

from breakwater.domain.results import Completed, Found, Refused, Running
from breakwater.domain.routes import Catalogue
from breakwater.domain.signals import ErrorClass, LimitDimension, Signal
from breakwater.domain.states import Reason, Status
from breakwater.usecases.conclude import conclude, poll_interval, same_model
from breakwater.usecases.routing import polling
from tests.crash.checks import children, everything
from tests.fakes.outside import answer, refusal
from tests.support.builders import NOW
from tests.support.world import World


def half(error_class, **more):
    """A refusal that was paid for."""
    signal = Signal(error_class=error_class, http_status=200, rule="scripted", **more)
    return Refused(signal=signal, partial=answer("half"))


def test_the_result_stands_before_the_job_says_so():
    """A crash between the two leaves an unreferenced child, never a dangling reference."""
    world = World()
    job_id = world.submit().job.job_id
    commit, order = world.store.commit, []

    def watching(before, after, *guard):
        if after.result_ref:
            order.append(world.store.child(job_id, after.result_ref) is not None)
        return commit(before, after, *guard)

    world.store.commit = watching
    world.worker(job_id)

    assert order == [True]


@pytest.mark.parametrize(
    ("workflow", "outcomes", "status"),
    [
        ("sync", [half(ErrorClass.SERVER_FAULT)], Status.SUCCEEDED),
        ("sync", [half(ErrorClass.TRUNCATED)], Status.DEAD_LETTER),
        ("sync", [half(ErrorClass.CONTENT_REFUSED)], Status.DEAD_LETTER),
        ("fallback", [half(ErrorClass.SERVER_FAULT)] * 3, Status.SUCCEEDED),
        ("paid", [half(ErrorClass.OUTCOME_UNKNOWN)], Status.DEAD_LETTER),
        ("sync", [half(ErrorClass.QUOTA)], Status.DEAD_LETTER),
        ("sync", [half(ErrorClass.CANCELLED)], Status.CANCELLED),
    ],
)
def test_whatever_was_paid_for_is_in_the_books_however_the_job_went_on(workflow, outcomes, status):
    """A retry, a fallback, a hold, an end: META's sum is the sum of the ledger."""
    world = World()
    world.provider.script = list(outcomes)
    job_id = world.submit(workflow).job.job_id
    world.settle(minutes=8 * 24 * 60)

    job = world.job(job_id)
    paid = len(outcomes) + (1 if status is Status.SUCCEEDED else 0)
    assert (job.status, job.cost_micros, len(world.store.lines)) == (status, paid * 300, paid)
    everything(world)


def test_a_truncated_answer_is_the_result_where_the_policy_takes_it():
    """Accepted as it is, once, with its reason."""
    world = World()
    world.provider.script = [half(ErrorClass.TRUNCATED)]
    job_id = world.submit("truncatable").job.job_id
    world.settle()

    assert (world.job(job_id).status, len(world.provider.calls)) == (Status.SUCCEEDED, 1)
    everything(world)


def test_a_partial_answer_is_kept_with_the_dead_letter():
    """Who asks gets what there is, named as what it is."""
    world = World()
    world.provider.script = [half(ErrorClass.TRUNCATED)]
    job_id = world.submit().job.job_id
    world.settle()

    job = world.job(job_id)
    assert (job.reason, job.result_ref) == (Reason.ANSWER_TRUNCATED, children(world, job, "EXEC#")[0].sk)


def test_the_limit_that_was_hit_is_kept_with_the_execution():
    """An adopted refusal knows it as well as the one that was heard."""
    world = World()
    world.provider.script = [refusal(ErrorClass.PACING, 429, limit_dimension=LimitDimension.INPUT_TOKENS)]
    job_id = world.submit().job.job_id
    world.worker(job_id)

    kept = children(world, world.job(job_id), "EXEC#")[0]
    assert kept.data["limit_dimension"] == "input_tokens"
    assert world.job(job_id).limit_dimension == "input_tokens"


@pytest.mark.parametrize(
    ("served", "requested", "same"),
    [
        ("gpt-5.2", "gpt-5.2", True),
        ("gpt-5.2-2025-12-11", "gpt-5.2", True),
        ("openai/gpt-5.2", "gpt-5.2", True),
        ("gpt-5.2", "openai/gpt-5.2", True),
        ("gpt-5.2-mini", "gpt-5.2", False),
        ("gpt-5", "gpt-5.2", False),
        ("", "gpt-5.2", False),
        (None, "gpt-5.2", False),
    ],
)
def test_a_dated_snapshot_is_the_model_and_a_sibling_is_not(served, requested, same):
    """Comparisons stay comparable."""
    assert same_model(served, requested) is same


def test_an_answer_without_a_model_is_no_comparable_result():
    """Where the policy compares models, silence is not consent."""
    world = World()
    world.provider.script = [Completed(result=answer(model=""))]
    job_id = world.submit("compared").job.job_id
    world.settle()

    job = world.job(job_id)
    assert (job.status, job.reason, job.cost_micros) == (Status.DEAD_LETTER, Reason.SERVED_MODEL_MISMATCH, 300)
    everything(world)


def test_a_workflow_that_is_no_longer_deployed_holds_its_jobs():
    """A person decides; nothing is called and nothing is lost."""
    world = World()
    world.provider.script = [lambda _call: (_forget(world, "sync"), refusal(ErrorClass.OVERLOAD, 503))[1]]
    job_id = world.submit().job.job_id
    world.worker(job_id)

    assert (world.job(job_id).in_review, world.job(job_id).reason) == (True, Reason.POLICY_MISSING)


def _forget(world, workflow):
    """A deployment without the workflow, in the middle of a call."""
    old = world.deps.catalogue
    policies = {name: old.need_policy(name) for name in old.workflows() if name != workflow}
    routes = {key: old.route(key) for key in old.route_keys()}
    object.__setattr__(world.deps, "catalogue", Catalogue(routes=routes, policies=policies, default_route="plain"))


def test_a_question_about_a_job_that_moved_on_changes_nothing():
    """The provider still runs something nobody waits for."""
    world = World()
    job_id = world.submit("summary").job.job_id
    world.pump()
    asked = world.job(job_id)
    world.cancel(job_id)
    settled = world.job(job_id)

    assert conclude(world.deps, asked, asked.execution, Running(provider_job_id="resp_1")) is None
    assert conclude(world.deps, asked, asked.execution, refusal(ErrorClass.OVERLOAD, 503), asking=True) is None
    assert world.job(job_id) == settled


def test_a_poll_that_can_not_be_asked_is_asked_again_until_the_providers_deadline():
    """Without a credential the work counts as running; but not for ever."""
    world = World()
    job_id = world.submit("polled").job.job_id
    world.pump()
    world.provider.keyless = True
    world.settle(minutes=90)

    job = world.job(job_id)
    assert (job.status, job.reason) == (Status.DEAD_LETTER, Reason.PROVIDER_DEADLINE_EXCEEDED)
    assert children(world, job, "EXEC#")[0].data["execution"]["outcome"] == "provider_deadline"


def test_a_provider_job_that_fails_at_its_deadline_failed_and_did_not_run_out_of_time():
    """Its own word counts more than our clock."""
    world = World()
    job_id = world.submit("polled").job.job_id
    world.pump()
    world.clock.advance(3_600_001)
    world.provider.fetch_script = [Found(outcome=refusal(ErrorClass.CONTENT_REFUSED, 200), ended=True)]
    world.complete(job_id)

    job = world.job(job_id)
    assert (job.status, job.reason) == (Status.DEAD_LETTER, Reason.MAX_QUEUE_AGE_EXCEEDED)
    assert children(world, job, "EXEC#")[0].data["execution"]["error_class"] == "content_refused"


def test_polls_grow_with_the_age_of_the_work():
    """A tenth of the age, at least ten seconds, at most five minutes."""
    assert [poll_interval(age) for age in (0, 200_000, 10**9)] == [10_000, 20_000, 300_000]


def test_a_poll_before_its_time_asks_nobody():
    """A nudge too many costs nothing."""
    world = World()
    job_id = world.submit("summary").job.job_id
    world.pump()

    assert world.complete(job_id) == "nothing"
    assert world.provider.fetched == []


def test_a_review_before_its_limit_is_left_alone():
    """And ends at it."""
    world = World()
    job_id = world.submit("guarded").job.job_id
    world.pump()
    assert world.complete(job_id) == "nothing"
    world.clock.advance(7 * 86_400_000)
    assert world.complete(job_id) == "review_expired"

    assert world.job(job_id).reason is Reason.REVIEW_EXPIRED


def test_a_deadline_that_passes_while_the_result_comes_ends_nothing():
    """The poll asked before, the webhook was faster: the job stays what it became."""
    world = World()
    job_id = world.submit("summary").job.job_id
    world.pump()
    world.clock.advance(3_600_001)
    real = world.provider.fetch

    def meanwhile(name):
        found = real(name)
        world.provider.fetch = real
        world.provider.finish(name)
        world.webhook(name, "wh-1")
        world.deliver("openai#wh-1")
        return found

    world.provider.fetch = meanwhile
    world.complete(job_id)
    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED
    everything(world)


def test_a_job_whose_policy_is_gone_is_polled_soon_and_for_a_day():
    """Nobody says how long it may take any more."""
    poll_at, deadline = polling(None, None, NOW)

    assert (poll_at, deadline) == (NOW + 5_000, NOW + 24 * 3_600_000)
