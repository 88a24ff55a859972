"""Deliveries that carry their outcome settle jobs like fetched ones: once, whoever tells them, however they come."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from breakwater.domain.records import ProviderJob
from breakwater.domain.results import Completed, Refused
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import Reason, Status
from breakwater.domain.timing import CLOCK_SKEW, DAY, HOUR, LEASE, MINUTE
from breakwater.usecases.deliver import deliver
from tests.crash.checks import children, everything
from tests.fakes.outside import answer
from tests.support.told import tell, told_body, told_catalogue
from tests.support.world import World

BOTH = ["knows_us", "own_id"]


def at_provider(workflow, **more):
    """A job whose provider runs it as resp_1."""
    world = World(routes=told_catalogue())
    job_id = world.submit(workflow, **more).job.job_id
    world.pump()
    assert world.job(job_id).provider_job_id == "resp_1"
    return world, job_id


def verdict(world, endpoint, name="wh-1"):
    """How a delivery ended; None while it is open."""
    return world.store.delivery(f"{endpoint}#{name}").verdict


def finals(world):
    """Every move into a final state."""
    return [event for event, before, after in world.log.steps if after.final and not (before and before.final)]


@pytest.mark.parametrize("endpoint", BOTH)
def test_the_delivery_is_the_result_and_nobody_is_asked(endpoint):
    """Text, usage and cost as a fetched answer has them."""
    world, job_id = at_provider(endpoint)

    assert tell(world, endpoint, told_body(world, "resp_1")) == "recorded"
    world.settle()

    job = world.job(job_id)
    assert (job.status, job.cost_micros, job.served_model) == (Status.SUCCEEDED, 300, "gpt-5.2")
    assert verdict(world, endpoint) == "settled"
    assert world.provider.fetched == []
    kept = json.loads(world.store.child(job_id, job.result_ref).body)
    assert kept["text"] == "answer of resp_1"
    everything(world)


@pytest.mark.parametrize("endpoint", BOTH)
def test_a_delivery_before_the_create_call_is_answered_is_enough(endpoint):
    """With our metadata at once; by the provider's own id as soon as the answer is stored."""
    world = World(routes=told_catalogue())
    job_id = world.submit(endpoint).job.job_id

    def slow(call):
        taken = world.provider.accept(call)
        world.clock.advance(20)
        assert tell(world, endpoint, told_body(world, taken.provider_job_id)) == "recorded"
        world.pump()
        assert world.job(job_id).final is (endpoint == "knows_us")
        world.clock.advance(480)
        return taken

    world.provider.script = [slow]
    world.worker(job_id)
    world.settle()

    assert (world.job(job_id).status, len(world.provider.calls)) == (Status.SUCCEEDED, 1)
    assert finals(world) == ["Succeeded"]
    assert world.provider.fetched == []
    everything(world)


@pytest.mark.parametrize("endpoint", BOTH)
def test_duplicates_and_news_out_of_order_move_it_once(endpoint):
    """The same again, the same end under other ids, an older failure afterwards."""
    world, job_id = at_provider(endpoint)
    body = told_body(world, "resp_1")

    assert [tell(world, endpoint, body, name) for name in ("wh-1", "wh-1", "wh-2")] == [
        "recorded", "repeated", "recorded",
    ]  # fmt: skip
    world.settle()
    settled = world.job(job_id)
    world.clock.advance(DAY)
    tell(world, endpoint, told_body(world, "resp_1", "failed", error={"status": 500}), "wh-0")
    world.settle()

    assert finals(world) == ["Succeeded"]
    assert world.job(job_id) == settled
    assert len(world.store.lines) == 1
    assert {verdict(world, endpoint, name) for name in ("wh-1", "wh-2")} == {"settled", "already_settled"}
    everything(world)


def test_the_same_id_with_another_body_changes_nothing():
    """What came first is what is read."""
    world, job_id = at_provider("knows_us")
    tell(world, "knows_us", told_body(world, "resp_1", text="first"))

    assert tell(world, "knows_us", told_body(world, "resp_1", text="second")) == "conflicting"
    world.settle()

    assert json.loads(world.store.child(job_id, world.job(job_id).result_ref).body)["text"] == "first"


def test_a_large_delivery_waits_in_the_object_store():
    """The same rule as for other bodies; it goes with its record, and a crash in between loses nothing."""
    world, job_id = at_provider("knows_us")
    body = told_body(world, "resp_1", text="long " * 5_000)
    world.queues.lossy = True

    tell(world, "knows_us", body)
    world.queues.lossy = False
    record = world.store.delivery("knows_us#wh-1")
    assert (record.body, list(world.payloads.kept)) == (None, [record.blob])
    assert record.blob == f"deliveries/knows_us/{record.body_sha}.json"
    assert record.ttl * 1000 == world.clock.now() // 1000 * 1000 + 7 * DAY
    for _ in range(3):
        world.clock.advance(MINUTE)
        world.sweep()
        world.pump()

    assert world.job(job_id).status is Status.SUCCEEDED
    child = world.store.child(job_id, world.job(job_id).result_ref)
    assert json.loads(world.payloads.kept[child.blob])["text"] == "long " * 5_000


def test_a_delivery_whose_body_is_gone_says_so_and_is_taken_again():
    """Nothing is guessed; sent again, it is worked on."""
    world, job_id = at_provider("knows_us")
    body = told_body(world, "resp_1", text="long " * 5_000)
    tell(world, "knows_us", body)
    world.payloads.kept.clear()
    world.pump()
    assert verdict(world, "knows_us") == "body_gone"

    assert tell(world, "knows_us", body) == "reopened"
    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_lost_nudge_is_made_up_for_by_the_sweep():
    """The record holds everything that is needed."""
    world, job_id = at_provider("own_id")
    world.queues.broken = True
    assert tell(world, "own_id", told_body(world, "resp_1")) == "recorded"
    world.queues.broken = False

    for _ in range(3):
        world.clock.advance(MINUTE)
        world.sweep()
        world.pump()

    assert world.job(job_id).status is Status.SUCCEEDED


@pytest.mark.parametrize("endpoint", BOTH)
def test_a_failure_is_followed_like_any_refusal(endpoint):
    """Its class decides: here a retry, with the next result told in the same way."""
    world, job_id = at_provider(endpoint)
    tell(world, endpoint, told_body(world, "resp_1", "failed", text="", error={"status": 503}))
    world.pump()
    failed = world.job(job_id)
    assert (failed.status, failed.attempt) == (Status.FAILED, 1)
    assert children(world, failed, "EXEC#")[0].data["execution"]["error_class"] == "overload"

    for _ in range(3):
        world.clock.advance(MINUTE)
        world.sweep()
        world.pump()
    tell(world, endpoint, told_body(world, "resp_2"), "wh-2")
    world.settle()

    assert (world.job(job_id).status, world.job(job_id).attempt) == (Status.SUCCEEDED, 2)
    everything(world)


def test_json_that_was_asked_for_is_parsed_or_refused():
    """The result contract is the one of a fetched answer."""
    schema = {"name": "answer", "schema": {"type": "object"}}
    world = World(routes=told_catalogue())
    content = {"messages": [{"role": "user", "content": "hello"}], "json_schema": schema}
    good = world.submit("knows_us", "k-1", input=content).job.job_id
    bad = world.submit("knows_us", "k-2", input=content).job.job_id
    world.pump()
    tell(world, "knows_us", told_body(world, world.job(good).provider_job_id, text='{"a": 1}'), "wh-1")
    tell(world, "knows_us", told_body(world, world.job(bad).provider_job_id, text="no json"), "wh-2")
    world.pump()

    assert json.loads(world.store.child(good, world.job(good).result_ref).body)["structured"] == {"a": 1}
    assert world.job(bad).status is not Status.SUCCEEDED
    assert children(world, world.job(bad), "EXEC#")[0].data["execution"]["rule"] == "adapter.not_json"


def test_progress_is_acknowledged_and_not_kept():
    """Nothing to read in it."""
    world, job_id = at_provider("knows_us")
    before = world.job(job_id)

    assert tell(world, "knows_us", told_body(world, "resp_1", "processing")) == "ignored"

    assert world.store.delivery("knows_us#wh-1") is None
    assert world.job(job_id) == before


def test_paths_count_as_they_are_deployed_when_it_is_worked_on():
    """A word that became progress between record and work moves nothing."""
    world, job_id = at_provider("knows_us")
    tell(world, "knows_us", told_body(world, "resp_1"))
    changed = [
        {**one, "outcomes": {**one["outcomes"], "succeeded": "progress"}} for one in world.deps.catalogue.endpoints
    ]
    world.deps.catalogue.endpoints[:] = changed
    world.pump()

    assert verdict(world, "knows_us") == "still_running"
    assert world.job(job_id).status is Status.PROCESSING


@pytest.mark.parametrize("other", ["own_id", "asked"])
def test_another_sender_can_not_tell_of_this_job(other):
    """A signature is good for the jobs of its own routes only, whatever the metadata says."""
    world, job_id = at_provider("knows_us")
    job = world.job(job_id)
    forged = told_body(world, "resp_1", text="forged")
    world.provider.jobs["resp_1"]["outcome"] = None
    known = ProviderJob(
        endpoint="own_id", provider_job_id="resp_1", job_id=job_id, execution_id=job.execution.id, ttl=job.ttl
    )
    if other == "own_id":
        world.store.put_provider_job(known)
        tell(world, "own_id", forged)
        world.pump()
        assert verdict(world, "own_id") == "not_ours"
    else:  # its deliveries are only news: the provider itself is asked, and runs it still
        tell(world, "asked", forged)
        world.pump()
        assert verdict(world, "asked") == "still_running"

    assert world.job(job_id).status is Status.PROCESSING


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"job_id": "{job}"},
        {"job_id": "{job}", "execution_id": "{job}.{born}.9.9"},
        {"job_id": "{job}", "execution_id": "{job}.{born}.a.b"},
        {"job_id": "{job}", "execution_id": "other.1.1.1"},
    ],
)
def test_metadata_that_is_not_of_this_execution_moves_nothing(metadata):
    """Another system in the same account may write anything."""
    world, job_id = at_provider("knows_us")
    job = world.job(job_id)
    claimed = {name: value.format(job=job_id, born=job.created_at) for name, value in metadata.items()}

    tell(world, "knows_us", told_body(world, "theirs", metadata=claimed))
    world.settle(minutes=30)

    assert verdict(world, "knows_us") == "not_ours"
    assert world.job(job_id).status is Status.PROCESSING


def test_a_provider_job_of_somebody_else_is_closed_and_can_be_sent_again():
    """An id nobody knows is waited for while a create call may still be answered."""
    world, _ = at_provider("own_id")
    tell(world, "own_id", told_body(world, "resp_of_others"))
    world.pump()
    assert verdict(world, "own_id") is None

    for _ in range(20):
        world.clock.advance(MINUTE)
        world.sweep()
        world.pump()

    assert verdict(world, "own_id") == "not_found"
    assert tell(world, "own_id", told_body(world, "resp_of_others")) == "reopened"


def test_a_job_that_was_cleaned_away_is_not_revived():
    """No row afterwards."""
    world, job_id = at_provider("own_id")
    for key in [key for key in world.store.items if key[0] == f"JOB#{job_id}"]:
        del world.store.items[key]

    tell(world, "own_id", told_body(world, "resp_1"))
    world.pump()

    assert verdict(world, "own_id") == "job_gone"
    assert not [key for key in world.store.items if key[0] == f"JOB#{job_id}"]


def test_a_route_that_is_not_deployed_now_is_waited_for():
    """The next deploy may bring it back; after three days it is given up, and may be sent again."""
    world, job_id = at_provider("knows_us")
    route = world.deps.catalogue.routes.pop("knows_us")
    tell(world, "knows_us", told_body(world, "resp_1"))
    world.pump()
    assert verdict(world, "knows_us") is None
    world.deps.catalogue.routes["knows_us"] = route

    for _ in range(6):
        world.clock.advance(MINUTE)
        world.sweep()
        world.pump()

    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_delivery_recorded_before_the_endpoint_carried_results_is_fetched():
    """Its body was not kept, so the provider is asked as it was meant."""
    world, job_id = at_provider("knows_us")
    tell(world, "knows_us", told_body(world, "resp_1"))
    record = world.store.delivery("knows_us#wh-1")
    world.store.update_delivery(record, replace(record, body=None))
    world.provider.finish("resp_1")
    world.pump()

    assert world.provider.fetched == ["resp_1"]
    assert world.job(job_id).status is Status.SUCCEEDED


def test_a_provider_that_never_tells_ends_at_its_deadline_unasked():
    """No poll in between: there is nobody to ask."""
    world, job_id = at_provider("own_id")
    at = world.job(job_id)
    assert at.poll_at == at.provider_deadline_at == at.updated_at + HOUR

    world.settle()

    job = world.job(job_id)
    assert (job.status, job.reason) == (Status.DEAD_LETTER, Reason.PROVIDER_DEADLINE_EXCEEDED)
    assert world.provider.fetched == []
    everything(world)


def test_what_a_cancelled_job_cost_is_told_and_in_the_books():
    """The provider is told to stop and not asked how it ended; its late success costs and moves nothing."""
    world, job_id = at_provider("own_id")
    world.cancel(job_id)
    world.settle()
    tell(world, "own_id", told_body(world, "resp_1"))
    world.settle()

    job = world.job(job_id)
    assert (job.status, job.cost_micros) == (Status.CANCELLED, 300)
    assert (world.provider.cancelled, world.provider.fetched) == (["resp_1"], [])
    assert len(world.store.lines) == 1
    everything(world)


@pytest.mark.parametrize("endpoint", BOTH)
def test_an_answer_that_came_after_the_lease_ended_is_found_all_the_same(endpoint):
    """The slow worker notes whose work it was before it learns that nobody waits for it."""
    world = World(routes=told_catalogue())
    job_id = world.submit(f"paid_{endpoint}").job.job_id

    def too_slow(call):
        taken = world.provider.accept(call)
        world.clock.advance(LEASE + CLOCK_SKEW)
        world.complete(job_id)
        return taken

    world.provider.script = [too_slow]
    world.worker(job_id)
    assert world.job(job_id).reason is Reason.OUTCOME_UNKNOWN
    tell(world, endpoint, told_body(world, "resp_1"))
    world.settle()

    assert (world.job(job_id).status, len(world.provider.calls)) == (Status.SUCCEEDED, 1)
    everything(world)


def test_a_lost_answer_is_settled_by_our_metadata_without_a_second_call():
    """The work was done; the delivery names it."""
    world = World(routes=told_catalogue())

    def cut(call):
        world.provider.accept(call)
        return Refused(signal=Signal(error_class=ErrorClass.OUTCOME_UNKNOWN, rule="read_timeout"))

    world.provider.script = [cut]
    job_id = world.submit("paid_knows_us").job.job_id
    world.pump()
    tell(world, "knows_us", told_body(world, "resp_1"))
    world.settle()

    assert (world.job(job_id).status, len(world.provider.calls)) == (Status.SUCCEEDED, 1)


def test_an_id_too_long_for_a_delivery_is_not_noted():
    """No delivery could name it."""
    world = World(routes=told_catalogue())
    world.provider.script = [
        lambda call: replace(world.provider.accept(call), provider_job_id="x" * 257),
        lambda _call: Completed(result=answer()),
    ]
    world.submit("own_id")
    world.pump()

    assert not [pk for pk, _ in world.store.items if pk.startswith("PROVIDER#")]


def test_a_provider_that_returns_our_metadata_needs_no_note():
    """One write less."""
    world, _ = at_provider("knows_us")
    own, _ = at_provider("own_id")

    assert not [pk for pk, _ in world.store.items if pk.startswith("PROVIDER#")]
    assert [pk for pk, _ in own.store.items if pk.startswith("PROVIDER#")] == ["PROVIDER#own_id#resp_1"]


def test_a_delivery_is_worked_on_once_though_two_hold_it():
    """The second finds it processed."""
    world, _ = at_provider("knows_us")
    tell(world, "knows_us", told_body(world, "resp_1"))

    assert deliver(world.deps, "knows_us#wh-1") == "settled"
    assert deliver(world.deps, "knows_us#wh-1") == "already_processed"
