"""Sixteen real workers on one limit of four: never exceeded by the provider's own count, never leaked."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from dataclasses import replace

import pytest

from breakwater.clock import SystemClock
from breakwater.domain.obligations import Queue
from breakwater.domain.request import parse
from breakwater.domain.slots import VERIFY_AFTER, ScopeLimit
from breakwater.domain.states import Status
from breakwater.domain.timing import NUDGE_GRACE
from breakwater.usecases import capacity
from breakwater.usecases.admit import Principal, admit
from breakwater.usecases.sweep import sweep
from tests.support.cloud import ROOT
from tests.support.contender import LIMIT, deps_for
from tools.simulator.process import start

WORKERS, JOBS, CALL_MS = 16, 60, 150
SECONDS = 110
SCOPE = "route:plain"


@pytest.fixture
def simulator(tmp_path):
    """A provider that counts how many calls it has at once."""
    with start(tmp_path / "simulator") as running:
        running.client.fault(kind="slow", ms=CALL_MS, count=None)
        yield running


@pytest.fixture
def config(tables, simulator, tmp_path):
    """Where everything is, as a file that the workers read."""
    sqs = tables.client("sqs")
    queues = {one.value: sqs.create_queue(QueueName=f"{one.value}-{uuid.uuid4().hex[:8]}")["QueueUrl"] for one in Queue}
    found = {
        "endpoint": tables.cloud.endpoint,
        "jobs": tables.jobs,
        "control": tables.control,
        "bucket": tables.bucket,
        "queues": queues,
        "provider": f"{simulator.base_url}/anthropic",
    }
    (tmp_path / "config.json").write_text(json.dumps(found))
    return tmp_path / "config.json"


@pytest.fixture
def workers(config, tmp_path):
    """Sixteen processes."""
    command = [sys.executable, "-m", "tests.support.contender", str(config)]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "shared:.", "HOME": str(tmp_path)}
    logs = [(tmp_path / f"worker-{n}.log").open("w") for n in range(WORKERS)]
    running = [subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log) for log in logs]
    yield running
    for one in running:
        one.kill()
        one.wait()
    for log in logs:
        log.close()


@pytest.mark.timeout(SECONDS + 60)
def test_a_limit_holds_for_sixteen_workers_two_of_which_are_killed(config, workers, simulator):
    """Every job ends, the provider never had five calls at once, and no number stays taken."""
    deps = deps_for(json.loads(config.read_text()), calls=False)
    ids = [submit(deps, n) for n in range(JOBS)]
    until(lambda: len(simulator.client.ledger(method="POST")) >= JOBS // 4, SECONDS)
    for victim in workers[:2]:
        victim.kill()

    ended = until(lambda: swept(deps, ids), SECONDS)

    assert {one.status for one in ended} == {Status.SUCCEEDED}
    gauges = simulator.client.concurrency()
    highest = max(gauge["max"] for name, gauge in gauges.items() if "messages" in name)
    assert 1 < highest <= LIMIT
    assert deps.store.waiters(SCOPE, 10) == []
    later = replace(deps, clock=Later())
    until(lambda: swept(later, ids) and not owed(later, ids), SECONDS)
    for one in workers:
        one.kill()
        one.wait()
    assert all(isinstance(one, capacity.Taken) for one in taken_by_new_jobs(later))


class Later(SystemClock):
    """As late as whoever was killed between two writes is found: its nudge was never sent, its number never named."""

    def now(self) -> int:
        return super().now() + max(NUDGE_GRACE, VERIFY_AFTER)


def owed(deps, ids):
    """Whether an effect is still to come."""
    return any(one.owed for one in deps.store.get_many(ids).values())


def taken_by_new_jobs(deps):
    """What the next jobs get, as many as there are numbers: the dead keep none."""
    ids = [submit(deps, JOBS + n) for n in range(LIMIT)]
    limit = ScopeLimit(scope=SCOPE, limit=LIMIT)
    return [capacity.take(deps, job, [limit], 0, deps.now()) for job in deps.store.get_many(ids).values()]


def submit(deps, n):
    """One job of one of three owners."""
    owner = Principal(owner_key=f"owner-{n % 3}", key_id="k", scopes=frozenset({"submit"}))
    body = {"workflow": "sync", "input": {"messages": [{"role": "user", "content": f"job {n}"}]}}
    return admit(deps, owner, parse(body), f"key-{n}", None).job.job_id


def swept(deps, ids):
    """Every job once all are final; the sweep runs meanwhile, as the minute would."""
    sweep(deps, lambda: 50_000)
    jobs = deps.store.get_many(ids)
    return list(jobs.values()) if len(jobs) == len(ids) and all(one.final for one in jobs.values()) else None


def until(true, seconds):
    """The first true value."""
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.5)
    return found
