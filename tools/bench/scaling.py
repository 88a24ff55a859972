"""What would so many jobs a second need, and which limit is met first? Arithmetic over measured units.

    python -m tools.bench.scaling            # writes docs/scaling.md

Every limit is one line: what one unit of it carries, what one job asks of it, and how it is raised. Units a job come
from `docs/benchmarks/results.json`, where `make bench` puts them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.bench.template import memory_gb

ROOT = Path(__file__).resolve().parents[2]
PRICES = ROOT / "tools" / "bench" / "prices.json"
RESULTS = ROOT / "docs" / "benchmarks" / "results.json"
RATES = (10, 1_000, 10_000)
PARTITION_WRITES, PARTITION_READS = 1_000, 3_000  # units a second
SCENARIO = "submit + 60 s background job, webhook, callback"


@dataclass(frozen=True, slots=True)
class PerJob:
    """What one background job with a webhook asks for."""

    writes: float
    reads: float
    sqs: float
    http: float
    billed_seconds: float
    effects_seconds: float
    background_seconds: float
    completion_seconds: float
    provider_seconds: float = 60.0
    attempts: float = 1.05


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing that ends somewhere."""

    name: str
    capacity: float  # a second, or at once, as it comes
    per_job: float  # of it, for one job a second
    shared_by: str  # what part of the jobs meets it
    raised_by: str

    @property
    def jobs_a_second(self) -> float:
        """Where it is met."""
        return self.capacity / self.per_job

    def needed(self, rate: float) -> float:
        """How much of it a rate needs."""
        return rate * self.per_job


def per_job(file: Path = RESULTS) -> PerJob:
    """The measured units."""
    found = next(one for one in json.loads(file.read_text())["calls"] if one["name"] == SCENARIO)
    prices = json.loads(PRICES.read_text())
    seconds = {
        name: sum(_seconds(one, prices) for one in found["invocations"] if one["function"].startswith(name))
        for name in ("effects", "background", "completion")
    }
    return PerJob(
        writes=found["writes"],
        reads=found["reads"],
        sqs=found["sqs"],
        http=found["http"],
        billed_seconds=found["billed_ms"] / 1000,
        effects_seconds=seconds["effects"],
        background_seconds=seconds["background"],
        completion_seconds=seconds["completion"],
    )


def _seconds(invocation: Mapping[str, Any], prices: Mapping[str, Any]) -> float:
    """How long one invocation takes, as in `calls.py`."""
    waits, share = prices["assumed_ms"], prices["vcpu_at_1024_mb"] * memory_gb(invocation["function"])
    ms = invocation["cpu_ms"] / share + len(invocation["requests"]) * waits["aws_request"]
    return float(ms + invocation["provider_calls"] * waits["provider_call"]) / 1000


def mapped(queue: str) -> int:
    """`MaximumConcurrency` of a queue's mapping, from the template."""
    text = (ROOT / "template.yaml").read_text()
    found = re.search(rf"Queue: !GetAtt {queue}Queue\.Arn.*?MaximumConcurrency: (\d+)", text, re.DOTALL)
    if found is None:
        raise ValueError(f"no mapping of {queue}")
    return int(found[1])


def limits(job: PerJob, *, due_shards: int = 8, route_slots: int = 200) -> tuple[Limit, ...]:
    """Every limit, with its default on a new account."""
    slot_item = 160  # bytes; a take reads all numbers in use
    slot_read = max(1.0, math.ceil(route_slots * slot_item / 4096))
    busy_worker = job.billed_seconds
    own = "`MaximumConcurrency` in template.yaml, within the account's quota"
    mapping = [
        Limit(f"{name} at once (our {mapped(queue)})", mapped(queue), seconds, "all jobs", own)
        for name, queue, seconds in (
            ("effects", "Effects", job.effects_seconds),
            ("workers", "Background", job.background_seconds * job.attempts),
            ("completions", "Completion", job.completion_seconds),
        )
    ]
    return (
        *mapping,
        Limit(
            "one owner's ledger (4 units a transaction, one partition)",
            PARTITION_WRITES,
            4 * job.attempts,
            "one owner",
            "shard the totals by execution, sum when read",
        ),
        Limit(
            "one route's slots, written",
            PARTITION_WRITES,
            2 * job.attempts,
            "one route with a limit",
            "several routes (credentials) behind one policy",
        ),
        Limit(
            f"one route's slots, read ({route_slots} in use)",
            PARTITION_READS,
            slot_read * job.attempts,
            "one route with a limit",
            "no limit on routes whose provider's own is far away; several routes",
        ),
        Limit("one owner's list (index `owner`)", PARTITION_WRITES, 1, "one owner", "shard `owner_shard` by day"),
        Limit(
            f"the due index ({due_shards} shards)",
            PARTITION_WRITES * due_shards,
            4 * job.attempts,
            "all jobs",
            "DUE_SHARDS; the sweep asks one query a shard",
        ),
        Limit("one route's state, read at every step", PARTITION_READS, job.attempts, "one route", "several routes"),
        Limit("the table's write units (default quota 40 000)", 40_000, job.writes, "all jobs", "service quota"),
        Limit("a new on-demand table's write units", 4_000, job.writes, "all jobs", "warm throughput; grows by itself"),
        Limit("the table's read units (default quota 40 000)", 40_000, job.reads, "all jobs", "service quota"),
        Limit("functions at once (1 000; new accounts 10)", 1_000, busy_worker, "all jobs", "service quota"),
        Limit("requests at the gateway (10 000 a second)", 10_000, job.http, "all jobs", "service quota"),
        Limit("messages in flight (120 000 a queue)", 120_000, busy_worker, "one queue", "never met: they are short"),
    )


def first(found: Sequence[Limit]) -> Limit:
    """The limit that is met first."""
    return min(found, key=lambda one: one.jobs_a_second)


def table(job: PerJob) -> str:
    """Markdown: one row a limit, one column a rate."""
    rows = ["| limit | met by | jobs/s | " + " | ".join(f"{rate:,}/s needs" for rate in RATES) + " | raised by |"]
    rows.append("| --- | --- | ---: |" + " ---: |" * len(RATES) + " --- |")
    for one in sorted(limits(job), key=lambda limit: limit.jobs_a_second):
        needs = " | ".join(f"{_times(one.needed(rate) / one.capacity)}" for rate in RATES)
        rows.append(f"| {one.name} | {one.shared_by} | {one.jobs_a_second:,.0f} | {needs} | {one.raised_by} |")
    return "\n".join(rows)


def page(job: PerJob) -> str:
    """The whole page."""
    calls = 1_000 * job.provider_seconds
    return TEXT.format(
        table=table(job),
        writes=job.writes,
        reads=job.reads,
        sqs=job.sqs,
        seconds=job.billed_seconds,
        first=first(limits(job)).name,
        first_rate=first(limits(job)).jobs_a_second,
        provider_calls=calls,
    )


TEXT = """# Beyond one machine

Written by `python -m tools.bench.scaling` from the units that `make bench` measured; the formulae are in that script,
one line a limit. No load test on AWS stands behind it: it says where to look first, not what will be seen.

One background job with a webhook, two limited scopes and a callback asks for {writes:g} write units, {reads:g} read
units, {sqs} SQS requests and {seconds:.2f} s of functions. A limit is met at *capacity / what one job asks of it*.

**Met first: {first}, at {first_rate:.0f} jobs a second.** It is ours, on purpose: a new account has few functions at
once, and a provider few calls. Raise `MaximumConcurrency` of all three mappings together, then ask for the quota.

{table}

- **10 jobs a second** fit a new account once its quota of functions at once is the usual 1 000.
- **1 000 jobs a second** need: the mappings raised to several hundred each, a warmed table (or an hour of growth), no
  single owner above 150 jobs a second (else a sharded ledger), no single limited route above 350 (else several routes
  behind one policy). At 60 s a job the provider then runs {provider_calls:,.0f} at once: its limit is met long before.
- **10 000 jobs a second** need quotas above the defaults for table units, functions and gateway, 64 or more shards of
  the due index (`DUE_SHARDS`; the sweep asks one query a shard, so an empty sweep costs half a read unit a shard), and
  more than one region or account for the provider's sake.

What does not grow: the sweep reads due items only, and an admission or a claim costs the same beside a backlog of any
depth (`docs/benchmarks/results.md`, Growth). Each partition carries 1 000 write and 3 000 read units a second.
"""


def _times(share: float) -> str:
    """Two digits that count, and no exponent: 440 x, 0.065 x, under 0.001 x."""
    if share < 0.001:  # noqa: PLR2004 - a thousandth is told as such
        return "< 0.001 x"
    digits = 1 - math.floor(math.log10(share))
    return f"{round(share, digits):,.{max(0, digits)}f} x"


def main() -> None:
    """Write the page."""
    (ROOT / "docs" / "scaling.md").write_text(page(per_job()))


if __name__ == "__main__":
    main()
