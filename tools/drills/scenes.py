"""What happens in each drill, and what must hold? Each returns what was measured, in one line."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tools.drills.stand import BrokenPromiseError, DrillError, Stand, need
from tools.localcloud.cloud import LocalCloud
from tools.simulator.ledger import Entry

_PRESETS = {"429": "openai_429_rate", "529": "openai_529", "503": "openai_503_overloaded", "500": "openai_500"}
_HINT_S = 6
_JOBS = 4
_LEASE_S = 60
_MINUTE_S = 60
_FUNCTION = "worker-background"
_WORKER = re.compile(rf"ministack-lambda-breakwater-\w+-{_FUNCTION}-[^/]*/_worker\.py")


def worker(stand: Stand) -> str:
    """A provider that says no (`PROVIDER_FAULT`): no immediate retry, the hint obeyed, every job paid for once."""
    fault = os.environ.get("PROVIDER_FAULT", "429")
    if fault not in _PRESETS:
        raise DrillError(f"PROVIDER_FAULT={fault} is not known; use one of {', '.join(_PRESETS)}")
    hinted = {"retry_after": str(_HINT_S)} if fault == "429" else {}
    stand.simulator.fault(_PRESETS[fault], route="openai.responses", count=2, **hinted)
    with ThreadPoolExecutor(_JOBS) as pool:
        jobs = list(pool.map(lambda n: stand.admitted("support_summary", f"drill {n} {uuid.uuid4()}"), range(_JOBS)))
    ended = [stand.final(job_id, 240) for job_id in jobs]

    calls = sorted((one for job_id in jobs for one in stand.calls(job_id)), key=lambda one: one.at_ms)
    refused = [one for one in calls if one.status is not None and one.status >= httpx.codes.BAD_REQUEST]
    charged = [one for one in calls if one.charged]
    need(all(one["status"] == "succeeded" for one in ended), "a job did not succeed")
    need(len(charged) == _JOBS, f"{len(charged)} paid calls for {_JOBS} jobs")
    need(len(refused) >= 1, "the provider was never asked while it said no")
    waits = [_wait_after(one, calls) for one in refused]
    least = min((wait for wait in waits if wait is not None), default=0)
    need(least >= (_HINT_S * 1000 if hinted else 200), f"a retry came {least} ms after a refusal")
    return f"{len(refused)} refusals, earliest retry of the same job after {least} ms, {len(charged)} paid calls"


def _wait_after(refused: Entry, calls: list[Entry]) -> int | None:
    """How long the same job waited after this refusal."""
    job = refused.metadata.get("breakwater_job_id")
    own = (one.at_ms for one in calls if one.metadata.get("breakwater_job_id") == job)
    later = [at for at in own if at > refused.at_ms]
    return min(later) - refused.at_ms if later else None


def idempotency(stand: Stand) -> str:
    """The same key twice at once: one job, one result."""
    key, start = uuid.uuid4().hex, threading.Barrier(2)

    def submit(_: int) -> dict[str, object]:
        start.wait()
        answer: dict[str, object] = (
            stand.submit("support_summary", "asked twice at once", key).raise_for_status().json()
        )
        return answer

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(submit, range(2)))
    ids = {str(one["job_id"]) for one in answers}
    need(len(ids) == 1, f"two submissions became {len(ids)} jobs")
    need(sum(one["replayed"] is False for one in answers) == 1, "not exactly one of them was the first")
    job = stand.final(ids.pop(), 120)
    need(job["status"] == "succeeded", f"it ended as {job['status']}")
    attempts = len(stand.executions(str(job["job_id"])))
    need(attempts == 1, f"{attempts} calls were made")
    return "2 submissions, 1 job, 1 call, 1 result"


def lease_recovery(stand: Stand) -> str:
    """A worker dies while the provider has its call: taken over after the lease, the provider's job recognised."""
    stand.simulator.fault("hang_accepted", route="openai.responses", count=1, ms=90_000)
    stand.simulator.webhooks(
        f"{stand.where.url}/v1/webhooks/openai", [stand.where.webhook_secret or ""], delay_ms=(_LEASE_S + 15) * 1000
    )
    try:
        started = time.monotonic()
        job_id = stand.admitted("support_summary", f"the worker dies {uuid.uuid4()}")
        stand.until("no call went out", job_id, lambda job: job["reason"] == "leased", 60)
        stand.simulator.wait_for(lambda: stand.calls(job_id), 60)
        how = _kill_worker(stand, job_id)
        job = stand.final(job_id, _LEASE_S + 4 * _MINUTE_S)
    finally:
        stand.simulator.webhooks(f"{stand.where.url}/v1/webhooks/openai", [stand.where.webhook_secret or ""])
    calls = stand.calls(job_id)
    need(job["status"] == "succeeded", f"it ended as {job['status']} ({job['reason']})")
    need(len(calls) == 1, f"the provider got {len(calls)} creates: its own job was not recognised")
    return f"{how}; settled {time.monotonic() - started:.0f} s later by {job['provider_job_id']}, 1 create"


def _kill_worker(stand: Stand, job_id: str) -> str:
    """Kill the very process that holds the job, where there is one; elsewhere its function's time-out does it."""
    cloud = stand.where.cloud
    if cloud is None:
        return "the worker ran into its time-out"
    end = time.monotonic() + _MINUTE_S
    while (pid := _holder(cloud, job_id)) is None:
        if time.monotonic() > end:
            raise BrokenPromiseError("the log does not say which process holds the job")
        time.sleep(1)
    if not _WORKER.search(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")):
        raise BrokenPromiseError(f"process {pid} is no worker")
    os.kill(pid, signal.SIGKILL)
    return f"worker process {pid} killed"


def _holder(cloud: LocalCloud, job_id: str) -> int | None:
    """The process whose log line says that it claimed the job."""
    group = f"/aws/lambda/breakwater-local-{_FUNCTION}"
    page = cloud.client("logs").filter_log_events(logGroupName=group, startTime=int(time.time() - 600) * 1000)
    for event in page["events"]:
        line = event["message"]
        if job_id in line and '"event":"Leased"' in line:
            return int(json.loads(line)["pid"])
    return None


def dead_letter(stand: Stand) -> str:
    """A provider that fails for good: a dead letter after the limit, with an alarm and its history."""
    for route in ("openai.responses", "anthropic.messages"):
        preset = "openai_500" if route.startswith("openai") else "anthropic_500"
        stand.simulator.fault(preset, route=route, contains="drill dead letter", count=None)
    job_id = stand.admitted("chat_stream", f"drill dead letter {uuid.uuid4()}")
    job = stand.until("not dead", job_id, lambda one: bool(one["final"]), 600)
    lines = stand.executions(job_id)
    need(job["status"] == "dead_letter", f"it ended as {job['status']}")
    need(len(lines) == job["attempt"], f"{len(lines)} records for {job['attempt']} attempts")
    need(int(job["attempt"]) <= int(job["max_attempts"]), "more attempts than the policy allows")
    before = len(stand.calls(job_id))
    state = _alarmed(stand)
    need(len(stand.calls(job_id)) == before, "it was tried again after it was dead")
    return f"{job['attempt']} attempts, then {job['reason']}; alarm new-dead-letters: {state}; history kept"


def _alarmed(stand: Stand) -> str:
    end = time.monotonic() + 5 * _MINUTE_S
    while (state := stand.alarm("new-dead-letters")) != "ALARM":
        if time.monotonic() > end:
            raise BrokenPromiseError(f"the alarm new-dead-letters is {state}")
        time.sleep(3)
    return state


def webhook_replay(stand: Stand) -> str:
    """One delivery replayed, reordered and late: one change of state."""
    job_id = stand.admitted("support_summary", f"heard often {uuid.uuid4()}")
    job = stand.final(job_id, 120)
    need(job["status"] == "succeeded", f"it ended as {job['status']}")
    response_id, webhook_id = str(job["provider_job_id"]), f"wh_drill_{uuid.uuid4().hex[:12]}"
    spent = stand.api.get("/v1/usage").raise_for_status().json()["total"]
    sent = [
        stand.deliver(webhook_id, "response.completed", response_id),
        stand.deliver(webhook_id, "response.completed", response_id),
        stand.deliver(f"{webhook_id}_b", "response.in_progress", response_id),
        stand.deliver(f"{webhook_id}_c", "response.failed", response_id),
        stand.deliver(webhook_id, "response.completed", response_id, age_s=200),
    ]
    need(all(one.is_success for one in sent), f"answers: {[one.status_code for one in sent]}")
    stale = stand.deliver(webhook_id, "response.completed", response_id, age_s=400)
    need(stale.status_code == httpx.codes.UNAUTHORIZED, "a delivery older than the tolerance was taken")
    time.sleep(8)
    after = stand.job(job_id)
    for name in ("status", "reason", "attempt", "generation", "completed_at", "cost_micros", "result"):
        need(after[name] == job[name], f"{name} changed from {job[name]} to {after[name]}")
    need(stand.api.get("/v1/usage").raise_for_status().json()["total"] == spent, "it was counted again")
    return f"{len(sent)} deliveries taken, 1 refused as too old, no change"
