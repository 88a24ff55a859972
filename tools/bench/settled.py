"""How long after a provider's webhook is its job settled? Over HTTP, on the deployed stack, one job after the other.

From the moment the provider's job ends, and its sender starts, to the moment our job is final: the webhook function,
its queue and the completion function with all they write. Whoever waits inside a function has no such time; it pays for
the wait instead.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import httpx

from tools.localcloud import LocalCloud
from tools.localcloud.demo import Ask, follow, submit
from tools.simulator.client import SimulatorClient

_ASK = Ask("a background job", "support_summary", "Summarise this ticket, please.")
_WARM_UP = 5


@dataclass(frozen=True, slots=True)
class Settled:
    """Over several jobs, in ms."""

    jobs: int
    submit_to_call: float  # median
    webhook_to_settled: float  # median
    slowest: float  # webhook → settled


def measure(cloud: LocalCloud, jobs: int) -> Settled:
    """On a stack that stands, beside its simulated provider."""
    headers = {"authorization": f"Bearer {cloud.remembered()['api_key']}"}
    with (
        httpx.Client(base_url=cloud.api_url, headers=headers, timeout=35, trust_env=False) as api,
        SimulatorClient(cloud.simulator.url) as simulator,
    ):
        simulator.fault(kind="background", outcome="in_progress", count=None)  # until we end it
        found = [_one(api, simulator) for _ in range(_WARM_UP + jobs)][_WARM_UP:]
        simulator.clear_faults()
    called, settled = zip(*found, strict=True)
    return Settled(jobs, statistics.median(called), statistics.median(settled), max(settled))


def _one(api: httpx.Client, simulator: SimulatorClient) -> tuple[float, float]:
    """Handed in to called, and ended there to settled here, of one job."""
    handed = time.time() * 1000
    job_id = submit(api, _ASK)
    there = simulator.wait_for(lambda: api.get(f"/v1/jobs/{job_id}").json().get("provider_job_id"), timeout=30)
    called = min(one.at_ms for one in simulator.ledger(method="POST") if job_id in one.metadata.values())
    time.sleep(1)  # the worker is done with it, as after a minute
    ended = time.time() * 1000
    simulator.end_response(there)
    return called - handed, follow(api, job_id)["completed_at"] - ended
