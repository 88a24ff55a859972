"""Every write says what it believes, on a page that is as new as the code."""

from __future__ import annotations

from tools.docs import writes

READS = {
    "api_key", "api_keys", "attention", "audit", "backlog", "batch", "batch_lines", "by_owner", "child", "children",
    "children_after", "delivery", "due", "get", "get_many", "get_with", "held_slots", "latest", "owner", "owner_now",
    "presign", "provider_job", "rate", "route", "scheduled", "slots", "switches", "switches_now", "usage", "waiters",
    "waiters_by_owner",
}  # fmt: skip


def test_the_page_is_fresh():
    """A new place that writes makes it stale."""
    assert writes.PAGE.read_text() == writes.page(), "run `python -m tools.docs.writes`"


def test_every_method_is_a_known_read_or_a_described_write():
    """A new method of a store is placed here, with its condition, or the run fails."""
    described = set(writes.WRITES)

    assert described <= writes.methods()
    assert {name.partition(".")[2] for name in writes.methods() - described} == READS


def test_every_write_has_somebody_who_makes_it():
    """A method that nobody calls is not kept."""
    assert {name for name in writes.WRITES if name.partition(".")[2] not in writes.places()} == set()
