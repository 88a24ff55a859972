"""Does the official OpenAI client find chat completions and images as it expects them?"""

import base64
import json

import openai
import pytest

TOOL = {"type": "function", "function": {"name": "lookup", "parameters": {"properties": {"id": {"type": "string"}}}}}
SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def ask(client, text="Say hello to the harbour", **more):
    """Ask one question."""
    return client.chat.completions.create(model="gpt-4.1", messages=[{"role": "user", "content": text}], **more)


def test_a_completion_is_whole(openai_client):
    """Text, reason and usage."""
    made = ask(openai_client)

    assert made.choices[0].message.content == "Simulated answer to: Say hello to the harbour"
    assert made.choices[0].finish_reason == "stop"
    assert made.usage.prompt_tokens_details.cached_tokens == 0
    assert made.usage.total_tokens == made.usage.prompt_tokens + made.usage.completion_tokens


@pytest.mark.parametrize(
    ("directive", "reason"), [("truncate", "length"), ("filter", "content_filter"), ("refuse", "stop")]
)
def test_a_directive_changes_the_reason(openai_client, directive, reason):
    """The prompt alone scripts the end."""
    choice = ask(openai_client, f"go on [[sim:{directive}]]").choices[0]

    assert choice.finish_reason == reason
    assert (choice.message.refusal is not None) == (directive == "refuse")


def test_a_broken_model_is_a_server_error_that_was_charged(sim, openai_client):
    """The work had begun."""
    with pytest.raises(openai.InternalServerError):
        ask(openai_client, "[[sim:fail]]")

    assert sim.summary()["charged"] == 1


def test_a_tool_is_called_whole_and_streamed(openai_client):
    """Both ways the arguments are the same JSON."""
    whole = ask(openai_client, "[[sim:tool_call=lookup]]", tools=[TOOL])
    chunks = list(ask(openai_client, "[[sim:tool_call=lookup]]", tools=[TOOL], stream=True))

    call = whole.choices[0].message.tool_calls[0]
    calls = [delta for chunk in chunks if (delta := chunk.choices[0].delta.tool_calls)]
    assert whole.choices[0].finish_reason == "tool_calls"
    assert json.loads(call.function.arguments) == {"id": "sim"}
    assert "".join(each[0].function.arguments for each in calls) == call.function.arguments


def test_structured_output_follows_the_schema(openai_client):
    """As json_schema, or as any object on request."""
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}

    assert json.loads(ask(openai_client, response_format=form).choices[0].message.content) == {"ok": True}
    assert json.loads(ask(openai_client, "one two [[sim:json]]").choices[0].message.content)["words"] == 2


def test_a_stream_adds_up_and_tells_usage_if_asked(openai_client):
    """Usage comes in a last chunk without choices."""
    chunks = list(ask(openai_client, stream=True, stream_options={"include_usage": True}))
    plain = list(ask(openai_client, stream=True))

    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "Simulated answer to: Say hello to the harbour"
    assert chunks[-1].usage.total_tokens > 0
    assert all(chunk.usage is None for chunk in plain)
    assert plain[-1].choices[0].finish_reason == "stop"


def test_images_are_files_and_are_paid_by_their_number(openai_client):
    """Each is a real PNG, the same for the same prompt."""
    made = openai_client.images.generate(model="gpt-image-2", prompt="a lighthouse", n=2)
    again = openai_client.images.generate(model="gpt-image-2", prompt="a lighthouse")

    assert base64.b64decode(made.data[0].b64_json).startswith(b"\x89PNG")
    assert made.data[0].b64_json == made.data[1].b64_json == again.data[0].b64_json
    assert made.usage.output_tokens == 2 * again.usage.output_tokens


def test_an_image_can_be_large(openai_client):
    """The payload has the size asked for."""
    made = openai_client.images.generate(model="gpt-image-2", prompt="[[sim:long=100000]] sea")

    assert len(made.data[0].b64_json) == 100_000


@pytest.mark.parametrize(
    ("prompt", "error", "code"),
    [
        ("[[sim:filter]] no", openai.BadRequestError, "moderation_blocked"),
        ("[[sim:fail]]", openai.InternalServerError, None),
        ("", openai.BadRequestError, None),
    ],
)
def test_an_image_may_be_refused(openai_client, prompt, error, code):
    """Moderation, a broken model, a missing prompt."""
    with pytest.raises(error) as refused:
        openai_client.images.generate(model="gpt-image-2", prompt=prompt)

    assert refused.value.code == code
