"""What would so many jobs a second need, and which limit is met first? Arithmetic over measured units.

    python -m tools.bench.scaling            # a table for 10, 1 000 and 10 000 jobs a second

Every limit is one line: what one unit of it carries, what one job asks of it, and how it is raised. Units a job come
from `docs/benchmarks/results.json`, where `make bench` puts them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "results.json"
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
    return PerJob(found["writes"], found["reads"], found["sqs"], found["http"], found["billed_ms"] / 1000)


def limits(job: PerJob, *, due_shards: int = 8, route_slots: int = 200) -> tuple[Limit, ...]:
    """Every limit, with its default on a new account."""
    slot_item = 160  # bytes; a take reads all numbers in use
    slot_read = max(1.0, math.ceil(route_slots * slot_item / 4096))
    busy_worker = job.billed_seconds
    return (
        Limit(
            "one owner's ledger (6 units a transaction, one partition)",
            PARTITION_WRITES,
            6 * job.attempts,
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
            6 * job.attempts,
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
        needs = " | ".join(f"{one.needed(rate) / one.capacity:,.2g} x" for rate in RATES)
        rows.append(f"| {one.name} | {one.shared_by} | {one.jobs_a_second:,.0f} | {needs} | {one.raised_by} |")
    return "\n".join(rows)


def main() -> None:
    """Print the table."""
    job = per_job()
    print(table(job))
    print(
        f"\nProvider calls at once at 1 000 jobs/s of {job.provider_seconds:.0f} s: {1_000 * job.provider_seconds:,.0f}"
    )


if __name__ == "__main__":
    main()
