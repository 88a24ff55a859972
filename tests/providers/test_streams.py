"""Streams as providers send them: recorded bytes in, one closed set of events out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakwater.domain.rules.endings import End
from breakwater.domain.rules.streams import read_stream
from breakwater.domain.signals import ErrorClass
from breakwater.domain.stream_events import (
    Done,
    EffectBegun,
    Failed,
    Opened,
    Progress,
    Resume,
    TextDelta,
    ToolCallDelta,
    UsageSeen,
)
from tests.providers.wire import Wire, call, library_of

CASES = {
    "responses": ("openai", "responses"),
    "chat": ("openai", "chat"),
    "messages": ("anthropic", "messages"),
    "generate_content": ("gemini", "generate_content"),
    "gateway": ("gateway", "chat"),
}
STREAM = {"content-type": "text/event-stream; charset=utf-8"}


def read(case, body, *, status=200, headers=STREAM, resume=None, **fields):
    """All events of a stream with this body, and the wire it came over."""
    provider, endpoint = CASES[case]
    wire = Wire(provider, endpoint, body, status=status, headers=headers)
    stream = wire.adapter.stream(call(**{"endpoint": endpoint, **fields}), resume)
    events = []
    while not events or not isinstance(events[-1], Done | Failed):
        event = stream.next(2_000)
        assert event is not None, "the stream neither goes on nor ends"
        events.append(event)
    stream.close()
    return events, wire


def sse(*events, names=False):
    """Events as text."""
    lines = []
    for event in events:
        name = f"event: {event['type']}\n" if names else ""
        lines.append(f"{name}data: {event if isinstance(event, str) else json.dumps(event)}\n\n")
    return "".join(lines)


def chunk(text=None, finish=None, **more):
    """A chunk of chat."""
    delta = {} if text is None else {"content": text}
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def block(text):
    """A piece of an Anthropic text."""
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


def said(events):
    """The text that came."""
    return "".join(one.text for one in events if isinstance(one, TextDelta))


# --- PR-04: an error inside a 200 -----------------------------------------------------------------------------------

OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def test_an_overload_as_the_first_event_is_an_overload():
    """PR-04 a: like a 529, with the provider's own type, before anything was said."""
    events, _ = read("messages", sse(OVERLOADED, names=True))

    (failed,) = events
    assert (failed.signal.error_class, failed.signal.http_status) == (ErrorClass.OVERLOAD, 529)
    assert failed.signal.provider_error_type == "overloaded_error"
    assert failed.partial is None


def test_an_overload_after_text_keeps_what_came():
    """PR-04 b: failed, the partial apart, never a success."""
    events, _ = read("messages", sse(block("Hello "), OVERLOADED, names=True))

    assert said(events) == "Hello "
    assert events[-1].signal.error_class is ErrorClass.OVERLOAD
    assert (events[-1].partial.text, events[-1].partial.finish_reason) == ("Hello ", "incomplete")


# --- PR-05: an end that is none -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "body"),
    [
        ("chat", sse(chunk("Hel"))),
        ("gateway", sse(chunk("Hel"))),
        ("messages", sse(block("Hel"), names=True)),
        ("responses", sse({"type": "response.output_text.delta", "delta": "Hel", "sequence_number": 4}, names=True)),
        ("generate_content", sse({"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]})),
    ],
)
@pytest.mark.parametrize("tail", ["", "data: {", ": keep-alive\n\n"])
def test_a_clean_close_is_no_success(case, body, tail):
    """PR-05, streams 1, 3, 4: incomplete, with what came; an event that was not finished never counts."""
    events, _ = read(case, body + tail)

    assert said(events) == "Hel"
    assert events[-1].signal.error_class is ErrorClass.STREAM_INCOMPLETE
    assert (events[-1].partial.text, events[-1].told) == ("Hel", False)


@pytest.mark.parametrize("case", ["chat", "gateway"])
def test_done_without_a_reason_is_a_stop(case):
    """PR-05, stream 2."""
    events, _ = read(case, sse(chunk("Hel"), "[DONE]"))

    assert (events[-1].result.text, events[-1].result.finish_reason) == ("Hel", "stop")


def test_done_after_half_a_call_is_no_stop():
    """PR-05: a partial call of a tool is never run."""
    begun = {"index": 0, "id": "c", "function": {"name": "pay", "arguments": '{"amou'}}
    half = {"choices": [{"index": 0, "delta": {"tool_calls": [begun]}}]}

    events, _ = read("gateway", sse(half, "[DONE]"))

    assert events[-1].signal.error_class is ErrorClass.STREAM_INCOMPLETE
    assert events[-1].signal.rule == "adapter.tool_call_cut"


def test_the_last_word_of_a_model_ends_its_answer():
    """A connection that goes after the finish reason took nothing with it; Anthropic's end is `message_stop`."""
    events, _ = read("chat", sse(chunk("Hel"), chunk(finish="stop")))
    assert isinstance(events[-1], Done)
    stop = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}
    events, _ = read("messages", sse(block("Hel"), stop, names=True))
    assert events[-1].signal.error_class is ErrorClass.STREAM_INCOMPLETE
    events, _ = read("messages", sse(block("Hel"), stop, {"type": "message_stop"}, block("lo"), names=True))
    assert events[-1].result.text == "Hel"


# --- PR-06: an end that is no answer --------------------------------------------------------------------------------

USAGE = {"input_tokens": 10, "output_tokens": 16}
SILENT = [{"type": "reasoning", "summary": []}, {"type": "message", "content": []}]


@pytest.mark.parametrize(
    ("response", "error_class"),
    [
        (
            {
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
                "output": SILENT,
                "usage": USAGE,
            },
            ErrorClass.TRUNCATED,
        ),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []},
            ErrorClass.CONTENT_REFUSED,
        ),
        ({"status": "failed", "error": None, "output": []}, ErrorClass.UNKNOWN),
        ({"status": "cancelled", "output": []}, ErrorClass.CANCELLED),
    ],
)
def test_a_terminal_event_that_is_no_success_says_which(response, error_class):
    """PR-06, bodies 1, 2, 4: each its own outcome, told by the provider, usage kept."""
    event = {"type": f"response.{response['status']}", "response": {"id": "resp_t", **response}}

    events, _ = read("responses", sse(event, names=True))

    assert events[-1].signal.error_class is error_class
    assert events[-1].told
    if "usage" in response:
        assert events[-1].partial.usage.units == 26


def test_a_blocked_prompt_is_refused_with_its_usage():
    """PR-06, body 3: usage 13 kept."""
    usage = {"promptTokenCount": 13, "totalTokenCount": 13}
    events, _ = read(
        "generate_content", sse({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": usage})
    )

    assert events[-1].signal.error_class is ErrorClass.CONTENT_REFUSED
    assert events[-1].partial.usage.input_tokens == 13


@pytest.mark.parametrize(
    ("case", "body"),
    [
        ("chat", sse(chunk("Hel"), chunk(finish="length"), "[DONE]")),
        ("chat", sse(chunk("Hel"), chunk(finish="content_filter"), "[DONE]")),
        (
            "generate_content",
            sse({"candidates": [{"content": {"parts": [{"text": "Hel"}]}, "finishReason": "SAFETY"}]}),
        ),
        ("messages", sse(block("Hel"), {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}, names=True)),
        ("gateway", sse(chunk("Hel"), {"choices": [{"error": {"code": 502}, "finish_reason": "error"}]}, "[DONE]")),
        ("gateway", sse(chunk("Hel"), {"error": {"message": "x", "code": 503}})),
        ("responses", sse({"type": "error", "code": "server_error", "message": "x"}, names=True)),
    ],
)
def test_no_bad_end_is_a_success(case, body):
    """Token limits, filters and errors in the stream, in every provider's words."""
    events, _ = read(case, body)

    assert isinstance(events[-1], Failed)
    assert events[-1].signal.error_class is not ErrorClass.STREAM_INCOMPLETE


# --- what comes on the way ------------------------------------------------------------------------------------------


def test_a_response_names_itself_only_where_it_can_be_read_again():
    """In the background; every event has its number, thoughts are no output, tools at the provider are visible."""
    body = sse(
        {"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1", "status": "queued"}},
        {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": {"type": "mcp_call"}},
        {"type": "response.reasoning_summary_text.delta", "sequence_number": 2, "delta": "hm"},
        {"type": "response.output_text.delta", "sequence_number": 3, "delta": "Hi"},
        names=True,
    )

    events, wire = read("responses", body, background=True)
    assert events[:4] == [
        Opened(provider_job_id="resp_1", sequence=0),
        EffectBegun(kind="mcp_call", sequence=1),
        Progress(sequence=2),
        TextDelta(text="Hi", sequence=3),
    ]
    sent = wire.sent[0].body
    assert (sent["stream"], sent["background"], sent["store"]) == (True, True, True)
    assert not [one for one in read("responses", body)[0] if isinstance(one, Opened)]


def test_a_stream_is_resumed_behind_a_number():
    """One GET that asks for the rest; from the beginning where nothing was seen."""
    done = {
        "id": "resp_1",
        "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}],
    }
    body = sse({"type": "response.completed", "response": done, "sequence_number": 9}, names=True)

    events, wire = read("responses", body, background=True, resume=Resume(provider_job_id="resp/1", after=7))
    _, anew = read("responses", body, background=True, resume=Resume(provider_job_id="resp_1"))

    assert events[-1].result.provider_job_id == "resp_1"
    assert wire.sent[0].method == "GET"
    assert wire.sent[0].url.endswith("/responses/resp%2F1?stream=true&starting_after=7")
    assert anew.sent[0].url.endswith("/responses/resp_1?stream=true")


def test_every_api_is_asked_in_its_own_way():
    """A flag, usage for chat, a method of its own at Gemini; the rest of the request as without a stream."""
    assert read("chat", "")[1].sent[0].body["stream_options"] == {"include_usage": True}
    assert read("messages", "")[1].sent[0].body["stream"] is True
    assert read("generate_content", "")[1].sent[0].url.endswith(":streamGenerateContent?alt=sse")


def test_usage_is_told_as_it_is_counted():
    """Once for each change, so a stream that is cut has its cost."""
    start = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 40, "output_tokens": 1}}}
    more = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 9}}

    events, _ = read("messages", sse(start, block("Hi"), more, names=True))

    counted = [(one.usage.input_tokens, one.usage.output_tokens) for one in events if isinstance(one, UsageSeen)]
    assert counted == [(40, 1), (40, 9)]


def test_calls_of_tools_come_in_pieces():
    """Id and name once, arguments in pieces, two calls apart."""

    def piece(index, **function):
        return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, "id": "c", "function": function}]}}]}

    body = sse(
        piece(0, name="look", arguments=""),
        piece(0, arguments='{"n":'),
        piece(1, name="leap", arguments="{}"),
        piece(0, arguments="1}"),
        chunk(finish="tool_calls"),
        "[DONE]",
    )

    events, _ = read("chat", body)

    assert [one for one in events if isinstance(one, ToolCallDelta)] == [
        ToolCallDelta(index=0, id="c", name="look"),
        ToolCallDelta(index=0, arguments='{"n":'),
        ToolCallDelta(index=1, id="c", name="leap", arguments="{}"),
        ToolCallDelta(index=0, arguments="1}"),
    ]
    assert [one["arguments"] for one in events[-1].result.tool_calls] == ['{"n":1}', "{}"]
    assert events[-1].result.finish_reason == "tool_calls"


# --- answers that are no streams ------------------------------------------------------------------------------------


def piece(call_id, name, arguments, **index):
    """A chunk with one piece of a call of a tool."""
    called = {"function": {"name": name, "arguments": arguments}, **index}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [{**called, **({"id": call_id} if call_id else {})}]}}]}


@pytest.mark.parametrize("index", [{"index": 0}, {}, {"index": None}])
def test_calls_that_share_an_index_stay_two_calls(index):
    """Some servers number every call 0, or none; the pieces that follow belong to the latest."""
    chunks = [
        piece("a", "f", '{"x":', **index),
        piece(None, None, "1}", **index),
        piece("b", "g", '{"y":', **index),
        piece(None, None, "2}", **index),
        chunk(finish="tool_calls"),
    ]

    events, _ = read("gateway", sse(*chunks, "[DONE]"))

    assert [(one["id"], one["name"], one["arguments"]) for one in events[-1].result.tool_calls] == [
        ("a", "f", '{"x":1}'),
        ("b", "g", '{"y":2}'),
    ]
    assert {one.index for one in events if isinstance(one, ToolCallDelta)} == {0, 1}


def test_a_call_whose_id_changes_with_every_piece_stays_one_call():
    """A new call has a name."""
    chunks = [piece("a", "f", '{"x":', index=0), piece("b", "", "1}", index=0), chunk(finish="tool_calls")]

    events, _ = read("gateway", sse(*chunks, "[DONE]"))

    assert [(one["name"], one["arguments"]) for one in events[-1].result.tool_calls] == [("f", '{"x":1}')]


def test_a_gateway_that_ignores_the_wish_is_read_all_the_same():
    """A whole answer is told in one piece."""
    body = {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}

    events, _ = read("gateway", json.dumps(body), headers={"content-type": "application/json"})

    assert (said(events), events[-1].result.text) == ("Hello", "Hello")


@pytest.mark.parametrize("case", list(CASES))
def test_a_refusal_before_the_stream_is_an_ordinary_one(case):
    """Status, hint and class as without a stream, and one request."""
    events, wire = read(case, "{}", status=429, headers={"content-type": "application/json", "retry-after": "7"})

    assert (events[-1].signal.error_class, events[-1].signal.retry_after_ms) == (ErrorClass.PACING, 7_000)
    assert len(wire.sent) == 1


@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize("junk", ["data: {\n\n", "data: [1]\n\n", "data: hello\n\n", "data: 7\n\n"])
def test_an_event_that_cannot_be_read_is_not_skipped(case, junk):
    """It may have been a piece of the answer."""
    events, _ = read(case, junk)

    assert events[-1].signal.rule == "adapter.event_unreadable"


@pytest.mark.parametrize("nothing", ["data:\n\n", "data: null\n\n", "event: ping\ndata: ping\n\n", ": ping\n\n"])
def test_what_only_keeps_a_connection_is_skipped(nothing):
    """In the middle of an answer it must not become the answer's end."""
    events, _ = read("gateway", sse(chunk("Hel")) + nothing + sse(chunk("lo"), chunk(finish="stop"), "[DONE]"))

    assert (said(events), type(events[-1])) == ("Hello", Done)


def test_an_error_is_known_by_its_events_name_too():
    """Some gateways name the event and leave the type out of its data."""
    error = 'event: error\ndata: {"message": "Overloaded (test)", "code": 429}\n\n'
    events, _ = read("gateway", sse(chunk("Hel")) + error)

    assert events[-1].signal.error_class is ErrorClass.PACING


FLAT_ERRORS = [
    ('event: error\ndata: {"type":"overloaded_error","message":"m (test)"}\n\n', ErrorClass.OVERLOAD),
    ('data: {"object":"error","message":"m","type":"InternalServerError","code":500}\n\n', ErrorClass.SERVER_FAULT),
    ('data: {"message":"m (test)","code":502}\n\n', ErrorClass.SERVER_FAULT),
    ('data: {"message":"m (test)","code":"503"}\n\n', ErrorClass.OVERLOAD),
    ('data: {"error_type":"provider_overloaded","message":"m (test)"}\n\n', ErrorClass.OVERLOAD),
]


@pytest.mark.parametrize(("error", "error_class"), FLAT_ERRORS)
@pytest.mark.parametrize("begun", ["Hel", None])
def test_an_error_in_place_of_a_chunk_is_no_end_of_an_answer(error, error_class, begun):
    """However flat it is, and though `[DONE]` follows: half an answer is never taken for the whole."""
    body = sse(*([chunk(begun)] if begun else [])) + error + "data: [DONE]\n\n"

    events, _ = read("gateway", body)

    assert isinstance(events[-1], Failed)
    assert events[-1].signal.error_class is error_class
    assert (events[-1].partial.text if events[-1].partial else None) == begun
    assert read_stream(body)[0].end is End.ERROR


def test_a_flat_error_that_its_event_names_is_known_in_every_dialect():
    """Anthropic's inner object without the envelope."""
    body = 'event: error\ndata: {"type":"overloaded_error","message":"m (test)"}\n\n'

    events, _ = read("messages", body)

    assert events[-1].signal.error_class is ErrorClass.OVERLOAD


@pytest.mark.parametrize("case", list(CASES))
def test_a_connection_that_fails_says_how(case):
    """Nothing was sent, or nobody knows."""
    library = library_of(CASES[case][0])
    events, _ = read(case, library.ConnectError("no"))
    assert events[-1].signal.error_class is ErrorClass.NOT_SENT
    events, _ = read(case, library.ReadTimeout("no"))
    assert events[-1].signal.error_class is ErrorClass.OUTCOME_UNKNOWN


def test_input_that_cannot_be_sent_is_not_sent():
    """And an endpoint without streams has none."""
    wire = Wire("openai", "images", "")
    failed = wire.adapter.stream(call({"prompt": "a cat"}, endpoint="images")).next(1_000)
    assert (failed.signal.rule, wire.sent) == ("adapter.no_stream", [])

    events, wire = read("chat", "", payload={"messages": [{"role": "user", "content": float("nan")}]})
    assert (events[-1].signal.rule, wire.sent) == ("adapter.unsendable", [])


def test_a_wish_for_json_is_checked_at_the_end():
    """What is no JSON is no success, whatever its finish reason says."""
    schema = {"json_schema": {"name": "n", "schema": {"type": "object"}}, "prompt": "x"}
    whole, _ = read("chat", sse(chunk('{"n":'), chunk("1}"), chunk(finish="stop"), "[DONE]"), payload=schema)
    broken, _ = read("chat", sse(chunk('{"n":'), chunk(finish="stop"), "[DONE]"), payload=schema)

    assert whole[-1].result.structured == {"n": 1}
    assert broken[-1].signal.rule == "adapter.not_json"


@pytest.mark.parametrize("case", list(CASES))
def test_fields_of_the_wrong_type_read_as_missing(case):
    """No event makes a reading fail."""
    strange = [
        {"choices": 5, "candidates": "x", "type": 7, "usage": [], "response": 1, "delta": [], "index": "a"},
        {"choices": [{"delta": {"content": 5, "tool_calls": [1, {"index": "x", "function": 3}]}, "index": None}]},
        {
            "candidates": [{"content": {"parts": [1, {"functionCall": 5}, {"text": 4}]}}],
            "usageMetadata": {"promptTokenCount": "x"},
        },
        {"type": "content_block_start", "index": None, "content_block": 3},
        {"type": "content_block_delta", "index": {}, "delta": None},
        {"type": "message_start", "message": 4},
        {"type": "message_delta", "delta": 5, "usage": 6},
        {"type": "response.output_item.added", "output_index": [], "item": None, "sequence_number": True},
        {"type": "response.function_call_arguments.delta", "delta": 5},
    ]

    events, _ = read(case, sse(*strange))

    assert isinstance(events[-1], Failed)


WORDS = """
choices delta content tool_calls index function arguments name id finish_reason usage type response
output status error candidates parts text functionCall args finishReason promptFeedback blockReason
usageMetadata message content_block partial_json stop_reason input item output_index sequence_number
message_start message_delta message_stop content_block_start content_block_delta tool_use text_delta
response.completed response.output_text.delta completed function_call response.output_item.added
incomplete stop length
""".split()  # noqa: SIM905 - a list of these would be a page
LEAVES = st.sampled_from([*WORDS, "", 0, 1, -1, 2.5, True, None])
ANYTHING = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
)


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(CASES)), st.lists(st.dictionaries(st.sampled_from(WORDS), ANYTHING, max_size=5), max_size=5)
)
def test_whatever_comes_the_stream_ends_in_one_event(case, strange):
    """Any JSON in any place: no reading fails, and what was told is what a success says."""
    events, _ = read(case, sse(*strange))

    assert [isinstance(one, Done | Failed) for one in events].count(True) == 1
