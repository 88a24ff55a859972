"""Which laws do the adapters keep for any input and any answer?"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.results import Accepted, Completed, Refused
from tests.providers.wire import ALL, Wire

SECRET = "the user's own words"
KEYS = st.sampled_from(
    (
        *("messages", "role", "content", "type", "text", "image_url", "url", "tool_calls", "tool_call_id", "function"),
        *("name", "arguments", "parameters", "instructions", "json_schema", "schema", "tools", "tool_choice", "prompt"),
        *("n", "size", "b64", "mime", "stop"),
    )
)
ANSWER_KEYS = st.sampled_from(
    (
        *("id", "status", "output", "content", "type", "text", "refusal", "call_id", "name", "arguments", "result"),
        *("usage", "input_tokens", "output_tokens", "model", "choices", "message", "finish_reason", "tool_calls"),
        *("function", "images", "image_url", "url", "candidates", "parts", "functionCall", "inlineData", "data"),
        *("b64_json", "promptFeedback", "usageMetadata", "stop_reason", "error", "metadata", "incomplete_details"),
    )
)
LEAVES = st.none() | st.booleans() | st.integers(-5, 10**6) | st.floats(allow_nan=False) | st.text(max_size=8)
WORDS = st.sampled_from(("user", "assistant", "tool", "system", "text", "image", "function", "auto", "data:,", "{}"))
ENDS = st.sampled_from(
    ("completed", "queued", "stop", "STOP", "end_turn", "message", "function_call", "tool_use", SECRET)
)


def json_of(keys, words):
    """Nested JSON with these keys and words in it."""
    return st.recursive(
        LEAVES | words,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
        max_leaves=20,
    )


WIRES = {case: Wire(*case, answer={}) for case in ALL}


@pytest.mark.parametrize("case", ALL)
@given(payload=st.dictionaries(KEYS, json_of(KEYS, WORDS), max_size=6), background=st.booleans())
def test_any_input_is_sent_once_or_refused(case, payload, background):
    """Never an exception, never two requests, and what is not sent is the caller's fault."""
    wire = WIRES[case]
    wire.sent.clear()
    wire.answer = {}

    outcome = wire.submit(payload, background=background)

    assert isinstance(outcome, Refused)
    assert len(wire.sent) == (0 if outcome.signal.rule == "adapter.unsendable" else 1)


@pytest.mark.parametrize("case", ALL)
@given(
    body=st.dictionaries(ANSWER_KEYS, json_of(ANSWER_KEYS, ENDS), max_size=6),
    status=st.sampled_from([200, 200, 200, 400, 429, 500]),
    background=st.booleans(),
)
def test_any_answer_has_an_outcome(case, body, status, background):
    """Never an exception; success only with a 200 and something in it; accepted only in the background."""
    wire = WIRES[case]
    wire.status, wire.answer = status, json.dumps(body)

    outcome = wire.submit({"prompt": "hi"}, background=background)

    if isinstance(outcome, Completed):
        assert status == 200
        assert not body.get("error") or body.get("status") == "completed"
    elif isinstance(outcome, Accepted):
        assert background
        assert outcome.provider_job_id == body["id"]
    else:
        assert SECRET not in repr(outcome.signal)
