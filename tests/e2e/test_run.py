"""The interactive path on the deployed stack: a result, a queued job, or a last result; always in time."""

from __future__ import annotations

import time
import uuid

import pytest

DEADLINE = 25.0


@pytest.fixture
def run(stack):
    """Post one request that waits; the answer and how long it took."""

    def post(workflow="support_chat", text="hello", key=None, **more):
        body = {"workflow": workflow, "input": {"messages": [{"role": "user", "content": text}]}, **more}
        begun = time.monotonic()
        answer = stack.api.post("/v1/run", json=body, headers={"idempotency-key": key or uuid.uuid4().hex})
        return answer, time.monotonic() - begun

    return post


@pytest.fixture(autouse=True)
def _no_faults_left(stack):
    yield
    stack.simulator.clear_faults()


def test_a_person_gets_the_result_in_one_request(stack, run):
    """One call, no queue, and every slot is given back."""
    answer, took = run(text="Where is my parcel?", user_ref="u-7")

    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["status"], body["attempt"], body["lane"]) == ("succeeded", 1, "interactive_admission")
    assert "parcel" in body["result"]["text"]
    assert took < DEADLINE
    assert answer.headers["location"] == f"/v1/jobs/{body['job_id']}"
    assert calls(stack, body["job_id"]) == 1
    stack.done(body["job_id"])
    assert slots(stack) == 0


def test_the_same_intent_twice_is_paid_once(stack, run):
    """The second request gets the first one's result."""
    key = uuid.uuid4().hex
    first, _ = run(key=key)
    second, _ = run(key=key)

    assert (first.status_code, second.status_code) == (200, 200)
    assert second.headers["idempotency-replayed"] == "true"
    assert first.json()["job_id"] == second.json()["job_id"]
    assert calls(stack, first.json()["job_id"]) == 1


def test_an_outage_ends_in_a_controlled_answer(stack, run):
    """Every route fails: 202 with a time to look again, or a problem that names the job. Never a hung request."""
    stack.simulator.fault(kind="status", status=503, count=8, for_ms=60_000, retry_after="")

    answer, took = run()

    assert took < DEADLINE + 0.5
    assert answer.status_code in {202, 503}, answer.text
    body = answer.json()
    assert body["job_id"].startswith("job_")
    assert int(answer.headers["retry-after"]) >= 1
    assert calls(stack, body["job_id"]) <= 3


def test_the_last_result_says_how_old_it_is(stack):
    """For a workflow whose policy serves it; never as live."""
    job_id = stack.submit("support_summary", text="Summarise: the lift works again.").json()["job_id"]
    stack.done(job_id)

    answer = stack.api.get("/v1/workflows/support_summary/latest")

    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["live"], body["job_id"]) == (False, job_id)
    assert body["age_ms"] >= 0
    assert answer.headers["warning"].startswith("110")
    assert stack.api.get("/v1/workflows/support_chat/latest").status_code == 404


def calls(stack, job_id):
    """How often a provider was called for a job."""
    return len(stack.api.get(f"/v1/jobs/{job_id}/executions").json()["executions"])


def slots(stack):
    """How many numbers of any limit are taken."""
    table = stack.cloud.outputs()["JobsTableName"]
    pages = stack.cloud.client("dynamodb").get_paginator("scan").paginate(TableName=table, ProjectionExpression="pk")
    return sum(item["pk"]["S"].startswith("SLOT#") for page in pages for item in page["Items"])
