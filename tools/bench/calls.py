"""How many requests, units, invocations and milliseconds does one job cost?

One process plays every function over the real stores and the emulator's DynamoDB; provider, clock and queues are the
tests' own, so that a job of a minute takes none and nothing else happens in between. Requests are counted at the wire;
a nudge is one SQS request to send, one to receive and one to delete. Caches are warm, as in a function that is used.
Own time is CPU time of the process, request by request, through the SDK but without the emulator's.
"""

from __future__ import annotations

import json
import statistics
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakwater.domain.obligations import Queue
from breakwater.domain.results import Accepted
from breakwater.domain.signals import ErrorClass
from breakwater.store.table import DynamoJobStore
from breakwater.usecases.step import Told
from tests.fakes.outside import answer, refusal
from tests.support.catalogue import policy, route
from tests.support.cloud import create_table
from tests.support.limited import FALLBACK, limited
from tests.support.world import World
from tools.bench.meter import Meter
from tools.localcloud.cloud import client

PRICES = Path(__file__).with_name("prices.json")
_MINUTE = 60_000
_POLLS = 10


@dataclass(frozen=True, slots=True)
class Cost:
    """What one job of a scenario cost."""

    name: str
    requests: int  # made by our own code
    submit_requests: int
    polled: int  # SQS receives and deletes that Lambda makes for us
    writes: float
    reads: float
    invocations: int
    events: int
    provider_calls: int
    cpu_ms: float
    meta_bytes: int
    log: tuple[str, ...]

    def billed_ms(self, prices: dict[str, Any]) -> float:
        """CPU at the function's share of a processor, and waiting for services and for the provider to answer."""
        waits = prices["assumed_ms"]
        own = self.cpu_ms / prices["vcpu_at_1024_mb"]
        return own + self.requests * waits["aws_request"] + self.provider_calls * waits["provider_call"]

    def micros(self, prices: dict[str, Any]) -> float:
        """List price in micro-dollars."""
        price = prices["usd_per_million"]
        parts = (
            self.writes * price["dynamodb_write_unit"],
            self.reads * price["dynamodb_read_unit"],
            self.sqs * price["sqs_request"],
            self.events * price["eventbridge_event"],
            self.invocations * price["lambda_request"],
            self.http * price["http_api_request"],
            self.billed_ms(prices) / 1000 * price["lambda_gb_second"],  # all functions counted as 1 GB
        )
        return sum(parts)

    @property
    def sqs(self) -> int:
        """Every SQS request."""
        return sum(one.startswith("sqs ") for one in self.log) + self.polled

    @property
    def http(self) -> int:
        """Requests at the gateway: the submit, and a webhook where one came."""
        return sum(one.startswith("http ") for one in self.log)


class Bench:
    """One world over a table of its own, with everything counted."""

    def __init__(self, endpoint: str, routes: Any, *, counting: bool = True) -> None:
        self.meter = Meter(client(endpoint, "dynamodb"))
        own = client(endpoint, "dynamodb")
        table = create_table(self.meter.peek, "JobsTable")
        store = DynamoJobStore(self.meter.attach(own) if counting else own, table, lambda: uuid.uuid4().hex[:20])
        self.world = World(store=store, routes=routes)
        # Ids as long as real ones, since META is paid by its size.
        self.world.provider.accept = self._accept  # type: ignore[method-assign]
        self.world.control.owners["acme"] = {"callback_hosts": ["callback.example"]}
        self.invocations, self.cpu, self.polled = 0, 0.0, 0
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

    def snapshot(self) -> dict[str, Any]:
        """Where the counts stand."""
        provider = self.world.provider
        return {
            "log": len(self.meter.log),
            "requests": sum(self.meter.requests.values()),
            "writes": self.meter.writes,
            "reads": self.meter.reads,
            "invocations": self.invocations,
            "polled": self.polled,
            "calls": len(provider.calls) + len(provider.fetched) + len(self.world.notifier.sent),
        }

    def since(self, name: str, then: dict[str, Any], cpu_ms: float) -> Cost:
        """What happened since a snapshot."""
        now = self.snapshot()
        log = tuple(self.meter.log[then["log"] :])
        first = next((n for n, one in enumerate(log) if n > 1 and one.startswith("-- ")), len(log))
        return Cost(
            name=name,
            requests=now["requests"] - then["requests"],
            submit_requests=sum(not one.startswith(("-- ", "http ")) for one in log[:first]),
            polled=now["polled"] - then["polled"],
            writes=now["writes"] - then["writes"],
            reads=now["reads"] - then["reads"],
            invocations=now["invocations"] - then["invocations"],
            events=sum(one.startswith("events ") for one in log),
            provider_calls=now["calls"] - then["calls"],
            cpu_ms=cpu_ms,
            meta_bytes=self.meter.largest,
            log=log,
        )

    def _counted_nudge(self, kind: str, item_id: str, nudges: Sequence[Any], group: str, now: int) -> None:
        self.meter.count(f"sqs SendMessage {kind}", len(nudges))
        self._nudge(kind, item_id, nudges, group, now)

    def _counted_put(self, event_id: str, kind: str, detail: Any, at: int) -> None:
        self.meter.count("events PutEvents")
        self._put(event_id, kind, detail, at)

    def invoke(self, name: str, work: Callable[[], Any]) -> Any:
        """One invocation of a function."""
        self.invocations += 1
        self.meter.log.append(f"-- {name}")
        begun = time.process_time()
        try:
            return work()
        finally:
            self.cpu += time.process_time() - begun

    def http(self, name: str, work: Callable[[], Any]) -> Any:
        """One request at the gateway."""
        self.meter.log.append(f"http {name}")
        return self.invoke(name, work)

    def sweep(self) -> None:
        """The minute's run, not counted here: it serves all jobs; `growth.py` measures it."""
        self.meter.muted = True
        self.world.sweep()
        self.meter.muted = False

    def pump(self) -> None:
        """Handle every visible message."""
        for queue, message in self.world.visible():
            self.polled += 2
            self.invoke(f"{queue.value}: {message.kind}", lambda q=queue, m=message: self.handle(q, m))

    def pass_time(self, ms: int) -> None:
        """Time passes; whatever comes due on its way is handled."""
        self.world.clock.advance(ms)
        self.pump()


Play = Callable[[Bench, str], None]


def _sync(bench: Bench, key: str) -> None:
    bench.http("submit", lambda: bench.world.submit("sync", key))
    bench.pump()


def _background(bench: Bench, key: str) -> None:
    world = bench.world
    bench.http("submit", lambda: world.submit("summary", key, callback_url="https://callback.example/hook"))
    bench.pump()
    bench.pass_time(_MINUTE)
    call = world.provider.calls[-1]
    name = next(reversed(world.provider.jobs))
    world.provider.finish(name)
    facts = {"job_id": call.job_id, "execution_id": call.execution_id, "outcome": "completed"}
    bench.http("webhook", lambda: world.webhook(name, f"wh-{key}", **facts))
    bench.pump()


def _retry(bench: Bench, key: str) -> None:
    bench.world.provider.script += [refusal(ErrorClass.SERVER_FAULT, 503), answer()]
    bench.http("submit", lambda: bench.world.submit("sync", key))
    bench.pump()
    for _ in range(5):
        bench.pass_time(_MINUTE)


def _fallback(bench: Bench, key: str) -> None:
    bench.world.provider.script += [refusal(ErrorClass.QUOTA, 429), answer()]
    bench.http("submit", lambda: bench.world.submit("fallback", key))
    bench.pump()
    bench.pass_time(_MINUTE)


def _polls(bench: Bench, key: str) -> None:
    world = bench.world
    bench.http("submit", lambda: world.submit("polled", key))
    bench.pump()
    name, began = next(reversed(world.provider.jobs)), len(world.provider.fetched)
    while len(world.provider.fetched) - began < _POLLS:
        if len(world.provider.fetched) - began == _POLLS - 1:
            world.provider.finish(name)
        bench.pass_time(10_000)
        bench.sweep()
        bench.pump()


SCENARIOS: tuple[tuple[str, Play], ...] = (
    ("submit + synchronous job", _sync),
    ("submit + 60 s background job, webhook, callback", _background),
    ("synchronous, one retry", _retry),
    ("synchronous, one fallback", _fallback),
    ("background, ten polls", _polls),
)


def catalogue() -> Any:
    """Two limited scopes on every route: the route's own, and the owner's share of it."""
    found = limited(concurrency=20, per_owner=10)
    extra = [
        policy("fallback", fallbacks=[FALLBACK]),
        policy("polled", route="poll", mode="background"),
    ]
    limits = {"concurrency": 20, "per_owner": 10}
    poll = route("poll", capabilities={"background": True, "context_window": 400_000}, limits=limits)
    found.policies |= {one.workflow: one for one in extra}
    found.routes |= {"poll": poll}
    return found


def measure(endpoint: str) -> list[Cost]:
    """Every scenario, twice in a world of its own: the first job warms what is cached, the second is counted."""
    return [_measure(endpoint, name, play) for name, play in SCENARIOS]


def _measure(endpoint: str, name: str, play: Play) -> Cost:
    counted = Bench(endpoint, catalogue())
    play(counted, "warm")
    counted.world.submit("sync", "warm-2")
    counted.pump()
    counted.world.clock.advance(1_000)  # caches of some seconds are warm, as where requests come one after the other
    ahead = counted.snapshot()
    play(counted, str(uuid.uuid4()))
    return counted.since(name, ahead, _cpu(endpoint, play))


def _cpu(endpoint: str, play: Play) -> float:
    """CPU time of one job without the counting: the median of some."""
    plain = Bench(endpoint, catalogue(), counting=False)
    spent = []
    for n in range(6):
        before = plain.cpu
        play(plain, f"job-{n}")
        spent.append((plain.cpu - before) * 1000)
    return statistics.median(spent[1:])
