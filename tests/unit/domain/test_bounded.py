"""A memory that begins anew rather than growing."""

from __future__ import annotations

from breakwater.domain.bounded import MOST, Bounded


def test_one_more_than_it_holds_and_it_begins_anew():
    """What it already holds may change for ever."""
    memory: Bounded[int, str] = Bounded()
    for n in range(MOST):
        memory[n] = "seen"
    memory[0] = "again"
    assert len(memory) == MOST
    memory[MOST] = "new"
    assert memory == {MOST: "new"}
