"""The webhook function over real tables and queues: recorded, nudged, repaired, and nothing private in its log."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from breakwater import policy_yaml, wiring
from breakwater.domain.obligations import Queue
from breakwater.domain.records import Child
from breakwater.domain.states import Status
from tests.support.builders import make_execution, make_job
from tests.support.catalogue import policy, route
from tests.support.cloud import ROOT
from tests.support.lambdas import forget, installed, sample
from tests.support.template import functions
from tests.support.webhooks import OTHER, SECRET, completed, event, signed

KNOWN = {"openai": [SECRET]}


@pytest.fixture
def installation(tables, monkeypatch, tmp_path):
    """An installation whose provider signs with one secret."""
    for made in installed(tables, monkeypatch, tmp_path):
        made.secret("WEBHOOK_SECRETS_SECRET", KNOWN)
        yield made


def delivery(installation, webhook_id="msg_1", body=None, secret=SECRET):
    """A genuine delivery, signed now."""
    body = body or completed("resp_1")
    return event(body, signed(body, webhook_id, installation.clock.now(), secret))


def test_every_function_has_a_sample_event():
    """So that each can be tried by hand."""
    folders = {one["CodeUri"].removeprefix("functions/") for one in functions().values()}

    samples = {path.stem for path in (ROOT / "events").glob("*.json")}

    assert {name.partition("-")[0] for name in samples} >= folders


def test_a_recorded_delivery_of_a_provider_is_taken(installation):
    """The sample event at its own time: one item, one message."""
    installation.clock._now = 1_760_000_000_000

    assert installation.http("webhook", sample("webhook")) == (200, {"result": "recorded"})

    assert installation.received(Queue.COMPLETION) == [{"kind": "delivery", "id": "openai#msg_case_0001"}]
    assert wiring.store().delivery("openai#msg_case_0001").provider_job_id == "resp_test_1"


def test_the_same_again_and_another_body_under_its_id(installation):
    """Repeated and conflicting deliveries, told apart by what stands in the table."""
    first = installation.http("webhook", delivery(installation))
    again = installation.http("webhook", delivery(installation))
    other = installation.http("webhook", delivery(installation, body=completed("resp_2")))

    assert [told["result"] for _, told in (first, again, other)] == ["recorded", "repeated", "conflicting"]


def test_a_burst_of_two_hundred_is_taken_whole(installation):
    """From many senders at once: every delivery an item, every item a message."""
    events = [delivery(installation, f"msg_{n}", completed(f"resp_{n}")) for n in range(200)]
    installation.http("webhook", delivery(installation, "msg_first"))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda one: installation.http("webhook", one), events))

    assert {status for status, _ in answers} == {200}
    assert len(installation.received(Queue.COMPLETION)) == 201


def test_a_lost_message_is_repeated_by_the_sweep(installation, monkeypatch):
    """The queue was gone when the delivery came; two minutes later it is nudged all the same."""
    monkeypatch.setenv("COMPLETION_QUEUE_URL", installation.urls["COMPLETION_QUEUE_URL"] + "-gone")
    wiring.for_intake.cache_clear()
    assert installation.http("webhook", delivery(installation))[0] == 200
    monkeypatch.setenv("COMPLETION_QUEUE_URL", installation.urls["COMPLETION_QUEUE_URL"])
    assert installation.received(Queue.COMPLETION) == []

    installation.clock.advance(121_000)
    told = installation.call("sweep", sample("sweep"))

    assert told["swept"]["nudged_delivery"] == 1
    assert installation.received(Queue.COMPLETION) == [{"kind": "delivery", "id": "openai#msg_1"}]


def test_a_rotated_secret_counts_within_a_minute(installation):
    """No deploy: the new one is read when the cache of a minute is over."""
    installation.http("webhook", delivery(installation, "msg_1"))
    installation.secret("WEBHOOK_SECRETS_SECRET", {"openai": [OTHER, SECRET]})

    installation.clock.advance(61_000)

    assert installation.http("webhook", delivery(installation, "msg_2", secret=OTHER))[0] == 200
    assert installation.http("webhook", delivery(installation, "msg_3"))[0] == 200


def test_the_log_says_who_and_what_came_of_it_only(installation, capsys):
    """Event type, delivery id, job and result: one line, no body."""
    installation.http("webhook", delivery(installation, body=completed("resp_1", output="a private answer")))

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]

    assert [line["event"] for line in lines] == ["delivery_taken"]
    assert set(lines[0]) <= {
        "at", "event", "endpoint", "webhook_id", "event_type", "job_id", "verdict", "service", "pid",
    }  # fmt: skip
    assert "private" not in json.dumps(lines)


# --- deliveries that carry their outcome


@pytest.fixture
def telling(installation, monkeypatch, tmp_path):
    """A route whose provider tells its results itself, and a job that runs there."""
    loaded = policy_yaml.load(ROOT / "shared" / "policies")
    loaded.routes["media-route"] = route(
        "media-route",
        provider="gateway",
        gateway="media",
        base_url="https://media.test",
        capabilities={"background": True, "media": ["image"], "webhook": "media"},
    )
    loaded.policies["told"] = policy("told", route="media-route", mode="background")
    (tmp_path / "telling.json").write_bytes(loaded.dump())
    forget()
    monkeypatch.setattr(wiring, "POLICIES", tmp_path / "telling.json")
    installation.secret("WEBHOOK_SECRETS_SECRET", {"media": [SECRET]})
    job_id = f"job_{tmp_path.name.replace('_', '')}"
    execution = replace(make_execution(job_id), route_key="media-route")
    job = make_job("at_provider", job_id=job_id, workflow="told", route_key="media-route", execution=execution)
    made = wiring.store().create(job, installation.clock.now())
    wiring.store().put_child(job_id, Child(sk=job.input_ref, body='{"prompt":"a boat"}'), None)
    return installation, made.job


def tell(installation, job, **more):
    """The provider's own story of the job, in a genuine delivery."""
    metadata = {"breakwater_job_id": job.job_id, "breakwater_execution_id": job.execution.id}
    body = json.dumps({"id": job.provider_job_id, "status": "succeeded", "metadata": metadata, **more}).encode()
    made = event(body, signed(body, "msg_told", installation.clock.now()), "media")
    return installation.http("webhook", made)


@pytest.mark.parametrize("extra", ["", "x" * 100_000], ids=["inline", "in the object store"])
def test_a_delivery_that_carries_its_outcome_settles_its_job(telling, extra):
    """Recorded with its body, worked on by the completion function, and nobody was asked."""
    installation, job = telling

    answer = tell(installation, job, output=["https://cdn.test/1.png"], model="m", note=extra)
    assert answer == (200, {"result": "recorded"})
    record = wiring.store().delivery("media#msg_told")
    assert (record.body is None, record.blob is None) == (bool(extra), not extra)
    [nudge] = installation.received(Queue.COMPLETION)
    assert installation.call("completion", sample("completion-delivery", item_id=nudge["id"])) == {
        "batchItemFailures": []
    }

    settled = installation.job(job.job_id)
    assert settled.status is Status.SUCCEEDED
    result = json.loads(wiring.store().child(job.job_id, settled.result_ref).body)
    assert result["media"] == [{"url": "https://cdn.test/1.png", "mime": "image/png"}]
    assert wiring.store().delivery("media#msg_told").verdict == "settled"


def test_what_was_carried_survives_a_lost_message(telling, monkeypatch):
    """The queue was gone when the delivery came; the sweep finds it with everything in it."""
    installation, job = telling
    monkeypatch.setenv("COMPLETION_QUEUE_URL", installation.urls["COMPLETION_QUEUE_URL"] + "-gone")
    wiring.for_intake.cache_clear()
    assert tell(installation, job, output="https://cdn.test/1.png")[0] == 200
    monkeypatch.setenv("COMPLETION_QUEUE_URL", installation.urls["COMPLETION_QUEUE_URL"])

    installation.clock.advance(121_000)
    installation.call("sweep", sample("sweep"))
    nudges = [one for one in installation.received(Queue.COMPLETION) if one["kind"] == "delivery"]
    assert nudges == [{"kind": "delivery", "id": "media#msg_told"}]
    installation.call("completion", sample("completion-delivery", item_id="media#msg_told"))

    assert installation.job(job.job_id).status is Status.SUCCEEDED
