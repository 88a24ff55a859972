"""How much of a processor do the functions that answer people take for one request, and where does it go?

CPU time of the process, request by request, from the gateway's event to its answer: reading, checking, the SDK's own
work, but neither waiting nor the emulator. One process, as in Lambda; a processor of its own is 1 769 MB there.
How fast the machine is just then stands beside it (`yardstick.py`).
"""

from __future__ import annotations

import cProfile
import json
import pstats
import statistics
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from breakwater.domain.endpoint_entries import load_endpoints
from breakwater.domain.obligations import Queue
from breakwater.domain.signature import sign
from breakwater.entry.api import api
from breakwater.entry.webhook import webhook
from breakwater.store.queues import SqsQueues
from breakwater.store.table import DynamoJobStore
from breakwater.usecases.intake import IntakeDeps
from tests.support.world import World
from tools.bench.calls import Bench, catalogue
from tools.bench.clients import product_client
from tools.bench.yardstick import slower

SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"  # noqa: S105 - made up
_ENDPOINT = {
    "name": "openai",
    "provider": "openai",
    "secret": "openai",
    "event_type": "type",
    "provider_job_id": "data.id",
    "outcomes": {"response.completed": "completed"},
}
_TOP = 12
SDK = "the SDK alone: one read of nothing"
OURS = ", without the SDK"
Send = Callable[[], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Overhead:
    """CPU of one kind of request, in ms."""

    name: str
    p50: float
    p99: float
    slower: float  # than the machine of the yardstick
    profile: tuple[tuple[str, float], ...]  # own time by place, ms a request


def measure(endpoint: str, requests: int) -> list[Overhead]:
    """Submit, read, and one webhook delivery."""
    bench = Bench(endpoint, catalogue(), counting=False)
    sqs = _real_queues(bench, endpoint)
    silent = World(store=DynamoJobStore(_Silent(), "none", lambda: uuid.uuid4().hex[:20]), routes=catalogue())
    kinds: dict[str, Send] = {
        SDK: _one_call(bench),
        "admission: submit": partial(_submit, bench.world),
        "admission: read a job": _read(bench.world),
        "webhook: take a delivery": _delivery(bench.world, sqs),
        f"admission: submit{OURS}": partial(_submit, silent),
        f"webhook: take a delivery{OURS}": _delivery(silent, SqsQueues(_Silent(), dict.fromkeys(Queue, "none"))),
    }
    times = slower()
    return [_measured(name, send, requests, times) for name, send in kinds.items()]


class _Silent:
    """A client that takes every call and does nothing: what is left is our own code."""

    def __getattr__(self, _operation: str) -> Callable[..., dict[str, str]]:
        return lambda **_: {}


def _measured(name: str, send: Send, requests: int, times: float) -> Overhead:
    for _ in range(20):
        send()
    spent = []
    for _ in range(requests):
        begun = time.process_time_ns()
        answer = send()
        spent.append((time.process_time_ns() - begun) / 1e6)
        if answer["statusCode"] not in (200, 202):
            raise RuntimeError(f"{name}: {answer}")
    cuts = statistics.quantiles(spent, n=100)
    return Overhead(name, statistics.median(spent), cuts[98], times, _profile(send, max(20, requests // 5)))


def _profile(send: Send, requests: int) -> tuple[tuple[str, float], ...]:
    """Where own time goes, by package; measured apart, since watching costs."""
    watching = cProfile.Profile()
    for _ in range(requests):
        watching.runcall(send)
    spent: dict[str, float] = {}
    for (file, _, name), (_, _, own, _, _) in pstats.Stats(watching).stats.items():  # type: ignore[attr-defined]
        place = _place(file, name)
        if place is not None:
            spent[place] = spent.get(place, 0.0) + own * 1000 / requests
    return tuple(sorted(spent.items(), key=lambda one: -one[1])[:_TOP])


def _place(file: str, name: str) -> str | None:
    """The part of the program; None for waiting."""
    if "select.poll" in name or "recv" in name or "connect" in name or "sendall" in name:
        return None
    for part in ("breakwater/", "site-packages/"):
        if part in file:
            inner = file.rsplit(part, maxsplit=1)[-1].split("/")
            return ("breakwater " if part.startswith("break") else "") + inner[0].removesuffix(".py")
    return "standard library and built-ins"


def _real_queues(bench: Bench, endpoint: str) -> SqsQueues:
    """The SDK's own work for a nudge belongs to the request."""
    sqs = product_client(endpoint, "sqs")
    urls = {
        queue: sqs.create_queue(QueueName=f"bench-{queue.value}-{uuid.uuid4().hex[:8]}")["QueueUrl"] for queue in Queue
    }
    queues = SqsQueues(sqs, urls)
    bench.world.queues.nudge = queues.nudge  # type: ignore[method-assign]
    return queues


def _event(method: str, path: str, body: str | None = None, **headers: str) -> dict[str, Any]:
    who = {"owner_key": "acme", "key_id": "k", "scopes": "submit read"}
    about = {
        "http": {"method": method, "path": path},
        "requestId": uuid.uuid4().hex[:16],
        "authorizer": {"lambda": who},
    }
    return {"requestContext": about, "headers": headers, "body": body, "isBase64Encoded": False}


def _submit(world: World) -> dict[str, Any]:
    body = {"workflow": "summary", "input": {"messages": [{"role": "user", "content": "Sum up the ticket. " * 40}]}}
    event = _event("POST", "/v1/jobs", json.dumps(body), **{"idempotency-key": str(uuid.uuid4())})
    return api(world.deps, event)


def _one_call(bench: Bench) -> Send:
    """The SDK alone: what the others can't do without, and a measure of this machine's moment."""
    client, key = product_client(bench.endpoint, "dynamodb"), {"pk": {"S": "none"}, "sk": {"S": "META"}}

    def send() -> dict[str, Any]:
        client.get_item(TableName=bench.table, Key=key, ConsistentRead=True)
        return {"statusCode": 200}

    return send


def _read(world: World) -> Send:
    location = str(_submit(world)["headers"]["location"])
    return lambda: api(world.deps, _event("GET", location))


def _delivery(world: World, queues: SqsQueues) -> Send:
    deps = IntakeDeps(
        store=world.store,
        queues=queues,
        payloads=lambda: world.deps.payloads,
        clock=world.clock,
        log=world.log,
    )
    known = load_endpoints([_ENDPOINT])

    def send() -> dict[str, Any]:
        name, now = f"wh_{uuid.uuid4().hex}", world.clock.now()
        body = json.dumps({"type": "response.completed", "data": {"id": f"resp_{uuid.uuid4().hex}"}})
        signature = sign([SECRET], name, now // 1000, body.encode())
        headers = {"webhook-id": name, "webhook-timestamp": str(now // 1000), "webhook-signature": signature}
        event = {"pathParameters": {"endpoint": "openai"}, "headers": headers, "body": body, "isBase64Encoded": False}
        return webhook(deps, known, lambda: {"openai": [SECRET]}, event)

    return send
