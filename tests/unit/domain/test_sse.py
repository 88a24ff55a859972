"""Event streams are cut as the WHATWG says, whatever the chunks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.sse import EventTooLarge, SseEvent, SseParser, frame


def parsed(*chunks: bytes, limit: int = 1_000_000) -> list[SseEvent]:
    """The events of these chunks."""
    parser = SseParser(limit)
    return [event for chunk in chunks for event in parser.feed(chunk)]


def told(raw: bytes) -> list[str]:
    """The data of the events of a whole text."""
    return [event.data for event in parsed(raw)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_line_ends_in_any_of_three_ways(end):
    """LF, CRLF and CR each end a line, and a blank one dispatches."""
    raw = end.join([b"event: a", b"data: 1", b"data: 2", b"", b"data: 3", b"", b""])

    assert parsed(raw) == [SseEvent("1\n2", "a"), SseEvent("3")]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_no_other_mark_ends_a_line(mark):
    """What Python's `splitlines` takes for the end of a line is content."""
    assert told(f"data: a{mark}data: b\n\n".encode()) == [f"a{mark}data: b"]


def test_the_examples_of_the_specification():
    """Comments, fields without colon, at most one blank taken away, events without data dropped."""
    assert told(b": test stream\n\ndata: first\nid: 1\n\ndata:second\nid\n\ndata:  third\n\n") == [
        "first",
        "second",
        " third",
    ]
    assert told(b"data\n\ndata\ndata\n\ndata:") == ["", "\n"]
    assert told(b"event: nothing\n\ndata: x\n\n") == ["x"]
    assert parsed(b"event: nothing\n\ndata: x\n\n")[0].name == "message"


def test_ids_and_retry_follow_the_specification():
    """An id lasts until the next; one with NUL is ignored, as is a retry that is no number."""
    parser = SseParser()

    events = parser.feed(b"id: 7\ndata: a\n\nid: x\0y\ndata: b\n\nretry: 50\nretry: 5s\nretry: \xd9\xa3\ndata: c\n\n")

    assert [event.id for event in events] == ["7", "7", "7"]
    assert parser.retry == 50


def test_one_leading_byte_order_mark_is_dropped():
    """Only the first, and only at the very start, even in pieces."""
    assert [one.data for one in parsed(b"\xef", b"\xbb", b"\xbfdata: a\n\n")] == ["a"]
    assert told(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n") == []


def test_what_is_unfinished_at_the_end_is_no_event():
    """A stream that breaks inside an event has not sent it."""
    assert told(b"data: a\n\ndata: b\n") == ["a"]


def test_bytes_that_are_no_text_are_replaced():
    """One broken byte costs one character, not the stream."""
    assert told(b"data: a\xff\n\n") == ["a\ufffd"]


def test_memory_is_bounded():
    """A line or an event without end is refused, not collected."""
    with pytest.raises(EventTooLarge):
        parsed(b"data: " + b"x" * 101, limit=100)
    with pytest.raises(EventTooLarge):
        parsed(*[b"data: 0123456789\n"] * 20, limit=100)
    assert len(parsed(*[b"data: 0123456789\n\n"] * 200, limit=100)) == 200


TEXT = st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])
LINES = st.lists(
    st.one_of(
        st.text(TEXT, max_size=12).map("data: {}".format),
        st.just(""),
        st.just(": comment"),
        st.just("event: é€😀"),
    ),
    max_size=12,
)


@given(LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.data())
def test_chunks_make_no_difference(lines, end, data):
    """However the bytes are cut, inside a character or between CR and LF, the same events come out."""
    raw = (end.join(lines) + end).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    chunks = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]

    assert parsed(*chunks) == parsed(raw)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_what_is_framed_reads_back(text):
    """Our own events, read by our own parser."""
    (event,) = parsed(frame(text, name="done", event_id="1.2.3").encode())

    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    assert event == SseEvent(lines, "done", "1.2.3")
