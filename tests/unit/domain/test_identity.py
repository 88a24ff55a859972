"""The key is the identity: one intent, one id; another intent, another id; the payload beside it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain import identity
from breakwater.domain.timing import DAY

TEXT = st.text(max_size=30)
PARTS = st.lists(st.none() | TEXT, min_size=1, max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(PARTS, PARTS)
def test_two_lists_of_parts_share_a_digest_only_if_they_are_equal(one, other):
    """No separator can be smuggled in, and nothing given differs from the empty text."""
    assert (identity.digest(*one) == identity.digest(*other)) is (one == other)


@given(TEXT, st.none() | TEXT, TEXT, TEXT)
def test_a_job_id_is_short_lower_case_and_repeatable(owner, user, workflow, key):
    """The same intent is the same primary key, whoever computes it."""
    job_id = identity.job_id(owner, user, workflow, key)

    assert re.fullmatch(r"job_[a-z2-7]{32}", job_id)
    assert job_id == identity.job_id(owner, user, workflow, key)


@pytest.mark.parametrize(
    "other",
    [
        ("beta", "u-1", "chat", "k"),
        ("acme", "u-2", "chat", "k"),
        ("acme", None, "chat", "k"),
        ("acme", "u-1", "summary", "k"),
        ("acme", "u-1", "chat", "k2"),
        ("acme", "u-1chat", "", "k"),
    ],
)
def test_another_owner_user_workflow_or_key_is_another_job(other):
    """A user's key never meets another user's or owner's."""
    assert identity.job_id(*other) != identity.job_id("acme", "u-1", "chat", "k")


@given(JSON)
def test_a_fingerprint_ignores_the_order_of_keys(value):
    """Two spellings of one JSON value are one payload."""

    def shuffled(one):
        if isinstance(one, dict):
            return {key: shuffled(one[key]) for key in reversed(list(one))}
        return [shuffled(item) for item in one] if isinstance(one, list) else one

    assert identity.fingerprint(shuffled(value)) == identity.fingerprint(value)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"t": 1}, {"t": 1.0}, True),
        ({"t": 0}, {"t": -0.0}, True),
        ({"t": [1, 2]}, {"t": [2, 1]}, False),
        ({"t": 1}, {"t": "1"}, False),
        ({"t": None}, {}, False),
        ({"t": True}, {"t": 1}, False),
        ({"t": 0.1}, {"t": 0.10000000000000001}, True),
        ({"t": "é"}, {"t": "e\u0301"}, False),
    ],
)
def test_what_counts_as_the_same_payload(one, other, same):
    """Numbers are JSON's one kind of number; everything else is what it is."""
    assert (identity.fingerprint(one) == identity.fingerprint(other)) is same


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [float("-inf")]}])
def test_what_is_no_json_has_no_fingerprint(value):
    """It is refused rather than compared."""
    with pytest.raises(ValueError, match="Out of range"):
        identity.fingerprint(value)


def test_lone_surrogates_have_bytes_too():
    """A body that Python can hold never crashes admission."""
    assert identity.fingerprint({"t": "\ud800"}) != identity.fingerprint({"t": "?"})


def derived(**more):
    """A derived key, with one thing changed."""
    base = {
        "owner": "acme", "user_ref": None, "workflow": "chat", "payload": {"m": 1}, "target": None,
        "window_ms": DAY, "now": 1_800_000_000_000,
    }  # fmt: skip
    return identity.derived_key(**{**base, **more})


def test_the_same_question_in_the_same_bucket_is_the_same_intent():
    """Asked twice in the window: one job. Asked next week: a new one."""
    now = 1_800_000_000_000 // DAY * DAY

    assert derived(now=now) == derived(now=now + DAY - 1)
    assert derived(now=now) != derived(now=now + DAY)


@pytest.mark.parametrize(
    "change",
    [{"owner": "beta"}, {"user_ref": "u"}, {"workflow": "w"}, {"payload": {"m": 2}}, {"target": "crm-1"}],
)
def test_every_part_of_a_derived_key_counts(change):
    """Another owner, user, workflow, input or side-effect target is another intent."""
    assert derived(**change) != derived()


def test_no_window_means_no_deduplication():
    """A policy with a window of zero makes every request a job of its own."""
    assert derived(window_ms=0, now=5) != derived(window_ms=0, now=6)
