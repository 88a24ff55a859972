"""The scheduler and outside schedulers on the deployed stack, with the rights their roles give them."""

from __future__ import annotations

import json

import httpx
import pytest

SECRET = "a-secret-for-outside-schedulers"


@pytest.fixture(scope="module")
def outside(stack):
    """An outside scheduler's client, with its secret in place."""
    arn = stack.cloud.outputs()["CronSecretsSecretArn"]
    stack.cloud.client("secretsmanager").put_secret_value(
        SecretId=arn, SecretString=json.dumps({"CRON_SECRET": SECRET})
    )
    with httpx.Client(base_url=stack.cloud.api_url, timeout=60, trust_env=False) as client:
        yield client


def test_the_scheduler_looks_at_every_schedule(stack):
    """It may read and write where schedules stand; what is switched off makes no jobs."""
    client = stack.cloud.client("lambda")

    answer = client.invoke(FunctionName="breakwater-local-scheduler", Payload=b"{}")

    told = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, told
    assert (told["ticked"]["failed"], told["ticked"]["created"]) == (0, 0)


def test_an_outside_scheduler_comes_in_with_its_secret_only(outside):
    """No key of ours, but CRON_SECRET; without it nobody learns which schedules there are."""
    known = {"authorization": f"Bearer {SECRET}"}

    answers = [
        outside.get("/v1/cron/nightly_summary"),
        outside.post("/v1/cron/nightly_summary", headers={"authorization": "Bearer wrong-but-long-enough"}),
        outside.get("/v1/cron/nobody", headers=known),
        outside.get("/v1/cron/nightly_summary", headers=known),
        outside.post("/v1/cron/nightly_summary", headers=known),
    ]

    assert [one.status_code for one in answers] == [401, 401, 404, 409, 409]
    assert answers[-1].json()["rule"] == "enabled"


def test_a_callback_is_checked_where_jobs_are_admitted(stack):
    """The owner has no hosts, so nothing can be called back."""
    answer = stack.submit(callback_url="https://hooks.example.com/x")

    assert (answer.status_code, answer.json()["rule"]) == (400, "host_not_allowed")
