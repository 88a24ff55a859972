"""`make bench`: measure everything, print one table, write `docs/benchmarks/results.md`, `results.json` and plots.

python -m tools.bench [--quick] [--only cold,calls,overhead,peers,streams,growth,versus,settled]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tools.bench import calls, coldstart, growth, overhead, peers, report, settled, streams, versus
from tools.bench.template import functions
from tools.localcloud import LocalCloud
from tools.localcloud.seed import stand_up

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "docs" / "benchmarks"
_PEOPLE_WAIT = ("Admission", "Webhook", "Run", "Stream", "Authorizer", "WorkerBackground", "Completion", "Effects")


def main() -> None:
    """Run the parts asked for; parts not run keep their last figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer runs: minutes instead of a quarter of an hour")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas")
    wanted = parser.parse_args()
    os.environ["LAMBDA_WARM_TTL_SECONDS"] = "7200"  # a function that was warmed up stays warm
    file = OUT / "results.json"
    OUT.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
    for part in wanted.only.split(","):
        print(f"measuring: {part}", file=sys.stderr, flush=True)
        found[part] = _measured(part, wanted.quick)
        found.setdefault("about", {})[part] = _about(quick=wanted.quick)
        file.write_text(json.dumps(found, indent=1) + "\n")
    (OUT / "results.md").write_text(report.page(found))
    plots = [ROOT / ".local" / "venvs" / "bench" / "bin" / "python", ROOT / "tools" / "bench" / "plots.py", file, OUT]
    subprocess.run(plots, check=True)
    print(report.summary(found))


def _measured(part: str, quick: bool) -> Any:
    """On a local cloud of its own: what another part stored in it would weigh on this one."""
    cloud = LocalCloud(ROOT, f"bench-{os.getpid()}-{part}")
    cloud.start()
    try:
        return PARTS[part](cloud, quick)
    finally:
        cloud.stop()
        shutil.rmtree(cloud.folder, ignore_errors=True)


def _about(*, quick: bool) -> dict[str, Any]:
    """When and where."""
    return {
        "on": time.strftime("%Y-%m-%d", time.gmtime()),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
        "load": round(os.getloadavg()[0], 1),
        "quick": quick,
    }


def _cold(cloud: LocalCloud, quick: bool) -> Any:
    chosen = [one for one in functions() if one.name.removesuffix("Function") in _PEOPLE_WAIT]
    starts = coldstart.measure(chosen, cloud.build(), 5 if quick else 15)
    return [{"name": one.name, "init": one.init, "first": one.first, "runs": len(one.runs)} for one in starts.values()]


def _calls(cloud: LocalCloud, _quick: bool) -> Any:
    prices = json.loads(calls.PRICES.read_text())
    return [
        {
            "name": one.name,
            "requests": one.requests,
            "submit_requests": one.submit_requests,
            "writes": one.writes,
            "reads": one.reads,
            "sqs": one.sqs,
            "http": one.http,
            "invocations": [asdict(each) for each in one.invocations],
            "own_ms": one.own_ms(prices),
            "billed_ms": one.billed_ms(prices),
            "meta_bytes": one.meta_bytes,
            "dollars_a_million": one.dollars_a_million(prices),
        }
        for one in calls.measure(cloud.endpoint)
    ]


def _peers(cloud: LocalCloud, _quick: bool) -> Any:
    return [asdict(one) for one in peers.measure(cloud, json.loads(calls.PRICES.read_text()))]


def _overhead(cloud: LocalCloud, quick: bool) -> Any:
    return [asdict(one) for one in overhead.measure(cloud.endpoint, 100 if quick else 500)]


def _streams(cloud: LocalCloud, _quick: bool) -> Any:
    return [asdict(one) for one in streams.measure(cloud.endpoint)]


def _growth(cloud: LocalCloud, quick: bool) -> Any:
    stored, backlog = ((1_000, 10_000), (100, 1_000)) if quick else ((10_000, 100_000, 1_000_000), (100, 10_000))
    return [asdict(one) for one in growth.measure(cloud.endpoint, stored, 50, backlog)]


def _versus(cloud: LocalCloud, quick: bool) -> Any:
    submitters, jobs = ((1, 8), 24) if quick else ((1, 8, 32), 48)
    return [asdict(one) for one in versus.measure(cloud, submitters, jobs)]


def _settled(cloud: LocalCloud, quick: bool) -> Any:
    stand_up(cloud)
    return asdict(settled.measure(cloud, 10 if quick else 30))


PARTS: dict[str, Callable[[LocalCloud, bool], Any]] = {
    "cold": _cold,
    "calls": _calls,
    "overhead": _overhead,
    "peers": _peers,  # after it: what the baseline imports hooks itself into every SDK client
    "streams": _streams,
    "growth": _growth,
    "versus": _versus,
    "settled": _settled,
}

if __name__ == "__main__":
    main()
