"""Does a background response live the way the official OpenAI client expects?"""

import openai
import pytest

RUNNING = {"queued", "in_progress"}


def begin(client, text="hello out there", **more):
    """Begin a background response."""
    return client.responses.create(model="gpt-4.1", input=text, background=True, **more)


def ended(sim, client, response_id):
    """Wait for the end of a response."""
    return sim.wait_for(lambda: (found := client.responses.retrieve(response_id)).status not in RUNNING and found)


def test_it_is_queued_then_completed_with_its_metadata(sim, openai_client):
    """Polling finds the result in the end."""
    begun = begin(openai_client, metadata={"job_id": "j1"})

    done = ended(sim, openai_client, begun.id)

    assert (begun.status, begun.output) == ("queued", [])
    assert done.status == "completed"
    assert done.output_text == "Simulated answer to: hello out there"
    assert done.metadata == {"job_id": "j1"}


def test_it_passes_through_in_progress(sim, openai_client):
    """A response that hangs halfway shows it."""
    sim.fault("background_in_progress")
    begun = begin(openai_client)

    sim.wait_for(lambda: openai_client.responses.retrieve(begun.id).status == "in_progress")


def test_it_can_stay_queued_until_somebody_ends_it(sim, openai_client):
    """The known fault of a response that never starts."""
    sim.fault("background_queued", delay_ms=0)
    begun = begin(openai_client)

    assert openai_client.responses.retrieve(begun.id).status == "queued"
    sim.end_response(begun.id)
    assert openai_client.responses.retrieve(begun.id).output_text.startswith("Simulated")


@pytest.mark.parametrize(
    ("preset", "status", "reason", "code"),
    [
        ("background_failed", "failed", None, "server_error"),
        ("background_rate_limited", "failed", None, "rate_limit_exceeded"),
        ("background_failed_silently", "failed", None, None),
        ("background_incomplete", "incomplete", "max_output_tokens", None),
        ("background_filtered", "incomplete", "content_filter", None),
        ("background_cancelled", "cancelled", None, None),
    ],
)
def test_it_can_end_badly(sim, openai_client, preset, status, reason, code):
    """Every end but a good one, as scripted."""
    sim.fault(preset, delay_ms=0)
    begun = begin(openai_client)

    bad = ended(sim, openai_client, begun.id)

    assert bad.status == status
    assert (bad.incomplete_details.reason if bad.incomplete_details else None) == reason
    assert (bad.error.code if bad.error else None) == code


def test_cancelling_ends_it_and_cancelling_again_changes_nothing(sim, openai_client):
    """The second cancel answers with the response as it is."""
    sim.fault("background_in_progress")
    begun = begin(openai_client)

    first = openai_client.responses.cancel(begun.id)
    second = openai_client.responses.cancel(begun.id)

    assert first.status == second.status == "cancelled"
    assert sim.concurrency()["openai.responses.running"]["current"] == 0


def test_what_has_ended_is_not_cancelled(sim, openai_client):
    """Too late is too late."""
    begun = begin(openai_client, "[[sim:delay=0]] hi")
    ended(sim, openai_client, begun.id)

    assert openai_client.responses.cancel(begun.id).status == "completed"


def test_only_background_responses_can_be_cancelled(openai_client):
    """The others are a caller fault, unknown ones are not found."""
    made = openai_client.responses.create(model="gpt-4.1", input="hi")

    with pytest.raises(openai.BadRequestError):
        openai_client.responses.cancel(made.id)
    with pytest.raises(openai.NotFoundError):
        openai_client.responses.cancel("resp_unknown")


def test_its_stream_can_be_resumed_after_any_event(openai_client):
    """Leaving after event 4 and coming back with starting_after=4 loses and repeats nothing."""
    stream = begin(openai_client, stream=True)
    seen = []
    for event in stream:
        seen.append(event)
        if event.sequence_number == 4:
            break
    stream.close()

    rest = list(openai_client.responses.retrieve(seen[0].response.id, stream=True, starting_after=4))

    numbers = [event.sequence_number for event in (*seen, *rest)]
    assert numbers == list(range(len(numbers)))
    assert rest[-1].type == "response.completed"
    assert rest[-1].response.output_text == "Simulated answer to: hello out there"


def test_its_stream_can_be_cut_and_resumed(sim, openai_client):
    """The cut is the connection's, the response lives on."""
    sim.fault("stream_cut", after_events=2)
    seen = []
    with pytest.raises(openai.APIConnectionError):
        seen.extend(begin(openai_client, stream=True))
    response_id = sim.responses()[0]["id"]

    rest = list(openai_client.responses.retrieve(response_id, stream=True))

    assert rest[-1].type == "response.completed"
    assert sim.ledger(route="openai.responses")[0].outcome == "cut"


def test_a_response_that_was_not_streamed_cannot_be_followed(openai_client):
    """Streaming is decided at create."""
    begun = begin(openai_client)

    with pytest.raises(openai.BadRequestError):
        openai_client.responses.retrieve(begun.id, stream=True)


def test_a_stream_of_a_cancelled_response_just_ends(sim, openai_client):
    """There is no event for it."""
    sim.fault("background_in_progress", delay_ms=0)
    stream = begin(openai_client, stream=True)
    first = next(stream)
    sim.wait_for(lambda: sim.response(first.response.id)["status"] == "in_progress")

    openai_client.responses.cancel(first.response.id)

    assert [event.type for event in stream] == ["response.queued", "response.in_progress"]


def test_the_same_create_twice_is_two_responses(sim, openai_client):
    """There is no idempotency at this provider, whatever header is sent."""
    headers = {"Idempotency-Key": "k1"}
    first = begin(openai_client, metadata={"job_id": "j1"}, extra_headers=headers)
    second = begin(openai_client, metadata={"job_id": "j1"}, extra_headers=headers)

    assert first.id != second.id
    assert sim.summary(group="job_id")["groups"]["j1"]["charged"] == 2
    assert [entry.headers["idempotency-key"] for entry in sim.ledger()] == ["k1", "k1"]


def test_running_responses_are_counted(sim, openai_client):
    """The gauge tells how many ran at once, long after they ended."""
    sim.fault("background_queued", count=3)
    for _ in range(3):
        begin(openai_client)
    sim.wait_for(lambda: sim.concurrency()["openai.responses.running"]["current"] == 3)

    for record in sim.responses():
        openai_client.responses.cancel(record["id"])

    gauge = sim.concurrency()["openai.responses.running:gpt-4.1"]
    assert (gauge["current"], gauge["max"]) == (0, 3)
