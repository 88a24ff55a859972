"""How many requests, units, invocations and milliseconds does one job cost?

One process plays every function over the real stores and the emulator's DynamoDB; provider, clock and queues are the
tests' own, so that a job of a minute takes none and nothing else happens in between. Requests are counted at the wire;
a nudge is one SQS request to send, one to receive and one to delete. Caches are warm, as in a function that is used.
Own time is CPU time of the process, request by request, through the SDK but without the emulator's.
"""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from breakwater.domain.obligations import Queue
from breakwater.domain.results import Accepted, Completed
from breakwater.domain.signals import ErrorClass
from breakwater.domain.slots import ScopeLimit
from breakwater.domain.states import Lane
from breakwater.store.table import DynamoJobStore
from breakwater.usecases.noticed import route_now
from breakwater.usecases.notify import callback_key, fared
from breakwater.usecases.protect import waited
from breakwater.usecases.step import Told
from tests.fakes.outside import answer, refusal
from tests.support.catalogue import policy, route
from tests.support.cloud import create_table
from tests.support.limited import FALLBACK, limited
from tests.support.world import World
from tools.bench.clients import product_client
from tools.bench.meter import Meter
from tools.bench.template import memory_gb
from tools.bench.yardstick import slower
from tools.localcloud.cloud import client

PRICES = Path(__file__).with_name("prices.json")
_MINUTE = 60_000
_CALLBACK = "https://callback.example/hook"
_POLLS = 10
_ONCE = {"max_queue_age_ms": 900_000, "max_attempts": 1, "require_idempotency_key": False}
_CPU_JOBS = 7
Prices = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of one function."""

    function: str
    requests: tuple[str, ...]
    provider_calls: int
    cpu_ms: float  # on the machine of the yardstick


@dataclass(frozen=True, slots=True)
class Cost:
    """What one job of a scenario cost."""

    name: str
    invocations: tuple[Invocation, ...]
    http: int  # requests at the gateway: the submit, and a webhook where one came
    polled: int  # SQS receives and deletes that Lambda makes for us
    writes: float
    reads: float
    meta_bytes: int

    @property
    def requests(self) -> int:
        """AWS requests of our own code."""
        return sum(len(one.requests) for one in self.invocations)

    @property
    def submit_requests(self) -> int:
        """Those of them that a caller of the API waits for."""
        return len(self.invocations[0].requests)

    @property
    def sqs(self) -> int:
        """Every SQS request."""
        return self.polled + self._named("sqs ")

    @property
    def events(self) -> int:
        """Events put on a bus."""
        return self._named("events ")

    def _named(self, prefix: str) -> int:
        return sum(one.startswith(prefix) for done in self.invocations for one in done.requests)

    def own_ms(self, prices: Prices) -> float:
        """Billed time without the provider's: CPU at the function's share of a processor, and waiting for AWS."""
        waits = float(prices["assumed_ms"]["aws_request"])
        return sum(one.cpu_ms / _share(one, prices) + len(one.requests) * waits for one in self.invocations)

    def billed_ms(self, prices: Prices) -> float:
        """The same and the time that providers and receivers take to answer."""
        waits = float(prices["assumed_ms"]["provider_call"])
        return self.own_ms(prices) + sum(one.provider_calls for one in self.invocations) * waits

    def gb_seconds(self, prices: Prices) -> float:
        """What Lambda charges for."""
        waits = prices["assumed_ms"]
        spent = 0.0
        for one in self.invocations:
            ms = one.cpu_ms / _share(one, prices) + len(one.requests) * waits["aws_request"]
            spent += (ms + one.provider_calls * waits["provider_call"]) / 1000 * memory_gb(one.function)
        return spent

    def dollars_a_million(self, prices: Prices) -> dict[str, float]:
        """List prices of a million such jobs."""
        price = prices["usd_per_million"]
        return {
            "DynamoDB writes": self.writes * price["dynamodb_write_unit"],
            "DynamoDB reads": self.reads * price["dynamodb_read_unit"],
            "SQS": self.sqs * price["sqs_request"],
            "EventBridge": self.events * price["eventbridge_event"],
            "HTTP API": self.http * price["http_api_request"],
            "Lambda requests": len(self.invocations) * price["lambda_request"],
            "Lambda time": self.gb_seconds(prices) * price["lambda_gb_second"],
        }


def _share(invocation: Invocation, prices: Prices) -> float:
    return float(prices["vcpu_at_1024_mb"]) * memory_gb(invocation.function)


class Bench:
    """One world over a table of its own, with everything counted."""

    def __init__(self, endpoint: str, routes: Any, *, counting: bool = True) -> None:
        self.endpoint = endpoint
        self.meter = Meter(client(endpoint, "dynamodb"))
        own = product_client(endpoint, "dynamodb")
        self.table = table = create_table(self.meter.peek, "JobsTable")
        store = DynamoJobStore(self.meter.attach(own) if counting else own, table, lambda: uuid.uuid4().hex[:20])
        self.world = World(store=store, routes=routes)
        # Ids as long as real ones, since META is paid by its size.
        self.world.provider.accept = self._accept  # type: ignore[method-assign]
        self.world.control.owners["acme"] = {"callback_hosts": ["callback.example"]}
        self.done: list[Invocation] = []
        self.gateway = self.polled = 0
        self._nudge, self._put = self.world.queues.nudge, self.world.bus.put
        self.world.queues.nudge = self._counted_nudge  # type: ignore[method-assign]
        self.world.bus.put = self._counted_put  # type: ignore[method-assign]

    def _accept(self, call: Any) -> Any:
        name = f"resp_{uuid.uuid4().hex}{uuid.uuid4().hex[:16]}"
        self.world.provider.jobs[name] = {"job_id": call.job_id, "execution_id": call.execution_id, "outcome": None}
        return Accepted(provider_job_id=name, provider_request_id=f"req_{uuid.uuid4().hex}")

    def handle(self, queue: Any, message: Any) -> None:
        """What the function behind a queue does, told what Lambda tells it."""
        if message.kind == "job" and queue in (Queue.BACKGROUND, Queue.INTERACTIVE):
            told = Told(message_id=str(uuid.uuid4()), receive_count=1, lambda_request_id=str(uuid.uuid4()))
            self.world.worker(message.id, told=told)
        else:
            self.world.handle(queue, message)

    def snapshot(self) -> tuple[int, int, int, float, float]:
        """Where the counts stand."""
        return len(self.done), self.gateway, self.polled, self.meter.writes, self.meter.reads

    def since(self, name: str, then: tuple[int, int, int, float, float], cpu: Sequence[float]) -> Cost:
        """What happened since a snapshot; `cpu` is what each invocation takes when nobody counts."""
        invocations, gateway, polled, writes, reads = then
        done = self.done[invocations:]
        return Cost(
            name=name,
            invocations=tuple(replace(one, cpu_ms=ms) for one, ms in zip(done, cpu, strict=True)),
            http=self.gateway - gateway,
            polled=self.polled - polled,
            writes=self.meter.writes - writes,
            reads=self.meter.reads - reads,
            meta_bytes=self.meter.largest,
        )

    def _counted_nudge(self, kind: str, item_id: str, nudges: Sequence[Any], group: str, now: int) -> None:
        self.meter.count(f"sqs SendMessage {kind}", len(nudges))
        self._nudge(kind, item_id, nudges, group, now)

    def _counted_put(self, event_id: str, kind: str, detail: Any, at: int) -> None:
        self.meter.count("events PutEvents")
        self._put(event_id, kind, detail, at)

    def invoke(self, name: str, work: Callable[[], Any]) -> Any:
        """One invocation of a function."""
        logged, called, begun = len(self.meter.log), self._provider_calls(), time.process_time()
        try:
            return work()
        finally:
            cpu_ms = (time.process_time() - begun) * 1000
            calls = self._provider_calls() - called
            self.done.append(Invocation(name, tuple(self.meter.log[logged:]), calls, cpu_ms))

    def _provider_calls(self) -> int:
        provider = self.world.provider
        return len(provider.calls) + len(provider.fetched) + len(self.world.notifier.sent)

    def http(self, name: str, work: Callable[[], Any]) -> Any:
        """One request at the gateway."""
        self.gateway += 1
        return self.invoke(name, work)

    def sweep(self) -> None:
        """The minute's run, not counted here: it serves all jobs; `growth.py` measures it."""
        self.meter.muted = True
        self.world.sweep()
        self.meter.muted = False

    def lately(self, look: Callable[[], Any]) -> None:
        """What another job of the same process read a moment ago, not counted here."""
        self.meter.muted = True
        look()
        self.meter.muted = False

    def pump(self) -> None:
        """Handle every visible message."""
        for queue, message in self.world.visible():
            self.polled += 2
            self.invoke(f"{queue.value}: {message.kind}", partial(self.handle, queue, message))

    def pass_time(self, ms: int) -> None:
        """Time passes; whatever comes due on its way is handled."""
        self.world.clock.advance(ms)
        self.pump()


Play = Callable[[Bench, str], None]


def _sync(bench: Bench, key: str) -> None:
    bench.http("admission: submit", lambda: bench.world.submit("sync", key))
    bench.pump()


def _background(bench: Bench, key: str) -> None:
    world = bench.world
    bench.http("admission: submit", lambda: world.submit("summary", key, callback_url=_CALLBACK))
    bench.pump()
    bench.pass_time(_MINUTE)
    call = world.provider.calls[-1]
    name = next(reversed(world.provider.jobs))
    world.provider.finish(name)
    bench.lately(partial(fared, world.deps, callback_key("acme", _CALLBACK)))
    facts: dict[str, Any] = {"job_id": call.job_id, "execution_id": call.execution_id, "outcome": "completed"}
    bench.http("webhook: delivery", lambda: world.webhook(name, f"wh-{key}", **facts))
    bench.pump()


def _retry(bench: Bench, key: str) -> None:
    bench.world.provider.script += [refusal(ErrorClass.SERVER_FAULT, 503), Completed(result=answer())]
    bench.http("admission: submit", lambda: bench.world.submit("sync", key))
    bench.pump()
    for _ in range(5):
        bench.pass_time(_MINUTE)


def _fallback(bench: Bench, key: str) -> None:
    bench.world.provider.script += [refusal(ErrorClass.SERVER_FAULT, 503), Completed(result=answer())]
    bench.http("admission: submit", lambda: bench.world.submit("fallback", key))
    bench.pump()
    bench.pass_time(_MINUTE)


def _polls(bench: Bench, key: str) -> None:
    world = bench.world
    bench.http("admission: submit", lambda: world.submit("polled", key))
    bench.pump()
    name, began = next(reversed(world.provider.jobs)), len(world.provider.fetched)
    while len(world.provider.fetched) - began < _POLLS:
        if len(world.provider.fetched) - began == _POLLS - 1:
            world.provider.finish(name)
        bench.pass_time(10_000)
        bench.sweep()
        bench.pump()


SYNCHRONOUS = "submit + synchronous job"
BACKGROUND = "submit + 60 s background job, webhook, callback"
SCENARIOS: tuple[tuple[str, Play], ...] = (
    (SYNCHRONOUS, _sync),
    (BACKGROUND, _background),
    ("synchronous, one retry", _retry),
    ("synchronous, one fallback", _fallback),
    ("background, ten polls", _polls),
)


def catalogue() -> Any:
    """Two limited scopes on every route: the route's own, and the owner's share of it."""
    found = limited(concurrency=20, per_owner=10)
    extra = [
        policy("fallback", fallbacks=[FALLBACK], ai_api_queueing_strategy={"lanes": {"background_retry": _ONCE}}),
        policy("polled", route="poll", mode="background"),
    ]
    limits = {"concurrency": 20, "per_owner": 10}
    poll = route("poll", capabilities={"background": True, "context_window": 400_000}, limits=limits)
    found.policies |= {one.workflow: one for one in extra}
    found.routes |= {"poll": poll}
    return found


def measure(endpoint: str, *names: str) -> list[Cost]:
    """Every scenario (or those named), twice in a world of its own: first what is cached is warmed, then it counts."""
    times = slower()
    return [_measure(endpoint, name, play, times) for name, play in SCENARIOS if not names or name in names]


def _measure(endpoint: str, name: str, play: Play, times: float) -> Cost:
    counted = Bench(endpoint, catalogue())
    play(counted, "warm")
    _refresh(counted)
    ahead = counted.snapshot()
    play(counted, str(uuid.uuid4()))
    return counted.since(name, ahead, [ms / times for ms in _cpu(endpoint, play)])


def _refresh(bench: Bench) -> None:
    """Caches of some seconds are warm, as where requests come one after the other."""
    world = bench.world
    bench.meter.muted = True
    for key in world.deps.catalogue.route_keys():
        state = {"pk": {"S": f"ROUTE#{key}"}, "sk": {"S": "META"}}
        bench.meter.peek.delete_item(TableName=bench.table, Key=state)  # what the job before taught it
        route_now(world.deps, key)
    for lane in Lane:
        for owner in (None, "acme"):
            waited(world.deps, lane, owner)
    for key in world.deps.catalogue.route_keys():
        for scope, most in ((f"route:{key}", 20), (f"route:{key}|owner:acme", 10)):
            limit = ScopeLimit(scope=scope, limit=most)
            world.deps.noticed.scopes.saw(limit, world.store.slots(scope), world.clock.now())
    for messages in world.queues.sent.values():
        messages.clear()
    bench.meter.muted = False


def _cpu(endpoint: str, play: Play) -> list[float]:
    """CPU time of each invocation of a job without the counting: the medians of some jobs."""
    plain = Bench(endpoint, catalogue(), counting=False)
    jobs: list[list[float]] = []
    for n in range(_CPU_JOBS + 1):
        _refresh(plain)
        ahead = len(plain.done)
        play(plain, f"job-{n}")
        jobs.append([one.cpu_ms for one in plain.done[ahead:]])
    return [statistics.median(column) for column in zip(*jobs[1:], strict=True)]
