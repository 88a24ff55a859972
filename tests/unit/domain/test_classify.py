"""What does each recorded reply mean?

One file per row in `tests/replies/<family>/<row>[--variant].json`: the reply, and the signal that is expected.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from breakwater.domain.classify import CHAINS, classify, running, succeeded
from breakwater.domain.rules.default import DEFAULT, FIRST, LOOKUP
from breakwater.domain.rules.endings import finish_reason
from breakwater.domain.signals import ErrorClass, LimitDimension, Reply, TransportFailure
from breakwater.domain.states import Visibility

REPLIES = Path(__file__).parents[2] / "replies"
FILES = sorted(REPLIES.glob("*/*.json"))
ROWS = {row.name: row for rows in (FIRST, LOOKUP, *CHAINS.values(), DEFAULT) for row in rows}


def row_of(path):
    """The row a file belongs to, by its place."""
    return f"{path.parent.name}.{path.stem.split('--')[0]}"


def recorded(path):
    """A recorded reply, with its provider and what is expected of it."""
    case = json.loads(path.read_text())
    fields = case["reply"]
    if "transport" in fields:
        fields["transport"] = TransportFailure(fields["transport"])
    return case, Reply(**fields)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recorded_reply_is_read_by_its_own_row(path):
    """Every file is hit by the row it is named after, and gives the signal it expects."""
    case, reply = recorded(path)

    signal = classify(case["provider"], reply, lookup=case.get("lookup", False))

    assert signal.rule == row_of(path)
    expected = case["expect"]
    seen = {name: getattr(signal, name) for name in expected}
    assert seen == expected
    assert (signal.retry_after_ms is None) == ("retry_after_ms" not in expected)


def test_every_row_has_a_recorded_reply():
    """No rule without evidence, no evidence without a rule."""
    assert {row_of(path) for path in FILES} == set(ROWS)


def test_row_names_are_unique():
    """A name in a log leads to one row."""
    rows = [*FIRST, *LOOKUP, *DEFAULT, *(row for key, chain in CHAINS.items() if key != "gateway" for row in chain)]
    rows += [row for row in CHAINS["gateway"] if row.name.startswith("gateway.")]

    assert len({row.name for row in rows}) == len(rows) == len(ROWS)


@pytest.mark.parametrize(
    ("provider", "error"),
    [
        ("openai", {"type": "insufficient_quota", "code": "rate_limit_exceeded"}),
        ("anthropic", {"type": "rate_limit_error", "details": {"error_code": "contract_spend_limit_reached"}}),
        ("gemini", {"status": "RESOURCE_EXHAUSTED", "message": "Prepaid credit used up"}),
        ("gateway", {"type": "throttling_error", "metadata": {"limit_source": "openrouter_key_limit"}}),
    ],
)
def test_money_outranks_pace(provider, error):
    """A 429 that speaks of both is a matter of money: waiting can't help."""
    assert classify(provider, Reply(status=429, body={"error": error})).error_class is ErrorClass.SPEND


def test_what_the_caller_knows_travels_on_the_signal():
    """Route and visibility are the caller's to say."""
    signal = classify("openai", Reply(status=500), route_key="r", visibility=Visibility.PARTIAL_OUTPUT)

    assert (signal.route_key, signal.visibility_state) == ("r", Visibility.PARTIAL_OUTPUT)


def test_a_provider_without_rows_is_read_by_the_defaults():
    """An unknown name is no reason to fail."""
    assert classify("somebody", Reply(status=429)).error_class is ErrorClass.PACING


def test_a_reply_that_holds_nothing_is_unknown():
    """Not even a status: the last row."""
    assert classify("openai", Reply()).rule == "default.unknown"


def test_an_unknown_job_is_only_unknown_when_one_was_asked_for():
    """A 404 on sending is the caller's fault, on looking up an answer."""
    reply = Reply(status=404, body={"error": {"type": "invalid_request_error"}})

    assert classify("openai", reply).error_class is ErrorClass.CALLER_FAULT
    assert classify("openai", reply, lookup=True).error_class is ErrorClass.NOT_FOUND


@pytest.mark.parametrize(
    ("provider", "error_class"),
    [("openai", "locked"), ("gateway", "locked"), ("gemini", "locked"), ("anthropic", "caller_fault")],
)
def test_a_conflict_is_a_lock_except_for_anthropic(provider, error_class):
    """A lock is worth another try, a conflict is not."""
    assert classify(provider, Reply(status=409)).error_class == error_class


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 501, 505])
@pytest.mark.parametrize("provider", [*CHAINS, "somebody"])
def test_these_statuses_are_never_a_matter_of_time(provider, status):
    """No bare status of these is ever read as something that passes."""
    passing = {ErrorClass.PACING, ErrorClass.OVERLOAD, ErrorClass.SERVER_FAULT, ErrorClass.LOCKED}

    assert classify(provider, Reply(status=status)).error_class not in passing


@pytest.mark.parametrize(
    "body",
    [
        {"id": "resp_1", "object": "response", "status": "completed", "output": [{"type": "function_call"}]},
        {
            "id": "resp_1",
            "status": "completed",
            "error": None,
            "output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}],
        },
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [{"type": "x"}]}},
        {"choices": [{"finish_reason": "stop", "message": {"content": "hi"}}]},
        {"choices": [{"finish_reason": None, "message": {"content": "hi"}}]},
        {"choices": [{"finish_reason": "", "message": {"content": "hi"}}]},
        {"choices": [{"finish_reason": "tool_calls", "message": {"tool_calls": [{"id": "1"}]}}]},
        {"choices": [{"finish_reason": "eos", "text": "hi"}]},
        {"type": "message", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"},
        {"type": "message", "content": [{"type": "tool_use", "id": "t"}], "stop_reason": "tool_use"},
        {"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}}], "promptFeedback": {}},
        {"data": [{"b64_json": "aGk="}]},
        'data: {"choices":[{"delta":{"content":"Hel"},"finish_reason":null}]}\n\ndata: [DONE]\n\n',
        'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n',
        'event: message_delta\ndata: {"delta":{"stop_reason":"end_turn"}}\n\ndata: {"type":"message_stop"}\n\n',
        'data: {"response":{"id":"r","status":"in_progress"}}\r\n\r\n'  # noqa: ISC004 - one stream
        'data: {"response":{"id":"r","status":"completed","output":[{"type":"x"}]}}\r\n\r\n',
        'data: {"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}\n\n',
    ],
)
def test_a_finished_answer_is_a_success(body):
    """Every shape of an answer that is whole, also as the text of a stream, with a null finish word too."""
    assert succeeded(Reply(status=200, body=body))


@pytest.mark.parametrize(
    "body",
    [
        {"id": "c", "choices": []},
        {"choices": "x"},
        {"choices": [{"finish_reason": "stop", "message": {"content": None}}]},
        {"choices": [{"finish_reason": "stop", "message": "x"}]},
        {"choices": [{"finish_reason": "never heard of", "message": {"content": "hi"}}]},
        {"type": "message", "content": [{"type": "thinking", "thinking": "hm"}], "stop_reason": "end_turn"},
        {"type": "message", "content": None, "stop_reason": "end_turn"},
        {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}]}, "finishReason": "STOP"}]},
        {"candidates": [{"content": "x", "finishReason": "STOP"}]},
        {"candidates": []},
        {"data": []},
        {"id": "r", "status": "completed", "output": []},
        {"id": "r", "status": "completed", "output": [{"type": "reasoning"}]},
        {"id": "r", "status": "completed", "output": [{"type": "message", "content": []}]},
        {"id": "r", "status": "incomplete", "incomplete_details": None, "output": []},
        {"error": {}, "choices": None},
        [],
        [1],
        7,
        "",
        None,
        "data: \n\n",
        "data: 5\n\n",
        ": keep-alive\n\n",
        'data: {"delta":"Hel"}\n\n',
        'event: message_delta\ndata: {"delta":{"stop_reason":"end_turn"}}\n\n',
        'event: message_delta\ndata: {"delta":{"stop_reason":"max_tokens"}}\n\ndata: {"type":"message_stop"}\n\n',
        'data: {"promptFeedback":{"blockReason":"OTHER"}}\n\n',
        'data: {"choices":[{"error":{"code":500},"delta":{}}]}\n\ndata: [DONE]\n\n',
        'data: {"event_type":"error","error":null}\n\ndata: [DONE]\n\n',
    ],
)
def test_anything_else_with_a_200_is_no_success(body):
    """Empty, cut, blocked, failed or unreadable answers are never completed."""
    assert not succeeded(Reply(status=200, body=body))


def test_an_answer_counts_only_with_a_success_outside():
    """What looks like an answer inside a 500, or after a cut, is none."""
    body = {"choices": [{"finish_reason": "stop", "message": {"content": "hi"}}]}

    assert not succeeded(Reply(status=500, body=body))
    assert not succeeded(Reply(status=200, body=body, transport=TransportFailure.READ))


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_background_response_runs_until_it_says_otherwise(status):
    """Queued and in progress are neither success nor failure."""
    assert running(Reply(status=200, body={"id": "resp_1", "status": status}))
    assert not succeeded(Reply(status=200, body={"id": "resp_1", "status": status}))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("server_error", ErrorClass.SERVER_FAULT),
        ("rate_limit_exceeded", ErrorClass.PACING),
        ("invalid_prompt", ErrorClass.CONTENT_REFUSED),
        ("data_residency_mismatch", ErrorClass.DATA_BOUNDARY),
        ("bio_policy", ErrorClass.CONTENT_REFUSED),
        ("misalignment_policy_violation", ErrorClass.CONTENT_REFUSED),
        ("vector_store_timeout", ErrorClass.SERVER_FAULT),
        ("image_content_policy_violation", ErrorClass.CONTENT_REFUSED),
        *(
            (code, ErrorClass.CALLER_FAULT)
            for code in (
                *("invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url"),
                *("image_too_large", "image_too_small", "image_parse_error", "invalid_image_mode"),
                *("image_file_too_large", "unsupported_image_media_type", "empty_image_file"),
                *("failed_to_download_image", "image_file_not_found"),
            )
        ),
        ("a_code_of_tomorrow", ErrorClass.UNKNOWN),
        (None, ErrorClass.UNKNOWN),
    ],
)
def test_every_code_of_a_failed_response_has_a_class(code, expected):
    """All codes the API names for a response that failed; one it does not name is unknown, not retried as known."""
    body = {"id": "resp_1", "object": "response", "status": "failed", "error": {"code": code, "message": "m"}}

    assert classify("openai", Reply(status=200, body=body)).error_class is expected


def test_a_day_that_is_used_up_is_named_as_such():
    """Where only the message speaks of the day, the dimension still does."""
    error = {"code": "rate_limit_exceeded", "message": "Rate limit reached on tokens per day (TPD)"}

    signal = classify("openai", Reply(status=429, body={"error": error}))

    assert signal.limit_dimension is LimitDimension.DAILY_TOKENS


def test_output_tokens_of_a_quota_are_told_apart():
    """Quotas name what they count."""
    violation = {"quotaId": "GenerateContentOutputTokensPerMinute"}
    body = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [{"violations": [violation]}]}}

    assert classify("gemini", Reply(status=429, body=body)).limit_dimension is LimitDimension.OUTPUT_TOKENS


def test_a_message_never_reaches_the_signal():
    """Errors written as text, and identifiers that are none, are read but not kept."""
    for body in (
        {"error": "my secret"},
        {"error": "", "detail": ["my secret"]},
        {"error": {"type": "my secret", "code": "my secret", "message": "my secret"}},
    ):
        signal = classify("gateway", Reply(status=400, body=body))

        assert "secret" not in repr(signal)


def test_json_inside_a_message_is_found_and_broken_json_is_not():
    """A gateway writes the upstream's body into its own message, whole or cut."""
    whole = 'OpenAIException - b\'{"error": {"code": "slow_down"}}\''
    cut = 'OpenAIException - {"error": {"code": "slow_do'

    assert classify("gateway", Reply(status=429, body={"error": {"message": whole}})).rule == "openai.slow_down"
    assert classify("gateway", Reply(status=429, body={"error": {"message": cut}})).rule == "default.pacing"
    assert classify("gateway", Reply(status=429, body={"error": {"message": '{"a":' * 9_000}})).rule == "default.pacing"


def test_a_gateway_can_name_the_error_beside_the_answer():
    """OpenRouter's Responses skin puts `error_type` on the response itself, and flattens the code."""
    error = {"code": "server_error", "message": "m"}
    body = {"id": "r", "status": "failed", "output": [], "error": error, "error_type": "provider_overloaded"}

    assert classify("gateway", Reply(status=200, body=body)).error_class is ErrorClass.OVERLOAD


@pytest.mark.parametrize(
    ("word", "ours"),
    [
        *(("end_turn", "stop"), ("STOP", "stop"), (None, "stop"), ("tool_use", "tool_calls"), ("MAX_TOKENS", "length")),
        *(("SAFETY", "content_filter"), ("MALFORMED_FUNCTION_CALL", "error"), ("unheard of", "error")),
    ],
)
def test_finish_words_become_ours(word, ours):
    """Every provider's word for why it stopped is one of five."""
    assert finish_reason(word) == ours


def test_an_empty_place_for_an_answer_does_not_hide_the_error():
    """Some gateways write their answer's field into every error."""
    body = {"code": "insufficient_quota", "message": "m", "data": None, "output": ""}

    assert classify("gateway", Reply(status=429, body=body)).error_class is ErrorClass.SPEND


def test_content_of_an_answer_is_no_error():
    """A model that talks about errors has not failed, and can't make us believe it."""
    content = '{"error": {"code": "insufficient_quota"}}'
    body = {"choices": [{"finish_reason": "length", "message": {"content": content}}]}

    assert classify("gateway", Reply(status=200, body=body)).error_class is ErrorClass.TRUNCATED


def test_a_body_that_repeats_itself_is_read_once():
    """Nesting without end does not take time without end."""
    body: dict = {"code": "x"}
    for _ in range(200):
        body = {"error": body, "details": [body, body]}

    assert classify("openai", Reply(status=500, body=body)).error_class is ErrorClass.SERVER_FAULT
