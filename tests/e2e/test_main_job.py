"""The main job on the deployed stack, and what the world does to it."""

from __future__ import annotations

import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.e2e.conftest import STAGE, Stack


def test_a_background_job_comes_back_by_webhook(stack):
    """202 with a place to look; then one provider call, the result, its cost, and every id in the story."""
    answer = stack.submit(text="Summarise: the lift is stuck.")

    assert answer.status_code == 202
    job_id = answer.json()["job_id"]
    assert answer.headers["location"] == f"/v1/jobs/{job_id}"
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.json()["next_poll_after_ms"] >= 1000
    job = stack.done(job_id)
    assert (job["status"], job["reason"]) == ("succeeded", "completed")
    assert "the lift is stuck" in job["result"]["text"]
    assert job["cost_micros"] > 0
    assert "next_poll_after_ms" not in job
    (line,) = stack.api.get(f"/v1/jobs/{job_id}/executions").json()["executions"]
    assert line["provider_job_id"].startswith("resp_")
    assert all(line[name] for name in ("message_id", "lambda_request_id", "policy_hash", "code_version", "request_id"))
    assert len(stack.calls(job_id)) == 1


@pytest.mark.parametrize("workflow", ["support_chat", "evaluation"])
def test_a_synchronous_job_is_settled_by_its_worker(stack, workflow):
    """Workflows without background mode end in one step."""
    job = stack.done(stack.submit(workflow).json()["job_id"])

    assert job["status"] == "succeeded"
    assert job["attempt"] == 1


def test_a_picture_is_made(stack):
    """The media family: a prompt in, pictures out."""
    body = {"workflow": "media_generation", "input": {"prompt": "a harbour at dawn", "n": 1}}
    answer = stack.api.post("/v1/jobs", json=body, headers={"idempotency-key": uuid.uuid4().hex})

    job = stack.done(answer.json()["job_id"])

    assert job["status"] == "succeeded", job
    assert len(job["result"]["media"]) == 1


def test_fifty_submissions_at_once_with_one_key_are_one_job(stack):
    """One id in all fifty answers, one call at the provider."""
    key = uuid.uuid4().hex
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: stack.submit(key=key, text="only once"), range(50)))

    assert {one.status_code for one in answers} <= {200, 202}
    (job_id,) = {one.json()["job_id"] for one in answers}
    assert sum(not one.json()["replayed"] for one in answers) == 1
    stack.done(job_id)
    assert len(stack.calls(job_id)) == 1


def test_the_same_key_with_another_payload_is_refused(stack):
    """422 while it runs and after it is done, with the field, the rule and the fix."""
    key = uuid.uuid4().hex
    job_id = stack.submit(key=key, text="A").json()["job_id"]

    early = stack.submit(key=key, text="B")
    stack.done(job_id)
    late = stack.submit(key=key, text="B")

    for answer in (early, late):
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["field"] == "Idempotency-Key"
        assert answer.json()["fix"]
    again = stack.submit(key=key, text="A")
    assert (again.status_code, again.json()["job_id"]) == (200, job_id)
    assert again.headers["idempotency-replayed"] == "true"


def test_another_owner_finds_nothing(stack):
    """The same key is another job, and a foreign id is 404 for every verb."""
    other = Stack(stack.cloud, f"owner-{uuid.uuid4().hex[:8]}")
    key = uuid.uuid4().hex
    mine = stack.submit(key=key).json()["job_id"]
    theirs = other.submit(key=key).json()["job_id"]

    assert mine != theirs
    for method, path in (("GET", ""), ("GET", "/executions"), ("POST", "/cancel"), ("POST", "/retry")):
        assert other.api.request(method, f"/v1/jobs/{mine}{path}").status_code == 404
    assert mine not in [one["job_id"] for one in other.api.get("/v1/jobs").json()["jobs"]]
    stack.done(mine)
    other.done(theirs)
    other.close()


def test_an_unchanged_job_answers_304(stack):
    """A poller that knows the tag gets no body."""
    job_id = stack.submit().json()["job_id"]
    stack.done(job_id)
    tag = stack.api.get(f"/v1/jobs/{job_id}").headers["etag"]

    answer = stack.api.get(f"/v1/jobs/{job_id}", headers={"if-none-match": tag})

    assert answer.status_code == 304
    assert answer.content == b""


def test_a_job_whose_nudge_was_dropped_finishes_through_the_sweep(stack):
    """The queue is purged right after admission; the table still knows."""
    queue = stack.cloud.client("sqs").get_queue_url(QueueName=f"breakwater-{STAGE}-background")["QueueUrl"]
    functions = stack.cloud.client("lambda")
    mappings = functions.list_event_source_mappings(FunctionName=f"breakwater-{STAGE}-worker-background")
    mapping = mappings["EventSourceMappings"][0]["UUID"]
    functions.update_event_source_mapping(UUID=mapping, Enabled=False)
    try:
        time.sleep(1.5)
        job_id = stack.submit().json()["job_id"]
        time.sleep(0.5)
        stack.cloud.client("sqs").purge_queue(QueueUrl=queue)
    finally:
        functions.update_event_source_mapping(UUID=mapping, Enabled=True)
    assert stack.job(job_id)["attempt"] == 0

    stack.let_time_pass(job_id, "nudged_for")

    assert stack.done(job_id)["status"] == "succeeded"
    assert len(stack.calls(job_id)) == 1


def test_a_job_whose_webhook_never_comes_finishes_through_the_poll(stack):
    """The provider is asked once the webhook is late."""
    url, secret = f"{stack.cloud.api_url}/v1/webhooks/openai", stack.cloud.remembered()["webhook_secret"]
    stack.simulator.webhooks(None)
    try:
        job_id = stack.submit(text="nobody will tell").json()["job_id"]
        stack.until(job_id, lambda job: job["reason"] == "at_provider")
        response = stack.simulator.wait_for(
            lambda: next(
                one for one in stack.simulator.responses() if one["id"] == stack.job(job_id)["provider_job_id"]
            ),
        )
        stack.simulator.wait_for(
            lambda: stack.simulator.response(response["id"])["response"]["status"] == "completed", 20
        )

        stack.let_time_pass(job_id, "poll_at", "nudged_for")

        job = stack.done(job_id)
    finally:
        stack.simulator.webhooks(url, [secret])
    assert job["status"] == "succeeded"
    assert len(stack.calls(job_id)) == 1


def test_a_large_result_comes_back_whole(stack):
    """Beyond the table's limit the result stands in the object store; beyond 4 MiB it comes as a URL."""
    small = stack.done(stack.submit(text="[[sim:long=420000]]").json()["job_id"])
    large = stack.done(stack.submit(text="[[sim:long=5000000]]").json()["job_id"])

    assert len(small["result"]["text"]) >= 420_000
    assert large["result_bytes"] > 4 * 1024 * 1024
    assert "result" not in large
    fetched = httpx.get(large["result_url"], timeout=30, trust_env=False)
    assert len(json.loads(fetched.content)["text"]) >= 5_000_000


def test_a_large_input_is_kept_and_a_larger_one_refused(stack):
    """Up to 4 MiB a body is taken; above it the answer is 413 and nothing is stored."""
    fits = stack.submit(text="x" * 1_000_000)
    assert fits.status_code == 202, fits.text
    assert stack.done(fits.json()["job_id"])["status"] == "succeeded"

    refused = stack.submit(text="x" * (4 * 1024 * 1024 + 10))

    assert refused.status_code == 413
    assert refused.json()["field"] == "body"


def test_a_queued_job_can_be_cancelled_and_cancel_repeats(stack):
    """The provider's own job is cancelled too; a second cancel answers the same."""
    job_id = stack.submit(text="[[sim:delay=60000]]").json()["job_id"]
    stack.until(job_id, lambda job: job["reason"] == "at_provider")

    first = stack.api.post(f"/v1/jobs/{job_id}/cancel")
    job = stack.done(job_id)
    second = stack.api.post(f"/v1/jobs/{job_id}/cancel")

    assert first.status_code == 200
    assert job["status"] == "cancelled"
    assert second.status_code == 200
    assert second.json()["status"] == "cancelled"
    assert (
        stack.simulator.response(job["provider_job_id"] or _provider_job(stack, job_id))["response"]["status"]
        == "cancelled"
    )
    done = stack.done(stack.submit().json()["job_id"])
    late = stack.api.post(f"/v1/jobs/{done['job_id']}/cancel")
    assert late.status_code == 409
    assert late.json()["job_status"] == "succeeded"


def _provider_job(stack, job_id):
    lines = stack.api.get(f"/v1/jobs/{job_id}/executions").json()["executions"]
    return next(line["provider_job_id"] for line in lines if line.get("provider_job_id"))


def test_a_failing_provider_ends_in_a_dead_letter_that_tells_nothing_private(stack):
    """A caller's fault is not repeated; its reference carries no prompt."""
    job_id = stack.submit(text="[[sim:fault=openai_400_invalid]] the secret of the house").json()["job_id"]

    job = stack.done(job_id)

    assert job["status"] == "dead_letter", job
    queue = stack.cloud.outputs()["DeadLettersQueueUrl"]
    messages = stack.cloud.client("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages", [])
    references = [json.loads(one["Body"]) for one in messages]
    mine = next(one for one in references if one["job_id"] == job_id)
    assert mine["reason"] == job["reason"]
    assert "secret of the house" not in json.dumps(references)
