"""Does the official OpenAI client find the Responses API it expects?"""

import json

import openai
import pytest

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 2}},
        "required": ["city", "days"],
    },
}
SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "tags": {"type": "array", "items": {"enum": ["a", "b"]}}},
    "required": ["title", "tags"],
    "additionalProperties": False,
}
FORMAT = {"format": {"type": "json_schema", "name": "note", "schema": SCHEMA, "strict": True}}


def ask(client, text="What is a breakwater?", **more):
    """Ask one question."""
    return client.responses.create(model="gpt-4.1", input=text, **more)


def test_the_same_question_gets_the_same_answer_and_the_same_counts(openai_client):
    """Answers derive from the prompt alone."""
    first, second = ask(openai_client), ask(openai_client)

    assert first.output_text == second.output_text == "Simulated answer to: What is a breakwater?"
    assert first.usage == second.usage
    assert first.id != second.id
    assert first.status == "completed"
    assert first.completed_at is not None


def test_usage_tells_cached_and_reasoning_tokens(openai_client):
    """A long prompt is partly cached, a reasoning model thinks first."""
    done = openai_client.responses.create(model="gpt-5.5", input="word " * 2000)

    assert done.usage.input_tokens_details.cached_tokens == 1152
    assert done.usage.output_tokens_details.reasoning_tokens == 64
    assert done.usage.total_tokens == done.usage.input_tokens + done.usage.output_tokens
    assert [item.type for item in done.output] == ["reasoning", "message"]


def test_metadata_comes_back_and_a_stored_response_can_be_fetched(openai_client):
    """What we put on a response is ours to find it by."""
    made = ask(openai_client, metadata={"job_id": "j1"})

    found = openai_client.responses.retrieve(made.id)

    assert found.metadata == {"job_id": "j1"}
    assert found.output_text == made.output_text


def test_an_unstored_response_cannot_be_fetched(openai_client):
    """store=false means what it says."""
    made = ask(openai_client, store=False)

    with pytest.raises(openai.NotFoundError):
        openai_client.responses.retrieve(made.id)


def test_headers_carry_request_id_and_rate_limits(openai_client):
    """The raw answer has what a worker records."""
    raw = openai_client.responses.with_raw_response.create(model="gpt-4.1", input="hi")

    assert raw.headers["x-request-id"].startswith("req_")
    assert raw.headers["x-ratelimit-reset-requests"] == "6ms"
    assert raw.parse()._request_id == raw.headers["x-request-id"]


def test_structured_output_follows_the_schema_and_can_be_broken_on_request(openai_client):
    """A schema gets a sample of it; [[sim:bad_json]] gets something else."""
    good = openai_client.responses.create(model="gpt-4.1", input="note", text=FORMAT)
    bad = openai_client.responses.create(model="gpt-4.1", input="note [[sim:bad_json]]", text=FORMAT)

    assert json.loads(good.output_text) == {"title": "Simulated answer to: note", "tags": ["a"]}
    with pytest.raises(json.JSONDecodeError):
        json.loads(bad.output_text)


def test_a_tool_is_called_when_the_prompt_asks_and_its_result_is_answered_in_words(openai_client):
    """One turn calls, the next one ends."""
    called = ask(openai_client, "[[sim:tool_call]] rain?", tools=[WEATHER])
    call = called.output[0]
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
    turns = [{"role": "user", "content": "[[sim:tool_call]] rain?"}, call.model_dump(), result]
    done = openai_client.responses.create(model="gpt-4.1", input=turns, tools=[WEATHER])

    assert (call.type, call.name) == ("function_call", "get_weather")
    assert json.loads(call.arguments) == {"city": "sim", "days": 2}
    assert done.output[0].type == "message"


@pytest.mark.parametrize(
    ("directive", "status", "reason"),
    [
        ("truncate", "incomplete", "max_output_tokens"),
        ("filter", "incomplete", "content_filter"),
        ("fail", "failed", None),
        ("refuse", "completed", None),
    ],
)
def test_a_directive_ends_a_response_otherwise(openai_client, directive, status, reason):
    """The prompt alone scripts the end, still with HTTP 200."""
    ended = ask(openai_client, f"please [[sim:{directive}]] this")

    assert ended.status == status
    assert (ended.incomplete_details.reason if ended.incomplete_details else None) == reason
    assert (ended.error is not None) == (status == "failed")
    if directive == "refuse":
        assert ended.output[0].content[0].type == "refusal"


def test_a_token_limit_truncates(openai_client):
    """More to say than room means incomplete, with the partial text."""
    cut = ask(openai_client, "[[sim:long=1000]] go", max_output_tokens=16)

    assert cut.status == "incomplete"
    assert len(cut.output_text) == 64
    assert cut.usage.output_tokens == 16


def test_a_huge_answer_has_exactly_the_size_asked_for(openai_client):
    """Five million characters arrive whole."""
    assert len(ask(openai_client, "[[sim:long=5000000]]").output_text) == 5_000_000


def test_another_model_may_serve(openai_client):
    """Requested and served model can differ."""
    assert ask(openai_client, "[[sim:served=gpt-4.1-2025-04-14]] hi").model == "gpt-4.1-2025-04-14"


def test_a_stream_is_numbered_and_ends_with_the_whole_response(openai_client):
    """Deltas add up to the text; sequence numbers have no holes."""
    events = list(ask(openai_client, stream=True))

    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created"
    assert events[-1].type == "response.completed"
    deltas = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert deltas == events[-1].response.output_text == "Simulated answer to: What is a breakwater?"


def test_a_streamed_tool_call_adds_up(openai_client):
    """Argument deltas are the arguments."""
    events = list(ask(openai_client, "[[sim:tool_call]] rain?", tools=[WEATHER], stream=True))

    kind = "response.function_call_arguments.delta"
    deltas = "".join(event.delta for event in events if event.type == kind)
    assert deltas == events[-1].response.output[0].arguments


def test_a_foreground_stream_cannot_be_fetched_later(openai_client):
    """Only background streams can be resumed."""
    events = list(ask(openai_client, stream=True))

    with pytest.raises(openai.NotFoundError):
        openai_client.responses.retrieve(events[0].response.id)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"model": "missing-model"}, openai.NotFoundError),
        ({"metadata": {"key": "x" * 513}}, openai.BadRequestError),
        ({"metadata": {f"k{n}": "v" for n in range(17)}}, openai.BadRequestError),
        ({"background": True, "store": False}, openai.BadRequestError),
        ({"max_output_tokens": 15}, openai.BadRequestError),
        ({"input": ""}, openai.BadRequestError),
        ({"input": "[[sim:unheard_of]]"}, openai.BadRequestError),
        ({"input": "[[sim:fault=unheard_of]]"}, openai.BadRequestError),
        ({"input": "[[sim:webhook=unheard_of]]"}, openai.BadRequestError),
        ({"input": "[[sim:delay=soon]]"}, openai.BadRequestError),
    ],
)
def test_a_bad_request_is_refused_and_costs_nothing(sim, openai_client, change, error):
    """The provider's own limits hold here too."""
    with pytest.raises(error) as refused:
        openai_client.responses.create(**{"model": "gpt-4.1", "input": "hi", **change})

    assert set(refused.value.body) == {"message", "type", "param", "code"}
    assert sim.summary()["charged"] == 0


def test_a_key_is_needed_and_may_be_refused(simulator):
    """Keys with `invalid` in them are."""
    client = openai.OpenAI(base_url=simulator.openai_url, api_key="sk-invalid", max_retries=0)

    with client, pytest.raises(openai.AuthenticationError) as refused:
        client.models.list()
    assert refused.value.code == "invalid_api_key"


def test_models_are_listed(openai_client):
    """The list is there for health checks."""
    assert "gpt-4.1" in [model.id for model in openai_client.models.list()]
