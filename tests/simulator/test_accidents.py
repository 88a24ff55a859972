"""Does each scripted fault break exactly what it should, and leave the right line in the ledger?"""

import time

import openai
import pytest

BODY = {"model": "gpt-4.1", "input": "Say hello to the harbour"}


def ask(client, text="Say hello to the harbour", **more):
    """Ask one question."""
    return client.responses.create(model="gpt-4.1", input=text, **more)


def last(sim):
    """Return the latest call."""
    return sim.ledger()[-1]


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize(("preset", "charged"), [("cut", False), ("cut_accepted", True)])
def test_a_cut_connection_tells_nothing_but_the_ledger_knows(sim, openai_client, preset, charged, reset):
    """Before or after the work, the caller sees the same."""
    sim.fault(preset, reset=reset)

    with pytest.raises(openai.APIConnectionError):
        ask(openai_client)

    assert (last(sim).outcome, last(sim).charged, last(sim).status) == ("cut", charged, None)
    assert (last(sim).provider_id is not None) == charged


def test_a_background_create_can_be_accepted_and_cut(sim, openai_client):
    """The response lives on although nobody learned its id."""
    sim.fault("cut_accepted")

    with pytest.raises(openai.APIConnectionError):
        ask(openai_client, background=True, metadata={"job_id": "j1"})

    orphan = sim.wait_for(lambda: next((r for r in sim.responses() if r["status"] == "completed"), None))
    assert orphan["metadata"] == {"job_id": "j1"}
    assert orphan["id"] == last(sim).provider_id


def test_a_body_can_be_cut_in_the_middle(sim, openai_client):
    """Status and headers came, the rest did not."""
    sim.fault("cut_body")

    with pytest.raises(openai.APIConnectionError):
        ask(openai_client)
    assert (last(sim).outcome, last(sim).status, last(sim).charged) == ("cut", 200, True)


@pytest.mark.parametrize("preset", ["empty_body", "truncated_json"])
def test_a_body_can_be_spoiled(sim, simulator, http, preset):
    """A complete HTTP answer, but not JSON."""
    sim.fault(preset)

    answer = http.post(f"{simulator.openai_url}/responses", headers={"authorization": "Bearer k"}, json=BODY)

    assert answer.status_code == 200
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        answer.json()
    assert (last(sim).outcome, last(sim).charged) == ("broken", True)


@pytest.mark.parametrize(("preset", "charged"), [("hang", False), ("hang_accepted", True)])
def test_a_hanging_call_is_on_record_while_it_hangs(sim, openai_client, preset, charged):
    """And is closed as client_gone when the caller gives up."""
    sim.fault(preset)

    with pytest.raises(openai.APITimeoutError):
        openai_client.with_options(timeout=0.1).responses.create(**BODY)

    sim.wait_for(lambda: sim.ledger(outcome="client_gone"))
    assert last(sim).charged == charged
    assert sim.concurrency()["openai.responses"]["current"] == 0


def test_a_hang_ends_in_a_cut(sim, openai_client):
    """After its time."""
    sim.fault("hang", ms=20)

    with pytest.raises(openai.APIConnectionError):
        ask(openai_client)
    assert last(sim).outcome == "cut"


def test_a_slow_call_is_answered_late(sim, openai_client):
    """By a fault or by a directive."""
    sim.fault("slow", ms=60)
    began = time.monotonic()
    ask(openai_client, "[[sim:delay=60]] hi")

    assert time.monotonic() - began >= 0.12
    assert last(sim).outcome == "answered"


def test_who_leaves_during_the_work_pays_all_the_same(sim, openai_client):
    """The provider does not stop for that."""
    with pytest.raises(openai.APITimeoutError):
        openai_client.with_options(timeout=0.1).responses.create(model="gpt-4.1", input="[[sim:delay=60000]] hi")

    sim.wait_for(lambda: sim.ledger(outcome="client_gone"))
    assert last(sim).charged


def test_a_stream_can_end_before_its_end(sim, openai_client):
    """A clean end of the connection, and nothing but a missing event tells."""
    sim.fault("stream_end", after_events=5)

    events = list(ask(openai_client, stream=True))

    assert len(events) == 5
    assert last(sim).outcome == "broken"


def test_a_cut_stream_delivers_what_came_before(sim, openai_client):
    """Exactly the events before the cut."""
    sim.fault("stream_cut", after_events=5)
    stream = ask(openai_client, stream=True)

    seen = [next(stream).sequence_number for _ in range(5)]

    assert seen == [0, 1, 2, 3, 4]
    with pytest.raises(openai.APIConnectionError):
        next(stream)
    assert last(sim).outcome == "cut"


def test_a_stream_can_stall(sim, openai_client):
    """Until the reader loses patience."""
    sim.fault("stream_stall", after_events=2)
    stream = openai_client.with_options(timeout=0.1).responses.create(**BODY, stream=True)

    with pytest.raises(openai.APITimeoutError):
        list(stream)
    sim.wait_for(lambda: sim.ledger(outcome="client_gone"))


def test_the_responses_api_reports_a_stream_error_flatly(sim, openai_client):
    """The client does not raise for it, which is why it must be looked for."""
    sim.fault("stream_error", after_events=4)

    events = list(ask(openai_client, stream=True))

    assert events[-1].type == "error"
    assert events[-1].code == "server_error"


def test_retry_after_can_be_anything(sim, simulator, http):
    """Raw text replaces the header, an empty one removes it, a Gemini delay goes into the body."""
    url, key = f"{simulator.openai_url}/responses", {"authorization": "Bearer k"}
    for text in ("0.5", "-1", "Wed, 21 Oct 2015 07:28:00 GMT", ""):
        sim.fault("openai_429_tokens", retry_after=text)
    sim.fault("gemini_429_minute", retry_delay="0.5s", route="openai.*")

    answers = [http.post(url, headers=key, json=BODY) for _ in range(5)]

    headers = [answer.headers.get("retry-after") for answer in answers[:4]]
    assert headers == ["0.5", "-1", "Wed, 21 Oct 2015 07:28:00 GMT", None]
    assert "retry-after-ms" not in answers[0].headers
    assert answers[4].json()["error"]["details"][-1]["retryDelay"] == "0.5s"


def test_a_status_of_ones_own(sim, simulator, http):
    """Any status, headers and body; even none."""
    sim.fault(kind="status", status=418, headers={"X-Odd": "yes"}, body={"odd": True})
    sim.fault(kind="status", status=503)
    url, key = f"{simulator.openai_url}/responses", {"authorization": "Bearer k"}

    odd, empty = (http.post(url, headers=key, json=BODY) for _ in range(2))

    assert (odd.status_code, odd.headers["x-odd"], odd.json()) == (418, "yes", {"odd": True})
    assert (empty.status_code, empty.content) == (503, b"")


def test_a_timeout_page_can_come_after_the_work_was_done(sim, openai_client):
    """The outcome nobody can know from outside."""
    sim.fault("html_524", processed=True)

    with pytest.raises(openai.InternalServerError):
        ask(openai_client)
    assert (last(sim).status, last(sim).charged) == (524, True)
