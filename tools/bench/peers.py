"""What does the same job cost where a function waits for its provider?

The baseline of the outage experiment runs in this process against the emulator and the simulator, its requests to AWS
counted as the SDK sends them; a provider that takes a minute is arithmetic. A durable function that waits inside is
priced by what AWS names: one invocation, the wait, and an operation each for the execution and its one step.
"""

from __future__ import annotations

import json
import os
import statistics
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from botocore.session import Session

from tools.bench import calls
from tools.bench.calls import Prices
from tools.bench.template import memory_gb
from tools.bench.yardstick import slower
from tools.localcloud import LocalCloud
from tools.localcloud.emulator import REGION

_AT_ONCE_MS, _LONG_MS = 150, 60_000
_JOBS = 7
_POLLED = 2  # SQS requests that Lambda makes for a message: it receives and deletes
_OPERATIONS = 2  # of a durable function: the execution, and the step that asks
_HANDED_IN, _WORKS = "admission", "background"  # our functions whose memory the others get


@dataclass(frozen=True, slots=True)
class Peer:
    """One job of one contestant, for a provider that takes `wait_ms`."""

    name: str
    wait_ms: int
    requests: int
    writes: float
    own_ms: float
    dollars_a_million: float


@dataclass(frozen=True, slots=True)
class Work:
    """What one function of the baseline does for one job beside waiting."""

    sent: tuple[str, ...]  # names of its requests
    own_ms: float

    @property
    def writes(self) -> int:
        """Units: its items are below a kilobyte."""
        return sum(one in ("PutItem", "UpdateItem") for one in self.sent)


def measure(cloud: LocalCloud, prices: Prices) -> list[Peer]:
    """All contestants at each wait."""
    cloud.start(simulator=True)
    ours = {one.name: one for one in calls.measure(cloud.endpoint, calls.SYNCHRONOUS, calls.BACKGROUND)}
    handed, worked = _baseline(cloud, prices)
    found = []
    for wait_ms, scenario in ((_AT_ONCE_MS, calls.SYNCHRONOUS), (_LONG_MS, calls.BACKGROUND)):
        found.append(_ours(ours[scenario], wait_ms, prices))
        found.append(_waiting(handed, worked, wait_ms, prices))
        found.append(_durable(wait_ms, prices))
    return found


def _ours(cost: calls.Cost, wait_ms: int, prices: Prices) -> Peer:
    dollars = sum(cost.dollars_a_million(prices).values())
    return Peer("Breakwater", wait_ms, cost.requests, cost.writes, cost.own_ms(prices), dollars)


def _waiting(handed: Work, worked: Work, wait_ms: int, prices: Prices) -> Peer:
    price = prices["usd_per_million"]
    dollars = (
        price["http_api_request"]
        + price["lambda_request"] * 2
        + price["sqs_request"] * (len(handed.sent) + _POLLED)
        + price["dynamodb_write_unit"] * worked.writes
        + _lambda_time(_HANDED_IN, handed.own_ms, prices)
        + _lambda_time(_WORKS, worked.own_ms + wait_ms, prices)
    )
    requests = len(handed.sent) + len(worked.sent)
    return Peer("SQS + Lambda", wait_ms, requests, worked.writes, handed.own_ms + worked.own_ms, dollars)


def _durable(wait_ms: int, prices: Prices) -> Peer:
    price = prices["usd_per_million"]
    paid = price["http_api_request"] + price["lambda_request"] + price["durable_operation"] * _OPERATIONS
    return Peer("durable function", wait_ms, 0, 0, 0, paid + _lambda_time(_WORKS, wait_ms, prices))


def _lambda_time(like: str, ms: float, prices: Prices) -> float:
    """Dollars for a million of them, at the memory of our function of that kind."""
    return ms / 1000 * memory_gb(like) * float(prices["usd_per_million"]["lambda_gb_second"])


def _share(like: str, prices: Prices) -> float:
    return float(prices["vcpu_at_1024_mb"]) * memory_gb(like)


def _baseline(cloud: LocalCloud, prices: Prices) -> tuple[Work, Work]:
    """Handing in, and working: medians of some jobs on warm clients."""
    with _surroundings(cloud), _noting() as sent:
        from tests.bench.outage.baseline import app  # noqa: PLC0415 - reads its surroundings

        handed, worked, times = [], [], slower()
        for _ in range(_JOBS + 1):
            data = {"key": uuid.uuid4().hex, "text": "please"}
            handed.append(_watched(sent, partial(app.admit, data, None), prices, _share(_HANDED_IN, prices) * times))
            event = {"Records": [_record(json.dumps(data))]}
            worked.append(
                _watched(sent, partial(app.background, event, _context()), prices, _share(_WORKS, prices) * times)
            )
    return _median(handed[1:]), _median(worked[1:])


def _median(jobs: list[Work]) -> Work:
    return Work(jobs[0].sent, statistics.median(one.own_ms for one in jobs))


@contextmanager
def _surroundings(cloud: LocalCloud) -> Iterator[None]:
    """Its table, its queue, and where everything is."""
    name = f"peer-{uuid.uuid4().hex[:8]}"
    cloud.client("dynamodb").create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    variables = {
        "IDEMPOTENCY_TABLE": name,
        "QUEUE_URL": cloud.client("sqs").create_queue(QueueName=name)["QueueUrl"],
        "PROVIDER_URL": f"{cloud.simulator.url}/openai/v1",
        "CALL_SECONDS": "20",
        "POWERTOOLS_SERVICE_NAME": name,
        "AWS_ENDPOINT_URL": cloud.endpoint,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "any secret will do",
    }
    with patch.dict(os.environ, variables):
        yield


def _watched(sent: list[str], work: Callable[[], Any], prices: Prices, share: float) -> Work:
    """Billed as ours: CPU at the function's share of a processor like this one, and the time that its requests take."""
    sent.clear()
    begun = time.process_time()
    work()
    cpu_ms = (time.process_time() - begun) * 1000
    waits = len(sent) * float(prices["assumed_ms"]["aws_request"])
    return Work(tuple(sent), cpu_ms / share + waits)


@contextmanager
def _noting() -> Iterator[list[str]]:
    """The requests that clients made from here on send, by name."""
    sent: list[str] = []
    create = Session.create_client

    def noted(session: Session, *args: Any, **more: Any) -> Any:
        client = create(session, *args, **more)
        client.meta.events.register("before-send", lambda event_name, **_: sent.append(event_name.split(".")[2]))
        return client

    with patch.object(Session, "create_client", noted):
        yield sent


def _record(body: str) -> dict[str, Any]:
    return {"messageId": str(uuid.uuid4()), "body": body, "eventSource": "aws:sqs", "attributes": {}}


def _context() -> Any:
    return SimpleNamespace(
        function_name="plain",
        memory_limit_in_mb=512,
        invoked_function_arn="arn:aws:lambda:us-east-1:000000000000:function:plain",
        aws_request_id=str(uuid.uuid4()),
        get_remaining_time_in_millis=lambda: 29_000,
    )
