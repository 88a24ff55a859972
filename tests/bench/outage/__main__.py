"""The outage experiment: one load on our stack and on a plain baseline, while the provider goes down and comes back.

    python -m tests.bench.outage [--healthy 40] [--outage 600] [--recovery 120] [--drain 600] [--background 1.0]

Writes `.local/bench/outage.json` (every request, every provider call, the backlog over time, the ratios).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from breakwater.policy_yaml import load
from tests.bench.outage.load import OWNERS, Baseline, Load, Ours, widen
from tests.bench.outage.plain import Plain
from tests.bench.outage.ratios import ratios
from tools.localcloud import LocalCloud
from tools.localcloud.seed import put_api_key, stand_up
from tools.simulator.client import SimulatorClient

ROOT = Path(__file__).parents[3]
OUT = ROOT / ".local" / "bench"
WIDEST = 12  # a request may last most of its deadline while the provider hangs
PHASES = (
    ("503", {"kind": "status", "status": 503, "retry_after": ""}),
    ("429", {"kind": "status", "status": 429, "retry_after": "30"}),
    ("hang", {"kind": "hang", "ms": 60_000, "processed": False}),
    ("529", {"kind": "status", "status": 529, "retry_after": ""}),
)


def main() -> None:
    """Run it once."""
    given = _arguments()
    os.environ["LAMBDA_WARM_TTL_SECONDS"] = "7200"  # a worker that was begun in the warm-up lasts
    cloud = LocalCloud(ROOT, f"bench-{uuid.uuid4().hex[:6]}", quiet=False)
    try:
        stand_up(cloud)
        found = _experiment(cloud, given)
        OUT.mkdir(parents=True, exist_ok=True)
        (OUT / "outage.json").write_text(json.dumps(found))
        _say(json.dumps(found["ratios"], indent=2))
    finally:
        cloud.stop()
        shutil.rmtree(cloud.folder, ignore_errors=True)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a command talks to people


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("healthy", 40), ("outage", 600), ("recovery", 120), ("drain", 600)):
        parser.add_argument(f"--{name}", type=int, default=default, help="seconds")
    for name, rate in (("interactive", 0.3), ("background", 1.0)):
        parser.add_argument(f"--{name}", type=float, default=rate, help="requests a second, each side")
    return parser.parse_args()


def _experiment(cloud: LocalCloud, given: argparse.Namespace) -> dict[str, Any]:
    plain = Plain(cloud, f"{cloud.simulator.url}/openai/v1")
    plain.deploy()
    sides = {"ours": Ours(cloud, _keys(cloud)), "plain": Baseline(cloud, plain)}
    load = Load(sides, {"interactive": given.interactive, "background": given.background})
    with SimulatorClient(cloud.simulator.url) as simulator:
        _warm_up(sides, simulator)
        samples: list[dict[str, Any]] = []
        over = threading.Event()
        watcher = threading.Thread(target=_watch, args=(cloud, plain, samples, over))
        began = time.time()
        watcher.start()
        load.start()
        _say("a steady load")
        time.sleep(given.healthy)
        down = time.time()
        for name, fault in PHASES:
            _say(f"the provider answers {name}")
            simulator.fault(count=None, for_ms=given.outage * 1000 // len(PHASES), **fault)
            time.sleep(given.outage / len(PHASES))
            simulator.clear_faults()
        up = time.time()
        _say("the provider is back")
        time.sleep(given.recovery)
        asked = load.stop()
        _say("waiting for both backlogs")
        _drained(cloud, plain, given.drain)
        over.set()
        watcher.join()
        calls = [
            {
                "at": one.at_ms / 1000,
                "side": "plain" if one.model == "baseline" else "ours",
                "status": one.status,
                "outcome": one.outcome,
                "charged": one.charged,
                "model": one.model,
                "excerpt": one.excerpt[:60],
            }
            for one in simulator.ledger(method="POST")
        ]
        at_once = {name.partition(":")[2]: one["max"] for name, one in simulator.concurrency().items() if ":" in name}
    facts = {"began": began, "down": down, "up": up, "asked": asked, "calls": calls, "backlog": samples}
    facts["jobs"], facts["at_once"], facts["limits"] = _jobs(cloud), at_once, _limits()
    return {**facts, "ratios": ratios(facts)}


def _limits() -> dict[str, dict[str, int]]:
    """What our routes allow each model: calls at once, and calls a minute."""
    routes = load(ROOT / "shared" / "policies").routes.values()
    return {
        one.model: {"at_once": one.limits.concurrency, "a_minute": one.limits.requests_per_minute}
        for one in routes
        if one.limits.concurrency and one.limits.requests_per_minute
    }


def _keys(cloud: LocalCloud) -> list[str]:
    keys = [f"bw_{uuid.uuid4().hex}" for _ in range(OWNERS)]
    for n, key in enumerate(keys):
        put_api_key(cloud, key, owner=f"owner-{n}", scopes=frozenset({"submit", "read"}))
    return keys


def _warm_up(sides: dict[str, Any], simulator: SimulatorClient) -> None:
    """As many workers of each function as the outage will need, begun one after the other."""
    _say("starting workers")
    simulator.fault(kind="slow", count=None, ms=1500)
    widen(sides, WIDEST)
    simulator.clear_faults()
    time.sleep(10)
    simulator.reset("ledger", "concurrency")


def _watch(cloud: LocalCloud, plain: Plain, samples: list[dict[str, Any]], over: threading.Event) -> None:
    while not over.wait(5):
        with suppress(BotoCoreError, ClientError):  # the emulator may be too busy to be watched
            open_jobs = sum(not one["final"] for one in _jobs(cloud))
            samples.append({"at": time.time(), "ours": open_jobs, "plain": plain.depth()})


def _drained(cloud: LocalCloud, plain: Plain, most: float) -> None:
    """Wait until both backlogs are gone, or long enough."""
    until = time.time() + most
    while time.time() < until:
        if plain.depth() == 0 and all(one["final"] for one in _jobs(cloud)):
            return
        time.sleep(5)


def _jobs(cloud: LocalCloud) -> list[dict[str, Any]]:
    table = cloud.outputs()["JobsTableName"]
    pages = (
        cloud.client("dynamodb")
        .get_paginator("scan")
        .paginate(
            TableName=table,
            FilterExpression="sk = :meta AND begins_with(pk, :job)",
            ExpressionAttributeValues={":meta": {"S": "META"}, ":job": {"S": "JOB#"}},
        )
    )
    found = []
    for page in pages:
        for item in page["Items"]:
            status = item["status"]["S"]
            found.append(
                {
                    "key": item["idempotency_key"]["S"],
                    "status": status,
                    "reason": item["reason"]["S"],
                    "final": status in {"succeeded", "dead_letter", "cancelled"},
                    "attempt": int(item["attempt"]["N"]),
                    "completed_at": int(item.get("completed_at", {"N": "0"})["N"]) / 1000,
                }
            )
    return found


if __name__ == "__main__":
    main()
