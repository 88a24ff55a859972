"""What is refused before anything is stored, by field and rule, without repeating what was sent."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.errors import InvalidRequest
from breakwater.domain.request import MAX_KEY_CHARS, idempotency_key, parse, plain
from breakwater.domain.request_model import read
from breakwater.domain.states import Priority

MESSAGES = {"messages": [{"role": "user", "content": "hello"}]}


def said(**message):
    """An input of one message."""
    return {"messages": [{"role": "assistant", **message}]}


def nested(levels):
    """An object so deep."""
    found = {}
    for _ in range(levels):
        found = {"a": found}
    return found


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
        ({"workflow": "chat", "input": said(content=None)}, "input.messages.0.content", "string_type"),
        ({"workflow": "chat", "input": said(content=[1])}, "input.messages.0.content", "string_type"),
        ({"workflow": "chat", "input": said(content={"text": "x"})}, "input.messages.0.content", "string_type"),
        ({"workflow": "chat", "input": {**MESSAGES, "parameters": nested(300)}}, "input", "json"),
        ({"workflow": "chat", "input": {**MESSAGES, "json_schema": nested(5_000)}}, "input", "json"),
        ({"workflow": "chat", "input": {**MESSAGES, "parameters": {"\ud800": 1}}}, "input", "json"),
        ({"workflow": "chat", "input": {**MESSAGES, "tools": [{"a": {"\udfff": 1}}]}}, "input", "json"),
    ],
)
def test_a_wrong_field_is_named_with_its_rule(body, field, rule):
    """The first one, and how to put it right."""
    with pytest.raises(InvalidRequest) as refused:
        parse(body)

    assert (refused.value.field, refused.value.rule) == (field, rule)
    assert refused.value.fix


def test_an_answer_of_calls_alone_comes_back_as_it_was_given():
    """OpenAI says `"content": null` beside calls; a client sends its turn back unchanged."""
    calls = [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]

    payload = parse({"workflow": "chat", "input": said(content=None, tool_calls=calls)}).payload

    assert payload == {"messages": [{"role": "assistant", "content": "", "tool_calls": calls}]}


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


PARTS = st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=2), max_size=2)
OBJECT = st.dictionaries(st.text(max_size=4), JSON, max_size=3)
STRANGE = st.sampled_from(["", "a\n", "\x7f", "\ud800", "x" * 200, "https://x.example/é", "http://", "http://\n"])
ODD = (
    st.none() | st.booleans() | st.integers(-1, 12) | st.sampled_from([0.5, 1.0, "3", "true", "low", [], {}]) | STRANGE
)
TEXT = st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), min_size=1, max_size=5)
MESSAGE = {
    "role": st.sampled_from(["user", "assistant", "tool", "developer", "system"]),
    "content": TEXT | PARTS,
    "tool_call_id": TEXT | st.none(),
    "tool_calls": PARTS | st.none(),
}
INPUT = {
    "instructions": TEXT | st.none(),
    "parameters": OBJECT,
    "json_schema": OBJECT | st.none(),
    "tools": PARTS | st.none(),
    "size": TEXT | st.none(),
    "n": st.integers(1, 10) | st.none(),
}
BODY = {
    "workflow": TEXT,
    "user_ref": TEXT | st.none(),
    "priority": st.sampled_from(["low", "normal", "high", None]),
    "callback_url": st.sampled_from(["https://x.example/é", "http://x", None]),
    "side_effect_target": TEXT | st.none(),
    "stream": st.booleans(),
    "input": st.none(),
}


@st.composite
def bodies(draw):
    """Bodies in order, most of them but for one value."""
    wrong = draw(st.sampled_from(["nothing", "message", "input", "body"]))

    def some(kind, fields, needed):
        names = draw(
            st.permutations(sorted(draw(st.sets(st.sampled_from(sorted(fields)), max_size=4)) | needed.keys()))
        )
        made = {name: needed[name] if name in needed else draw(fields[name]) for name in names}
        if kind == wrong:
            made[draw(st.sampled_from([*names, "more"]))] = draw(ODD)
        return made

    def message():
        return some("message", MESSAGE, {name: draw(MESSAGE[name]) for name in ("role", "content")})

    asked = {"prompt": draw(TEXT)} if draw(st.booleans()) else {"messages": [message() for _ in range(2)]}
    return some("body", BODY, {"workflow": draw(TEXT), "input": some("input", INPUT, asked)})


@given(bodies())
def test_a_body_read_without_the_model_is_what_the_model_reads(body):
    """The short way takes nothing that the model would refuse, and makes the same of it, in the same order."""
    if plain(body):
        ours, theirs = parse(body), read(body)

        assert ours == theirs
        assert json.dumps(ours.payload) == json.dumps(theirs.payload)
        assert ours.prompts == ("prompt" in theirs.payload)


IMAGE = [{"type": "input_image", "image_url": "https://x.example/a.png", "detail": None}]
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}, "n": 10**30, "x": 1.5}}


@pytest.mark.parametrize(
    "ask",
    [
        MESSAGES,
        {"prompt": "a cat", "size": "1024x1024", "n": 2},
        {"messages": [{"role": "user", "content": "Grüße"}, {"role": "tool", "content": IMAGE, "tool_call_id": "c"}]},
        {**MESSAGES, "parameters": {}, "prompt": None, "tools": [TOOL], "json_schema": TOOL},
        {**MESSAGES, "parameters": {"temperature": 0.2, "stop": None}, "instructions": "Be short.", "tools": []},
    ],
)
@pytest.mark.parametrize("more", [{}, {"priority": "low", "user_ref": "u", "stream": True}, {"callback_url": None}])
def test_usual_bodies_need_no_model(ask, more):
    """What callers send all day is read the short way, alike."""
    body = {**more, "workflow": "chat", "input": ask}

    assert plain(body)
    assert parse(body) == read(body)


DEEP = json.loads('{"a":' * 70 + "1" + "}" * 70)


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ({"workflow": "chat", "input": {**MESSAGES, "n": "3"}}, ("n", 3)),
        ({"workflow": "chat", "input": {**MESSAGES, "n": 3.0}}, ("n", 3)),
        ({"workflow": "chat", "input": {**MESSAGES, "parameters": DEEP}}, ("parameters", DEEP)),
    ],
)
def test_unusual_bodies_are_left_to_the_model(body, kept):
    """Numbers as text, and what is nested deeply, go the long way and arrive."""
    assert not plain(body)
    assert parse(body).payload[kept[0]] == kept[1]
