"""Whether each provider hint was obeyed, and by how much, can be seen as a metric."""

from __future__ import annotations

import pytest

from breakwater.domain.signals import ErrorClass
from breakwater.telemetry import step_metrics
from tests.fakes.outside import refusal
from tests.support.world import World


@pytest.mark.parametrize("hint", [1_000, 5_000, 120_000, 600_000])
def test_an_obeyed_hint_is_measured_and_never_negative(hint):
    """Short and long hints alike; the lease that follows says how much later than asked it was."""
    world = World()
    world.provider.script = [refusal(ErrorClass.PACING, 429, retry_after_ms=hint)]
    began = world.clock.now()
    world.submit()

    world.settle()

    told = [metrics for args in world.log.steps if (metrics := dict(_by_name(step_metrics(*args))))]
    obeyed = [one["HintObeyedBy"] for one in told if "HintObeyedBy" in one]
    assert len(obeyed) == 1
    assert obeyed[0] >= 0
    assert world.clock.now() - began >= hint


def _by_name(metrics):
    return ((name, value) for name, value, _ in metrics)
