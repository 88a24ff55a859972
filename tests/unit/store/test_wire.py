"""Our own pair of readers and writers against boto3's."""

from __future__ import annotations

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.states import Status
from breakwater.store.wire import from_wire, to_wire

PLAIN = st.recursive(
    st.none() | st.booleans() | st.text() | st.binary() | st.integers(-(10**37), 10**37),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), PLAIN, max_size=5))
def test_every_value_travels_as_boto3_sends_it_and_comes_back(plain):
    """Bytes alone come back as bytes, where boto3 wraps them."""
    assert to_wire(plain) == {name: TypeSerializer().serialize(value) for name, value in plain.items()}
    assert from_wire(to_wire(plain)) == plain


def test_words_of_an_enum_and_tuples_are_text_and_lists():
    """What values of ours are made of."""
    assert to_wire({"a": Status.FAILED, "b": ("x",)}) == {"a": {"S": "failed"}, "b": {"L": [{"S": "x"}]}}


@pytest.mark.parametrize("text", ["7", "-7", "7.0", "7E+2"])
def test_a_number_written_otherwise_is_read_as_an_integer(text):
    """Somebody may have edited the table by hand."""
    assert from_wire({"n": {"N": text}})["n"] == int(TypeDeserializer().deserialize({"N": text}))


def test_sets_that_somebody_stored_are_read():
    """We write none."""
    assert from_wire({"a": {"SS": ["x"]}, "b": {"NS": ["1"]}}) == {"a": {"x"}, "b": {1}}


@pytest.mark.parametrize("value", [1.5, {1}, object()])
def test_what_can_not_be_kept_exactly_is_refused(value):
    """No floats are stored."""
    with pytest.raises(TypeError, match="DynamoDB"):
        to_wire({"n": value})
