"""The diagram of the docs is the table of the code."""

from __future__ import annotations

from breakwater.domain.machine import TRANSITIONS
from tools.docs import states


def test_the_page_is_fresh():
    """`python -m tools.docs.states` was run after the table changed."""
    assert states.main(["--check"]) == 0, "run: python -m tools.docs.states"


def test_every_cell_is_drawn_and_listed():
    """Nothing the table allows is missing from the page."""
    text = states.page()
    for row, moves in TRANSITIONS.items():
        for event, move in moves.items():
            assert f"| {row} | `{event.__name__}` | {move.to} |" in text
