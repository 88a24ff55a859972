"""Does a fault meet those it is meant for, as often as it should, and does the control API mind mistakes?"""

import openai
import pytest

from tools.simulator.client import SimulatorError


def ask(client, text="hi", model="gpt-4.1", **more):
    """Ask one question."""
    return client.responses.create(model=model, input=text, **more)


def fails(client, *args, **more):
    """Tell whether a question is answered with an error."""
    try:
        ask(client, *args, **more)
    except openai.APIStatusError:
        return True
    return False


def test_a_fault_is_used_up(sim, openai_client):
    """Once by default, as often as its count says, or until it is cleared."""
    sim.fault("openai_500", count=2)
    counted = [fails(openai_client) for _ in range(3)]
    endless = sim.fault("openai_500", count=None)
    lasting = [fails(openai_client) for _ in range(3)]
    sim.clear_faults(endless)

    assert counted == [True, True, False]
    assert lasting == [True, True, True]
    assert not fails(openai_client)
    assert [each["used"] for each in sim.faults()] == [2]


def test_a_fault_can_last_for_a_time(sim, openai_client):
    """As many calls as come in it, none after."""
    sim.fault("openai_500", for_ms=0)
    over = [fails(openai_client) for _ in range(2)]
    sim.fault("openai_500", for_ms=600_000)
    during = [fails(openai_client) for _ in range(3)]

    assert over == [False, False]
    assert during == [True, True, True]


def test_faults_come_in_the_order_they_were_queued(sim, openai_client):
    """One per call."""
    for preset in ("openai_500", "openai_429_rate", "openai_503_overloaded"):
        sim.fault(preset)

    statuses = []
    for _ in range(3):
        with pytest.raises(openai.APIStatusError) as raised:
            ask(openai_client)
        statuses.append(raised.value.status_code)

    assert statuses == [500, 429, 503]


@pytest.mark.parametrize(
    ("aim", "hits"),
    [
        ({"route": "openai.responses"}, [True, True]),
        ({"route": "openai.*"}, [True, True]),
        ({"route": "openai.chat"}, [False, False]),
        ({"model": "gpt-4.1-mini"}, [False, True]),
        ({"contains": "needle"}, [True, False]),
        ({"contains": "j2"}, [False, True]),
    ],
)
def test_a_fault_meets_only_those_it_is_meant_for(sim, openai_client, aim, hits):
    """By route, model, prompt or metadata."""
    sim.fault("openai_500", count=None, **aim)

    hit = [fails(openai_client, "a needle"), fails(openai_client, model="gpt-4.1-mini", metadata={"job_id": "j2"})]

    assert hit == hits


def test_a_fault_for_polls_leaves_creates_alone(sim, openai_client):
    """They are routes of their own."""
    sim.fault("openai_503_overloaded", route="openai.responses.get")
    made = ask(openai_client)

    with pytest.raises(openai.InternalServerError):
        openai_client.responses.retrieve(made.id)


def test_a_stream_fault_waits_for_a_stream(sim, openai_client):
    """And a background fault for a background create."""
    sim.fault("stream_end")
    sim.fault("background_failed")

    assert ask(openai_client).status == "completed"
    assert [each["used"] for each in sim.faults()] == [0, 0]


def test_the_prompt_itself_can_ask_for_a_fault(openai_client):
    """Always, or for its first calls; by any preset."""
    always = [fails(openai_client, "[[sim:fault=openai_500]]") for _ in range(2)]
    twice = [fails(openai_client, "[[sim:fault=rate_limited*2]]") for _ in range(3)]

    assert always == [True, True]
    assert twice == [True, True, False]


@pytest.mark.parametrize(
    "script",
    [
        {"preset": "unheard_of"},
        {"kind": "unheard_of"},
        {"kind": "status", "stauts": 500},
        {"kind": "cut_after", "processed": False},
        {"kind": "status", "count": 0},
    ],
)
def test_a_fault_with_a_mistake_is_refused(sim, script):
    """Rather than never meeting anybody."""
    with pytest.raises(SimulatorError):
        sim.fault(**script)
    assert sim.faults() == []


def test_many_faults_can_be_queued_in_one_request(sim, simulator, http):
    """As a list, all of them or none."""
    url = f"{simulator.base_url}/_sim/faults"

    refused = http.post(url, json=[{"preset": "hang"}, {"preset": "unheard_of"}])
    accepted = http.post(url, json=[{"preset": "hang"}, {"preset": "cut"}])

    assert (refused.status_code, accepted.status_code) == (400, 201)
    assert len(sim.faults()) == 2


def test_a_reset_can_spare_parts(sim, openai_client):
    """What is not named stays."""
    sim.fault("openai_500", route="openai.chat")
    ask(openai_client)
    sim.reset("faults", "responses", "concurrency")

    assert sim.faults() == []
    assert sim.responses() == []
    assert sim.concurrency() == {}
    assert len(sim.ledger()) == 1


def test_what_runs_is_stopped_by_a_reset(sim, openai_client):
    """Nothing is delivered out of a past that was put away."""
    sim.fault("background_queued")
    begun = ask(openai_client, background=True)
    sim.wait_for(lambda: sim.concurrency()["openai.responses.running"]["current"] == 1)

    sim.reset()

    with pytest.raises(openai.NotFoundError):
        openai_client.responses.retrieve(begun.id)
    sim.wait_for(lambda: sim.concurrency().get("openai.responses.running", {"current": 0})["current"] == 0)


@pytest.mark.parametrize(
    "ask_for",
    [
        lambda sim: sim.ledger(unheard_of="x"),
        lambda sim: sim.response("resp_unknown"),
        lambda sim: sim.end_response("resp_unknown"),
        lambda sim: sim.reset("everything"),
        lambda sim: sim.webhooks("http://x", mode="unheard_of"),
        lambda sim: sim.send_webhook("response.completed", "resp_1"),
    ],
)
def test_a_mistaken_request_is_refused(sim, ask_for):
    """With an answer that says why."""
    with pytest.raises(SimulatorError):
        ask_for(sim)


def test_a_response_cannot_be_ended_with_a_state_it_passes_through(sim, openai_client):
    """Only with an end."""
    sim.fault("background_queued")
    begun = ask(openai_client, background=True)

    with pytest.raises(SimulatorError):
        sim.end_response(begun.id, "in_progress")
    assert sim.end_response(begun.id, "failed")["status"] == "failed"


def test_presets_are_listed(sim):
    """For people who look for a name."""
    listed = sim.presets()

    assert listed["presets"]["openai_slow_down"]["status"] == 429
    assert listed["by_provider"]["rate_limited"]["gemini"] == "gemini_429_minute"


def test_waiting_has_an_end(sim):
    """A test that waits for nothing fails, soon."""
    with pytest.raises(TimeoutError):
        sim.wait_for(lambda: False, timeout=0.02)
