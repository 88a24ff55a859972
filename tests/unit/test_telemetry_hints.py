"""Whether each provider hint was obeyed, and by how much, can be seen as a metric."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakwater.domain.signals import ErrorClass
from breakwater.telemetry import note_metrics, step_metrics
from tests.fakes.outside import refusal
from tests.support.catalogue import catalogue, policy
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


def test_what_only_a_person_can_mend_is_counted():
    """A key refused, no money left, a request that failed: each has an alarm that watches the metric."""
    assert ("AccountRefused", 1, "Count") in note_metrics("route_closed", {"reason": "spend"})
    assert ("AccountRefused", 1, "Count") not in note_metrics("route_closed", {"reason": "overload"})
    assert note_metrics("request_crashed", {}) == note_metrics("request_failed", {}) == [("ApiFailed", 1, "Count")]


@pytest.mark.parametrize(("workflow", "held"), [("sync", 1), ("guarded", 0)])
def test_jobs_held_are_counted_where_no_policy_wished_for_it(workflow, held):
    """An approval that the policy asks for is no trouble."""
    base = catalogue()
    guarded = policy("guarded", requires_approval=True)
    world = World(routes=replace(base, policies={**base.policies, "guarded": guarded}))
    world.provider.script = [refusal(ErrorClass.SPEND, 429)]
    job_id = world.submit(workflow).job.job_id
    world.settle()

    assert world.job(job_id).in_review
    told = [dict(_by_name(step_metrics(*args))) for args in world.log.steps]
    assert sum("JobsHeld" in one for one in told) == held
