"""Into a dead letter and out of it, on the deployed stack, with an operator's hands."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
import uuid

import httpx
import pytest

from tests.e2e.conftest import STAGE, Stack
from tests.support.cloud import ROOT
from tools.localcloud.pump import Pump
from tools.localcloud.seed import put_api_key

TERMS = {
    "owner": "alex",
    "reason": "provider_recovery",
    "text": "the simulator is healthy again",
    "cost_reviewed": True,
    "stop": {"max_attempts": 2},
}


class Operator:
    """A key with the scope `operate`."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.key = stack, f"bw_{uuid.uuid4().hex}"
        put_api_key(stack.cloud, self.key, owner="ops", scopes=frozenset({"operate"}))
        headers = {"authorization": f"Bearer {self.key}"}
        self.http = httpx.Client(base_url=stack.cloud.api_url, headers=headers, timeout=60, trust_env=False)

    def get(self, path, **query):
        """A look that must be possible."""
        answer = self.http.get(f"/v1/ops{path}", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path, body):
        """A change, as it was answered."""
        return self.http.post(f"/v1/ops{path}", json=body)

    def cli(self, *words, code=0):
        """One command of the command line, in a process of its own."""
        env = {
            "PATH": os.environ["PATH"],
            "BREAKWATER_URL": f"{self.stack.cloud.api_url}/v1",
            "BREAKWATER_API_KEY": self.key,
            "COLUMNS": "200",
        }
        command = [str(ROOT / ".venv" / "bin" / "breakwater"), *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def operator(stack):
    """An operator at the deployed stack."""
    found = Operator(stack)
    yield found
    found.http.close()


@pytest.fixture
def other(stack):
    """Another owner, whose dead letters are only theirs."""
    found = Stack(stack.cloud, f"owner-{uuid.uuid4().hex[:8]}")
    yield found
    found.api.close()
    found.simulator.close()


def dead(stack, text="please", preset="openai_400_invalid"):
    """A job that the provider refuses for good."""
    job_id = stack.submit("support_chat", text=f"{text} {uuid.uuid4().hex} [[sim:fault={preset}*1]]").json()["job_id"]
    return stack.done(job_id)


def references(stack, job_id):
    """The references of a job in the dead-letters queue, without receiving them."""
    url = f"{stack.cloud.endpoint}/_ministack/sqs/messages"
    found = httpx.get(url, params={"QueueUrl": stack.cloud.outputs()["DeadLettersQueueUrl"]}, trust_env=False).text
    return found.count(job_id)


def test_a_refused_request_is_dead_found_diagnosed_and_closed(stack, operator):
    """In: a 400. Out: a person closes it, and the audit says who."""
    job = dead(stack)
    assert (job["status"], job["reason"]) == ("dead_letter", "caller_fault")
    job_id = job["job_id"]

    assert job_id in [one["job_id"] for one in operator.get("/dead-letters", reason="caller_fault")["dead_letters"]]
    found = operator.get(f"/jobs/{job_id}/diagnosis")
    assert (found["layer"], found["condition"]) == ("client", "needs_a_person")
    refused = operator.post(f"/jobs/{job_id}/replay", {**TERMS, "request_id": uuid.uuid4().hex})
    assert (refused.status_code, refused.json()["rule"]) == (409, "cause_fixed")
    assert operator.post(f"/jobs/{job_id}/close", {"why": "the caller sent nonsense"}).status_code == 200
    assert references(stack, job_id) >= 1
    entries = [one for one in operator.get("/audit", limit=50)["entries"] if one["target"] == f"job:{job_id}"]
    assert [(one["what"], one["stage"]) for one in reversed(entries)] == [
        ("replay", "asked"),
        ("replay", "refused"),
        ("close", "asked"),
        ("close", "done"),
    ]
    logs = stack.cloud.client("logs")
    group = stack.cloud.outputs()["OperatorAuditLogGroup"]
    lines = [json.loads(one["message"]) for one in logs.filter_log_events(logGroupName=group)["events"]]
    assert [one for one in lines if one["target"] == f"job:{job_id}"] == list(reversed(entries))


def test_a_dead_job_is_replayed_once_and_succeeds(stack, operator):
    """Overridden by its owner, with the second call recorded as a generation of its own."""
    job_id = dead(stack)["job_id"]
    request = {**TERMS, "reason": "owner_override", "request_id": uuid.uuid4().hex}

    first = operator.post(f"/jobs/{job_id}/replay", request)
    again = operator.post(f"/jobs/{job_id}/replay", request)
    job = stack.done(job_id)

    assert first.status_code == 202, first.text
    assert (again.status_code, again.json()["repeated"]) == (200, True)
    assert (job["status"], job["generation"]) == ("succeeded", 2)
    executions = operator.get(f"/jobs/{job_id}/executions")["executions"]
    assert [one["generation"] for one in executions] == [1, 2]


def test_held_work_is_approved(stack, operator):
    """In: credit is gone. Out: a person says it is there again."""
    text = f"money {uuid.uuid4().hex} [[sim:fault=openai_429_insufficient_quota*1]]"
    job_id = stack.submit("evaluation", text=text).json()["job_id"]
    stack.until(job_id, lambda job: job["lane"] == "owner_review")

    assert job_id in [one["job_id"] for one in operator.get("/reviews", limit=100)["reviews"]]
    for route in {one["route_key"] for one in operator.get("/routes")["routes"] if not one["open"]}:
        operator.post(f"/routes/{route}/open", {"why": "credit bought"})
    assert operator.post(f"/jobs/{job_id}/approve", {"why": "credit bought"}).status_code == 200
    assert stack.done(job_id)["status"] == "succeeded"


def test_a_batch_replays_nothing_whose_cause_still_stands(operator, other):
    """The checklist refuses all three, so there is no batch and nothing moved."""
    names = [dead(other)["job_id"] for _ in range(3)]
    batch_id = f"b-{uuid.uuid4().hex[:8]}"
    terms = {**TERMS, "request_id": batch_id}
    body = {"terms": terms, "filter": {"owner_key": other.owner}, "error_threshold": 2, "rate_per_minute": 600}

    refused = operator.post("/batches", body)
    assert refused.status_code == 409, refused.text  # nothing changed since: a batch does not override
    seen = operator.post("/preview", {"filter": {"owner_key": other.owner}}).json()
    assert (seen["jobs"], seen["refused"]) == (3, {"cause_fixed": 3})
    assert all(other.job(name)["generation"] == 1 for name in names)


def test_a_batch_brings_back_what_grew_too_old(operator, other):
    """In: a pause longer than the age limit. Out: a batch by ticks on the completion queue, nobody connected."""
    operator.post("/switches/pause", {"workflows": ["evaluation"], "why": "provider is down"})
    time.sleep(5.5)  # switches are read through a cache of five seconds
    job_id = other.submit("evaluation", text=f"later {uuid.uuid4().hex}").json()["job_id"]
    other.until(job_id, lambda job: job["reason"] == "paused")
    other.let_time_pass(job_id, "ready_at", "expires_at")
    job = other.until(job_id, lambda job: job["final"])
    operator.post("/switches/pause/lift", {"why": "provider is back"})
    assert job["reason"] == "max_queue_age_exceeded", job
    time.sleep(5.5)
    batch_id = f"b-{uuid.uuid4().hex[:8]}"
    body = {"terms": {**TERMS, "request_id": batch_id}, "filter": {"owner_key": other.owner}, "error_threshold": 1}

    made = operator.post("/batches", body)

    assert made.status_code == 202, made.text
    assert other.until(job_id, lambda job: job["final"] and job["generation"] == 2)["status"] == "succeeded"
    end = time.monotonic() + 60
    while (batch := operator.get(f"/batches/{batch_id}"))["status"] != "done":
        assert time.monotonic() < end, batch
        time.sleep(1)
    assert batch["counts"]["succeeded"] == 1
    assert batch["outcomes"] == {job_id: "succeeded"}


def test_a_message_that_belongs_to_no_job_is_kept_for_people(stack):
    """In: a poison message in a queue's DLQ. Out: a reference in dead-letters, nothing in circles."""
    body = f"{{not json {uuid.uuid4().hex}"
    url = stack.cloud.outputs()["BackgroundDlqUrl"]
    stack.cloud.client("sqs").send_message(QueueUrl=url, MessageBody=body)

    stack.sweep()

    digest = hashlib.sha256(body.encode()).hexdigest()
    stack.simulator.wait_for(lambda: references(stack, digest) == 1, 10)


def test_the_command_line_works_against_the_stack(stack, operator):
    """Diagnosis in a second or two, lists, and exit codes."""
    job_id = dead(stack)["job_id"]

    begun = time.monotonic()
    assert operator.cli("diagnose", job_id).startswith("client needs_a_person")
    assert time.monotonic() - begun < 30
    assert job_id in operator.cli("dead-letters", "--since", "1h")
    assert json.loads(operator.cli("preview", job_id, "--json"))["would_replay"] is False
    assert "pause" in operator.cli("switch", "list")
    assert "openai" in operator.cli("routes", "list")
    made = json.loads(operator.cli("keys", "create", "acme", "--scope", "read", "--why", "end-to-end", "--json"))
    assert made["key_id"] in operator.cli("keys", "list", "--owner", "acme")
    assert "create_key" in operator.cli("audit")
    operator.cli("diagnose", "job_unknown")
    operator.cli("job", "job_unknown", code=3)
    operator.cli("close", job_id, "--why", "end-to-end")


def test_new_dead_letters_flip_the_deployed_alarm(stack, operator):
    """From a log line of a function to the template's own alarm."""
    del operator
    dead(stack)
    pump, client = Pump(stack.cloud.endpoint), stack.cloud.client("cloudwatch")
    names = [f"breakwater-{STAGE}-new-dead-letters", f"breakwater-{STAGE}-dead-letters"]

    end = time.monotonic() + 30
    while True:
        pump.once()
        states = {
            one["AlarmName"]: one["StateValue"] for one in client.describe_alarms(AlarmNames=names)["MetricAlarms"]
        }
        if set(states.values()) == {"ALARM"} and len(states) == 2:
            return
        assert time.monotonic() < end, states
        time.sleep(1)


def test_no_log_group_holds_what_was_planted(stack, operator):
    """A prompt with a secret in it is in no log line of any function, and in no message."""
    del operator
    planted = f"planted{uuid.uuid4().hex}"
    dead(stack, text=planted)
    stack.done(stack.submit("support_chat", text=planted).json()["job_id"])

    logs = stack.cloud.client("logs")
    for group in logs.describe_log_groups()["logGroups"]:
        pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group["logGroupName"])
        assert not [one for page in pages for one in page["events"] if planted in one["message"]], group["logGroupName"]
    assert references(stack, planted) == 0
