"""Are samples, pieces and directives right in their corners?"""

import json

import pytest

from tools.simulator.answers import answer_to, pieces, tokens
from tools.simulator.directives import UnknownDirectiveError, read_directives, without_directives
from tools.simulator.samples import sample
from tools.simulator.shapes import Asked


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "maxLength": 2}, "te"),
        ({"type": "string", "minLength": 6}, "textxx"),
        ({"type": "string", "format": "date"}, "2026-01-02"),
        ({"type": ["null", "number"], "minimum": 2.5}, 2.5),
        ({"type": "null"}, None),
        ({"type": "boolean"}, True),
        ({"const": 7}, 7),
        ({"enum": ["a", "b"]}, "a"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 1),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 3}, [1, 1, 1]),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}, 1),
        ({"properties": {"a": {"type": "integer"}}}, {"a": 1}),
    ],
)
def test_a_sample_satisfies_its_schema(schema, value):
    """The same value every time."""
    assert sample(schema, "text") == value


def test_a_schema_that_contains_itself_comes_to_an_end():
    """Optional depth is left out at some point."""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}}}
    tree = sample({"$ref": "#/$defs/node", "$defs": {"node": node}})

    assert tree["next"]["n"] == 1
    assert len(json.dumps(tree)) < 1000


@pytest.mark.parametrize("text", ["", "one", "one two  three", " lead and trail \n", "word " * 1000])
def test_pieces_add_up(text):
    """Nothing lost, not too many."""
    assert "".join(pieces(text)) == text
    assert len(pieces(text)) <= max(64, len(text.split()))


def test_directives_are_read_and_taken_out():
    """In order, with and without values."""
    text = "[[sim:delay=20]] Say [[sim:json]] hello"
    found = read_directives(text)

    assert (found.number("delay"), found.has("json"), found.has("fail")) == (20, True, False)
    assert without_directives(text) == "Say  hello"
    with pytest.raises(UnknownDirectiveError):
        read_directives("[[sim:delay=-1]]")


def test_counts_can_be_dictated():
    """For tests of prices."""
    asked = Asked(model="m", text="x" * 400, directives=read_directives("[[sim:cached=40]][[sim:reasoning=9]]"))
    usage = answer_to(asked).usage

    assert (usage.input, usage.cached, usage.reasoning) == (100, 40, 9)
    assert usage.output == tokens("Simulated answer to: ") + 9
