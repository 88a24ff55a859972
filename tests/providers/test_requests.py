"""What does each adapter send?"""

from __future__ import annotations

import pytest

from tests.providers.wire import ALL, KEY, Wire

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
PICTURE = "data:image/jpeg;base64,aGk="
PAYLOAD = {
    "instructions": "Be brief.",
    "messages": [
        {"role": "system", "content": "Be kind."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": PICTURE}},
            ],
        },
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [{"id": "c1", "name": "look", "arguments": '{"at": 1}'}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"seen": "cat"}'},
        {"role": "user", "content": "And?"},
    ],
    "parameters": {"temperature": 0.5, "top_p": 0.9, "max_output_tokens": 64, "stream": True, "fallbacks": ["other"]},
    "json_schema": {"name": "count", "schema": SCHEMA, "strict": True},
    "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA}}],
    "tool_choice": {"type": "function", "function": {"name": "look"}},
}


def sent_by(provider, endpoint, payload=None, **fields):
    """The one request that goes out for this input."""
    wire = Wire(provider, endpoint, answer={})
    wire.submit(PAYLOAD if payload is None else payload, **fields)
    (sent,) = wire.sent
    return sent


def test_responses_are_asked_in_their_own_items():
    """Roles, calls of tools, their results, schema and tools in the words of the Responses API."""
    body = sent_by("openai", "responses").body

    assert body == {
        "model": "model-x",
        "instructions": "Be brief.",
        "input": [
            {"role": "system", "content": "Be kind."},
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is this?"},
                    {"type": "input_image", "image_url": PICTURE},
                ],
            },
            {"role": "assistant", "content": "Let me see."},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": 1}'},
            {"type": "function_call_output", "call_id": "c1", "output": '{"seen": "cat"}'},
            {"role": "user", "content": "And?"},
        ],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 64,
        "text": {"format": {"type": "json_schema", "name": "count", "schema": SCHEMA, "strict": True}},
        "tools": [{"type": "function", "name": "look", "description": "Looks.", "parameters": SCHEMA, "strict": False}],
        "tool_choice": {"type": "function", "name": "look"},
        "store": False,
    }


def test_a_background_response_is_stored_and_carries_our_ids():
    """Metadata is what leads from the provider's job back to ours."""
    body = sent_by("openai", "responses", background=True).body

    assert body["background"] is True
    assert body["store"] is True
    assert body["metadata"] == {"breakwater_job_id": "job_1", "breakwater_execution_id": "exec_1"}


@pytest.mark.parametrize(("provider", "limit"), [("openai", "max_completion_tokens"), ("gateway", "max_tokens")])
def test_chat_is_asked_in_messages(provider, limit):
    """Instructions become the first system message; each service gets the limit under the name it knows."""
    body = sent_by(provider, "chat").body

    assert body == {
        "model": "model-x",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "system", "content": "Be kind."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": PICTURE}},
                ],
            },
            {
                "role": "assistant",
                "content": "Let me see.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
                ],
            },
            {"role": "tool", "content": '{"seen": "cat"}', "tool_call_id": "c1"},
            {"role": "user", "content": "And?"},
        ],
        "temperature": 0.5,
        "top_p": 0.9,
        limit: 64,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "count", "schema": SCHEMA, "strict": True},
        },
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA}}],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
    }


def test_anthropic_is_asked_in_blocks():
    """System text apart, alternating roles, results of tools as the user's, `max_tokens` always said."""
    body = sent_by("anthropic", "messages").body

    assert body == {
        "model": "model-x",
        "max_tokens": 64,
        "temperature": 0.5,
        "top_p": 0.9,
        "system": "Be brief.\n\nBe kind.",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "aGk="}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": '{"seen": "cat"}'},
                    {"type": "text", "text": "And?"},
                ],
            },
        ],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
        "tools": [{"name": "look", "description": "Looks.", "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": "look"},
    }


def test_gemini_is_asked_in_contents():
    """Names of its own for parameters, the function's name with its result, the key in a header only."""
    sent = sent_by("gemini", "generate_content", model="models/gemini x")

    assert sent.url == "https://generativelanguage.googleapis.com/v1beta/models/gemini%20x:generateContent"
    assert sent.headers["x-goog-api-key"] == KEY
    assert sent.body == {
        "systemInstruction": {"parts": [{"text": "Be brief.\n\nBe kind."}]},
        "contents": [
            {
                "role": "user",
                "parts": [{"text": "What is this?"}, {"inlineData": {"mimeType": "image/jpeg", "data": "aGk="}}],
            },
            {
                "role": "model",
                "parts": [{"text": "Let me see."}, {"functionCall": {"id": "c1", "name": "look", "args": {"at": 1}}}],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "c1", "name": "look", "response": {"seen": "cat"}}},
                    {"text": "And?"},
                ],
            },
        ],
        "generationConfig": {
            "temperature": 0.5,
            "topP": 0.9,
            "maxOutputTokens": 64,
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
        },
        "tools": [
            {"functionDeclarations": [{"name": "look", "description": "Looks.", "parametersJsonSchema": SCHEMA}]}
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}},
    }


def test_images_are_asked_by_prompt():
    """Prompt, size and number; without a prompt what the user said last."""
    asked = {"prompt": "A cat", "n": 2, "size": "1024x1024", "parameters": {"quality": "low", "model": "other"}}
    talked = {"messages": [{"role": "user", "content": "A dog"}, {"role": "user", "content": "A cat"}]}

    assert sent_by("openai", "images", asked).body == {
        "model": "model-x",
        "prompt": "A cat",
        "n": 2,
        "size": "1024x1024",
        "quality": "low",
    }
    assert sent_by("openai", "images", talked).body == {"model": "model-x", "prompt": "A cat"}


@pytest.mark.parametrize(
    ("provider", "endpoint", "url", "headers"),
    [
        ("openai", "responses", "https://api.openai.com/v1/responses", {"x-client-request-id"}),
        ("openai", "chat", "https://api.openai.com/v1/chat/completions", {"x-client-request-id"}),
        ("openai", "images", "https://api.openai.com/v1/images/generations", {"x-client-request-id"}),
        (
            "gateway",
            "chat",
            "https://gateway.example.com/v1/chat/completions",
            {"x-client-request-id", "idempotency-key"},
        ),
        (
            "gateway",
            "responses",
            "https://gateway.example.com/v1/responses",
            {"x-client-request-id", "idempotency-key"},
        ),
        ("anthropic", "messages", "https://api.anthropic.com/v1/messages", {"idempotency-key"}),
        (
            "gemini",
            "generate_content",
            "https://generativelanguage.googleapis.com/v1beta/models/model-x:generateContent",
            set(),
        ),
    ],
)
def test_the_execution_travels_where_the_api_has_a_place_for_it(provider, endpoint, url, headers):
    """The attempt's id is the idempotency key, and no key of ours is in the URL."""
    sent = sent_by(provider, endpoint, {"prompt": "hi"})

    assert sent.url == url
    assert {name for name, value in sent.headers.items() if value == "exec_1"} == headers
    assert sent.headers["content-type"] == "application/json"
    assert KEY not in sent.url


@pytest.mark.parametrize(("provider", "endpoint"), ALL)
def test_an_id_that_no_header_can_carry_is_written_so_that_one_can(provider, endpoint):
    """Odd ids change nothing around them."""
    sent = sent_by(provider, endpoint, {"prompt": "hi"}, execution_id="a\r\nx: ü")

    assert "x" not in sent.headers


def test_the_environment_changes_nothing(monkeypatch):
    """What the SDK reads from the environment is another account's business."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-other")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-other")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://other.example.com")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")

    sent = sent_by("gateway", "chat", {"prompt": "hi"})

    assert "other" not in repr(sent)
    assert sent.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://proxy.example.com/anthropic", "https://proxy.example.com/anthropic/v1/messages"),
        ("https://proxy.example.com/v1/", "https://proxy.example.com/v1/messages"),
        ("http://127.0.0.1:8080/anthropic", "http://127.0.0.1:8080/anthropic/v1/messages"),
    ],
)
def test_a_version_is_added_to_a_base_url_without_one(base_url, url):
    """Anthropic and Gemini are given with and without their version."""
    wire = Wire("anthropic", "messages", answer={}, base_url=base_url)
    wire.submit()

    assert wire.sent[0].url == url


@pytest.mark.parametrize(
    ("choice", "anthropic", "gemini"),
    [
        ("auto", {"type": "auto"}, "AUTO"),
        ("required", {"type": "any"}, "ANY"),
        ("none", {"type": "none"}, "NONE"),
    ],
)
def test_the_choice_of_tools_is_translated(choice, anthropic, gemini):
    """Three words, each in three dialects."""
    payload = {**PAYLOAD, "tool_choice": choice}

    assert sent_by("openai", "responses", payload).body["tool_choice"] == choice
    assert sent_by("gateway", "chat", payload).body["tool_choice"] == choice
    assert sent_by("anthropic", "messages", payload).body["tool_choice"] == anthropic
    assert sent_by("gemini", "generate_content", payload).body["toolConfig"]["functionCallingConfig"] == {
        "mode": gemini
    }


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (None, {"type": "auto", "disable_parallel_tool_use": True}),
        ("required", {"type": "any", "disable_parallel_tool_use": True}),
        ("none", {"type": "none"}),
    ],
)
def test_one_tool_at_a_time_is_part_of_anthropics_choice(choice, said):
    """`parallel_tool_calls` has another place there."""
    payload = {**PAYLOAD, "tool_choice": choice, "parameters": {"parallel_tool_calls": False}}
    body = sent_by("anthropic", "messages", payload).body

    assert body["tool_choice"] == said
    assert "parallel_tool_calls" not in body


def test_tools_of_the_providers_own_are_handed_on():
    """What is no function is not ours to translate."""
    payload = {"prompt": "hi", "tools": [{"type": "web_search"}, {"type": "function", "name": "f", "strict": True}]}
    schema = {"type": "object", "properties": {}}

    assert sent_by("openai", "responses", payload).body["tools"] == [
        {"type": "web_search"},
        {"type": "function", "name": "f", "parameters": schema, "strict": True},
    ]
    assert sent_by("openai", "chat", payload).body["tools"] == [
        {"type": "web_search"},
        {"type": "function", "function": {"name": "f", "parameters": schema, "strict": True}},
    ]
    assert sent_by("anthropic", "messages", payload).body["tools"] == [
        {"type": "web_search"},
        {"name": "f", "input_schema": schema, "strict": True},
    ]
    assert sent_by("gemini", "generate_content", payload).body["tools"] == [
        {"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}]},
        {"type": "web_search"},
    ]


def test_parts_of_every_kind_find_their_place():
    """Links, data, bare texts, and parts that only the provider knows."""
    content = [
        "bare",
        {"type": "image", "url": "https://example.com/a.png"},
        {"type": "image", "b64": "aGk=", "mime": "image/webp"},
        {"type": "document", "x": 1},
    ]
    payload = {"messages": [{"role": "user", "content": content}]}

    assert sent_by("openai", "responses", payload).body["input"][0]["content"] == [
        {"type": "input_text", "text": "bare"},
        {"type": "input_image", "image_url": "https://example.com/a.png"},
        {"type": "input_image", "image_url": "data:image/webp;base64,aGk="},
        {"type": "document", "x": 1},
    ]
    assert sent_by("gateway", "chat", payload).body["messages"][0]["content"][2:] == [
        {"type": "image_url", "image_url": {"url": "data:image/webp;base64,aGk="}},
        {"type": "document", "x": 1},
    ]
    assert sent_by("anthropic", "messages", payload).body["messages"][0]["content"][1:] == [
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": "aGk="}},
        {"type": "document", "x": 1},
    ]
    assert sent_by("gemini", "generate_content", payload).body["contents"][0]["parts"][1:] == [
        {"fileData": {"fileUri": "https://example.com/a.png", "mimeType": "image/png"}},
        {"inlineData": {"mimeType": "image/webp", "data": "aGk="}},
        {"type": "document", "x": 1},
    ]


def test_an_answer_that_only_called_tools_goes_back_as_such():
    """Calls without text, Gemini's own signature, results that are no JSON."""
    call = {"id": "c1", "name": "f", "arguments": "", "signature": "sig"}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "plain"},
        {"role": "assistant", "content": ""},
    ]
    payload = {"messages": messages}

    assert sent_by("openai", "responses", payload).body["input"][1:] == [
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": ""},
        {"type": "function_call_output", "call_id": "c1", "output": "plain"},
        {"role": "assistant", "content": ""},
    ]
    assert sent_by("gateway", "chat", payload).body["messages"][1]["content"] is None
    assert sent_by("gateway", "chat", payload).body["messages"][3]["content"] == ""
    assert sent_by("anthropic", "messages", payload).body["messages"][1:] == [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "plain"}]},
    ]
    assert sent_by("gemini", "generate_content", payload).body["contents"][1:] == [
        {
            "role": "model",
            "parts": [{"functionCall": {"id": "c1", "name": "f", "args": {}}, "thoughtSignature": "sig"}],
        },
        {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "f", "response": {"result": "plain"}}}]},
    ]


def test_a_single_stop_word_becomes_a_list_where_one_is_wanted():
    """OpenAI takes both forms, the others one."""
    payload = {"prompt": "hi", "parameters": {"stop": "END"}}

    assert sent_by("gateway", "chat", payload).body["stop"] == "END"
    assert sent_by("anthropic", "messages", payload).body["stop_sequences"] == ["END"]
    assert sent_by("gemini", "generate_content", payload).body["generationConfig"] == {"stopSequences": ["END"]}


def test_the_least_input_is_the_least_request():
    """Nothing is said that nobody asked for."""
    payload = {"prompt": "hi"}

    assert sent_by("anthropic", "messages", payload).body == {
        "model": "model-x",
        "max_tokens": 4_096,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }
    assert sent_by("gemini", "generate_content", payload).body == {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}]
    }
    assert sent_by("gateway", "chat", payload).body == {
        "model": "model-x",
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_settings_beside_a_schema_are_kept():
    """Verbosity and effort stand in the same object as the format."""
    schema = {"json_schema": {"schema": SCHEMA}, "prompt": "hi"}
    text = sent_by("openai", "responses", {**schema, "parameters": {"text": {"verbosity": "low"}}}).body["text"]
    config = sent_by("anthropic", "messages", {**schema, "parameters": {"output_config": {"effort": "low"}}}).body

    assert text["verbosity"] == "low"
    assert text["format"]["name"] == "answer"
    assert config["output_config"] == {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}
