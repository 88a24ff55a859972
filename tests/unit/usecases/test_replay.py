"""Dead work comes back once, checked, with its history kept."""

from __future__ import annotations

import pytest

from breakwater.domain.checklist import Item
from breakwater.domain.errors import InvalidRequest, KeyReused, NotFound, TooLate
from breakwater.domain.job import execution_suffix
from breakwater.domain.records import Child, RouteState, execution_of, generation_key, late_key
from breakwater.domain.replay import BatchTerms, Filter, Stop, Terms, read
from breakwater.domain.results import Completed
from breakwater.domain.signals import ErrorClass, Signal
from breakwater.domain.states import Reason, Status
from breakwater.usecases.close import close
from breakwater.usecases.conclude import conclude
from breakwater.usecases.preview import preview, preview_many, select, shown
from breakwater.usecases.read import story
from breakwater.usecases.replay import need_job, replay, replay_key
from tests.fakes.outside import answer, refusal
from tests.support.dead import dead, terms
from tests.support.world import World


def verdicts(world, job_id, route="same"):
    """Verdict by item."""
    return {one.item: one.verdict.value for one in preview(world.deps, world.job(job_id), route).checks}


def test_a_replay_is_a_new_generation_with_everything_kept():
    """Fresh budget and age; the old outcome and its executions stay readable."""
    world = World()
    job_id = dead(world)
    before = world.job(job_id)

    replayed = replay(world.deps, before, terms(), "ops/k1").job
    world.settle()

    job = world.job(job_id)
    assert (replayed.generation, replayed.attempt, replayed.reason) == (2, 0, Reason.REPLAYED)
    assert (job.status, job.generation, job.attempt) == (Status.SUCCEEDED, 2, 1)
    kept = world.store.child(job_id, generation_key(before.created_at, 1))
    assert (kept.data["reason"], kept.data["attempts"]) == ("max_attempts_exhausted", 3)
    assert [one["generation"] for one in story(world.deps, job)] == [1, 1, 1, 2]


def test_asking_twice_is_harmless():
    """The same request finds itself, before and after the new generation ends."""
    world = World()
    job_id = dead(world)
    replay(world.deps, world.job(job_id), terms(), "ops/k1")

    again = replay(world.deps, world.job(job_id), terms(), "ops/k1")
    world.settle()
    later = replay(world.deps, world.job(job_id), terms(), "ops/k1")

    assert again.repeated
    assert later.repeated
    assert world.job(job_id).generation == 2


def test_a_request_is_known_after_yet_another_replay():
    """The archived generation names the request that began it."""
    world = World()
    job_id = dead(world)
    replay(world.deps, world.job(job_id), terms("one"), "ops/k1")
    world.provider.script = [refusal(ErrorClass.SERVER_FAULT, 500)] * 20
    world.settle()
    replay(world.deps, world.job(job_id), terms("two"), "ops/k1")

    assert replay(world.deps, world.job(job_id), terms("one"), "ops/k1").repeated
    assert world.job(job_id).generation == 3


def test_the_same_request_with_other_terms_is_refused():
    """An id stands for one wish."""
    world = World()
    job_id = dead(world)
    replay(world.deps, world.job(job_id), terms(), "ops/k1")

    with pytest.raises(KeyReused):
        replay(world.deps, world.job(job_id), terms(text="something else"), "ops/k1")


def test_a_second_replay_of_one_generation_is_refused():
    """Two operators read the same dead letter; one brings it back."""
    world = World()
    job_id = dead(world)
    seen = world.job(job_id)
    replay(world.deps, seen, terms("one"), "ops/k1")

    with pytest.raises(TooLate):
        replay(world.deps, seen, terms("two"), "ops/k2")
    assert world.job(job_id).generation == 2
    assert world.job(job_id).replay_id == "one"


def test_a_replay_that_crashed_before_its_write_goes_on():
    """The record alone is no replay; the same request finishes it."""
    world = World()
    job_id = dead(world)

    def fails(name, when):
        if (name, when) == ("commit", "before"):
            raise KeyboardInterrupt

    world.store._hook = fails
    with pytest.raises(KeyboardInterrupt):
        replay(world.deps, world.job(job_id), terms(), "ops/k1")
    world.store._hook = lambda _name, _when: None
    assert world.job(job_id).generation == 1

    assert not replay(world.deps, world.job(job_id), terms(), "ops/k1").repeated
    assert world.job(job_id).generation == 2


def test_the_stop_condition_binds_the_new_generation():
    """Fewer attempts and less time than the policy allows, never more."""
    world = World()
    job_id = dead(world)

    job = replay(world.deps, world.job(job_id), terms(stop={"max_attempts": 1, "give_up_after_ms": 60_000}), "o").job

    assert job.max_attempts == 1
    assert job.expires_at == world.clock.now() + 60_000
    other = dead(world, key="k-2")
    wide = replay(world.deps, world.job(other), terms(stop={"max_attempts": 99}), "o").job
    assert wide.max_attempts == 3


def test_the_record_proves_what_was_checked():
    """Owner, reason, route, cost, stop condition and the idempotency result stand beside the job."""
    world = World()
    job_id = dead(world)
    job = world.job(job_id)

    replay(world.deps, job, terms(), "ops/k1")

    kept = world.store.child(job_id, replay_key(job, "req-1")).data
    assert (kept["owner"], kept["reason"], kept["route_key"], kept["by"]) == (
        "alex",
        "provider_recovery",
        "plain",
        "ops/k1",
    )
    assert kept["cost_reviewed"] is True
    assert kept["stop"] == {"max_attempts": 2}
    assert {one["item"]: one["verdict"] for one in kept["idempotency_result"]}["idempotency"] == "yes"


@pytest.mark.parametrize(
    "missing", ["owner", "reason", "text", "cost_reviewed", "stop", "request_id"], ids=lambda one: one
)
def test_blind_replays_are_impossible(missing):
    """Each thing that must be said is asked for by name."""
    body = terms().model_dump(mode="json", exclude_none=True)
    del body[missing]

    with pytest.raises(InvalidRequest, match=missing):
        read(Terms, body)


@pytest.mark.parametrize(
    "more",
    [{"reason": "because"}, {"cost_reviewed": False}, {"stop": {}}, {"text": "x"}, {"surprise": 1}],
    ids=str,
)
def test_terms_that_say_nothing_are_refused(more):
    """A reason outside the list, unreviewed cost, no stop condition."""
    with pytest.raises(InvalidRequest):
        read(Terms, {**terms().model_dump(mode="json", exclude_none=True), **more})


def test_a_body_that_is_no_object_is_refused():
    """Not even a list."""
    with pytest.raises(InvalidRequest):
        read(Stop, [])


# --- the checklist --------------------------------------------------------------------------------------------------


def test_a_route_that_is_still_closed_is_no_recovered_cause():
    """The operator is told to wait; an override is possible, and the job then waits like any other."""
    world = World()
    job_id = dead(world)
    world.store.put_route(
        world.store.route("plain"),
        RouteState(route_key="plain", closed_until=world.clock.now() + 3_600_000, reason="overload"),
    )

    assert verdicts(world, job_id)[Item.CAUSE_FIXED] == "no"
    with pytest.raises(TooLate, match="cause_fixed"):
        replay(world.deps, world.job(job_id), terms(), "o")
    job = replay(world.deps, world.job(job_id), terms("forced", reason="owner_override"), "o").job
    assert job.generation == 2


def test_a_refused_request_comes_back_only_after_a_change():
    """The same question gets the same answer: a 400 is closed by a person, or replayed after a fix."""
    world = World()
    job_id = world.submit().job.job_id
    world.provider.script = [refusal(ErrorClass.CALLER_FAULT, 400)]
    world.settle()

    assert verdicts(world, job_id)[Item.CAUSE_FIXED] == "no"
    object.__setattr__(world.deps, "code_version", "next")
    assert verdicts(world, job_id)[Item.CAUSE_FIXED] == "unknown"
    assert shown(preview(world.deps, world.job(job_id)))["would_replay"]


def test_an_input_that_is_gone_refuses():
    """Nothing can be asked without a question, whoever overrides."""
    world = World()
    job_id = dead(world)
    del world.store.items[f"JOB#{job_id}", world.job(job_id).input_ref]

    with pytest.raises(TooLate, match="input_retained"):
        replay(world.deps, world.job(job_id), terms(reason="owner_override"), "o")


def test_a_workflow_that_is_gone_refuses():
    """Without its policy nobody knows what may be done."""
    world = World()
    job_id = dead(world)
    del world.deps.catalogue.policies["sync"]

    assert verdicts(world, job_id)[Item.VERSIONS] == "no"
    with pytest.raises(TooLate, match="policy_and_code"):
        replay(world.deps, world.job(job_id), terms(), "o")


def test_work_with_an_outside_effect_is_never_repeated_on_a_guess():
    """A call whose answer was lost may have had its effect: proof is asked for."""
    world = World()
    job_id = world.submit("paid").job.job_id
    world.provider.script = [refusal(ErrorClass.OUTCOME_UNKNOWN)]
    world.settle(60 * 24 * 10)
    assert world.job(job_id).status is Status.DEAD_LETTER

    with pytest.raises(TooLate, match="idempotency"):
        replay(world.deps, world.job(job_id), terms(reason="owner_override"), "o")
    proven = terms("proven", reason="owner_override", proof="the provider's log shows no request")
    assert replay(world.deps, world.job(job_id), proven, "o").job.generation == 2


def test_work_that_was_done_is_taken_and_never_repeated():
    """The paid result came after the job was dead: its replay settles with it, without a call and without a price."""
    world = World()
    job_id = world.submit("paid").job.job_id
    world.provider.script = [refusal(ErrorClass.OUTCOME_UNKNOWN)]
    world.settle(60 * 24 * 10)
    job, calls = world.job(job_id), len(world.provider.calls)
    execution = execution_of(world.store.children(job_id, "EXEC#")[0].data["execution"])
    conclude(world.deps, job, execution, Completed(result=answer("late but paid")))

    found = preview(world.deps, world.job(job_id))
    assert (found.refused, found.estimate_micros) == (None, 0)
    replay(world.deps, world.job(job_id), terms(), "o")
    world.settle()

    assert world.job(job_id).status is Status.SUCCEEDED
    assert len(world.provider.calls) == calls


def test_a_provider_job_that_may_still_run_refuses_until_its_cancel_is_confirmed():
    """Two provider jobs for one intent would be paid twice."""
    world = World()
    job_id = world.submit("summary").job.job_id
    world.pump()
    world.provider.cancel_signal = Signal(error_class=ErrorClass.SERVER_FAULT, http_status=500, rule="scripted")
    for _ in range(70):
        world.clock.advance(60_000)
        world.sweep()
        world.pump()
    assert world.job(job_id).reason is Reason.PROVIDER_DEADLINE_EXCEEDED

    assert verdicts(world, job_id)[Item.IDEMPOTENCY] == "no"
    world.provider.cancel_signal = None
    world.settle()
    assert verdicts(world, job_id)[Item.IDEMPOTENCY] == "yes"


def test_a_partial_answer_that_was_seen_needs_proof():
    """A replay would show a second answer beside the first half."""
    world = World()
    job_id = dead(world)
    job = world.job(job_id)
    world.store.commit(job, job.with_(partial_output_committed=True))

    assert verdicts(world, job_id)[Item.IDEMPOTENCY] == "unknown"


def test_a_budget_that_is_spent_refuses():
    """The owner's own limit holds for operators as well."""
    world = World()
    world.settle()
    world.submit(key="paid-for")
    world.settle()
    job_id = dead(world, key="k-2")
    world.control.owners["acme"] = {"budget_micros": 1}
    assert verdicts(world, job_id)[Item.QUOTA] == "no"
    world.control.owners["acme"] = {"budgets": {"hard_micros": 10**9, "workflows": {"sync": {"hard_micros": 1}}}}
    assert verdicts(world, job_id)[Item.QUOTA] == "no"
    world.control.owners["acme"] = {"budgets": {"soft_micros": 1}}
    assert verdicts(world, job_id)[Item.QUOTA] == "yes"


def test_quota_that_ran_out_is_the_operators_word():
    """Nobody but the provider's billing page knows."""
    world = World()
    job_id = dead(world)
    job = world.job(job_id)
    world.store.commit(job, job.with_(last_error_class="spend"))

    assert verdicts(world, job_id)[Item.QUOTA] == "unknown"


def test_a_route_override_keeps_the_contract():
    """An approved fallback or the same model, and every clause kept; else it says which clause."""
    world = World()
    job_id = dead(world, "fallback")

    assert verdicts(world, job_id, "other")[Item.CONTRACT] == "yes"
    assert verdicts(world, job_id, "pictures")[Item.CONTRACT] == "no"
    assert verdicts(world, job_id, "nowhere")[Item.CONTRACT] == "no"
    job = replay(world.deps, world.job(job_id), terms(route="other"), "o").job
    assert job.route_key == "other"
    assert job.fallback_allowed == "second_account"


def test_a_replay_goes_back_to_the_workflows_own_route():
    """A job that fell back and died there starts again where its policy says."""
    world = World()
    job_id = dead(world, "fallback")
    assert world.job(job_id).route_key == "other"

    job = replay(world.deps, world.job(job_id), terms(), "o").job

    assert (job.route_key, job.fallback_allowed) == ("plain", None)


def test_a_credential_that_the_provider_refuses_is_told():
    """The route was closed for it, so the checklist names the credential."""
    world = World()
    job_id = dead(world)
    world.store.put_route(
        world.store.route("plain"),
        RouteState(route_key="plain", closed_until=world.clock.now() + 3_600_000, reason="credential"),
    )

    found = {one.item: one for one in preview(world.deps, world.job(job_id)).checks}[Item.CREDENTIALS]
    assert found.verdict.value == "no"
    assert "openai" in found.says


# --- many -----------------------------------------------------------------------------------------------------------


def test_a_preview_of_many_says_how_many_how_old_and_at_what_cost():
    """Before anything moves: numbers, refusals, reasons."""
    world = World()
    first = dead(world, key="a")
    world.clock.advance(60_000)
    dead(world, key="b")
    dead(world, "fallback", key="c")
    gone = dead(world, key="d")
    del world.store.items[f"JOB#{gone}", world.job(gone).input_ref]

    found = preview_many(world.deps, Filter(workflow="sync"), "same", 100)

    assert (found["jobs"], found["would_replay"]) == (3, 2)
    assert found["refused"] == {"input_retained": 1}
    assert found["oldest_died_at"] == world.job(first).completed_at
    assert found["estimated_cost_micros"] > 0
    assert found["reasons"] == {"max_attempts_exhausted": 3}


def test_a_filter_means_what_it_says():
    """By workflow, route, reason, owner and time of death; closed ones are no dead letters any more."""
    world = World()
    first = dead(world, key="a")
    died = world.job(first).completed_at
    world.clock.advance(60_000)
    second = dead(world, "fallback", key="b")
    closed = dead(world, key="c")
    close(world.deps, world.job(closed), "o")

    def ids(**wanted):
        return [job.job_id for job in select(world.deps, Filter(**wanted))[0]]

    assert ids() == [first, second]
    assert ids(workflow="fallback") == [second]
    assert ids(route_key="plain") == [first]
    assert ids(reason="caller_fault") == []
    assert ids(owner_key="nobody") == []
    assert ids(until=died) == [first]
    assert ids(since=died + 1) == [second]
    assert select(world.deps, Filter(), 1) == ([world.job(second)], True)


def test_closing_says_who_and_is_final():
    """A closed dead letter is not replayed; closing twice changes nothing; a living job is not closed."""
    world = World()
    job_id = dead(world)

    closed = close(world.deps, world.job(job_id), "ops/k1")
    assert (closed.closed_by, close(world.deps, closed, "ops/k2").closed_by) == ("ops/k1", "ops/k1")
    with pytest.raises(TooLate):
        replay(world.deps, closed, terms(), "o")
    alive = world.submit(key="alive").job
    with pytest.raises(TooLate):
        close(world.deps, alive, "o")


def test_a_job_that_was_never_recorded_is_not_found():
    """The first thing to know at three in the morning: it never arrived."""
    world = World()

    for name in ("job_unknown", "nonsense"):
        with pytest.raises(NotFound):
            need_job(world.deps, name)


def test_the_same_job_from_a_redriven_message_is_not_done_twice():
    """A message sent again by hand carries an id and nothing else: a settled job is left alone."""
    world = World()
    job_id = world.submit().job.job_id
    world.settle()

    world.worker(job_id)
    world.worker(job_id)

    assert len(world.provider.calls) == 1


def test_what_a_worker_learned_late_counts():
    """An execution that only late evidence gives a provider job: its cancel is looked for as well."""
    world = World()
    job_id = dead(world)
    first = world.store.children(job_id, "EXEC#")[0].data["execution"]["id"]
    late = Child(sk=late_key(first, "accepted"), data={"provider_job_id": "resp_9"})
    world.store.put_child(job_id, late, None)
    suffix = execution_suffix(first)
    world.store.put_child(job_id, Child(sk=f"EFFECT#provider_cancel#{suffix}", data={"given_up": "overload"}), None)

    found = {one.item: one for one in preview(world.deps, world.job(job_id)).checks}[Item.IDEMPOTENCY]

    assert (found.verdict.value, "resp_9" in found.says) == ("unknown", True)


def test_a_filter_that_means_too_much_stops_looking(monkeypatch):
    """A look is bounded, and says that there may be more."""
    world = World()
    for key in "abc":
        dead(world, key=key)
    monkeypatch.setattr("breakwater.usecases.preview._PAGE", 1)
    monkeypatch.setattr("breakwater.usecases.preview._MOST_SCANNED", 2)

    found, more = select(world.deps, Filter(reason="caller_fault"))

    assert (found, more) == ([], True)


def test_a_batch_of_everything_is_refused():
    """Somebody has to say what they mean."""
    body = {"terms": terms().model_dump(mode="json", exclude_none=True), "filter": {}, "error_threshold": 5}

    with pytest.raises(InvalidRequest, match="body"):
        read(BatchTerms, body)


def test_what_a_much_replayed_job_cost_is_in_the_books():
    """Its result stands behind the records of all replays; each paid call is counted, the last one too."""
    world = World()
    job_id = dead(world)
    for number in range(12):
        world.provider.script = [] if number == 11 else [refusal(ErrorClass.SERVER_FAULT, 500)] * 2
        replay(world.deps, world.job(job_id), terms(f"replay-{number}"), "ops/k1")
        world.settle()

    job = world.job(job_id)
    assert (job.status, job.generation, job.owed) == (Status.SUCCEEDED, 13, {})
    assert "usage_without_record" not in [name for name, _ in world.log.notes]
    counted = [line["usage_units"] for line in world.store.lines.values() if line["job_id"] == job_id]
    assert counted == [120]
