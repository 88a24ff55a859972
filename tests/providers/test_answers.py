"""How is each provider's answer read?"""

from __future__ import annotations

import json

import pytest

from breakwater.domain.results import Accepted, Completed, Refused, Running, Usage
from breakwater.domain.signals import ErrorClass
from tests.providers.wire import Wire

RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "model-x-2026-01-01",
    "error": None,
    "output": [
        {"type": "reasoning", "summary": []},
        {
            "type": "message",
            "content": [{"type": "output_text", "text": "Hi "}, {"type": "output_text", "text": "you"}],
        },
    ],
    "usage": {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 5},
    },
    "metadata": {"breakwater_job_id": "job_1", "breakwater_execution_id": "exec_1"},
}
CHAT = {
    "id": "gen-1",
    "provider": "SomeVendor",
    "model": "vendor/model-x",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi you"}}],
    "usage": {
        "prompt_tokens": 10,
        "completion_tokens": 7,
        "total_tokens": 17,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 5},
        "cost": 0.00014,
    },
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "model": "claude-x",
    "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hi you"}],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 5,
        "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 1,
        "output_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 5},
    },
}
GENERATED = {
    "candidates": [
        {
            "content": {"parts": [{"text": "hm", "thought": True}, {"text": "Hi "}, {"text": "you"}]},
            "finishReason": "STOP",
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 9,
        "toolUsePromptTokenCount": 1,
        "cachedContentTokenCount": 4,
        "candidatesTokenCount": 2,
        "thoughtsTokenCount": 5,
    },
    "modelVersion": "gemini-x",
    "responseId": "gid",
}
TEXT_ANSWERS = [
    ("openai", "responses", RESPONSE, "model-x-2026-01-01"),
    ("gateway", "responses", RESPONSE, "model-x-2026-01-01"),
    ("openai", "chat", CHAT, "vendor/model-x"),
    ("gateway", "chat", CHAT, "vendor/model-x"),
    ("anthropic", "messages", MESSAGE, "claude-x"),
    ("gemini", "generate_content", GENERATED, "gemini-x"),
]
USAGE = Usage(input_tokens=10, cached_tokens=4, output_tokens=7, reasoning_tokens=5)


@pytest.mark.parametrize(("provider", "endpoint", "body", "served"), TEXT_ANSWERS)
def test_an_answer_is_one_shape_whoever_gave_it(provider, endpoint, body, served):
    """Text, usage with its parts, model and request id, the same for all."""
    outcome = Wire(provider, endpoint, answer=body, headers={"x-request-id": "req_1"}).submit()

    assert isinstance(outcome, Completed)
    result = outcome.result
    assert (result.text, result.finish_reason, result.usage) == ("Hi you", "stop", USAGE)
    assert (result.served_model, result.provider_request_id) == (served, "req_1")
    assert result.provider_job_id is None
    assert result.cost_micros is None


CALLS = [
    (
        "openai",
        "responses",
        {**RESPONSE, "output": [{"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":1}'}]},
    ),
    (
        "gateway",
        "chat",
        {
            "choices": [
                {
                    "finish_reason": "stop",
                    "message": {
                        "content": None,
                        "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": '{"a":1}'}}],
                    },
                }
            ]
        },
    ),
    (
        "anthropic",
        "messages",
        {
            **MESSAGE,
            "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}],
            "stop_reason": "tool_use",
        },
    ),
    (
        "gemini",
        "generate_content",
        {
            "candidates": [
                {
                    "content": {"parts": [{"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}}]},
                    "finishReason": "STOP",
                }
            ]
        },
    ),
]


@pytest.mark.parametrize(("provider", "endpoint", "body"), CALLS)
def test_calls_of_tools_are_one_shape_whoever_made_them(provider, endpoint, body):
    """Id, name and arguments as JSON text; the finish word says so, even where the provider's does not."""
    payload = {"prompt": "hi", "json_schema": {"schema": {}}}
    outcome = Wire(provider, endpoint, answer=body).submit(payload)

    (call,) = outcome.result.tool_calls
    assert (call["id"], call["name"], json.loads(call["arguments"])) == ("c1", "f", {"a": 1})
    assert outcome.result.finish_reason == "tool_calls"
    assert outcome.result.structured is None


def test_gemini_calls_keep_their_signature_and_get_an_id():
    """It is wanted back with the result; an id is made where none was given."""
    part = {"functionCall": {"name": "f"}, "thoughtSignature": "sig"}
    body = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}], "responseId": "gid"}
    result = Wire("gemini", "generate_content", answer=body).submit().result

    assert result.tool_calls == ({"id": "call_0", "name": "f", "arguments": "{}", "signature": "sig"},)
    assert result.provider_request_id == "gid"


@pytest.mark.parametrize("text", ['{"n": 3}', '```json\n{"n": 3}\n```', ' ```\n{"n": 3}```\n'])
@pytest.mark.parametrize(("provider", "endpoint", "body"), [case[:3] for case in TEXT_ANSWERS])
def test_json_is_parsed_where_a_schema_was_asked_for(provider, endpoint, body, text):
    """Also from inside a fence; the text is kept as it came."""
    body = json.loads(json.dumps(body).replace("Hi you", "@").replace("Hi ", "@").replace('"you"', '""'))
    body = json.loads(json.dumps(body).replace('"@"', json.dumps(text)))
    outcome = Wire(provider, endpoint, answer=body).submit({"prompt": "hi", "json_schema": {"schema": {}}})

    assert outcome.result.structured == {"n": 3}
    assert outcome.result.text == text


def test_an_answer_that_is_not_the_json_asked_for_is_no_success():
    """What was paid for is kept; nobody is told that it is what they wanted."""
    outcome = Wire("gateway", "chat", answer=CHAT, headers={"x-request-id": "r"}).submit(
        {"prompt": "hi", "json_schema": {"schema": {}}}
    )

    assert isinstance(outcome, Refused)
    assert (outcome.signal.rule, outcome.signal.error_class) == ("adapter.not_json", ErrorClass.UNKNOWN)
    assert (outcome.signal.http_status, outcome.signal.provider_request_id) == (200, "r")
    assert outcome.partial.text == "Hi you"


TRUNCATED = [
    (
        "openai",
        "responses",
        {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    ),
    ("gateway", "chat", {**CHAT, "choices": [{"finish_reason": "length", "message": {"content": "Hi you"}}]}),
    ("anthropic", "messages", {**MESSAGE, "stop_reason": "max_tokens"}),
    (
        "gemini",
        "generate_content",
        {**GENERATED, "candidates": [{**GENERATED["candidates"][0], "finishReason": "MAX_TOKENS"}]},
    ),
]


@pytest.mark.parametrize(("provider", "endpoint", "body"), TRUNCATED)
def test_a_cut_answer_is_refused_with_what_was_paid_for(provider, endpoint, body):
    """The partial text and its usage are kept apart from success."""
    outcome = Wire(provider, endpoint, answer=body).submit()

    assert isinstance(outcome, Refused)
    assert outcome.signal.error_class is ErrorClass.TRUNCATED
    assert (outcome.partial.text, outcome.partial.finish_reason) == ("Hi you", "length")
    assert outcome.partial.usage == USAGE


FILTERED = [
    (
        "openai",
        "responses",
        {**RESPONSE, "status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
        "Hi you",
    ),
    (
        "openai",
        "responses",
        {**RESPONSE, "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]},
        "No.",
    ),
    (
        "openai",
        "chat",
        {**CHAT, "choices": [{"finish_reason": "stop", "message": {"content": None, "refusal": "No."}}]},
        "No.",
    ),
    ("gateway", "chat", {**CHAT, "choices": [{"finish_reason": "content_filter", "message": {"content": "Hi"}}]}, "Hi"),
    ("anthropic", "messages", {**MESSAGE, "stop_reason": "refusal", "content": []}, ""),
    (
        "gemini",
        "generate_content",
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 13}},
        "",
    ),
]


@pytest.mark.parametrize(("provider", "endpoint", "body", "text"), FILTERED)
def test_a_filtered_answer_is_refused_with_its_usage(provider, endpoint, body, text):
    """Blocked by a filter or by the model itself: no success, and it may have cost something."""
    outcome = Wire(provider, endpoint, answer=body).submit()

    assert outcome.signal.error_class is ErrorClass.CONTENT_REFUSED
    assert (outcome.partial.text, outcome.partial.finish_reason) == (text, "content_filter")
    assert outcome.partial.usage.input_tokens in {10, 13}


def test_images_come_with_their_type_and_number():
    """Data or links, counted for the price."""
    body = {
        "data": [{"b64_json": "aGk="}, {"url": "https://example.com/a"}, {"revised_prompt": "x"}, 7],
        "output_format": "webp",
        "usage": {"input_tokens": 10, "output_tokens": 4_160},
    }
    result = Wire("openai", "images", answer=body).submit({"prompt": "A cat"}).result

    assert result.media == (
        {"b64": "aGk=", "mime": "image/webp"},
        {"url": "https://example.com/a", "mime": "image/webp"},
    )
    assert result.usage == Usage(input_tokens=10, output_tokens=4_160, images=2)


def test_other_models_make_images_too():
    """A tool of the Responses API, a chat model at a gateway, Gemini."""
    made = {**RESPONSE, "output": [{"type": "image_generation_call", "result": "aGk="}]}
    links = [{"image_url": {"url": "data:image/webp;base64,aGk="}}, {"image_url": {"url": "https://example.com/a"}}, {}]
    chat = {"choices": [{"finish_reason": "stop", "message": {"content": "", "images": links}}]}
    part = {"inlineData": {"mimeType": "image/jpeg", "data": "aGk="}}
    gemini = {"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}

    assert Wire("openai", "responses", answer=made).submit().result.media == ({"b64": "aGk=", "mime": "image/png"},)
    assert Wire("gateway", "chat", answer=chat).submit().result.media == (
        {"b64": "aGk=", "mime": "image/webp"},
        {"url": "https://example.com/a"},
    )
    result = Wire("gemini", "generate_content", answer=gemini).submit().result
    assert (result.media, result.usage.images) == (({"b64": "aGk=", "mime": "image/jpeg"},), 1)


def test_text_may_come_in_parts_or_as_a_plain_completion():
    """Gateways differ in how they write a text."""
    parts = {"choices": [{"finish_reason": "stop", "message": {"content": [{"text": "Hi "}, {"text": "you"}]}}]}
    plain = {"choices": [{"finish_reason": "stop", "text": "Hi you"}]}

    assert Wire("gateway", "chat", answer=parts).submit().result.text == "Hi you"
    assert Wire("gateway", "chat", answer=plain).submit().result.text == "Hi you"


# --- In the background ------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_background_work_is_accepted_with_the_providers_id(status):
    """The worker can go home: id and request id are what it needs to know."""
    wire = Wire("openai", "responses", answer={**RESPONSE, "status": status}, headers={"x-request-id": "req_1"})

    assert wire.submit(background=True) == Accepted(provider_job_id="resp_1", provider_request_id="req_1")


def test_background_work_may_be_done_at_once():
    """What comes finished is finished."""
    outcome = Wire("openai", "responses", answer=RESPONSE).submit(background=True)

    assert outcome.result.provider_job_id == "resp_1"


@pytest.mark.parametrize("body", [{**RESPONSE, "status": "queued", "id": None}, {"status": "queued"}])
def test_accepted_work_without_an_id_has_an_unknown_outcome(body):
    """Nobody could ever ask for it again."""
    outcome = Wire("openai", "responses", answer=body).submit(background=True)

    assert isinstance(outcome, Refused)
    assert outcome.signal.error_class in {ErrorClass.OUTCOME_UNKNOWN, ErrorClass.UNKNOWN}


def test_work_that_was_to_be_done_at_once_is_not_accepted():
    """Only a background call may end in `Accepted`."""
    outcome = Wire("openai", "responses", answer={**RESPONSE, "status": "in_progress", "output": []}).submit()

    assert (outcome.signal.rule, outcome.provider_job_id) == ("default.still_running", None)


def test_a_job_is_read_by_its_id_and_says_whose_it_is():
    """One GET; our ids come back from the metadata, rate headers with them."""
    headers = {"x-ratelimit-remaining-tokens": "5", "retry-after": "1", "server": "x"}
    wire = Wire("openai", "responses", answer=RESPONSE, headers=headers)
    found = wire.adapter.fetch("resp/1")

    assert [(sent.method, sent.url) for sent in wire.sent] == [("GET", "https://api.openai.com/v1/responses/resp%2F1")]
    assert isinstance(found.outcome, Completed)
    assert found.outcome.result.provider_job_id == "resp/1"
    assert (found.job_id, found.execution_id) == ("job_1", "exec_1")
    assert found.rate_headers == {"x-ratelimit-remaining-tokens": "5", "retry-after": "1"}


def test_a_job_can_be_running_failed_or_unknown():
    """The three other answers to a poll."""
    running = Wire("openai", "responses", answer={**RESPONSE, "status": "in_progress"}).adapter.fetch("resp_1")
    failed = {**RESPONSE, "status": "failed", "error": {"code": "server_error", "message": "m"}, "output": []}
    refused = Wire("openai", "responses", answer=failed).adapter.fetch("resp_1")
    missing = Wire("openai", "responses", answer={"error": {"message": "m"}}, status=404).adapter.fetch("resp_1")

    assert running.outcome == Running(provider_job_id="resp_1")
    assert (running.ended, refused.ended, missing.ended) == (False, True, False)
    assert (refused.outcome.signal.rule, refused.outcome.provider_job_id) == ("openai.server_error", "resp_1")
    assert missing.outcome.signal.error_class is ErrorClass.NOT_FOUND
    assert (missing.job_id, missing.execution_id) == (None, None)


@pytest.mark.parametrize(
    ("body", "status", "ended"),
    [
        (RESPONSE, 200, True),
        ({**RESPONSE, "output": []}, 200, True),
        ({**RESPONSE, "status": "cancelled"}, 200, True),
        ({**RESPONSE, "status": "incomplete"}, 200, True),
        ({**RESPONSE, "status": "queued"}, 200, False),
        ("<html>", 200, False),
        ("", 200, False),
        ('{"status": "compl', 200, False),
        ({"error": {"code": 502}}, 200, False),
        ({**RESPONSE, "status": "failed"}, 500, False),
        ({}, 429, False),
    ],
)
def test_a_poll_tells_a_job_that_ended_from_a_question_that_failed(body, status, ended):
    """Only the response itself can say that it is over."""
    assert Wire("openai", "responses", answer=body, status=status).adapter.fetch("resp_1").ended is ended


def test_a_job_that_was_asked_for_json_is_read_as_json():
    """The response says itself what was asked for."""
    body = json.loads(json.dumps({**RESPONSE, "text": {"format": {"type": "json_schema"}}}).replace("Hi ", "[1,"))
    body = json.loads(json.dumps(body).replace('"you"', '"2]"'))

    assert Wire("openai", "responses", answer=body).adapter.fetch("resp_1").outcome.result.structured == [1, 2]


@pytest.mark.parametrize(
    ("status", "body", "error_class"),
    [
        (200, {**RESPONSE, "status": "cancelled"}, None),
        (200, RESPONSE, None),
        (200, {**RESPONSE, "status": "failed"}, None),
        (404, {"error": {"type": "invalid_request_error"}}, None),
        (400, {"error": {"type": "invalid_request_error"}}, None),
        (200, {**RESPONSE, "status": "in_progress"}, ErrorClass.OUTCOME_UNKNOWN),
        (500, {}, ErrorClass.SERVER_FAULT),
        (401, {}, ErrorClass.CREDENTIAL),
        (200, "<html>", ErrorClass.OUTCOME_UNKNOWN),
        (200, {"error": {"code": 502}}, ErrorClass.SERVER_FAULT),
    ],
)
def test_a_job_is_stopped_or_the_reason_is_told(status, body, error_class):
    """Stopped, over, unknown or not stoppable: nothing is left to do. Anything else is a signal."""
    wire = Wire("openai", "responses", answer=body, status=status)
    signal = wire.adapter.cancel("resp_1")

    assert (wire.sent[0].method, wire.sent[0].url) == ("POST", "https://api.openai.com/v1/responses/resp_1/cancel")
    assert wire.sent[0].content == b""
    assert (signal and signal.error_class) == error_class


@pytest.mark.parametrize(
    ("provider", "endpoint"),
    [("anthropic", "messages"), ("gemini", "generate_content"), ("gateway", "chat"), ("openai", "images")],
)
def test_an_api_without_jobs_knows_none(provider, endpoint):
    """Nothing is sent: there is nothing to find and nothing to stop. Background is simply not taken."""
    wire = Wire(provider, endpoint, answer={})

    assert wire.adapter.fetch("x").outcome.signal.error_class is ErrorClass.NOT_FOUND
    assert wire.adapter.cancel("x") is None
    assert wire.sent == []


# --- Gateways ---------------------------------------------------------------------------------


def test_a_gateway_gives_evidence_of_what_it_did():
    """Which model was asked for and which served, by whom, through what, and what was counted and charged."""
    result = Wire("gateway", "chat", answer=CHAT).submit(model="vendor/model-x").result

    assert result.evidence == {
        "endpoint_type": "chat",
        "requested_model": "vendor/model-x",
        "served_model": "vendor/model-x",
        "served_by": "SomeVendor",
        "generation_id": "gen-1",
        "usage_units": 17,
        "reported_total_tokens": 17,
        "route_result": "as_requested",
    }
    assert result.reported_cost_micros == 140


@pytest.mark.parametrize(
    ("served", "headers", "verdict"),
    [
        ("vendor/model-x", {}, "as_requested"),
        ("model-x-2026-08-07", {}, "as_requested"),
        ("model-x-mini", {}, "other_model"),
        ("vendor/model-x", {"x-litellm-attempted-fallbacks": "1"}, "fell_back"),
        ("vendor/model-x", {"x-litellm-attempted-fallbacks": "0"}, "as_requested"),
        (None, {}, "unknown"),
    ],
)
def test_a_change_of_route_behind_a_gateway_is_seen(served, headers, verdict):
    """A snapshot's date or a vendor's prefix is no other model; a fallback is one even under the same name."""
    result = (
        Wire("gateway", "chat", answer={**CHAT, "model": served}, headers=headers).submit(model="vendor/model-x").result
    )

    assert result.evidence["route_result"] == verdict


@pytest.mark.parametrize(
    ("cost", "header", "micros"),
    [
        (0.00014, None, 140),
        ("0.0000001", None, 1),
        (None, "0.5", 500_000),
        (0, "0.5", 0),
        (None, None, None),
        ("dear", None, None),
        (float("nan"), None, None),
        (-1, None, None),
        (True, None, None),
        (10**9, None, None),
    ],
)
def test_what_a_gateway_charged_is_whole_micro_dollars(cost, header, micros):
    """From the usage or from LiteLLM's header, rounded up; what is no price is none."""
    headers = {} if header is None else {"x-litellm-response-cost": header}
    body = {**RESPONSE, "usage": {"cost": cost}}

    assert Wire("gateway", "responses", answer=body, headers=headers).submit().result.reported_cost_micros == micros


def test_a_gateways_job_has_evidence_too():
    """Who asked for what is not known on a poll; the rest is."""
    result = Wire("gateway", "responses", answer=RESPONSE).adapter.fetch("resp_1").outcome.result

    assert "requested_model" not in result.evidence
    assert result.evidence["route_result"] == "unknown"


# --- an answer with nothing in it, and what is counted ----------------------------------------------------------------

_NOTHING = [
    ("openai", "responses", {**RESPONSE, "output": [{"type": "web_search_call", "status": "completed"}]}),
    ("openai", "responses", {**RESPONSE, "output": [{"type": "image_generation_call", "status": "failed"}]}),
    ("anthropic", "messages", {**MESSAGE, "content": [{"type": "server_tool_use", "id": "s", "name": "web_search"}]}),
    (
        "gemini",
        "generate_content",
        {"candidates": [{"finishReason": "STOP", "content": {"parts": [{"executableCode": {"code": "1"}}]}}]},
    ),
]


@pytest.mark.parametrize(("provider", "endpoint", "body"), _NOTHING)
def test_a_success_with_nothing_in_it_is_none(provider, endpoint, body):
    """PR-06: stored, it would be an empty string that nobody asks for again."""
    outcome = Wire(provider, endpoint, body).submit()

    assert isinstance(outcome, Refused)
    assert (outcome.signal.error_class, outcome.signal.rule) == (ErrorClass.SERVER_FAULT, "default.no_answer")


def test_the_old_way_of_calling_a_function_is_a_call():
    """`function_call`, as some gateways still say it."""
    message = {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": '{"q": 1}'}}
    body = {**CHAT, "choices": [{"index": 0, "finish_reason": "function_call", "message": message}]}

    outcome = Wire("gateway", "chat", body).submit()

    assert outcome.result.tool_calls == ({"id": "", "name": "look", "arguments": '{"q": 1}'},)


def test_drafts_and_sounds_are_no_images():
    """Gemini thinks in pictures: one was asked for, one is made, one is paid."""
    parts = [
        {"thought": True, "inlineData": {"mimeType": "image/png", "data": "ZHJhZnQ="}},
        {"inlineData": {"mimeType": "image/png", "data": "ZmluYWw="}},
        {"inlineData": {"mimeType": "audio/L16", "data": "c291bmQ="}},
    ]
    body = {"candidates": [{"finishReason": "STOP", "content": {"parts": parts}}]}

    result = Wire("gemini", "generate_content", body).submit().result

    assert [one["mime"] for one in result.media] == ["image/png", "audio/L16"]
    assert (result.media[0]["b64"], result.usage.images) == ("ZmluYWw=", 1)


def test_images_of_a_chat_model_are_counted():
    """Their price is by the piece."""
    image = {"image_url": {"url": "data:image/png;base64,aGk="}}
    message = {"role": "assistant", "content": "", "images": [image, image]}
    body = {**CHAT, "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}

    assert Wire("gateway", "chat", body).submit().result.usage.images == 2


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": Infinity}', '{"a": 1e999}', "-Infinity"])
def test_what_only_python_reads_as_json_is_not_the_json_asked_for(text):
    """Written down, nobody else could read it."""
    message = {"role": "assistant", "content": text}
    body = {**CHAT, "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}

    outcome = Wire("gateway", "chat", body).submit({"prompt": "Say hi", "json_schema": {"schema": {}}})

    assert (type(outcome), outcome.signal.rule) == (Refused, "adapter.not_json")
