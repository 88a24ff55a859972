"""What an event says is what the docs say, for every kind of end."""

from __future__ import annotations

import pytest

from breakwater.domain.job_event import FIELDS, KINDS, bus_detail, kind_of
from breakwater.domain.states import FINAL
from tests.support.builders import make_job
from tools.docs import events

TYPES = {"integer": int, "string": str, "boolean": bool, "null": type(None)}


def test_the_page_is_fresh():
    """`python -m tools.docs.events` was run after the fields changed."""
    assert events.main(["--check"]) == 0, "run: python -m tools.docs.events"


@pytest.mark.parametrize("status", ["succeeded", "dead_letter", "cancelled"])
def test_an_event_has_the_documented_fields_with_the_documented_types(status):
    """Nothing more, nothing less."""
    detail = bus_detail(make_job(status))

    assert list(detail) == [one.name for one in FIELDS]
    for one in FIELDS:
        allowed = tuple(TYPES[name] for name in one.type.split(" or "))
        assert type(detail[one.name]) in allowed, one.name


def test_the_example_is_one_that_could_be_sent():
    """The same fields, the same types."""
    assert list(events.EXAMPLE) == [one.name for one in FIELDS]
    for one in FIELDS:
        assert type(events.EXAMPLE[one.name]) in tuple(TYPES[name] for name in one.type.split(" or ")), one.name


def test_every_final_status_has_its_kind():
    """A new way to end would need a line in the docs."""
    assert set(KINDS) == {f"job.{status.value}" for status in FINAL}
    assert kind_of(make_job("dead_letter")) == "job.dead_letter"
