"""What a caller sees: their own jobs, all public fields, the result, the story in order; never anybody else's."""

from __future__ import annotations

import json

import pytest

from breakwater.domain.errors import CorruptItem, InvalidRequest, NotFound
from breakwater.domain.records import Child
from breakwater.domain.results import Completed
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Status
from breakwater.usecases.bodies import read_input
from breakwater.usecases.principal import Principal
from breakwater.usecases.read import MAX_INLINE_RESULT, etag, listed, own_job, story, view, with_result
from breakwater.usecases.usage import usage
from tests.fakes.outside import answer, refusal
from tests.support.world import OWNER, World

STRANGER = Principal(owner_key="beta", key_id="k", scopes=frozenset({"read"}))


@pytest.mark.parametrize("job_id", ["job_nobody", "", "job_" + "x" * 100, "../META", "JOB#x"])
def test_an_id_that_is_none_is_not_found(job_id):
    """Whatever it looks like."""
    with pytest.raises(NotFound):
        own_job(World().deps, OWNER, job_id)


def test_another_owners_job_is_not_there():
    """Neither read nor listed."""
    world = World()
    job_id = world.submit().job.job_id

    with pytest.raises(NotFound):
        own_job(world.deps, STRANGER, job_id)
    assert listed(world.deps, STRANGER, 10, None) == ([], None)
    assert [one["job_id"] for one in listed(world.deps, OWNER, 10, None)[0]] == [job_id]


def test_a_view_is_plain_json_with_the_names_of_the_api():
    """Every field can be sent as it is; `final` is always there."""
    world = World()
    world.provider.script = [refusal(ErrorClass.PACING, 429, retry_after_ms=2_500)]
    job_id = world.submit().job.job_id
    world.worker(job_id)

    shown = view(world.deps, world.job(job_id))

    assert json.loads(json.dumps(shown)) == shown
    assert (shown["status"], shown["final"], shown["retry_after_ms"]) == ("failed", False, 2_500)
    assert shown["next_poll_after_ms"] >= 1_000


def test_the_etag_changes_with_every_write_and_with_nothing_else():
    """A client that polls gets 304 until something happened."""
    world = World()
    job_id = world.submit().job.job_id
    before = etag(world.job(job_id))
    assert etag(world.job(job_id)) == before
    world.worker(job_id)

    assert etag(world.job(job_id)) != before


def test_a_large_result_is_a_link_that_soon_expires():
    """Above 4 MiB the body does not pass through the gateway."""
    world = World()
    world.provider.script = [Completed(result=answer("x" * (MAX_INLINE_RESULT + 1)))]
    job_id = world.submit().job.job_id
    world.settle()

    shown = with_result(world.deps, world.job(job_id))

    assert "result" not in shown
    assert shown["result_url"].endswith("expires=300")
    assert shown["result_bytes"] > MAX_INLINE_RESULT


def test_a_result_in_the_object_store_is_read_back_while_it_fits():
    """Between the two limits."""
    world = World()
    world.provider.script = [Completed(result=answer("y" * 100_000))]
    job_id = world.submit().job.job_id
    world.settle()

    assert with_result(world.deps, world.job(job_id))["result"]["text"] == "y" * 100_000
    world.payloads.kept.clear()
    assert "result" not in with_result(world.deps, world.job(job_id)), "retention took it"


def test_a_result_whose_record_is_gone_is_left_out():
    """The status still stands."""
    world = World()
    job_id = world.submit().job.job_id
    world.settle()
    del world.store.items[f"JOB#{job_id}", world.job(job_id).result_ref]

    shown = with_result(world.deps, world.job(job_id))
    assert (shown["status"], "result" in shown) == ("succeeded", False)


def test_the_story_shows_what_is_open_last():
    """Closed attempts in order, then the one that runs."""
    world = World()
    world.provider.script = [refusal(ErrorClass.OVERLOAD, 503)]
    job_id = world.submit("summary").job.job_id
    world.worker(job_id)
    world.clock.advance(60_000)
    world.worker(job_id)

    lines = story(world.deps, world.job(job_id))
    assert [(one["kind"], one["attempt"]) for one in lines] == [("execution", 1), ("open", 2)]


def test_an_input_that_is_no_object_is_our_mistake():
    """It was never admitted like that."""
    world = World()
    job = world.submit().job
    world.store.put_child(job.job_id, Child(sk="INPUT#odd", body="[1]"), None)

    with pytest.raises(CorruptItem):
        read_input(world.deps, job.with_(input_ref="INPUT#odd"))


def test_usage_of_a_month():
    """In all and by workflow; the current month where none is named."""
    world = World()
    world.submit()
    world.submit("urgent")
    world.settle()

    told = usage(world.deps, "acme", "")
    assert (told["period"], told["total"]["executions"], told["total"]["cost_micros"]) == ("2027-01", 2, 600)
    assert {name: one["executions"] for name, one in told["workflows"].items()} == {"sync": 1, "urgent": 1}
    assert usage(world.deps, "acme", "2026-12")["total"]["executions"] == 0
    with pytest.raises(InvalidRequest):
        usage(world.deps, "acme", "last month")
    assert {world.job(one["job_id"]).status for one in listed(world.deps, OWNER, 10, None)[0]} == {Status.SUCCEEDED}
