"""The tables of reasons leave none out."""

from __future__ import annotations

import pytest

from breakwater.domain.diagnosis import Layer
from breakwater.domain.diagnosis_reasons import DEAD_IN, HELD_IN, WAITS_IN
from breakwater.domain.places import PLACES
from breakwater.domain.states import Reason

MOVING = {Reason.LEASED, Reason.AT_PROVIDER, Reason.COMPLETED, Reason.CANCEL_REQUESTED}


@pytest.mark.parametrize("reason", sorted(PLACES))
def test_every_reason_to_rest_names_a_layer(reason):
    """Wherever a policy lets a job rest, dead or held, the diagnosis has a layer and a sentence for it."""
    for table in (DEAD_IN, HELD_IN):
        layer, says = table[reason]

        assert isinstance(layer, Layer)
        assert says.endswith(".")


@pytest.mark.parametrize("reason", sorted(WAITS_IN))
def test_a_reason_to_wait_is_no_reason_to_rest(reason):
    """The two tables do not overlap."""
    assert reason not in PLACES


def test_every_reason_has_its_place_in_some_table():
    """A new reason must say what it means to whoever is paged."""
    ended = {one for one in Reason if one.value.startswith(("cancelled", "rejected", "closed"))}

    assert set(Reason) - set(DEAD_IN) - set(WAITS_IN) - MOVING - ended == set()
