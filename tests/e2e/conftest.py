"""A client's and an operator's hands on the deployed stack."""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tools.localcloud import LocalCloud
from tools.localcloud.seed import put_api_key
from tools.simulator.client import SimulatorClient

STAGE = "local"
logging.getLogger("httpx").setLevel(logging.WARNING)


class Stack:
    """One owner on the deployed stack: their own key, so that tests don't meet."""

    def __init__(self, cloud: LocalCloud, owner: str) -> None:
        self.cloud, self.owner = cloud, owner
        key = f"bw_{uuid.uuid4().hex}"
        put_api_key(cloud, key, owner=owner, scopes=frozenset({"submit", "read"}))
        self.api = httpx.Client(
            base_url=cloud.api_url,
            headers={"authorization": f"Bearer {key}"},
            timeout=60,
            trust_env=False,
        )
        self.simulator = SimulatorClient(cloud.simulator.url)

    def close(self) -> None:
        """Let go of connections."""
        self.api.close()
        self.simulator.close()

    def submit(self, workflow: str = "support_summary", text: str = "hello", key: str | None = None, **more: Any):
        """Post one job; the answer as it came."""
        body = {"workflow": workflow, "input": {"messages": [{"role": "user", "content": text}]}, **more}
        headers = {"idempotency-key": key or uuid.uuid4().hex}
        return self.api.post("/v1/jobs", json=body, headers=headers)

    def job(self, job_id: str) -> dict[str, Any]:
        """The job as its owner sees it."""
        answer = self.api.get(f"/v1/jobs/{job_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def until(self, job_id: str, true: Callable[[dict[str, Any]], bool], seconds: float = 60) -> dict[str, Any]:
        """The job once `true` holds."""
        end = time.monotonic() + seconds
        while not true(job := self.job(job_id)):
            assert time.monotonic() < end, f"not within {seconds} s: {json.dumps(job)}"
            time.sleep(0.3)
        return job

    def done(self, job_id: str, seconds: float = 60) -> dict[str, Any]:
        """The job once it is final and owes nothing."""
        return self.until(job_id, lambda job: job["final"] and not job["owed"], seconds)

    def calls(self, job_id: str) -> list[Any]:
        """Every paid call the provider got for a job."""
        return [one for one in self.simulator.ledger(metadata_breakwater_job_id=job_id) if one.method == "POST"]

    def item(self, job_id: str) -> dict[str, Any]:
        """META as stored."""
        table = self.cloud.outputs()["JobsTableName"]
        key = {"pk": {"S": f"JOB#{job_id}"}, "sk": {"S": "META"}}
        return self.cloud.client("dynamodb").get_item(TableName=table, Key=key)["Item"]

    def let_time_pass(self, job_id: str, *names: str) -> None:
        """Move what the job waits for into the past, as if the minutes had gone by; then run the sweep."""
        table = self.cloud.outputs()["JobsTableName"]
        past = {":past": {"N": str(int(time.time() * 1000) - 1_000_000)}}
        moved = ", ".join(f"{name} = :past" for name in ("due_at", *names))
        self.cloud.client("dynamodb").update_item(
            TableName=table,
            Key={"pk": {"S": f"JOB#{job_id}"}, "sk": {"S": "META"}},
            UpdateExpression=f"SET {moved}",
            ExpressionAttributeValues=past,
            ConditionExpression="attribute_exists(pk)",
        )
        self.sweep()

    def sweep(self) -> dict[str, Any]:
        """Run the minute sweep now."""
        answer = self.cloud.client("lambda").invoke(FunctionName=f"breakwater-{STAGE}-sweep", Payload=b"{}")
        told = json.loads(answer["Payload"].read())
        assert "FunctionError" not in answer, told
        return told


@pytest.fixture(scope="session")
def stack(deployed_stack: LocalCloud) -> Iterator[Stack]:
    """The deployed stack, warmed by one job so that later tests measure work and not start-up."""
    stack = Stack(deployed_stack, f"owner-{uuid.uuid4().hex[:8]}")
    answer = stack.submit(text="warm up")
    assert answer.status_code == 202, answer.text
    stack.done(answer.json()["job_id"], 120)
    yield stack
    stack.close()
