"""Does the official Anthropic client find the Messages API it expects?"""

import json

import anthropic
import pytest

TOOL = {"name": "lookup", "input_schema": {"type": "object", "properties": {"id": {"type": "string"}}}}


def ask(client, text="Say hello to the harbour", **more):
    """Ask one question."""
    messages = [{"role": "user", "content": text}]
    return client.messages.create(model="claude-sonnet-5", max_tokens=100, messages=messages, **more)


def test_a_message_is_whole(sim, anthropic_client):
    """Text, reason, usage, request id."""
    made = ask(anthropic_client, metadata={"user_id": "u1"})

    assert made.content[0].text == "Simulated answer to: Say hello to the harbour"
    assert made.stop_reason == "end_turn"
    assert made.usage.output_tokens > 0
    assert made._request_id.startswith("req_")
    assert sim.ledger(metadata_user_id="u1")[0].charged


def test_limits_are_in_the_headers(anthropic_client):
    """Limit, remaining and an instant for all four dimensions."""
    raw = anthropic_client.messages.with_raw_response.create(
        model="claude-sonnet-5", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
    )

    for kind in ("requests", "tokens", "input-tokens", "output-tokens"):
        assert int(raw.headers[f"anthropic-ratelimit-{kind}-limit"]) > 0
        assert raw.headers[f"anthropic-ratelimit-{kind}-reset"].endswith("Z")


@pytest.mark.parametrize(
    ("directive", "reason"), [("truncate", "max_tokens"), ("refuse", "refusal"), ("filter", "refusal")]
)
def test_a_directive_changes_the_reason(anthropic_client, directive, reason):
    """The prompt alone scripts the end."""
    assert ask(anthropic_client, f"go [[sim:{directive}]]").stop_reason == reason


def test_a_tool_is_called_whole_and_streamed(anthropic_client):
    """The input is JSON both ways, and a result is answered in words."""
    whole = ask(anthropic_client, "[[sim:tool_call]]", tools=[TOOL])
    with anthropic_client.messages.stream(
        model="claude-sonnet-5",
        max_tokens=100,
        tools=[TOOL],
        messages=[{"role": "user", "content": "[[sim:tool_call]]"}],
    ) as stream:
        streamed = stream.get_final_message()
    result = {"type": "tool_result", "tool_use_id": whole.content[0].id, "content": "found"}
    turns = [
        {"role": "user", "content": "[[sim:tool_call]]"},
        {"role": "assistant", "content": whole.to_dict()["content"]},
        {"role": "user", "content": [result]},
    ]
    done = anthropic_client.messages.create(model="claude-sonnet-5", max_tokens=100, messages=turns, tools=[TOOL])

    assert whole.stop_reason == streamed.stop_reason == "tool_use"
    assert whole.content[0].input == streamed.content[0].input == {"id": "sim"}
    assert done.stop_reason == "end_turn"


def test_structured_output_follows_the_schema(anthropic_client):
    """The format is given in output_config."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    made = ask(anthropic_client, output_config={"format": {"type": "json_schema", "schema": schema}})

    assert json.loads(made.content[0].text) == {"n": 1}


def test_a_stream_adds_up(anthropic_client):
    """From message_start to message_stop, nothing lost."""
    events = list(ask(anthropic_client, stream=True))

    text = "".join(event.delta.text for event in events if event.type == "content_block_delta")
    assert text == "Simulated answer to: Say hello to the harbour"
    assert (events[0].type, events[-1].type) == ("message_start", "message_stop")


@pytest.mark.parametrize("after", [0, 3])
def test_overload_can_come_inside_a_stream(sim, anthropic_client, after):
    """An error event after the 200 raises with status 200 and the type to go by."""
    sim.fault("stream_error", after_events=after)

    with pytest.raises(anthropic.APIStatusError) as broken:
        list(ask(anthropic_client, stream=True))
    assert broken.value.status_code == 200
    assert broken.value.body["error"]["type"] == "overloaded_error"


def test_a_broken_model_is_an_error_whole_and_streamed(anthropic_client):
    """500 before anything was said, an event after."""
    with pytest.raises(anthropic.InternalServerError):
        ask(anthropic_client, "[[sim:fail]]")
    with pytest.raises(anthropic.APIStatusError):
        list(ask(anthropic_client, "[[sim:fail]]", stream=True))


def test_the_version_header_and_max_tokens_are_required(simulator, http):
    """As at the provider."""
    url, key = f"{simulator.anthropic_url}/v1/messages", {"x-api-key": "k"}
    body = {"model": "claude-sonnet-5", "messages": [{"role": "user", "content": "hi"}]}

    without_version = http.post(url, headers=key, json={**body, "max_tokens": 9})
    without_limit = http.post(url, headers={**key, "anthropic-version": "2023-06-01"}, json=body)

    assert without_version.status_code == without_limit.status_code == 400
    assert without_limit.json()["error"]["type"] == "invalid_request_error"


def test_an_unknown_model_is_not_found(anthropic_client):
    """Names that start with missing- do not exist."""
    with pytest.raises(anthropic.NotFoundError):
        anthropic_client.messages.create(
            model="missing-claude", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
        )
