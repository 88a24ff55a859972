"""What does a drill stand on? The local cloud, or a pre-production account given by its URL and key.

A drill that needs a provider to fail needs the simulator's address as well (`BREAKWATER_SIMULATOR`); the local cloud
has its own. Nothing here knows more than an operator would.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import boto3
import httpx

from breakwater.domain.signature import sign
from tools.localcloud.cloud import LocalCloud
from tools.simulator.client import SimulatorClient
from tools.simulator.ledger import Entry

ROOT = Path(__file__).resolve().parents[2]


class DrillError(Exception):
    """The drill can't be held here; the message says what is missing."""


class BrokenPromiseError(Exception):
    """The drill was held, and a promise did not hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the drill is held."""

    url: str
    key: str
    simulator: str | None = None
    webhook_secret: str | None = None
    stage: str = "local"
    cloud: LocalCloud | None = None


def place(environ: Mapping[str, str] = os.environ) -> Place:
    """A pre-production account when `BREAKWATER_URL` names one, else the local cloud."""
    if environ.get("BREAKWATER_URL"):
        if not environ.get("BREAKWATER_API_KEY"):
            raise DrillError("Set BREAKWATER_API_KEY as well: a key with the scopes submit, read and operate.")
        return Place(
            url=environ["BREAKWATER_URL"].rstrip("/").removesuffix("/v1"),
            key=environ["BREAKWATER_API_KEY"],
            simulator=environ.get("BREAKWATER_SIMULATOR"),
            webhook_secret=environ.get("BREAKWATER_WEBHOOK_SECRET"),
            stage=environ.get("BREAKWATER_STAGE", "staging"),
        )
    cloud = LocalCloud(ROOT, "dev", keep=True)
    known = cloud.remembered()
    if not cloud.running or "api_key" not in known:
        raise DrillError("Nothing is running: `make run` starts the local cloud. Or set BREAKWATER_URL.")
    return Place(
        url=cloud.api_url,
        key=known["api_key"],
        simulator=cloud.simulator.url,
        webhook_secret=known["webhook_secret"],
        cloud=cloud,
    )


class Stand:
    """An operator's hands on one place."""

    def __init__(self, where: Place) -> None:
        self.where = where
        headers = {"authorization": f"Bearer {where.key}"}
        self.api = httpx.Client(base_url=where.url, headers=headers, timeout=60, trust_env=False)
        self._simulator = SimulatorClient(where.simulator) if where.simulator else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.api.close()
        if self._simulator is not None:
            self._simulator.clear_faults()
            self._simulator.close()

    @property
    def simulator(self) -> SimulatorClient:
        """The provider that can be told to fail."""
        if self._simulator is None:
            raise DrillError(
                "This drill needs a provider that fails on purpose: set BREAKWATER_SIMULATOR to its address."
            )
        return self._simulator

    def submit(self, workflow: str, text: str, key: str | None = None) -> httpx.Response:
        """Post one job; the answer as it came."""
        body = {"workflow": workflow, "input": {"messages": [{"role": "user", "content": text}]}}
        return self.api.post("/v1/jobs", json=body, headers={"idempotency-key": key or uuid.uuid4().hex})

    def admitted(self, workflow: str, text: str) -> str:
        """The id of a new job."""
        answer = self.submit(workflow, text)
        if answer.status_code != httpx.codes.ACCEPTED:
            raise DrillError(f"POST /v1/jobs answered {answer.status_code}: {answer.text[:300]}")
        return str(answer.json()["job_id"])

    def job(self, job_id: str) -> dict[str, Any]:
        """The job as its owner sees it."""
        job: dict[str, Any] = self.api.get(f"/v1/jobs/{job_id}").raise_for_status().json()
        return job

    def executions(self, job_id: str) -> list[dict[str, Any]]:
        """Every attempt in order."""
        found: list[dict[str, Any]] = (
            self.api.get(f"/v1/jobs/{job_id}/executions").raise_for_status().json()["executions"]
        )
        return found

    def until(self, what: str, job_id: str, true: Callable[[dict[str, Any]], bool], seconds: float) -> dict[str, Any]:
        """The job once `true` holds; a broken promise when it never does."""
        end = time.monotonic() + seconds
        while not true(job := self.job(job_id)):
            if time.monotonic() > end:
                raise BrokenPromiseError(f"{what}: {job_id} is {job['status']} ({job['reason']}) after {seconds:.0f} s")
            time.sleep(0.5)
        return job

    def final(self, job_id: str, seconds: float) -> dict[str, Any]:
        """The job once it is final and owes nothing."""
        return self.until("not final", job_id, lambda job: bool(job["final"]) and not job["owed"], seconds)

    def calls(self, job_id: str) -> list[Entry]:
        """Every create the provider got for a job."""
        return [one for one in self.simulator.ledger(metadata_breakwater_job_id=job_id) if one.method == "POST"]

    def deliver(self, webhook_id: str, event_type: str, provider_job_id: str, *, age_s: int = 0) -> httpx.Response:
        """Send one genuine webhook, as the provider would."""
        secret = self.where.webhook_secret
        if secret is None:
            raise DrillError("This drill signs webhooks: set BREAKWATER_WEBHOOK_SECRET to a current secret.")
        body = json.dumps({"type": event_type, "data": {"id": provider_job_id}}).encode()
        stamp = int(time.time()) - age_s
        headers = {
            "webhook-id": webhook_id,
            "webhook-timestamp": str(stamp),
            "webhook-signature": sign([secret], webhook_id, stamp, body),
            "content-type": "application/json",
        }
        return httpx.post(
            f"{self.where.url}/v1/webhooks/openai", content=body, headers=headers, timeout=30, trust_env=False
        )

    def alarm(self, name: str) -> str:
        """The state of one of the template's alarms."""
        if self.where.cloud is not None:
            self.where.cloud.start_pump()
            watch = self.where.cloud.client("cloudwatch")
        else:
            watch = boto3.client("cloudwatch")
        found = watch.describe_alarms(AlarmNames=[f"breakwater-{self.where.stage}-{name}"])["MetricAlarms"]
        return str(found[0]["StateValue"]) if found else "MISSING"


def need(true: bool, what: str) -> None:
    """A promise of the drill."""
    if not true:
        raise BrokenPromiseError(what)
