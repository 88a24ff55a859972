"""What does a job's way through the stack look like? Sends real jobs over HTTP and shows each layer with its time.

The times are read from the functions' own log lines, the way an operator would read them.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from tools.localcloud.cloud import LocalCloud
from tools.localcloud.errors import LocalCloudError
from tools.localcloud.progress import step

SECONDS = 120
FUNCTIONS = ("admission", "worker-interactive", "worker-background", "webhook", "completion", "effects")
_SHOWN = {
    "Admitted": "admitted, nudged",
    "Leased": "leased by a worker",
    "ProviderAccepted": "provider accepted",
    "delivery_taken": "webhook verified",
    "Succeeded": "settled",
    "EffectsDelivered": "effects delivered",
    "RetryScheduled": "retry scheduled",
    "DeadLettered": "dead letter",
}


@dataclass(frozen=True, slots=True)
class Ask:
    """One demonstration job."""

    title: str
    workflow: str
    text: str


JOBS = (
    Ask("a chat answer, called and settled by one worker", "support_chat", "How do I reset my password?"),
    Ask(
        "a summary, run by the provider in the background, brought back by its webhook",
        "support_summary",
        "Summarise this ticket: the printer on floor 3 prints only blank pages since Monday.",
    ),
)


def main(cloud: LocalCloud) -> None:
    """Send the jobs, follow them to their end, show each layer's time, and say what to try next."""
    known = cloud.remembered()
    if not cloud.running or "api_key" not in known:
        raise LocalCloudError("Nothing is running. `make run` starts the local cloud.")
    console = Console(width=100)
    with httpx.Client(
        base_url=cloud.api_url, headers={"authorization": f"Bearer {known['api_key']}"}, timeout=35, trust_env=False
    ) as api:
        jobs = [(ask, submit(api, ask)) for ask in JOBS]
        for ask, job_id in jobs:
            with step(f"{ask.workflow} {job_id[:12]}…"):
                job = follow(api, job_id)
            show(console, cloud, ask, job)
            if job["status"] != "succeeded":
                raise LocalCloudError(f"{job_id} ended as {job['status']} ({job['reason']}); see {cloud.logs}")
    hints(console, cloud, jobs[-1][1])


def submit(api: httpx.Client, ask: Ask) -> str:
    """Post one job under a key of its own."""
    body = {"workflow": ask.workflow, "input": {"messages": [{"role": "user", "content": ask.text}]}}
    answer = api.post("/v1/jobs", json=body, headers={"idempotency-key": str(uuid.uuid4())})
    if answer.status_code != httpx.codes.ACCEPTED:
        raise LocalCloudError(f"POST /v1/jobs answered {answer.status_code}: {answer.text[:300]}")
    return str(answer.json()["job_id"])


def follow(api: httpx.Client, job_id: str) -> dict[str, Any]:
    """Poll as a client should, until the job is final and owes nothing."""
    until = time.monotonic() + SECONDS
    while True:
        job: dict[str, Any] = api.get(f"/v1/jobs/{job_id}").raise_for_status().json()
        if job["final"] and not job["owed"]:
            return job
        if time.monotonic() > until:
            raise LocalCloudError(f"{job_id} is still {job['status']} ({job['reason']}) after {SECONDS} s")
        time.sleep(0.5)


def show(console: Console, cloud: LocalCloud, ask: Ask, job: Mapping[str, Any]) -> None:
    """One table: what happened, which function said so, how long it took since the step before."""
    table = Table(title=ask.title, title_justify="left", header_style="bold")
    for name in ("layer", "function", "after ms"):
        table.add_column(name, justify="right" if name == "after ms" else "left")
    before = None
    for at, label, function in timeline(cloud, job):
        table.add_row(label, function, "0" if before is None else str(at - before))
        before = at
    console.print(table)
    answer = job.get("result") or {}
    console.print(f"result: {answer.get('text', '')[:160]}", markup=False)
    console.print(f"cost: {job['cost_micros']} micro-dollars, model {job['served_model']}\n", markup=False)


def timeline(cloud: LocalCloud, job: Mapping[str, Any]) -> list[tuple[int, str, str]]:
    """What the functions logged about this job, in order; its deliveries are known by the id they came under."""
    told = [(function, line) for function in FUNCTIONS for line in lines(cloud, function)]
    deliveries = {
        line["webhook_id"]
        for _, line in told
        if line["event"] == "delivery_processed" and line.get("job_id") == job["job_id"]
    }
    return sorted(
        (int(line["at"]), _SHOWN[line["event"]], function)
        for function, line in told
        if line["event"] in _SHOWN and (line.get("job_id") == job["job_id"] or line.get("webhook_id") in deliveries)
    )


def lines(cloud: LocalCloud, function: str) -> Iterator[dict[str, Any]]:
    """The JSON lines of a function's log group."""
    group = f"/aws/lambda/breakwater-local-{function}"
    pages = cloud.client("logs").get_paginator("filter_log_events").paginate(logGroupName=group)
    for page in pages:
        for event in page["events"]:
            try:
                line = json.loads(event["message"])
            except ValueError:
                continue
            if isinstance(line, dict) and "event" in line and "at" in line:
                yield line


def hints(console: Console, cloud: LocalCloud, job_id: str) -> None:
    """What to try next; each line works as printed."""
    key = cloud.remembered()["api_key"]
    body = '{"workflow":"support_summary","input":{"messages":[{"role":"user","content":"hello"}]}}'
    out = (
        "The stack goes on running. Try:",
        "",
        f"  curl -s '{cloud.api_url}/v1/jobs' \\",
        f"    -H 'authorization: Bearer {key}' -H \"idempotency-key: $(date +%s)\" \\",
        f"    -H 'content-type: application/json' -d '{body}'",
        "",
        f"  watch a job:   .venv/bin/breakwater watch {job_id}",
        f"  logs:          {cloud.logs} (make logs follows them)",
        "  stop:          make stop",
    )
    console.print("\n".join(out), markup=False, highlight=False, soft_wrap=True)
