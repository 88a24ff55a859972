"""The benchmark's own arithmetic: what DynamoDB charges, and which limit is met first."""

from __future__ import annotations

import pytest

from tools.bench import report, scaling
from tools.bench.units import item_size, read_units, write_units

KEYS = (("due_shard", "due_at"),)


def item(kilobytes=0.2, **attributes):
    """An item of about this size."""
    return {"pk": {"S": "x" * int(kilobytes * 1024)}, **attributes}


DUE = {"due_shard": {"S": "due#1"}, "due_at": {"N": "17"}}


@pytest.mark.parametrize(
    ("before", "after", "units"),
    [
        ({}, item(), 1),
        (item(), item(1.5), 2),
        (item(1.5), item(), 2),
        ({}, item(**DUE), 2),
        (item(**DUE), item(**DUE), 1),
        (item(**DUE), item(**{**DUE, "due_at": {"N": "18"}}), 3),
        (item(**DUE), item(), 2),
        (item(), {}, 1),
        ({}, {}, 1),
    ],
)
def test_a_write_costs_the_larger_item_and_every_index_entry_that_moves(before, after, units):
    """A move costs two there; what stays costs nothing."""
    assert write_units(before, after, KEYS) == units


def test_sizes_follow_the_published_rules():
    """Names and text in UTF-8, numbers by their digits, containers with their overhead."""
    assert item_size({"ab": {"S": "é"}}) == 4
    assert item_size({"n": {"N": "1800000000000"}}) == 3
    assert item_size({"l": {"L": [{"S": "a"}, {"BOOL": True}]}}) == 1 + 3 + 2 + 2
    assert item_size({"m": {"M": {"k": {"B": b"abc"}}}}) == 1 + 3 + 1 + 1 + 3


def test_reads_are_counted_in_four_kilobytes():
    """An eventual read costs half; nothing found costs as much as something small."""
    assert [read_units(size, consistent=True) for size in (0, 4096, 4097)] == [1, 1, 2]
    assert read_units(10, consistent=False) == 0.5


def test_the_first_limit_is_the_one_of_the_fewest_jobs():
    """And a job that asks for twice as much meets it at half the rate."""
    job = scaling.PerJob(34, 12, 9, 2, 0.8, 0.2, 0.2, 0.2)
    limits = scaling.limits(job)

    assert scaling.first(limits).jobs_a_second == min(one.jobs_a_second for one in limits)
    assert all(one.needed(one.jobs_a_second) == pytest.approx(one.capacity) for one in limits)
    assert "| " in scaling.table(job)


def test_the_page_of_results_says_what_was_not_measured_by_leaving_it_out():
    """A part alone makes a page of its own."""
    growth = [
        {"action": "sweep", "around": f"{n} stored", "requests": 5, "reads": 1.0, "writes": 2.0, "ms": 3.0}
        for n in (1, 2)
    ]

    page = report.page({"growth": growth, "about": {}})

    assert "| flat | 5 → 5 | met |" in page
    assert "Cold start" not in page
