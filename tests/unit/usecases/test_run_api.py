"""`POST /v1/run` and the last result over HTTP: statuses, headers, problems."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.records import RouteState
from breakwater.domain.signals import ErrorClass
from breakwater.domain.states import Lane
from breakwater.entry.api import api
from breakwater.entry.run import answer, run_api
from breakwater.usecases.cancel import cancel
from breakwater.usecases.protect import backlog_key, notice_wait
from breakwater.usecases.releaser import release
from breakwater.usecases.run import Kind, Ran
from tests.fakes.outside import refusal
from tests.support.limited import limited, run_in
from tests.support.world import World


def event(world, method="POST", path="/v1/run", body=None, **more):
    """A request as the gateway sends it."""
    return {
        "requestContext": {
            "requestId": "req-1",
            "timeEpoch": world.clock.now(),
            "http": {"method": method, "path": path},
            "authorizer": {"lambda": {"owner_key": "acme", "key_id": "k", "scopes": "submit read"}},
        },
        "headers": {"idempotency-key": "k-1"},
        "body": None if body is None else json.dumps(body),
        **more,
    }


BODY = {"workflow": "plain_chat", "input": {"messages": [{"role": "user", "content": "hi"}]}}
CONTEXT = SimpleNamespace(get_remaining_time_in_millis=lambda: 29_000, aws_request_id="l-1")


def test_a_result_comes_back_with_the_job_it_belongs_to():
    """200, Location, the result inside."""
    world = World(routes=limited())

    found = run_api(world.deps, event(world, body=BODY), CONTEXT)

    assert found["statusCode"] == 200
    shown = json.loads(found["body"])
    assert found["headers"]["location"] == f"/v1/jobs/{shown['job_id']}"
    assert shown["result"]["text"] == "answer 1"


def test_only_one_path_is_served():
    """Everything else is 404 as problem+json."""
    world = World(routes=limited())

    found = run_api(world.deps, event(world, path="/v1/runs", body=BODY), CONTEXT)

    assert found["statusCode"] == 404
    assert found["headers"]["content-type"] == "application/problem+json"


def test_a_problem_names_job_reason_and_time():
    """503 from us keeps its detail: the caller can act on it."""
    world = World(routes=limited())
    world.provider.script = [refusal(ErrorClass.QUOTA, 429)]

    found = run_api(world.deps, event(world, body=BODY), CONTEXT)

    shown = json.loads(found["body"])
    assert (found["statusCode"], shown["reason"]) == (503, "quota_or_spend_exhausted")
    assert shown["job_id"].startswith("job_")
    assert int(found["headers"]["retry-after"]) >= 1
    assert "person" in shown["detail"]


def test_work_that_would_only_grow_old_is_turned_away():
    """The route is closed for longer than the job may wait: 503 with an honest time, and no job."""
    world = World(routes=limited())
    until = world.clock.now() + 3_600_000
    world.store.put_route(None, RouteState(route_key="plain", closed_until=until, reason="maintenance", limit=0))

    found = api(world.deps, event(world, path="/v1/jobs", body={**BODY, "workflow": "sync"}))

    assert found["statusCode"] == 503
    assert int(found["headers"]["retry-after"]) == (3_600_000 - 900_000) // 1000
    assert json.loads(found["body"])["rule"] == "route_closed"
    assert not [pk for pk, sk in world.store.items if sk == "META" and pk.startswith("JOB#")]


def test_a_refused_job_points_to_the_last_result_where_the_policy_keeps_one():
    """The problem names the place; a workflow that keeps none is not pointed at."""
    world = World(routes=limited())
    slow = world.submit("sync", key="s").job
    notice_wait(world.deps, slow, world.clock.now() + 1_000_000)
    world.clock.advance(6_000)

    kept = api(world.deps, event(world, path="/v1/jobs", body={**BODY, "workflow": "chat"}))
    none = api(world.deps, event(world, path="/v1/jobs", body=BODY))

    assert (kept["statusCode"], none["statusCode"]) == (503, 503)
    assert json.loads(kept["body"])["latest"] == "/v1/workflows/chat/latest"
    assert "latest" not in json.loads(none["body"])


def test_a_cancelled_job_is_a_conflict():
    """The same intent was stopped before."""
    world = World(routes=limited())
    job = cancel(world.deps, world.submit("plain_chat", key="k").job, "acme")

    ran = Ran(kind=Kind.CLOSED, job=job, replayed=True)

    with pytest.raises(Exception, match="cancelled") as caught:
        answer(world.deps, ran)
    assert caught.value.status == 409


def test_the_last_result_over_http():
    """With its age in the standard headers; 404 where there is none."""
    world = World(routes=limited())
    run_in(world, "chat", key="old")
    world.settle()
    world.clock.advance(90_000)

    found = api(world.deps, event(world, "GET", "/v1/workflows/chat/latest"))
    none = api(world.deps, event(world, "GET", "/v1/workflows/sync/latest"))

    assert (found["statusCode"], none["statusCode"]) == (200, 404)
    assert int(found["headers"]["age"]) >= 90
    assert json.loads(found["body"])["live"] is False


def test_a_notice_that_can_not_be_written_fails_nobody():
    """Backlog is bookkeeping."""
    world = World(routes=limited())
    job = world.submit().job

    def down(name, _when):
        if name == "put_latest":
            raise StoreUnavailable

    world.store._hook = down

    notice_wait(world.deps, job, world.clock.now() + 60_000)

    assert backlog_key(Lane.BACKGROUND_RETRY) not in world.store.newest


def test_nobody_is_woken_where_nobody_waits():
    """An empty line costs one read."""
    world = World(routes=limited(concurrency=2))

    assert release(world.deps, "route:plain") == 0
