"""What does a call cost, in whole micro-dollars?"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakwater.domain.pricing import cost_micros, estimate, estimate_tokens
from breakwater.domain.results import Usage


@dataclass(frozen=True)
class Prices:
    """A price table; a price that is not given is unknown."""

    input: int | None = None
    cached_input: int | None = None
    output: int | None = None
    image: int | None = None


TEXT = Prices(input=1_250_000, cached_input=125_000, output=10_000_000)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(input_tokens=1_000_000), 1_250_000),
        (Usage(output_tokens=1_000_000), 10_000_000),
        (Usage(input_tokens=1_000_000, cached_tokens=400_000), 800_000),
        (Usage(output_tokens=100, reasoning_tokens=90), 1_000),
        (Usage(input_tokens=1), 2),
        (Usage(input_tokens=1, output_tokens=1), 12),
        (Usage(), 0),
        (Usage(input_tokens=10, cached_tokens=99), 2),
    ],
)
def test_tokens_cost_what_the_table_says_rounded_up_once(usage, cost):
    """Cached tokens are part of the input and cheaper, reasoning is part of the output, fractions round up."""
    assert cost_micros(usage, TEXT) == cost


def test_cached_tokens_without_a_price_cost_what_input_costs():
    """No discount that nobody has looked up."""
    assert cost_micros(Usage(input_tokens=10, cached_tokens=10), Prices(input=1_000_000)) == 10


@pytest.mark.parametrize(
    ("usage", "prices"),
    [
        (Usage(input_tokens=1), Prices(output=1)),
        (Usage(output_tokens=1), Prices(input=1)),
        (Usage(images=1), Prices(input=1, output=1)),
        (Usage(input_tokens=1, cached_tokens=1), Prices()),
    ],
)
def test_a_cost_that_needs_an_unknown_price_is_unknown(usage, prices):
    """Unknown is not free."""
    assert cost_micros(usage, prices) is None


def test_a_price_that_is_not_needed_may_be_unknown():
    """An input price is enough for a call without output."""
    assert cost_micros(Usage(input_tokens=1), Prices(input=1_000_000)) == 1
    assert cost_micros(Usage(), Prices()) == 0


def test_images_are_paid_by_the_piece_where_they_have_a_price():
    """With a price per image their output tokens cost nothing more; without one the tokens do."""
    usage = Usage(input_tokens=100, output_tokens=4_160, images=2)

    assert cost_micros(usage, Prices(input=1_000_000, output=9, image=40_000)) == 80_100
    assert cost_micros(usage, Prices(input=1_000_000, output=1_000_000)) == 4_260
    assert cost_micros(Usage(images=3), Prices(image=40_000)) == 120_000


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**7))
def test_many_small_calls_never_cost_less_than_one_large_one(inputs, cached, outputs):
    """Rounding up is never to our advantage, and never more than one micro-dollar per call."""
    one = Usage(input_tokens=inputs, cached_tokens=min(cached, inputs), output_tokens=outputs)
    exact = (one.input_tokens - one.cached_tokens) * 1_250_000 + one.cached_tokens * 125_000 + outputs * 10_000_000

    cost = cost_micros(one, TEXT)

    assert 0 <= cost * 1_000_000 - exact < 1_000_000


def test_an_estimate_is_the_input_as_guessed_and_all_the_output():
    """A quarter of the characters, and the whole of what may be produced."""
    payload = {"messages": [{"role": "user", "content": "x" * 392}]}

    assert estimate_tokens(payload) == (392 + len("role") + len("user") + len("content") + 3) // 4
    assert estimate(payload, TEXT, 1_000) == -(-estimate_tokens(payload) * 1_250_000 // 1_000_000) + 10_000
    assert estimate(payload, TEXT, -5) == estimate(payload, TEXT, 0)


def test_an_estimate_counts_everything_that_is_sent():
    """Instructions, schema and tools are input too; parameters are not."""
    payload = {
        "instructions": "abcd",
        "json_schema": {"name": "abcd", "strict": True, "depth": 5},
        "tools": [{"x": None}],
        "parameters": {"temperature": 1},
    }

    assert estimate_tokens(payload) == -(-len("abcdnameabcdstricttruedepth5xnull") // 4)
    assert estimate_tokens({}) == 0


def test_an_image_in_the_input_is_a_flat_number_of_tokens():
    """The letters of a data URL are no text."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}

    assert estimate_tokens({"messages": [{"content": [picture]}]}) == 1_000 + len("content") // 4 + 1


def test_other_scripts_count_by_their_bytes():
    """Characters that are tokens of their own are not counted as quarters; half a character is no failure."""
    assert estimate_tokens({"prompt": "漢" * 4}) == 3
    assert estimate_tokens({"prompt": "\ud83d"}) == 1


@pytest.mark.parametrize(("n", "images"), [(None, 1), (3, 3), (0, 1), ("2", 1)])
def test_media_are_estimated_by_the_piece(n, images):
    """As many images as are asked for, and at least one."""
    payload = {"prompt": "abcd"} if n is None else {"prompt": "abcd", "n": n}

    assert estimate(payload, Prices(input=1_000_000, image=40_000), 9_999) == 40_000 * images + 1
