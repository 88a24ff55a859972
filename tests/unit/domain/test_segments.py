"""Segments: what is stored reads back, and what is left of an answer is exactly what was not told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.results import Result
from breakwater.domain.segments import (
    Answer,
    Segment,
    merged,
    plain,
    remainder,
    segment_child,
    segment_key,
    segment_of,
    size_of,
)
from breakwater.domain.stream_events import EffectBegun, TextDelta, ToolCallDelta
from breakwater.domain.stream_ids import Place, place_of

TEXTS = st.builds(TextDelta, text=st.text(max_size=20))
CALLS = st.builds(
    ToolCallDelta,
    index=st.integers(0, 2),
    arguments=st.text(max_size=8),
    id=st.text(max_size=3),
    name=st.text(max_size=3),
)
DELTAS = st.lists(st.one_of(TEXTS, CALLS, st.builds(EffectBegun, kind=st.sampled_from(["mcp_call", "x"]))), max_size=8)


def told(deltas):
    """An answer of these pieces."""
    answer = Answer()
    answer.add(deltas)
    return answer


@given(DELTAS, st.none() | st.integers(0, 99))
def test_a_segment_reads_back(deltas, sequence):
    """Whatever text there is, half characters too."""
    segment = Segment(epoch=3, n=12, deltas=tuple(deltas), sequence=sequence)

    assert segment_of(segment_child(1_800_000_000_000, 2, segment)) == segment


def test_a_seal_reads_back():
    """With and without a log that goes on."""
    for following in (None, 4):
        seal = Segment(epoch=3, n=1, sealed=True, next_epoch=following)
        assert segment_of(segment_child(1, 1, seal)) == seal


def test_keys_sort_as_segments_were_written():
    """By epoch, then by number."""
    keys = [segment_key(1, 1, epoch, n) for epoch in (1, 2, 10) for n in (0, 9, 10, 999)]

    assert keys == sorted(keys)


@given(DELTAS)
def test_putting_neighbours_together_changes_nothing(deltas):
    """The answer is the same, in fewer pieces, and nothing is larger than its parts."""
    assert told(merged(deltas)).text == told(deltas).text
    assert told(merged(deltas)).tool_calls == told(deltas).tool_calls
    assert len(merged(deltas)) <= len(deltas)
    assert sum(map(size_of, merged(deltas))) <= sum(map(size_of, deltas))


@given(st.text(max_size=30), st.integers(0, 30))
def test_the_remainder_of_a_text_is_what_was_not_told(text, cut):
    """Told and rest are the whole; a text that began otherwise has no remainder."""
    rest = remainder(told([TextDelta(text=text[:cut])]), Result(text=text))

    assert rest is not None
    assert text[:cut] + "".join(one.text for one in rest) == text
    assert remainder(told([TextDelta(text=text + "x")]), Result(text=text)) is None


def test_the_remainder_of_calls_goes_by_place():
    """A call that was begun is completed under its own index, others come behind it."""
    first, second = ({"id": f"c{n}", "name": "look", "arguments": '{"n": 1}'} for n in (1, 2))
    seen = told([ToolCallDelta(index=4, id="c1", name="look", arguments='{"n')])

    rest = remainder(seen, Result(tool_calls=(first, second)))

    assert rest == (
        ToolCallDelta(index=4, arguments='": 1}'),
        ToolCallDelta(index=5, id="c2", name="look", arguments='{"n": 1}'),
    )


def test_a_call_that_is_another_has_no_remainder():
    """Another name, other arguments, or more calls than the answer has."""
    whole = Result(tool_calls=({"id": "c", "name": "look", "arguments": '{"n":1}'},))

    assert remainder(told([ToolCallDelta(index=0, name="leap")]), whole) is None
    assert remainder(told([ToolCallDelta(index=0, name="look", arguments='{"m')]), whole) is None
    assert remainder(told([ToolCallDelta(index=n, name="look") for n in range(2)]), whole) is None
    assert remainder(told([ToolCallDelta(index=0, name="look", arguments='{ "n": 1 }')]), whole) == ()


def test_what_readers_get_is_plain():
    """Names without values are left out."""
    assert plain(TextDelta(text="a", sequence=3)) == {"text": "a"}
    assert plain(ToolCallDelta(index=0, arguments="{")) == {"tool_call": {"index": 0, "arguments": "{"}}
    assert plain(EffectBegun(kind="mcp_call")) == {"effect": "mcp_call"}


@given(st.integers(1, 999), st.integers(1, 9_999), st.integers(0, 99_999))
def test_a_place_reads_back(generation, epoch, n):
    """All three kinds."""
    for place in (
        Place(generation=generation, epoch=epoch, n=n),
        Place(generation=generation, told=n),
        Place(generation=generation, ended=True),
    ):
        assert place_of(place.id) == place
