"""The interactive path: always an answer, in time, and never a call that can't end before the deadline."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from breakwater.domain.errors import FailedClosed, Overloaded, StoreUnavailable, TooMany
from breakwater.domain.obligations import Queue
from breakwater.domain.records import RouteState
from breakwater.domain.results import Completed
from breakwater.domain.signals import ErrorClass
from breakwater.domain.slots import Slot
from breakwater.domain.states import Lane, Reason, Status
from breakwater.domain.switches import Switch, SwitchName
from breakwater.domain.timing import RESPONSE_RESERVE
from breakwater.entry.run import answer
from breakwater.usecases.latest import last_result
from breakwater.usecases.protect import check, notice_wait, waited
from breakwater.usecases.run import Kind, TurnedAway
from breakwater.usecases.switch_state import throw
from tests.fakes.outside import answer as result
from tests.fakes.outside import refusal
from tests.support.limited import limited, owner, run_in
from tests.support.world import OWNER, World

DEADLINE = 25_000


def world_with(**limits):
    """People's workflows over one route."""
    return World(routes=limited(**limits))


def took(world, ms, outcome=None):
    """A provider that needs this long."""

    def call(_call):
        world.clock.advance(ms)
        return outcome or Completed(result=result("hi"))

    return call


def closed(world, ms):
    """The route is closed for that long."""
    state = RouteState(route_key="plain", closed_until=world.clock.now() + ms, reason="overload", limit=0)
    world.store.put_route(None, state)


def test_a_good_day_is_one_call_and_the_result():
    """Answered in process; nobody was nudged to take it, and everything owed is delivered afterwards."""
    world = world_with(concurrency=4)

    ran = run_in(world)

    assert ran.kind is Kind.RESULT
    assert len(world.provider.calls) == 1
    assert world.queues.sent[Queue.INTERACTIVE] == []
    assert answer(world.deps, ran)["statusCode"] == 200
    assert json.loads(answer(world.deps, ran)["body"])["result"]["text"] == "answer 1"
    world.settle()
    assert world.job(ran.job.job_id).owed == {}
    assert not world.store.taken


def test_the_same_intent_twice_is_one_call():
    """The second request gets the first one's result."""
    world = world_with()
    run_in(world)

    again = run_in(world)

    assert (again.kind, again.replayed, len(world.provider.calls)) == (Kind.RESULT, True, 1)


def test_a_short_failure_is_repeated_within_the_request():
    """A second attempt, after a short wait, in the same process."""
    world = world_with()
    world.provider.script = [refusal(ErrorClass.OVERLOAD, 503)]

    ran = run_in(world, "plain_chat")

    assert (ran.kind, ran.job.attempt) == (Kind.RESULT, 2)


def test_an_outage_ends_in_a_queued_job_with_a_time_to_look_again():
    """202, an id, and the work goes on in the background."""
    world = world_with()
    world.provider.script = [refusal(ErrorClass.OVERLOAD, 503)] * 2
    began = world.clock.now()

    ran = run_in(world, "plain_chat")

    assert ran.kind is Kind.QUEUED
    assert world.clock.now() - began < DEADLINE
    shown = answer(world.deps, ran)
    assert shown["statusCode"] == 202
    assert int(shown["headers"]["retry-after"]) >= 1
    assert ran.job.lane is Lane.BACKGROUND_RETRY
    assert ran.job.deadline_at is None
    world.settle()
    assert world.job(ran.job.job_id).status is Status.SUCCEEDED


def test_no_call_begins_that_can_not_end_in_time():
    """The first call took nearly everything: there is no second one, and the answer comes before the deadline."""
    world = world_with()
    world.provider.script = [took(world, 21_000, refusal(ErrorClass.OVERLOAD, 503))]
    began = world.clock.now()

    ran = run_in(world, "plain_chat")

    assert len(world.provider.calls) == 1
    assert ran.kind is Kind.QUEUED
    assert world.clock.now() - began <= DEADLINE


def test_a_call_is_told_to_end_before_the_deadline():
    """Its time-out leaves the reserve."""
    world = world_with()
    run_in(world, late_by=10_000)

    assert world.provider.calls[0].timeout_ms <= DEADLINE - 10_000 - RESPONSE_RESERVE


def test_a_request_that_arrived_too_late_makes_no_call():
    """The deadline counts from its arrival at the gateway."""
    world = world_with()

    ran = run_in(world, "plain_chat", late_by=DEADLINE - 1_000)

    assert world.provider.calls == []
    assert ran.kind is Kind.QUEUED


def test_a_closed_route_is_not_waited_for():
    """Nobody sits out an admission wait that can't help."""
    world = world_with()
    closed(world, 60_000)
    began = world.clock.now()

    ran = run_in(world, "plain_chat")

    assert (ran.kind, ran.job.reason) == (Kind.QUEUED, Reason.ROUTE_CLOSED)
    assert world.clock.now() - began < 1_000
    assert world.provider.calls == []


def test_a_full_route_is_waited_for_as_long_as_the_policy_lets_people_wait():
    """Four seconds, then the background; without a write for every look."""
    world = world_with(concurrency=1)
    now = world.clock.now()
    busy = world.submit(key="busy").job
    world.store.take_slot(
        Slot(scope="route:plain", n=0, job_id=busy.job_id, epoch=1, taken_at=now, verify_at=now + 600_000)
    )
    writes = []
    world.store._hook = lambda name, when: writes.append(name) if name == "commit" and when == "after" else None

    ran = run_in(world, "plain_chat")

    assert (ran.kind, ran.job.reason) == (Kind.QUEUED, Reason.NO_CAPACITY)
    assert 4_000 <= world.clock.now() - now <= 4_600
    assert len(writes) == 1


def test_capacity_that_is_freed_in_time_is_used():
    """The next look finds it."""
    world = world_with(concurrency=1)
    now = world.clock.now()
    world.store.take_slot(Slot(scope="route:plain", n=0, job_id="x", epoch=1, taken_at=now, verify_at=now + 600_000))
    seen = []

    def free(name, when):
        if name == "slots" and when == "before":
            seen.append(name)
            if len(seen) == 3:
                world.store.taken.clear()

    world.store._hook = free

    assert run_in(world, "plain_chat").kind is Kind.RESULT


def test_a_workflow_without_background_ends_with_a_problem():
    """503 with the job's id and a time; dead letter with its reason."""
    world = world_with()
    world.provider.script = [refusal(ErrorClass.OVERLOAD, 503)] * 2

    ran = run_in(world, "only_now")

    assert ran.kind is Kind.CLOSED
    with pytest.raises(FailedClosed, match="No further call") as caught:
        answer(world.deps, ran)
    assert (caught.value.status, caught.value.ids["job"]) == (503, ran.job.job_id)
    assert caught.value.retry_after_ms >= 1_000


def test_a_caller_fault_is_the_callers():
    """422, told at once, no second call."""
    world = world_with()
    world.provider.script = [refusal(ErrorClass.CALLER_FAULT, 400)]

    with pytest.raises(FailedClosed, match="refused the request") as caught:
        answer(world.deps, run_in(world))

    assert caught.value.status == 422
    assert len(world.provider.calls) == 1


def test_a_process_that_dies_leaves_a_job_that_goes_on():
    """`due_at` lies behind the deadline; the sweep finds it there and a worker takes it to the background."""
    world = world_with()

    def die(name, _when):
        if name == "route":
            raise KeyboardInterrupt

    world.provider.script = []
    ran = run_in(world, "plain_chat", key="before")
    world.settle()
    with pytest.raises(KeyboardInterrupt):
        run_dying(world, die)
    (job,) = (one for one in jobs(world) if one.job_id != ran.job.job_id)
    assert job.due_at == job.deadline_at + RESPONSE_RESERVE

    world.settle()

    assert world.job(job.job_id).status is Status.SUCCEEDED
    assert world.job(job.job_id).lane is Lane.BACKGROUND_RETRY


def run_dying(world, die):
    """A request whose process ends at the first gate after its job was admitted."""
    checked = []

    def hook(name, when):
        checked.append(name)
        if "create" in checked:
            die(name, when)

    world.store._hook = hook
    try:
        run_in(world, "plain_chat", key="dies")
    finally:
        world.store._hook = lambda _name, _when: None


def jobs(world):
    """Every job of a world."""
    return [world.store.get(pk[4:]) for pk, sk in list(world.store.items) if pk.startswith("JOB#") and sk == "META"]


def test_a_process_that_dies_in_the_call_leaves_nothing_to_repeat():
    """Whether it was done is not known, and nobody waits any more: it rests, and is not called again."""
    world = world_with()

    def die(_call):
        raise KeyboardInterrupt

    world.provider.script = [die]
    with pytest.raises(KeyboardInterrupt):
        run_in(world, "plain_chat")
    world.settle()

    (job,) = jobs(world)
    assert job.final
    assert len(world.provider.calls) == 1


def test_queue_instead_of_fail_answers_at_once():
    """The lightest switch: an id, a status, the time to look again; shown in the answer."""
    world = world_with()
    throw(world.deps, Switch(name=SwitchName.QUEUE_INSTEAD_OF_FAIL, who="ann", why="slow provider", since=1))

    ran = run_in(world, "plain_chat")

    assert ran.kind is Kind.QUEUED
    assert world.provider.calls == []
    body = json.loads(answer(world.deps, ran)["body"])
    assert [one["name"] for one in body["degraded"]] == ["queue_instead_of_fail"]
    world.settle()
    assert world.job(ran.job.job_id).status is Status.SUCCEEDED


def test_the_last_result_is_served_with_its_age_and_never_as_live():
    """Only with the switch, only of the same owner and user, labelled."""
    world = world_with()
    first = run_in(world, key="old", user_ref="u1").job
    world.settle()
    world.clock.advance(600_000)
    closed(world, 60_000)
    throw(world.deps, Switch(name=SwitchName.SERVE_LAST_RESULT, who="ann", why="outage", since=1))

    ran = run_in(world, key="new", user_ref="u1")
    shown = answer(world.deps, ran)
    body = json.loads(shown["body"])

    assert ran.kind is Kind.LATEST
    assert (shown["statusCode"], shown["headers"]["warning"][:3]) == (200, "110")
    assert (body["live"], body["latest"]["job_id"], body["latest"]["live"]) == (False, first.job_id, False)
    assert body["latest"]["age_ms"] >= 600_000
    assert body["job"]["status"] == "pending"
    assert run_in(world, key="other", user_ref="u2").kind is Kind.QUEUED
    assert last_result(world.deps, "stranger", "u1", "chat") is None
    assert last_result(world.deps, OWNER.owner_key, "u1", "sync") is None


def test_low_priority_is_turned_away_while_people_wait_long():
    """503 with a time; high priority is let in; what was admitted before is answered."""
    world = world_with()
    before = world.submit("plain_chat", key="old", priority="low").job
    slow = world.submit("sync", key="s").job.with_(lane=Lane.INTERACTIVE_ADMISSION)
    notice_wait(world.deps, slow, world.clock.now() + 20_000)
    world.clock.advance(20_000)

    with pytest.raises(Overloaded) as caught:
        run_in(world, "plain_chat", priority="low")

    assert caught.value.retry_after_ms >= 5_000
    assert run_in(world, "plain_chat").kind is Kind.RESULT
    assert world.submit("plain_chat", key="old", priority="low").job.job_id == before.job_id


def slow(world):
    """People wait for longer than work of low priority may."""
    world.clock.advance(600_000)
    waits = world.submit("sync", key="s").job.with_(lane=Lane.INTERACTIVE_ADMISSION)
    notice_wait(world.deps, waits, world.clock.now() + 20_000)


def metas(world):
    """Every job there is."""
    return {pk for pk, sk in world.store.items if sk == "META" and pk.startswith("JOB#")}


def test_who_is_turned_away_gets_the_last_result_and_is_told_both():
    """Labelled with its age, beside the refusal; no job is made, so the key stays free."""
    world = world_with()
    first = run_in(world, key="old", user_ref="u1").job
    world.settle()
    slow(world)
    throw(world.deps, Switch(name=SwitchName.SERVE_LAST_RESULT, who="ann", why="outage", since=1))
    jobs = metas(world)

    ran = run_in(world, key="new", priority="low", user_ref="u1")
    shown = answer(world.deps, ran)
    body = json.loads(shown["body"])

    assert isinstance(ran, TurnedAway)
    assert (shown["statusCode"], shown["headers"]["warning"][:3]) == (200, "110")
    assert int(shown["headers"]["age"]) >= 600
    assert int(shown["headers"]["retry-after"]) == 20
    assert (body["live"], body["latest"]["live"], body["latest"]["job_id"]) == (False, False, first.job_id)
    assert body["latest"]["age_ms"] >= 600_000
    assert body["refused"] == {
        "status": 503,
        "rule": "shed_priority_below",
        "detail": "Work of this priority is turned away while capacity is short.",
        "retry_after_ms": 20_000,
    }
    assert metas(world) == jobs


@pytest.mark.parametrize("missing", ["switch", "another workflow's switch", "policy", "user", "owner", "store"])
def test_without_a_last_result_that_may_be_served_a_refusal_is_a_refusal(missing):
    """The switch, the policy and a result of the very same owner and user: one is missing, and it is 503."""
    world = world_with()
    run_in(world, key="old", user_ref="u1")
    world.settle()
    slow(world)
    concerned = ("only_now",) if missing == "another workflow's switch" else ()
    if missing != "switch":
        serve = Switch(name=SwitchName.SERVE_LAST_RESULT, who="ann", why="outage", since=1, workflows=concerned)
        throw(world.deps, serve)
    if missing == "store":
        waited(world.deps, Lane.INTERACTIVE_ADMISSION)

        def down(name, _when):
            if name == "latest":
                raise StoreUnavailable

        world.store._hook = down
    workflow = "plain_chat" if missing == "policy" else "chat"
    caller = owner("stranger") if missing == "owner" else OWNER
    user = "u2" if missing == "user" else "u1"

    with pytest.raises(Overloaded) as caught:
        run_in(world, workflow, key="new", priority="low", caller=caller, user_ref=user)

    pointer = {"latest": "/v1/workflows/chat/latest"} if workflow == "chat" else {}
    assert caught.value.ids == pointer


def test_a_quiet_system_writes_no_backlog():
    """Only noticeable waits are told, and not by every job."""
    world = world_with()
    job = world.submit().job

    notice_wait(world.deps, job, world.clock.now() + 100)
    assert world.store.newest == {}
    for n in range(5):
        notice_wait(world.deps, job, world.clock.now() + 30_000 + n)

    assert len(world.store.newest) == 2


def test_one_owners_backlog_is_theirs():
    """429 for the one, the others are let in."""
    world = world_with()
    job = world.submit(owner=owner("flood"), key="f").job
    world.deps.noticed.written["LANE#background_retry"] = world.clock.now() + 2_000_000
    notice_wait(world.deps, job, world.clock.now() + 1_000_000)
    world.clock.advance(1_000_000)
    policy = world.deps.catalogue.policy("sync")

    with pytest.raises(TooMany):
        check(world.deps, job, policy)
    check(world.deps, job.with_(owner_key="other"), policy)


OUTCOMES = st.lists(
    st.tuples(
        st.sampled_from(["ok", "overload", "pacing", "unknown", "caller", "key"]),
        st.integers(0, 26_000),
        st.one_of(st.none(), st.integers(-5, 40_000)),
    ),
    max_size=6,
)


@given(outcomes=OUTCOMES, late=st.integers(0, 30_000), workflow=st.sampled_from(["chat", "plain_chat", "only_now"]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_the_provider_does_people_get_an_answer_in_time(outcomes, late, workflow):
    """No hung request, no call that begins too late, no second call after the deadline."""
    world = world_with(concurrency=2)
    arrived = world.clock.now() - late
    starts = []
    classes = {
        "overload": (ErrorClass.OVERLOAD, 503),
        "pacing": (ErrorClass.PACING, 429),
        "unknown": (ErrorClass.OUTCOME_UNKNOWN, None),
        "caller": (ErrorClass.CALLER_FAULT, 400),
        "key": (ErrorClass.CREDENTIAL, 401),
    }

    def scripted(kind, ms, hint):
        def call(made):
            starts.append(world.clock.now())
            world.clock.advance(min(ms, made.timeout_ms))
            if kind == "ok":
                return Completed(result=result("hi"))
            return refusal(classes[kind][0], classes[kind][1], retry_after_ms=hint)

        return call

    world.provider.script = [scripted(*one) for one in outcomes]
    ran = run_in(world, workflow, late_by=late)

    policy = world.deps.catalogue.policy(workflow)
    deadline = arrived + policy.deadline_ms
    assert world.clock.now() <= max(deadline, arrived + late) + 500
    assert all(at + policy.min_call_ms + RESPONSE_RESERVE <= deadline for at in starts)
    assert len(starts) <= 3
    assert not world.store.taken, "no slot is left behind"
    if ran.kind is Kind.CLOSED:
        with pytest.raises(FailedClosed):
            answer(world.deps, ran)
    else:
        assert answer(world.deps, ran)["statusCode"] in {200, 202}
