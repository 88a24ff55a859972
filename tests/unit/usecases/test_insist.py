"""What was paid for is written down while the worker lives: a store that is away for seconds costs no second call."""

from __future__ import annotations

import pytest

from breakwater.domain.errors import StoreUnavailable
from breakwater.domain.results import Completed
from breakwater.domain.sizes import INLINE_BYTES, SPARE_INLINE_BYTES
from breakwater.domain.states import Status
from breakwater.domain.timing import RESPONSE_RESERVE
from breakwater.usecases.read import with_result
from tests.fakes.outside import answer
from tests.support.world import FUNCTION_MS, World


class Away:
    """A hook: from a provider's answer on, these calls fail until the time is over."""

    def __init__(self, *names):
        self.names, self.until, self.world = names, None, None

    def __call__(self, name, when):
        if (name, when) == ("submit", "after"):
            self.until = self.world.clock.now() + self.ms
        if name in self.names and self.until is not None and self.world.clock.now() < self.until:
            raise StoreUnavailable

    def of(self, ms):
        """The world in which it is so, for so long."""
        self.ms, self.world = ms, World(hook=self)
        return self.world


def calls_and_status(world, job_id):
    """What it came to in the end."""
    world.settle()
    return len(world.provider.calls), world.job(job_id).status


@pytest.mark.parametrize("names", [("put_child",), ("commit",), ("put_child", "commit", "get", "child")])
@pytest.mark.parametrize("ms", [1, 1_000, 10_000, 40_000])
def test_a_table_that_comes_back_in_time_gets_the_result(names, ms):
    """One call, one result, by the worker that heard it."""
    world = Away(*names).of(ms)
    job_id = world.submit().job.job_id

    world.worker(job_id)

    assert world.job(job_id).status is Status.SUCCEEDED
    assert calls_and_status(world, job_id) == (1, Status.SUCCEEDED)


def test_a_table_that_stays_away_does_not_hold_the_worker_past_its_time():
    """It gives up with the reserve left, and says so to its queue."""
    world = Away("put_child", "commit").of(10 * FUNCTION_MS)
    job_id, begun = world.submit().job.job_id, world.clock.now()

    with pytest.raises(StoreUnavailable):
        world.worker(job_id)

    assert world.clock.now() - begun <= FUNCTION_MS - RESPONSE_RESERVE


def test_a_refused_write_for_good_is_not_repeated():
    """Only what may pass is waited for."""
    world = Away().of(0)
    job_id, begun = world.submit().job.job_id, world.clock.now()

    world.worker(job_id)

    assert world.clock.now() == begun


def test_an_object_store_that_is_away_loses_no_result():
    """What fits into an item stands there, and is read like any other."""
    world = Away("put_object").of(10 * FUNCTION_MS)
    text = "x" * (4 * INLINE_BYTES)
    world.provider.script = [Completed(result=answer(text))]
    job_id = world.submit().job.job_id

    world.worker(job_id)

    assert calls_and_status(world, job_id) == (1, Status.SUCCEEDED)
    assert with_result(world.deps, world.job(job_id))["result"]["text"] == text
    assert world.payloads.kept == {}


def test_a_result_that_fits_nowhere_waits_for_the_object_store():
    """Larger than an item may be: it is tried again until it is stored."""
    world = Away("put_object").of(20_000)
    text = "x" * (2 * SPARE_INLINE_BYTES)
    world.provider.script = [Completed(result=answer(text))]
    job_id = world.submit().job.job_id

    world.worker(job_id)

    assert calls_and_status(world, job_id) == (1, Status.SUCCEEDED)
    assert with_result(world.deps, world.job(job_id))["result"]["text"] == text
