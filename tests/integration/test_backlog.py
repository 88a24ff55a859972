"""Ten thousand background jobs stand in the table: what do people who ask for an answer notice? Requests, not times."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from breakwater.domain.errors import Overloaded, TooMany
from breakwater.domain.results import Completed
from breakwater.domain.routes import Catalogue
from breakwater.domain.states import Lane, Reason, Status
from breakwater.store.items import job_attributes
from breakwater.store.wire import to_wire
from breakwater.usecases.releaser import release
from tests.fakes.outside import answer
from tests.support.builders import make_job
from tests.support.catalogue import policy, route
from tests.support.limited import owner, run_in
from tools.bench.calls import Bench, catalogue

DEEP, SHALLOW = 10_000, 300
SCOPE = "route:plain"
_BATCH = 25


@dataclass
class Seen:
    """What the requests of one action were, with their units: before the provider is called, and from its answer on."""

    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def put(bench: Bench, count: int, owner_key: str, **more: Any) -> None:
    """Jobs that wait in the background, straight into the table; nobody counts these requests."""
    now = bench.world.clock.now()
    times = {"created_at": now, "ready_at": now, "round_started_at": now, "expires_at": now + 900_000}
    item = to_wire(job_attributes(make_job(lane=Lane.BACKGROUND_RETRY, owner_key=owner_key, **times, **more)))
    for start in range(0, count, _BATCH):
        names = [f"job_{owner_key}_{n}" for n in range(start, min(count, start + _BATCH))]
        items = [{**item, "pk": {"S": f"JOB#{name}"}, "job_id": {"S": name}} for name in names]
        puts = [{"PutRequest": {"Item": one}} for one in items]
        bench.meter.peek.batch_write_item(RequestItems={bench.table: puts})


def waiting(bench: Bench, count: int, owner_key: str) -> None:
    """Of those, some that wait for capacity on the very route that people use."""
    rank = bench.world.clock.now() - 60_000
    scope = {"waiting_scope": SCOPE, "waiting_rank": rank, "recheck_at": rank + 900_000}
    put(bench, count, owner_key, reason=Reason.NO_CAPACITY, **scope)


def ask(bench: Bench, key: str) -> Seen:
    """One `/run` request: admitted, and attempted at once."""
    seen, meter = Seen(), bench.meter
    begun = len(meter.log)

    def call(_call: Any) -> Any:
        seen.before = _told(meter.log[begun:])
        return Completed(result=answer("hi"))

    bench.world.provider.script = [call]
    assert run_in(bench.world, "plain_chat", key=key).job.status is Status.SUCCEEDED
    seen.after = _told(meter.log[begun + len(seen.before) :])
    return seen


def _told(log: list[str]) -> list[str]:
    """Without the job's name, and the numbers it takes by that."""
    return [re.sub(r"SLOT#… \d+|job_\w+", "…", one) for one in log]


@dataclass
class Measured:
    """One installation, and what one request of a person cost beside more and more background work."""

    bench: Bench
    empty: Seen
    queued: Seen
    shallow: Seen
    deep: Seen


@pytest.fixture(scope="module")
def measured(dynamo_cloud):
    """Half of the backlog stands in the queue, half waits for capacity on the route that people use."""
    bench = Bench(dynamo_cloud.endpoint, catalogue())
    ask(bench, "warm")
    empty = ask(bench, "empty")
    put(bench, DEEP // 2, "queued")
    queued = ask(bench, "queued")
    waiting(bench, SHALLOW, "acme")
    shallow = ask(bench, "shallow")
    waiting(bench, DEEP // 2, "flood")
    return Measured(bench, empty, queued, shallow, ask(bench, "deep"))


def test_ten_thousand_background_jobs_cost_people_nothing(measured):
    """The very same requests and units until the provider is called; after its answer no more than for a few."""
    empty, deep = measured.empty, measured.deep

    assert len(empty.before) >= 5
    assert measured.queued == empty, "jobs that stand in the queue are not even looked at"
    assert measured.shallow.before == deep.before == empty.before
    assert len(deep.after) <= len(measured.shallow.after) + 3, "whose turn it is among many"
    assert len(deep.after) <= len(empty.after) + 12, "the room this job made is given to the next in turn, once"


def test_a_flood_of_thousands_hides_no_other_owner(measured):
    """The next in turn is found behind it, by a handful of small reads."""
    bench = measured.bench
    waiting(bench, 1, "late")
    for _ in range(3):
        begun, reads = len(bench.meter.log), bench.meter.reads

        assert release(bench.world.deps, SCOPE, most=1) == 1

        assert len(bench.meter.log) - begun <= 14, bench.meter.log[begun:]
        assert bench.meter.reads - reads <= 20
    assert _woken(bench, "late")


def _woken(bench: Bench, owner_key: str) -> bool:
    job = bench.world.store.get(f"job_{owner_key}_0")
    return job is not None and job.woken_for == SCOPE


def test_a_limit_of_depth_holds_on_the_real_table(dynamo_cloud):
    """Turned away at the limit for one more request each two seconds, let in again once it has drained."""
    limits = {"max_queue_depth": 4, "max_queue_depth_per_owner": 3}
    background = {"max_queue_age_ms": 900_000, "max_attempts": 3, "require_idempotency_key": False, **limits}
    limited = policy("sync", ai_api_queueing_strategy={"lanes": {"background_retry": background}})
    routes = {"plain": route("plain")}
    bench = Bench(dynamo_cloud.endpoint, Catalogue(routes=routes, policies={"sync": limited}, default_route="plain"))
    world = bench.world
    for n in range(3):
        world.submit(key=f"k{n}")
    with pytest.raises(TooMany) as own:
        world.submit(key="k3")
    world.submit(key="k0", owner=owner("umbrella"))
    world.clock.advance(60_000)
    begun = len(bench.meter.log)

    with pytest.raises(Overloaded) as everybody:
        world.submit(key="k1", owner=owner("umbrella"))

    assert (own.value.rule, everybody.value.rule) == ("owner_backlog_depth", "backlog_depth")
    assert everybody.value.retry_after_ms == 6_000, "as long as they have stood, by a tenth"
    counted = [one for one in bench.meter.log[begun:] if "standing" in one]
    assert len(counted) == 2, "the count, and how old what stands is"
    world.pump()
    world.clock.advance(3_000)
    assert world.submit(key="k1", owner=owner("umbrella")).job.counted
    assert world.store.backlog(Lane.BACKGROUND_RETRY, None, 10).depth == 1
