"""Does a gateway add what OpenRouter adds, so that the OpenAI client still reads it?"""

import openai
import pytest


def ask(client, text="Say hello", **more):
    """Ask one question."""
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(model="vendor/model-1", messages=messages, **more)


def test_the_upstream_the_price_and_the_served_model_are_told(gateway_client):
    """Fields beside the common shape."""
    made = ask(gateway_client, "[[sim:served=other/model-2]] Say hello")

    assert made.model == "other/model-2"
    assert made.provider == "SimProvider"
    assert made.usage.cost > 0
    assert made.choices[0].native_finish_reason == "stop"


def test_the_second_gateway_has_the_same_shape(sim, simulator):
    """Only route and upstream differ."""
    with openai.OpenAI(base_url=simulator.flatkey_url, api_key="fk", max_retries=0) as client:
        made = ask(client)

    assert made.provider == "SimFlatkey"
    assert [entry.route for entry in sim.ledger()] == ["flatkey.chat"]


def test_a_stream_always_tells_the_usage(gateway_client):
    """And begins with a comment that clients must skip."""
    chunks = list(ask(gateway_client, stream=True))

    assert chunks[-1].usage.cost > 0
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Simulated answer to: Say hello"


def test_an_error_inside_a_200_does_not_raise(sim, gateway_client):
    """What makes it dangerous: no exception, no choices."""
    sim.fault("gateway_200_error")

    made = ask(gateway_client)

    assert made.choices is None
    assert made.error["code"] == 502
    assert sim.summary()["charged"] == 0


def test_an_error_inside_a_stream_raises_without_a_status(sim, gateway_client):
    """The client only knows that there was one."""
    sim.fault("stream_error", after_events=2)

    with pytest.raises(openai.APIError) as broken:
        list(ask(gateway_client, stream=True))
    assert not isinstance(broken.value, openai.APIStatusError)
    assert broken.value.body["code"] == 502


def test_an_unparsable_body_is_a_bad_request(gateway_client):
    """In the gateway's own words."""
    with pytest.raises(openai.BadRequestError) as refused:
        gateway_client.post("/chat/completions", cast_to=object, body=[1])
    assert refused.value.body["metadata"]["error_type"] == "invalid_request"


def test_a_stream_can_be_done_without_a_reason(sim, gateway_client):
    """Some servers end that way, and mean it."""
    sim.fault("stream_done", after_events=4)

    chunks = list(ask(gateway_client, stream=True))

    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * 3
