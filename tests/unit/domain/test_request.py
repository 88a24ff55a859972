"""What is refused before anything is stored, by field and rule, without repeating what was sent."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.errors import InvalidRequest
from breakwater.domain.request import MAX_KEY_CHARS, idempotency_key, parse
from breakwater.domain.states import Priority

MESSAGES = {"messages": [{"role": "user", "content": "hello"}]}
SECRET = "the user's own words"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def test_the_smallest_request():
    """A workflow and an input are enough."""
    request = parse({"workflow": "chat", "input": MESSAGES})

    assert (request.workflow, request.user_ref, request.priority, request.stream) == ("chat", None, None, False)
    assert parse({"workflow": "chat", "input": MESSAGES, "priority": "low"}).priority is Priority.LOW


@pytest.mark.parametrize(
    ("body", "field", "rule"),
    [
        (None, "body", "object"),
        ([], "body", "object"),
        ({}, "workflow", "missing"),
        ({"workflow": "chat"}, "input", "missing"),
        ({"workflow": "", "input": MESSAGES}, "workflow", "string_too_short"),
        ({"workflow": "x" * 129, "input": MESSAGES}, "workflow", "string_too_long"),
        ({"workflow": "a\nb", "input": MESSAGES}, "workflow", "string_pattern_mismatch"),
        ({"workflow": 5, "input": MESSAGES}, "workflow", "string_type"),
        ({"workflow": "chat", "input": {}}, "input", "value_error"),
        ({"workflow": "chat", "input": {**MESSAGES, "prompt": "x"}}, "input", "value_error"),
        ({"workflow": "chat", "input": {"messages": []}}, "input.messages", "too_short"),
        ({"workflow": "chat", "input": {**MESSAGES, "n": 11}}, "input.n", "less_than_equal"),
        ({"workflow": "chat", "input": MESSAGES, "owner_key": "other"}, "owner_key", "extra_forbidden"),
        ({"workflow": "chat", "input": MESSAGES, "max_attempts": 99}, "max_attempts", "extra_forbidden"),
        ({"workflow": "chat", "input": MESSAGES, "callback_url": "ftp://x"}, "callback_url", "string_pattern_mismatch"),
        ({"workflow": "chat", "input": MESSAGES, "priority": "urgent"}, "priority", "enum"),
    ],
)
def test_a_wrong_field_is_named_with_its_rule(body, field, rule):
    """The first one, and how to put it right."""
    with pytest.raises(InvalidRequest) as refused:
        parse(body)

    assert (refused.value.field, refused.value.rule) == (field, rule)
    assert refused.value.fix


@given(JSON)
def test_any_json_is_accepted_or_refused_and_never_an_error(value):
    """No body of any shape gets past the rules with another exception."""
    with suppress(InvalidRequest):
        parse(value)


@given(st.sampled_from(["workflow", "input", "priority", "callback_url", "user_ref"]))
def test_a_refusal_never_repeats_what_was_sent(field):
    """Error texts are logged; prompts are not."""
    with pytest.raises(InvalidRequest) as refused:
        parse({"workflow": "chat", "input": MESSAGES, "user_ref": "u", field: [SECRET]})

    assert SECRET not in str(refused.value) + str(refused.value.fix)


@pytest.mark.parametrize(
    ("raw", "key"), [(None, None), ("", None), ("  ", None), (" k-1 ", "k-1"), ("é" * 255, "é" * 255)]
)
def test_a_key_is_taken_as_it_is_and_a_blank_one_is_none(raw, key):
    """Surrounding blanks are a header's, not the caller's."""
    assert idempotency_key(raw) == key


@pytest.mark.parametrize("raw", ["x" * (MAX_KEY_CHARS + 1), "a\x00b", "a\u200bb\n"])
def test_a_key_that_cant_be_one_is_refused(raw):
    """Too long, or with characters nobody can see."""
    with pytest.raises(InvalidRequest) as refused:
        idempotency_key(raw)

    assert refused.value.field == "Idempotency-Key"
