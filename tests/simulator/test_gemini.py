"""Does the official Google client find the generateContent it expects?"""

import json

import pytest
from google.genai import errors, types

MODEL = "gemini-2.5-flash"
TOOL = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="lookup", parameters=types.Schema(type="OBJECT", properties={"id": types.Schema(type="STRING")})
        )
    ]
)
NO_CALLING = types.AutomaticFunctionCallingConfig(disable=True)


def ask(client, text="Say hello to the harbour", **config):
    """Ask one question."""
    made = types.GenerateContentConfig(automatic_function_calling=NO_CALLING, **config)
    return client.models.generate_content(model=MODEL, contents=text, config=made)


def test_an_answer_is_whole(gemini_client):
    """Text, reason, usage with thoughts, model version."""
    made = ask(gemini_client)

    assert made.text == "Simulated answer to: Say hello to the harbour"
    assert made.candidates[0].finish_reason == types.FinishReason.STOP
    usage = made.usage_metadata
    assert usage.thoughts_token_count == 64
    assert usage.total_token_count == usage.prompt_token_count + usage.candidates_token_count + 64
    assert made.model_version == MODEL


def test_blocked_prompts_have_feedback_and_no_candidates(gemini_client):
    """Only the prompt is counted."""
    made = ask(gemini_client, "[[sim:filter]] no")

    assert made.prompt_feedback.block_reason == types.BlockedReason.PROHIBITED_CONTENT
    assert made.candidates is None
    assert made.usage_metadata.total_token_count == made.usage_metadata.prompt_token_count


@pytest.mark.parametrize(("directive", "reason"), [("truncate", "MAX_TOKENS"), ("refuse", "SAFETY")])
def test_a_directive_changes_the_reason(gemini_client, directive, reason):
    """The prompt alone scripts the end."""
    assert ask(gemini_client, f"go [[sim:{directive}]]").candidates[0].finish_reason == reason


def test_a_tool_is_called(gemini_client):
    """The call stands in a part."""
    call = ask(gemini_client, "[[sim:tool_call]]", tools=[TOOL]).function_calls[0]

    assert (call.name, call.args) == ("lookup", {"id": "sim"})


def test_structured_output_follows_the_schema(gemini_client):
    """As JSON schema, and in Google's own upper-case types."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    ours = ask(gemini_client, response_mime_type="application/json", response_json_schema=schema)
    theirs = ask(
        gemini_client,
        response_mime_type="application/json",
        response_schema=types.Schema(type="OBJECT", properties={"n": types.Schema(type="INTEGER")}),
    )

    assert json.loads(ours.text) == json.loads(theirs.text) == {"n": 1}


def test_a_stream_adds_up(sim, gemini_client):
    """Chunks with the same response id, the last with the reason."""
    chunks = list(gemini_client.models.generate_content_stream(model=MODEL, contents="Say hello"))

    assert "".join(chunk.text for chunk in chunks) == "Simulated answer to: Say hello"
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP
    assert len({chunk.response_id for chunk in chunks}) == 1
    assert sim.ledger()[0].stream


def test_without_sse_a_stream_is_a_list(simulator, http):
    """The plain form of streamGenerateContent."""
    url = f"{simulator.gemini_url}/v1beta/models/{MODEL}:streamGenerateContent"
    body = {"contents": [{"parts": [{"text": "Say hello"}]}]}

    chunks = http.post(url, headers={"x-goog-api-key": "k"}, json=body).json()

    texts = [chunk["candidates"][0]["content"]["parts"][0]["text"] for chunk in chunks]
    assert "".join(texts) == "Simulated answer to: Say hello"


def test_a_broken_model_is_a_server_error(gemini_client):
    """500 INTERNAL."""
    with pytest.raises(errors.ServerError) as broken:
        ask(gemini_client, "[[sim:fail]]")
    assert (broken.value.code, broken.value.status) == (500, "INTERNAL")


def test_a_bad_key_is_a_bad_request(simulator, http):
    """Google answers 400 with a reason."""
    url = f"{simulator.gemini_url}/v1beta/models/{MODEL}:generateContent?key=invalid"

    refused = http.post(url, json={"contents": [{"parts": [{"text": "hi"}]}]})

    assert refused.status_code == 400
    assert refused.json()["error"]["details"][0]["reason"] == "API_KEY_INVALID"


@pytest.mark.parametrize("call", [f"{MODEL}:countTokens", "missing-model:generateContent"])
def test_unknown_methods_and_models_are_not_found(simulator, http, call):
    """404 NOT_FOUND."""
    url = f"{simulator.gemini_url}/v1beta/models/{call}"

    refused = http.post(url, headers={"x-goog-api-key": "k"}, json={"contents": [{"parts": []}]})

    assert (refused.status_code, refused.json()["error"]["status"]) == (404, "NOT_FOUND")
