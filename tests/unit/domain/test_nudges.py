"""A queue message is a kind and an id, and nothing that matters; anything else is none, and never an error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.nudges import KINDS, parse_nudge

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_we_send_reads_back(kind):
    """Every kind, with an id."""
    assert parse_nudge(json.dumps({"kind": kind, "id": "job_a", "extra": 1})) == (kind, "job_a")


@pytest.mark.parametrize(
    "body",
    [
        "{not json", "null", "", "[]", '"job"', "12", '{"job_id": 12345}', '{"kind": "job"}', '{"id": "job_a"}',
        '{"kind": "job", "id": 12345}', '{"kind": "job", "id": ""}', '{"kind": "job", "id": null}',
        '{"kind": ["job"], "id": "a"}', '{"kind": "JOB", "id": "a"}', '{"kind": "unknown", "id": "a"}',
        json.dumps({"kind": "job", "id": "x" * 513}), "[" * 100_000, "\ud800", None, 7, b"\xff", {"kind": "job"},
    ],
)  # fmt: skip
def test_garbage_is_no_nudge(body):
    """Whatever stands in the queue: no exception, no id."""
    assert parse_nudge(body) is None


@given(st.text() | st.binary() | JSON.map(json.dumps))
def test_nothing_in_a_queue_can_raise(body):
    """For any body at all."""
    found = parse_nudge(body)

    assert found is None or (found[0] in KINDS and found[1])
