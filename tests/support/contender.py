"""One worker process of the contention test: takes nudges from a real queue and steps jobs over a real table."""

from __future__ import annotations

import json
import random
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from breakwater.clock import SystemClock
from breakwater.domain.obligations import Queue
from breakwater.domain.routes import Catalogue
from breakwater.providers.registry import build
from breakwater.store.control import ControlTable
from breakwater.store.payloads import S3Payloads
from breakwater.store.queues import SqsQueues
from breakwater.store.table import DynamoJobStore
from breakwater.telemetry import JsonLog
from breakwater.usecases.complete import complete
from breakwater.usecases.deps import Deps
from breakwater.usecases.effects import effects
from breakwater.usecases.step import Told, step
from tests.support.catalogue import policy, route
from tools.localcloud.cloud import client

LIMIT = 4
REMAINING_MS = 8_000  # short leases: a worker that is killed is found within the test


def catalogue() -> Catalogue:
    """One route with one limit."""
    return Catalogue(
        routes={
            "plain": route(
                "plain", provider="anthropic", endpoint="messages", limits={"concurrency": LIMIT}, timeout_ms=5_000
            )
        },
        policies={"sync": policy("sync")},
        default_route="plain",
    )


class OneProvider:
    """`ports.Providers` with the simulator behind every route."""

    def __init__(self, url: str) -> None:
        self._adapter = build("anthropic", "messages", url, "sk-test", "plain", 5_000)

    def for_route(self, _route_key: str) -> Any:
        """The one adapter."""
        return self._adapter


def deps_for(config: dict[str, Any], *, calls: bool) -> Deps:
    """Real stores and queues of the local cloud; the bus is nobody's concern here."""
    clock = SystemClock()
    aws = {name: client(config["endpoint"], name) for name in ("dynamodb", "sqs", "s3")}
    urls = {Queue(name): url for name, url in config["queues"].items()}
    return Deps(
        store=DynamoJobStore(aws["dynamodb"], config["jobs"], lambda: uuid.uuid4().hex[:20]),
        queues=SqsQueues(aws["sqs"], urls),
        payloads=S3Payloads(aws["s3"], config["bucket"]),
        control=ControlTable(aws["dynamodb"], config["control"], clock.monotonic),
        catalogue=catalogue(),
        clock=clock,
        log=JsonLog(clock.now),
        draw=random.random,
        providers=OneProvider(config["provider"]) if calls else None,
        code_version="test",
    )


def main() -> None:
    """Work until killed."""
    config = json.loads(Path(sys.argv[1]).read_text())
    deps, sqs = deps_for(config, calls=True), client(config["endpoint"], "sqs")
    while True:
        for name in random.sample(["background", "background", "background", "effects", "completion"], 5):
            for message in sqs.receive_message(QueueUrl=config["queues"][name], VisibilityTimeout=30).get(
                "Messages", []
            ):
                work(deps, name, json.loads(message["Body"]))
                sqs.delete_message(QueueUrl=config["queues"][name], ReceiptHandle=message["ReceiptHandle"])
        time.sleep(0.02)


def work(deps: Deps, queue: str, nudge: dict[str, str]) -> None:
    """What the function behind a queue does."""
    if nudge["kind"] != "job":
        return
    if queue == "effects":
        effects(deps, nudge["id"])
    elif queue == "completion":
        complete(deps, nudge["id"])
    else:
        step(deps, nudge["id"], lambda: REMAINING_MS, Told())


if __name__ == "__main__":
    main()
