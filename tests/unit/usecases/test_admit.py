"""An intent becomes a job once, whoever asks how often and how fast."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from breakwater.domain.errors import InvalidRequest, KeyReused, NotAuthorised, StaleVersion, StoreUnavailable
from breakwater.domain.obligations import Queue
from breakwater.domain.request import parse
from breakwater.domain.routes import Catalogue
from breakwater.domain.states import Priority, Status
from breakwater.domain.timing import DAY
from breakwater.ports import Conflicted
from breakwater.usecases.admit import admit
from breakwater.usecases.bodies import INLINE_BYTES, read_input
from breakwater.usecases.principal import Principal
from tests.crash.checks import everything
from tests.crash.stage import Stage
from tests.crash.tap import Fault, Tap
from tests.support.catalogue import policy, route
from tests.support.world import OWNER, World


def test_fifty_at_once_are_one_job():
    """One is the first, the others find it; one call is made."""
    world = World()

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: world.submit(), range(50)))

    assert len({one.job.job_id for one in told}) == 1
    assert sum(not one.replayed for one in told) == 1
    world.settle()
    assert len(world.provider.calls) == 1


def test_the_same_key_of_another_owner_or_user_is_another_job():
    """Keys never meet across owners, users or workflows."""
    world = World()
    beta = Principal(owner_key="beta", key_id="k", scopes=frozenset({"submit"}))
    ids = {
        world.submit().job.job_id,
        world.submit(owner=beta).job.job_id,
        world.submit(user_ref="u-1").job.job_id,
        world.submit("urgent").job.job_id,
    }

    assert len(ids) == 4


def test_without_a_key_the_same_question_today_is_the_same_job():
    """And next week it is a new one."""
    world = World()
    first, second = world.submit(key=None), world.submit(key=None)
    world.settle()
    world.clock.advance(7 * DAY)
    third = world.submit(key=None)

    assert (first.job.job_id, first.replayed) == (second.job.job_id, False)
    assert (third.replayed, third.job.job_id == first.job.job_id) == (False, False)


def test_a_workflow_that_needs_a_key_says_so():
    """Before anything is stored."""
    strategy = {"lanes": {"background_retry": {"require_idempotency_key": True}}}
    routes = Catalogue(
        routes={"plain": route("plain")},
        policies={"keyed": policy("keyed", ai_api_queueing_strategy=strategy)},
        default_route="plain",
    )
    world = World(routes=routes)

    with pytest.raises(InvalidRequest) as refused:
        world.submit("keyed", key=None)

    assert (refused.value.field, refused.value.rule) == ("Idempotency-Key", "required")
    assert world.store.items == {}


@pytest.mark.parametrize(
    ("workflow", "more", "rule"),
    [("unknown", {}, "known_workflow"), ("pictures", {}, "input_shape"),
     ("sync", {"input": {"prompt": "a boat"}}, "input_shape")],
)  # fmt: skip
def test_what_can_not_be_done_is_refused_before_anything_is_stored(workflow, more, rule):
    """A refusal binds no key."""
    world = World()
    body = {"workflow": workflow, "input": {"messages": [{"role": "user", "content": "x"}]}, **more}

    with pytest.raises(InvalidRequest) as refused:
        admit(world.deps, OWNER, parse(body), "k-1", None)

    assert refused.value.rule == rule
    assert world.store.items == {}


def test_a_workflow_whose_route_is_not_deployed_says_so():
    """It is the team's mistake, and the caller learns which."""
    world = World(routes=Catalogue(routes={}, policies={"sync": policy("sync")}, default_route="plain"))

    with pytest.raises(InvalidRequest) as refused:
        world.submit()

    assert refused.value.rule == "route"


def test_a_key_without_the_scope_submits_nothing():
    """Reading is not writing; an operator's key may do both."""
    world = World()
    reader = Principal(owner_key="acme", key_id="k", scopes=frozenset({"read"}))
    operator = Principal(owner_key="acme", key_id="k", scopes=frozenset({"operate"}))

    with pytest.raises(NotAuthorised):
        world.submit(owner=reader)
    assert world.submit(owner=operator).replayed is False


@pytest.mark.parametrize(
    ("workflow", "asked", "given"),
    [
        ("urgent", None, Priority.HIGH),
        ("urgent", "low", Priority.LOW),
        ("sync", "high", Priority.NORMAL),
        ("sync", "low", Priority.LOW),
    ],
)
def test_a_request_may_only_lower_its_priority(workflow, asked, given):
    """The policy's is the highest there is."""
    world = World()
    more = {"priority": asked} if asked else {}

    assert world.submit(workflow, **more).job.priority is given


def test_a_large_input_stands_in_the_object_store_and_reads_back():
    """META stays small; the body is found by its digest."""
    world = World()
    text = "ä" * INLINE_BYTES
    job = world.submit(text=text).job

    assert len(world.payloads.kept) == 1
    assert read_input(world.deps, job)["messages"][0]["content"] == text
    world.payloads.kept.clear()
    assert read_input(world.deps, job) is None


def test_a_lone_surrogate_is_stored_and_reads_back():
    """Whatever Python can hold never crashes admission."""
    world = World()
    job = world.submit(text="\ud800").job

    assert read_input(world.deps, job)["messages"][0]["content"] == "\ud800"


def test_a_repeat_after_a_while_nudges_again():
    """A client that asks for a job that nobody took moves it along."""
    world = World()
    world.submit()
    for messages in world.queues.sent.values():
        messages.clear()
    world.clock.advance(5_000)
    world.submit()
    assert not any(world.queues.sent.values())
    world.clock.advance(6_000)
    world.submit()

    assert [len(world.queues.sent[queue]) for queue in (Queue.BACKGROUND, Queue.EFFECTS)] == [1, 0]


def test_a_repeat_with_another_payload_is_refused_even_while_the_first_runs():
    """Same key, other words."""
    world = World()
    job_id = world.submit().job.job_id
    with pytest.raises(KeyReused) as refused:
        world.submit(text="other words")

    assert refused.value.status == 422
    assert refused.value.ids == {"job": job_id}


@pytest.mark.parametrize("call", ["store.put_child", "store.create"])
def test_what_could_not_be_stored_was_not_accepted(call):
    """503, and the same key works when the table is back."""
    stage = Stage(Tap(fault=Fault.REFUSED, at=_first(call)))
    with pytest.raises(StoreUnavailable):
        stage.submit()
    assert not [sk for _, sk in stage.store.items if sk == "META"]
    job_id = stage.ask_for("sync")
    stage.run()

    assert stage.job(job_id).status is Status.SUCCEEDED
    everything(stage)


def _first(call):
    names = Tap()
    Stage(names).submit()
    return names.calls.index(call)


def test_a_key_that_others_keep_taking_and_leaving_is_an_answer_to_try_again():
    """Nobody is told of a job that is not there."""
    world = World()
    world.store.create = lambda _job, _now: Conflicted(None)

    with pytest.raises(StaleVersion):
        world.submit()
