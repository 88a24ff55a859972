"""Can the ledger be trusted to the last call, also in parallel and after a restart?"""

import json
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from tools.simulator.ledger import Ledger
from tools.simulator.shapes import Incoming, Usage


def ask(client, text="hi", **more):
    """Ask one question."""
    return client.responses.create(model="gpt-4.1", input=text, **more)


def test_fifty_parallel_calls_are_fifty_lines(sim, openai_client):
    """No call is lost, none counted twice, and the most at once is known."""
    sim.fault("slow", ms=100, count=50)

    def call(number):
        return ask(openai_client, metadata={"job_id": f"j{number % 5}", "number": str(number)}).id

    with ThreadPoolExecutor(50) as pool:
        ids = set(pool.map(call, range(50)))

    entries, summary = sim.ledger(), sim.summary(group="job_id")
    assert {entry.provider_id for entry in entries} == ids
    assert [entry.seq for entry in entries] == list(range(entries[0].seq, entries[0].seq + 50))
    assert {name: group["charged"] for name, group in summary["groups"].items()} == dict.fromkeys(
        ["j0", "j1", "j2", "j3", "j4"], 10
    )
    assert summary["statuses"] == {"200": 50}
    gauge = sim.concurrency()["openai.responses"]
    assert gauge["current"] == 0
    assert 2 <= gauge["max"] <= 50


def test_hidden_retries_of_the_client_show(sim, simulator):
    """One call in the code, three at the provider."""
    sim.fault("openai_429_no_hint", count=None, retry_after="0.001")
    with openai.OpenAI(base_url=simulator.openai_url, api_key="k") as client, pytest.raises(openai.RateLimitError):
        ask(client)

    assert [entry.headers["x-stainless-retry-count"] for entry in sim.ledger()] == ["0", "1", "2"]
    assert sim.summary()["charged"] == 0


def test_an_entry_tells_who_called_and_keeps_the_key_to_itself(sim, openai_client):
    """Headers of interest; of the key only a hash."""
    ask(
        openai_client,
        "find me",
        extra_headers={"Idempotency-Key": "k1", "X-Client-Request-Id": "c1", "X-Attempt": "a1"},
    )

    entry = sim.ledger(contains="find me")[0]

    assert (entry.headers["idempotency-key"], entry.headers["x-client-request-id"]) == ("k1", "c1")
    assert entry.headers["x-attempt"] == "a1"
    assert len(entry.headers["authorization_sha256"]) == 16
    assert "sk-test" not in json.dumps(entry.headers)
    assert (entry.method, entry.path, entry.model) == ("POST", "/openai/v1/responses", "gpt-4.1")
    assert entry.input_tokens > 0
    assert entry.output_tokens > 0
    assert entry.answered_ms >= entry.at_ms


def test_filters_narrow_the_list(sim, openai_client):
    """Each alone and all together."""
    made = ask(openai_client, metadata={"job_id": "j1"})
    ask(openai_client, metadata={"job_id": "j2"})
    openai_client.responses.retrieve(made.id)
    first = sim.ledger()[0].seq

    assert len(sim.ledger(metadata_job_id="j1")) == 2
    assert len(sim.ledger(metadata_job_id="j1", charged=True)) == 1
    assert len(sim.ledger(route="openai.*", method="GET")) == 1
    assert len(sim.ledger(since=first)) == 2
    assert len(sim.ledger(provider_id=made.id)) == 2
    assert sim.summary(group="header:idempotency-key", charged=True)["groups"][""]["charged"] == 2


def test_calls_to_nowhere_are_on_record(sim, simulator, http):
    """A wrong base URL is a finding."""
    answer = http.post(f"{simulator.base_url}/v1/responses", headers={"authorization": "Bearer k"}, json={})

    assert answer.status_code == 404
    assert [(entry.route, entry.path) for entry in sim.ledger()] == [("unknown", "/v1/responses")]


def test_the_ledger_survives_a_restart_and_a_torn_line(tmp_path):
    """Numbers go on, what a reset put away stays away."""
    first = Ledger(tmp_path)
    arrived(first)
    first.reset()
    kept = arrived(first)
    first.processed(kept, "resp_1", Usage(input=3, output=4))
    first.close()
    with (tmp_path / "ledger.jsonl").open("a") as file:
        file.write('{"seq": 99, "rou')

    second = Ledger(tmp_path)
    after = second.entries({})
    added = arrived(second)
    second.close()
    third = Ledger(tmp_path)
    again = third.entries({})
    third.close()

    assert after == [kept]
    assert again == [kept, added]
    assert added.seq == kept.seq + 1


def arrived(ledger):
    """Put one call on record."""
    return ledger.open("openai.responses", Incoming("POST", "/", {}, {}, {}), cost_bearing=True)
