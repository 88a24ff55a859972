"""What a paid answer cost, when nobody counted its tokens."""

from __future__ import annotations

import pytest

from breakwater.domain.reading import count
from breakwater.domain.results import ESTIMATED, Completed, Result, Usage
from breakwater.usecases.evidence import cost_of
from tests.support.catalogue import route
from tests.support.world import World

PRICED = route("plain", prices={"input": 1_000_000, "output": 2_000_000})
COUNTED = Usage(input_tokens=10, output_tokens=5)


@pytest.mark.parametrize(
    ("usage", "evidence", "reported", "cost"),
    [
        (COUNTED, {}, None, 20),
        (COUNTED, {}, 4_200, 20),  # the route's prices are the contract
        (COUNTED, {"usage": ESTIMATED}, 4_200, 4_200),
        (COUNTED, {"usage": ESTIMATED}, None, 20),
        (Usage(), {}, 4_200, 4_200),
    ],
)
def test_what_was_not_counted_costs_what_is_reported(usage, evidence, reported, cost):
    """An unknown count is not a free call."""
    result = Result(text="answer", usage=usage, evidence=evidence, reported_cost_micros=reported)

    assert cost_of(result, PRICED) == cost


def test_an_answer_without_usage_is_booked_with_an_estimate():
    """Synchronous answers as streams: a budget sees them."""
    world = World()
    world.provider.script = [Completed(result=Result(text="x" * 400))]
    job_id = world.submit(text="y" * 400).job.job_id

    world.settle()

    (line,) = [one for one in world.store.lines.values() if one["job_id"] == job_id]
    assert line["usage_units"] >= 200


@pytest.mark.parametrize(
    ("value", "number"), [("1300", 1300), (1300.0, 1300), ("1.5", 0), (1.5, 0), ("", 0), (True, 0)]
)
def test_a_count_is_read_as_gateways_write_it(value, number):
    """As a number, as text, with a point; anything else is none."""
    assert count(value) == number
